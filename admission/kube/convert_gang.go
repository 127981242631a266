package kube

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

const (
	// VolcanoQueueAnnotation names the Volcano Queue of a Workload that has no
	// LocalQueue, since its PodGroup names the queue itself.
	VolcanoQueueAnnotation = "sluice.dev/volcano-queue"
	// GangAnnotation says how many pods of each set a Workload asks for, and how few
	// are enough, where that may change while it runs: as FormatGang writes it. It goes
	// before the counts of the pod sets, which nobody may change then.
	GangAnnotation = "sluice.dev/gang"
	// QueuedAtAnnotation is since when a Workload waits that is younger than what it is
	// of: a time as 2026-01-02T03:04:05Z.
	QueuedAtAnnotation = "sluice.dev/queued-at"
)

// SetSize is how few pods of a set are enough, and how many are asked for.
type SetSize struct {
	Name        string
	Least, Most int
}

// FormatGang writes the sizes, and the fewest pods over all sets, as GangAnnotation
// has them: ps=1..1,worker=0..7,total=3.
func FormatGang(sets []SetSize, total int) string {
	var parts []string
	for _, s := range sets {
		parts = append(parts, fmt.Sprintf("%s=%d..%d", s.Name, s.Least, s.Most))
	}
	return strings.Join(append(parts, fmt.Sprintf("total=%d", total)), ",")
}

// gangSizes are the sizes in a Workload's annotation, nil if it has none.
func gangSizes(wl *kueue.Workload) (sets []SetSize, total int, err error) {
	text, ok := wl.Annotations[GangAnnotation]
	if !ok {
		return nil, 0, nil
	}
	return ParseGang(text)
}

// ParseGang reads what FormatGang wrote.
func ParseGang(text string) (sets []SetSize, total int, err error) {
	parts := strings.Split(text, ",")
	last, ok := strings.CutPrefix(parts[len(parts)-1], "total=")
	if total, err = strconv.Atoi(last); !ok || err != nil || total < 0 {
		return nil, 0, fmt.Errorf("annotation %s is %q: it does not end with total=NUMBER", GangAnnotation, text)
	}
	for _, part := range parts[:len(parts)-1] {
		name, bounds, _ := strings.Cut(part, "=")
		low, high, _ := strings.Cut(bounds, "..")
		least, bad := strconv.Atoi(low)
		most, worse := strconv.Atoi(high)
		if name == "" || bad != nil || worse != nil || least < 0 || most < least {
			return nil, 0, fmt.Errorf("annotation %s is %q: %q, want NAME=LEAST..MOST", GangAnnotation, text, part)
		}
		sets = append(sets, SetSize{name, least, most})
	}
	return sets, total, nil
}

// resize gives the pod set the size that the annotation says, and says whether it
// says one.
func (p *podSet) resize(sets []SetSize) bool {
	i := slices.IndexFunc(sets, func(s SetSize) bool { return s.Name == p.Name })
	if i >= 0 {
		p.Count, p.Min = sets[i].Most, sets[i].Least
	}
	return i >= 0
}

// queuedSince is when the Workload was queued, by its annotation, if nothing since put it
// elsewhere in the queue than its creation.
func queuedSince(wl *kueue.Workload, at time.Time) time.Time {
	if t, err := time.Parse(time.RFC3339, wl.Annotations[QueuedAtAnnotation]); err == nil && at.Equal(wl.CreationTimestamp.Time) {
		return t
	}
	return at
}

// queueOf is what the Workload is submitted to: the name of a LocalQueue, or with a
// mark before it that of a Volcano Queue.
func queueOf(wl *kueue.Workload) string {
	if wl.Spec.QueueName == "" && wl.Annotations[VolcanoQueueAnnotation] != "" {
		return volcanoMark + wl.Annotations[VolcanoQueueAnnotation]
	}
	return string(wl.Spec.QueueName)
}

// volcanoMark starts what queueOf returns of a Volcano Queue; no object is called so.
const volcanoMark = "volcano/"

// resolveVolcano is where a Workload leads that names a Volcano Queue itself.
func (c *catalog) resolveVolcano(name string) resolution {
	r := resolution{queue: name}
	switch bad := c.faults[object{volcanoQueueKind, "", name}]; {
	case name == volcanoRoot:
		r.invalid = "queue root is the whole cluster; submit to a queue under it"
	case c.volcanoQueues[name] == nil:
		r.queue = "Volcano Queue " + name
	case bad != nil:
		r.invalid = fmt.Sprintf("Volcano Queue %s: %s", name, bad.message)
	}
	return r
}
