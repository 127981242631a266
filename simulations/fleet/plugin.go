package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sluice.dev/sluice/nodeagent/api/v1alpha1"
)

// claims are what the device plugin and feature discovery of one node say.
type claims struct {
	node string
	c    client.Client

	mu        sync.Mutex
	report    *v1alpha1.Report // the cards as they are
	plugin    bool             // the plugin looks
	discovery bool             // feature discovery looks
	offers    map[string]int64 // as the node has them
	labels    map[string]string
	anew      bool // write again what was written, since others may have changed it
	again     chan struct{}
}

func newClaims(c client.Client, node string) *claims {
	return &claims{node: node, c: c, plugin: true, discovery: true, offers: map[string]int64{}, labels: map[string]string{}, again: make(chan struct{}, 1)}
}

// saw hands over the cards as they are now.
func (k *claims) saw(r *v1alpha1.Report) {
	k.mu.Lock()
	k.report = r
	k.mu.Unlock()
	k.wake()
}

// look has one of the two look, or stop looking.
func (k *claims) look(plugin, discovery *bool) {
	k.mu.Lock()
	if plugin != nil {
		k.plugin, k.anew = *plugin, k.anew || *plugin
	}
	if discovery != nil {
		k.discovery, k.anew = *discovery, k.anew || *discovery
	}
	k.mu.Unlock()
	k.wake()
}

func (k *claims) wake() {
	select {
	case k.again <- struct{}{}:
	default:
	}
}

// run keeps the node as the two say until ctx ends.
func (k *claims) run(ctx context.Context, failed func(error)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.again:
		}
		if err := k.write(ctx); err != nil && ctx.Err() == nil {
			failed(err)
			pause(ctx, retryAfter)
			k.wake()
		}
	}
}

// write brings the node in line.
func (k *claims) write(ctx context.Context) error {
	k.mu.Lock()
	r, plugin, discovery, anew := k.report, k.plugin, k.discovery, k.anew
	k.anew = false
	k.mu.Unlock()
	if r == nil || len(r.Cards) == 0 {
		return nil // as long as the driver does not answer, neither says anything new
	}
	if labels := labelled(r); discovery && (anew || !maps.Equal(labels, k.labels)) {
		change := map[string]any{}
		for key := range k.labels {
			change[key] = nil
		}
		for key, value := range labels {
			change[key] = value
		}
		if err := k.patch(ctx, map[string]any{"metadata": map[string]any{"labels": change}}, ""); err != nil {
			return fmt.Errorf("feature discovery of %s: %w", k.node, err)
		}
		k.labels = labels
	}
	if offers := offered(r, k.offers); plugin && (anew || !maps.Equal(offers, k.offers)) {
		list := map[string]string{}
		for name, n := range offers {
			list[name] = fmt.Sprint(n)
		}
		if err := k.patch(ctx, map[string]any{"status": map[string]any{"capacity": list, "allocatable": list}}, "status"); err != nil {
			return fmt.Errorf("device plugin of %s: %w", k.node, err)
		}
		k.offers = offers
	}
	return nil
}

func (k *claims) patch(ctx context.Context, body map[string]any, subresource string) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	node := &corev1.Node{}
	node.Name = k.node
	if subresource != "" {
		return k.c.Status().Patch(ctx, node, client.RawPatch(types.MergePatchType, text))
	}
	return k.c.Patch(ctx, node, client.RawPatch(types.MergePatchType, text))
}

// offered is what the plugin registers of these cards, with 0 of what it registered
// before and does not any more.
func offered(r *v1alpha1.Report, before map[string]int64) map[string]int64 {
	out := map[string]int64{}
	for name := range before {
		out[name] = 0
	}
	if r.Refusal() != "" {
		return out
	}
	for i := range r.Cards {
		if r.Cards[i].Out == v1alpha1.Lost {
			continue
		}
		for _, o := range r.Offers(&r.Cards[i]) {
			out[o.Resource] += o.Count
		}
	}
	return out
}

// labelled are the labels that feature discovery sets for these cards.
func labelled(r *v1alpha1.Report) map[string]string {
	out := map[string]string{"nvidia.com/gpu.present": "true"}
	for _, f := range r.Features() {
		if f.Value != "" {
			out[f.Key] = f.Value
		}
	}
	return out
}
