package kube

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"sluice.dev/sluice/admission"
)

// replay looks at the decisions that an earlier process did not settle. The API
// server says what of them was done, and that has been read already; what was not
// done is decided anew, on what holds now.
func (r *runner) replay(j Journal) error {
	past, err := j.Usage()
	if err != nil {
		return fmt.Errorf("replay the journal: %w", err)
	}
	if past != nil {
		r.state.Apply(admission.PastSeen{Past: *past})
	}
	unsettled, err := j.Replay()
	if err != nil {
		return fmt.Errorf("replay the journal: %w", err)
	}
	for i := range unsettled {
		d := &unsettled[i]
		done, not := r.compare(d)
		r.log.Info("decision resumed", "cycle", d.Seq, "decided", d.At, "done", done, "notDone", not)
		if err := j.Settle(d.Seq); err != nil {
			return fmt.Errorf("settle decision %d: %w", d.Seq, err)
		}
	}
	return nil
}

// compare counts which writes of the decision took effect.
func (r *runner) compare(d *admission.Decision) (done, not int) {
	count := func(was bool) {
		if was {
			done++
		} else {
			not++
		}
	}
	for i := range d.Admit {
		v, ok := r.state.View(d.Admit[i].Key)
		count(ok && v.Admission != nil && v.Admission.Stamp() == d.Admit[i].Stamp())
	}
	for i := range d.Move {
		v, ok := r.state.View(d.Move[i].Key)
		count(ok && v.Admission != nil && v.Admission.Plan.String() == d.Move[i].Plan.String())
	}
	for _, e := range d.Evict {
		v, ok := r.state.View(e.Key)
		count(!ok || v.Phase != admission.Admitted)
	}
	for _, rel := range d.Release {
		known := r.pods[types.UID(rel.UID)]
		count(known == nil || known.pod.Phase != admission.PodGated)
	}
	return done, not
}
