package journal

import (
	"fmt"

	"go.etcd.io/bbolt"

	"sluice.dev/sluice/admission"
)

// Usage returns what queues used of late as the latest decision that says so has it,
// or nil. Losing it costs only that teams which used little of late do not go first.
func (j *Journal) Usage() (*admission.Past, error) {
	var past *admission.Past
	err := j.db.View(func(tx *bbolt.Tx) error {
		c := tx.Bucket(bucketDecisions).Cursor()
		for k, v := c.Last(); k != nil && past == nil; k, v = c.Prev() {
			d, err := decode(v, number(k))
			if err != nil {
				return err
			}
			past = d.Past
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read past use from journal %s: %w", j.db.Path(), err)
	}
	return past, nil
}
