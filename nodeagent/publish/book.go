package publish

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/nodeagent/api/v1alpha1"
)

const (
	// xidGrain is to what an Xid that comes again and again is told.
	xidGrain = 10 * time.Minute
	// slowGrain is for how long a reason to hold clocks down is told after it went. It
	// may come and go with every look.
	slowGrain = 5 * time.Minute
)

// Book knows since when a node is as it is: it gives each report the times of the
// last one for whatever has not changed, and says whether anything has. What only
// flickers is told calmly.
type Book struct {
	last *v1alpha1.Report
	slow map[slowdown]time.Time // when it was seen last
}

type slowdown struct{ uuid, reason string }

// NewBook begins with what was published last, by this agent or one before it; nil is
// that nothing was.
func NewBook(last *v1alpha1.Report) *Book {
	return &Book{last: last, slow: map[slowdown]time.Time{}}
}

// Enter is the report of what was seen, with its times, and whether it says something
// else than the last one.
func (b *Book) Enter(s Seen) (r *v1alpha1.Report, changed bool) {
	now := s.Report.Time
	s = b.calm(s, now)
	r = Convert(s)
	was := b.last
	if was == nil {
		was = &v1alpha1.Report{}
	}
	stamp := metav1.NewTime(now).Rfc3339Copy()
	carryLayout(was, r, stamp)
	carryProblems(was, r, stamp)
	carryXids(was, r)
	r.Changed = was.Changed
	if b.last != nil && equality.Semantic.DeepEqual(was, r) {
		return b.last, false
	}
	r.Changed = stamp
	b.last = r
	return r, true
}

// agrees says whether the report is the one that was entered last.
func (b *Book) agrees(r *v1alpha1.Report) bool {
	return b.last != nil && r != nil && equality.Semantic.DeepEqual(b.last, r)
}

// calm adds reasons for held clocks that are gone for a short time only.
func (b *Book) calm(s Seen, now time.Time) Seen {
	report := *s.Report
	report.Cards = append(report.Cards[:0:0], report.Cards...)
	for i := range report.Cards {
		c := &report.Cards[i]
		for _, reason := range c.Health.Slowdown {
			b.slow[slowdown{c.UUID, reason}] = now
		}
		if c.Lost {
			continue
		}
		c.Health.Slowdown = nil
		for _, reason := range slowdowns {
			if at, ok := b.slow[slowdown{c.UUID, reason}]; ok && now.Sub(at) < slowGrain {
				c.Health.Slowdown = append(c.Health.Slowdown, reason)
			}
		}
	}
	for k, at := range b.slow {
		if now.Sub(at) >= slowGrain {
			delete(b.slow, k)
		}
	}
	s.Report = &report
	return s
}

// slowdowns are the reasons that point at hardware, in their order.
var slowdowns = []string{"hwSlowdown", "swThermal", "hwThermal", "powerBrake"}

// carryLayout counts on where the last agent stopped: the same layout keeps its
// number, another one gets the next. Without a layout the last one stands.
func carryLayout(was, r *v1alpha1.Report, now metav1.Time) {
	switch {
	case r.Layout == nil:
		r.Layout = was.Layout
	case was.Layout == nil:
		r.Layout.Generation, r.Layout.Since = 1, &now
	case was.Layout.Print == r.Layout.Print:
		r.Layout = was.Layout
	default:
		r.Layout.Generation, r.Layout.Since = was.Layout.Generation+1, &now
	}
}

// carryProblems gives each problem the time since when it, or its like, was there.
func carryProblems(was, r *v1alpha1.Report, now metav1.Time) {
	for i := range r.Problems {
		p := &r.Problems[i]
		p.Since = now
		exact := false
		for k := range was.Problems {
			o := &was.Problems[k]
			same := o.Message == p.Message
			if o.What == p.What && o.Field == p.Field && compareCards(o.Card, p.Card) == 0 && (same || !exact) {
				p.Since, exact = o.Since, same || exact
			}
		}
	}
}

// carryXids keeps the times of events that came again within the grain.
func carryXids(was, r *v1alpha1.Report) {
	for i := range r.Cards {
		c := &r.Cards[i]
		for k := range was.Cards {
			o := &was.Cards[k]
			if o.UUID != c.UUID || o.Health == nil || c.Health == nil {
				continue
			}
			for a := range c.Health.Xids {
				for z := range o.Health.Xids {
					x, y := &c.Health.Xids[a], &o.Health.Xids[z]
					if sameXid(x, y) && x.Time.Sub(y.Time.Time) < xidGrain && x.Time.Sub(y.Time.Time) > 0 {
						x.Time = y.Time
					}
				}
			}
		}
	}
}
