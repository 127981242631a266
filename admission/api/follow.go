package api

import (
	"context"
	"time"

	"sluice.dev/sluice/admission/answer"
	"sluice.dev/sluice/admission/api/pages"
)

// restFactor is how many times as long as a sample took its follower rests: on a
// cluster so large that a sample takes a second it is taken every minute or so.
const restFactor = 60

// Follow samples the shares of queues for the pages until ctx ends. A replica that
// does not lead has nothing to sample, and goes on trying.
func (h *Handler) Follow(ctx context.Context) {
	rest := time.NewTimer(0)
	defer rest.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-rest.C:
		}
		begin := h.now()
		h.sample(ctx)
		rest.Reset(max(pages.SampleEvery, restFactor*h.now().Sub(begin)))
	}
}

func (h *Handler) sample(ctx context.Context) {
	wait, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c, err := h.source.Copy(wait, MaxAge)
	if err != nil {
		return // whoever asks meanwhile is told so
	}
	w := answer.New(c.Image, c.At)
	for _, resource := range append([]string{""}, h.shares.Resources()...) { // "" is what is scarce now
		if list, err := w.Queues(resource); err == nil { // one may be known no more
			h.shares.Add(c.At, list)
		}
	}
}
