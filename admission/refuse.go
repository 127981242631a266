package admission

import (
	"maps"
	"slices"
	"time"

	"sluice.dev/sluice/gang"
	"sluice.dev/sluice/quota"
)

// A kubelet that lets pods with devices not in does so for all of them, until its
// device plugin is well again. Nobody else says so: it is learned from the first pod
// that ends refused. Its gang is taken back at once, and the node is closed for
// such pods, longer each time. Then it is on trial: of every gang with places there
// one pod goes first, and the others wait until it was let in. So a node that still
// refuses costs a gang that is started nothing that ran.
//
//	open ──a pod is refused──▶ closed ──time is over──▶ on trial ──a pod is let in──▶ open
//	                             ▲                          │
//	                             └────a pod is refused──────┘
//
// This is kept in memory only: after a restart the next refusal teaches it again.

// refusal is what is remembered of a node that refused a pod.
type refusal struct {
	node  *gang.Node // as it was last seen
	times int        // refused in a row
	until time.Time  // closed until then; zero once it is on trial
}

// The first closure of a node that refuses, doubled each time, and the longest.
const (
	refuseBase = time.Minute
	refuseMost = 15 * time.Minute
)

// closure is how long a node is closed after so many refusals in a row.
func closure(times int) time.Duration {
	d := refuseBase
	for range times - 1 {
		if d *= 2; d >= refuseMost {
			return refuseMost
		}
	}
	return d
}

// view is the node as plans see it.
func (f *refusal) view() *gang.Node {
	if f.until.IsZero() {
		n := *f.node
		n.Doubtful = true
		return &n
	}
	return f.node.CloseCards(gang.Outage{What: gang.Refusing, Detail: "its kubelet lets no pods with devices in"})
}

// putNode shows the node to plans, closed or on trial if it refused a pod.
func (s *State) putNode(n *gang.Node) {
	if f := s.refusals[n.Name]; f != nil {
		f.node = n
		n = f.view()
	}
	s.inv.Put(n)
	s.reshape()
}

// close remembers that the node refused once more.
func (s *State) close(m Mark) {
	n := s.inv.Node(m.Node)
	if n == nil {
		return
	}
	f := s.refusals[m.Node]
	if f == nil {
		f = &refusal{node: n}
		s.refusals[m.Node] = f
	}
	f.times, f.until = m.Refused, m.Until
	s.putNode(f.node)
}

// reopen puts nodes on trial whose closure is over.
func (s *State) reopen(now time.Time) {
	for _, name := range slices.Sorted(maps.Keys(s.refusals)) {
		if f := s.refusals[name]; !f.until.IsZero() && !now.Before(f.until) {
			f.until = time.Time{}
			s.putNode(f.node)
		}
	}
}

// letIn ends the trial of the pod's node.
func (s *State) letIn(p *Pod) {
	f := s.refusals[p.Node]
	if f == nil || !f.node.Asks(p.Request) {
		return
	}
	delete(s.refusals, p.Node)
	s.putNode(f.node)
}

// turnedAway is a pod of r with devices that a kubelet refused under the current
// admission, or nil.
func (p *pass) turnedAway(r *record) *podRecord {
	var first *podRecord
	for _, pod := range r.pods {
		if pod.Phase != PodFailed || !pod.Refused || !r.current(pod) || first != nil && first.UID < pod.UID {
			continue
		}
		if n := p.inv.Node(pod.Node); n != nil && n.Asks(r.requestOf(pod)) {
			first = pod
		}
	}
	return first
}

func (r *record) requestOf(p *podRecord) quota.Resources {
	return r.w.Spec.PodSets[r.setIndex(p.Set)].Request
}

// shut closes the node that refused a pod, for this pass as well. A node that is
// closed already stays so no longer for it.
func (p *pass) shut(node string) {
	f := p.s.refusals[node]
	if p.shutNow[node] || f != nil && !f.until.IsZero() {
		return
	}
	times := 1
	if f != nil {
		times += f.times
	}
	p.shutNow[node] = true
	p.d.Marks = append(p.d.Marks, Mark{Node: node, Refused: times, Until: p.now.Add(closure(times))})
	p.inv.Take(node, p.inv.Node(node).Devices(p.inv.Free(node)))
}

// onTrial says whether pods of the set try out the node, so that one of them goes
// first.
func (p *pass) onTrial(node string, ps *gang.PodSet) bool {
	n := p.inv.Node(node)
	return n != nil && n.Doubtful && n.Asks(ps.Request)
}

// trials keeps, of the open places that the gated pods of r could be released to,
// one on each node on trial, if there are any; none while a pod that tries out such a
// node has not been let in yet.
func (p *pass) trials(r *record, spec *gang.Spec, slots []slotKey, gated []*podRecord, open map[slotKey]int) []slotKey {
	if len(p.s.refusals) == 0 {
		return slots
	}
	tried, trial := map[string]bool{}, false
	for _, pod := range r.pods {
		if pod.live() && r.current(pod) && !pod.Accepted && p.onTrial(pod.Node, &spec.PodSets[r.setIndex(pod.Set)]) {
			tried[pod.Node], trial = true, true
		}
	}
	var list []slotKey
	for _, k := range slots {
		wanted := slices.ContainsFunc(gated, func(pod *podRecord) bool { return r.setIndex(pod.Set) == k.set })
		if !wanted || !p.onTrial(k.node, &spec.PodSets[k.set]) {
			continue
		}
		trial = true
		if !tried[k.node] {
			tried[k.node] = true
			open[k] = 1
			list = append(list, k)
		}
	}
	if !trial {
		return slots
	}
	return list
}
