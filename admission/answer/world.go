package answer

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/queue"
)

// World is a copy of a state at a time, of which questions are asked. It is used by
// one goroutine at a time.
type World struct {
	im  admission.Image
	now time.Time
	s   *admission.State
	// d is what the controller would decide now; in a settled state that is nothing
	// but why everybody waits.
	d      admission.Decision
	why    map[string]admission.Reason
	text   map[string]string
	known  map[string]*admission.Remembered // by the name under which the state knows it
	place  map[string]position
	rankOf map[string]int // of nodes, in the order of the inventory
}

type position struct{ at, of int }

// New returns a world of the image as of now. The image can be used again.
func New(im admission.Image, now time.Time) *World {
	im.Config.MostActs = 0 // all that would be done is asked for, in however many steps
	im.Workloads = slices.Clone(im.Workloads)
	for i := range im.Workloads { // everybody is told anew
		m := &im.Workloads[i]
		m.Reason, m.Told = admission.Reason{}, ""
		x := *m.Workload
		x.Spec.PodSets = slices.Clone(x.Spec.PodSets)
		x.Settle()
		m.Workload = &x
	}
	w := &World{im: im, now: now, s: admission.NewStateOf(im), known: map[string]*admission.Remembered{}}
	for i := range im.Workloads {
		w.known[im.Workloads[i].Name] = &im.Workloads[i]
	}
	w.rankOf = map[string]int{}
	for i, n := range w.s.Inventory().Names() {
		w.rankOf[n] = i
	}
	w.d = admission.Cycle(w.s, now)
	w.why, w.text = map[string]admission.Reason{}, map[string]string{}
	for _, v := range w.d.Verdicts {
		w.why[v.Key], w.text[v.Key] = v.Reason, v.Text
	}
	w.place = map[string]position{}
	for _, q := range im.Queues {
		order := w.s.Order(q.Quota.Name, now)
		for i, key := range order {
			w.place[key] = position{i + 1, len(order)}
		}
	}
	return w
}

// Open returns the world of a snapshot.
func Open(s *Snapshot) (*World, error) {
	im, err := s.Image()
	if err != nil {
		return nil, err
	}
	return New(im, s.Time), nil
}

// Now is the time as of which the world answers.
func (w *World) Now() time.Time { return w.now }

// Snapshot writes the world down.
func (w *World) Snapshot() *Snapshot { return Write(w.im, w.now) }

// Check is what does not hold of the state's invariants.
func (w *World) Check() []string { return w.s.Check() }

// queueOf is the queue called name, or nil.
func (w *World) queueOf(name string) *queue.Queue {
	i, ok := slices.BinarySearchFunc(w.im.Queues, name, func(q *queue.Queue, name string) int { return cmp.Compare(q.Quota.Name, name) })
	if !ok {
		return nil
	}
	return w.im.Queues[i]
}

// jobName is how the controller calls the workload of a job: kind-name-hash.
var jobName = regexp.MustCompile(`^[a-z0-9]+-(.+)-[0-9a-f]{5}$`)

// NotFound says that nothing, or more than one thing, is called so.
type NotFound struct {
	What, Name string
	Several    []string // that could be meant
}

func (e NotFound) Error() string {
	if len(e.Several) > 0 {
		return fmt.Sprintf("%s could be any of %s", e.Name, strings.Join(e.Several, ", "))
	}
	return fmt.Sprintf("there is no %s %s", e.What, e.Name)
}

// Find returns the key of the workload that people call name: its key, or its name
// or that of its job in the namespace, or in any if that is "".
func (w *World) Find(namespace, name string) (string, error) {
	if w.known[name] != nil && namespace == "" {
		return name, nil
	}
	var found []string
	for key := range w.known {
		ns, short, split := strings.Cut(key, "/")
		if !split {
			ns, short = "", key
		}
		if namespace != "" && split && ns != namespace || w.known[key].Gone {
			continue
		}
		m := jobName.FindStringSubmatch(short)
		if key == name || short == name || m != nil && m[1] == name {
			found = append(found, key)
		}
	}
	slices.Sort(found)
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		if namespace != "" && !strings.Contains(name, "/") {
			name = namespace + "/" + name
		}
		return "", NotFound{What: "job", Name: name}
	default:
		return "", NotFound{What: "job", Name: name, Several: found}
	}
}

// Namespace is that of a key, or "".
func Namespace(key string) string {
	ns, _, ok := strings.Cut(key, "/")
	if !ok {
		return ""
	}
	return ns
}
