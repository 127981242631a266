package answer

import (
	"context"
	"maps"
	"slices"
	"time"

	"sluice.dev/sluice/admission"
)

// play lets time pass on a copy: the real loop decides, everything it asks for is
// done at once and succeeds, who is taken back stops at once and waits again, and
// who runs ends after a part of its own limit. Nobody new comes. Work without a limit
// never ends.
type play struct {
	part    time.Duration // of a limit is used: one in so many
	s       *admission.State
	loop    *admission.Loop
	now     time.Time
	version uint64
	known   map[string]admission.Remembered
	ends    map[string]time.Time
	news    []admission.Event // seen after the step

	admitted map[string]admission.Admission // first
	evicted  []admission.Eviction
	ended    []string
}

// newPlay begins a play in which gangs use one part in so many of their limits; 1 is
// all of it.
func newPlay(im admission.Image, now time.Time, part time.Duration) *play {
	p := &play{
		part: part,
		s:    admission.NewStateOf(im), now: now, version: 1 << 60, known: map[string]admission.Remembered{},
		ends: map[string]time.Time{}, admitted: map[string]admission.Admission{},
	}
	p.loop = admission.NewLoop(p.s, p, p)
	for _, m := range im.Workloads {
		p.known[m.Name] = m
		switch {
		case m.Phase == admission.Admitted && m.Workload.Limit > 0:
			p.ends[m.Name] = later(now, m.Admission.At.Add(m.Workload.Limit/part))
		case m.Phase == admission.Stopping && (m.Leaving.IsZero() || now.Before(m.Leaving.Add(im.Config.RecoveryWindow))):
			p.leave(m.Name, false)
		}
	}
	return p
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// Append is the journal's: nothing has to be kept.
func (p *play) Append(*admission.Decision) (uint64, error) { return 1, nil }

// Settle is the journal's.
func (p *play) Settle(uint64) error { return nil }

// Carry does all that is decided.
func (p *play) Carry(_ context.Context, d *admission.Decision) []admission.Outcome {
	var out []admission.Outcome
	done := func(act admission.Act, key string) {
		p.version++
		out = append(out, admission.Outcome{Act: act, Key: key, Result: admission.Committed, Version: p.version, At: p.now})
	}
	for _, a := range d.Admit {
		done(admission.ActAdmit, a.Key)
		if _, again := p.admitted[a.Key]; !again {
			p.admitted[a.Key] = a
		}
		if limit := p.known[a.Key].Workload.Limit; limit > 0 {
			p.ends[a.Key] = p.now.Add(limit / p.part)
		}
	}
	for _, key := range d.Finish {
		done(admission.ActFinish, key)
		p.admitted[key] = admission.Admission{Key: key, At: p.now}
	}
	for _, a := range d.Move {
		done(admission.ActMove, a.Key)
	}
	for _, e := range d.Evict {
		done(admission.ActEvict, e.Key)
		p.evicted = append(p.evicted, e)
		p.leave(e.Key, e.Cause == admission.Expired)
	}
	for _, r := range d.Release {
		done(admission.ActRelease, r.UID)
	}
	return out
}

// leave has the gang's pods gone, and the gang wait again or be finished.
func (p *play) leave(key string, finished bool) {
	m := p.known[key]
	delete(p.ends, key)
	for _, pod := range m.Pods {
		if pod.Node != "" {
			p.news = append(p.news, admission.PodGone{UID: pod.UID})
		}
	}
	x := *m.Workload
	x.Spec.PodSets = slices.Clone(x.Spec.PodSets)
	p.version++
	p.news = append(p.news, admission.WorkloadSeen{Workload: &x, Version: p.version, Fresh: true, Finished: finished})
	if finished {
		p.ended = append(p.ended, key)
	}
}

// stepsAtOnce bounds how often the loop may act at one instant.
const stepsAtOnce = 100

// settle lets the loop act until it has nothing more to do at this instant.
func (p *play) settle() {
	for range stepsAtOnce {
		news := p.news
		p.news = nil
		p.loop.Observe(news...)
		d, err := p.loop.Step(context.Background(), p.now)
		if err != nil {
			panic(err) // the journal here has no errors
		}
		if !d.Acts() && len(p.news) == 0 {
			return
		}
	}
}

// run lets time pass until done says so, or until, or for so many instants, and says
// whether done did.
func (p *play) run(until time.Time, instants int, done func() bool) bool {
	for range instants {
		p.settle()
		if done() {
			return true
		}
		next := p.s.Wake(p.now)
		for _, at := range p.ends {
			if next.IsZero() || at.Before(next) {
				next = later(p.now, at)
			}
		}
		if next.IsZero() || next.After(until) {
			return false
		}
		p.now = next
		for _, key := range slices.Sorted(maps.Keys(p.ends)) {
			if !p.ends[key].After(p.now) {
				p.leave(key, true)
			}
		}
	}
	return false
}
