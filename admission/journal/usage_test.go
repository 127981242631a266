package journal

import (
	"path/filepath"
	"testing"
	"time"

	"sluice.dev/sluice/admission"
)

// The latest past use is found again after a restart, also behind decisions that
// tell none.
func TestUsage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := mustOpen(t, path, DefaultLimits())
	if past, err := j.Usage(); past != nil || err != nil {
		t.Fatalf("an empty journal tells %v, %v", past, err)
	}
	for i, amount := range []int64{3, 5} {
		d := decide(i + 1)
		d.Past = &admission.Past{At: time.Unix(int64(i), 0).UTC(), Used: map[string]map[string]int64{"a": {"cpu": amount}}}
		mustAppend(t, j, d)
	}
	mustAppend(t, j, decide(3))
	mustClose(t, j)
	j = mustOpen(t, path, DefaultLimits())
	defer mustClose(t, j)
	past, err := j.Usage()
	if err != nil || past == nil || past.Used["a"]["cpu"] != 5 || !past.At.Equal(time.Unix(1, 0)) {
		t.Fatalf("the journal tells %v, %v", past, err)
	}
}
