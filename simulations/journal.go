package simulations

import (
	"errors"
	"fmt"

	"sluice.dev/sluice/admission"
)

// memoryJournal is a journal that survives the controller's death, as a file
// would. The dead do not write.
type memoryJournal struct {
	cluster *Cluster
	seq     uint64
	open    map[uint64]bool // appended and not settled
}

var errDead = errors.New("the controller is dead")

func newJournal(c *Cluster) *memoryJournal {
	return &memoryJournal{cluster: c, open: map[uint64]bool{}}
}

// Append keeps the decision and numbers it.
func (j *memoryJournal) Append(*admission.Decision) (uint64, error) {
	if j.cluster.dead {
		return 0, errDead
	}
	j.seq++
	j.open[j.seq] = true
	return j.seq, nil
}

// Settle says that everything of a decision was answered.
func (j *memoryJournal) Settle(seq uint64) error {
	if j.cluster.dead {
		return errDead
	}
	if !j.open[seq] {
		return fmt.Errorf("decision %d is not open", seq)
	}
	delete(j.open, seq)
	return nil
}

// recover settles what the dead left open: what of it was done, the API says.
func (j *memoryJournal) recover() int {
	n := len(j.open)
	clear(j.open)
	return n
}
