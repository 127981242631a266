package admission

import "sluice.dev/sluice/queue"

// A shape that failed is looked at again when something happened that could help it.
// What frees room or quota could help anybody and counts in State.changes. A queue
// that borrows more has only become a better place to take back from: that helps
// those alone who could reach one of its gangs, and is kept as a rise.

// rise is a queue that has come to borrow more.
type rise struct {
	n     uint64 // as State.rises counted it
	queue string
}

// risesMost bounds how many rises are kept, and risesAsked how many of them are asked
// about one by one rather than to look again.
const risesMost, risesAsked = 1024, 32

// rises notes that the queue borrows more now.
func (s *State) rise(name string) {
	if len(s.rose) >= risesMost {
		s.rose = nil
		s.changes++ // whoever looked before that has to look again
	}
	s.rises++
	s.rose = append(s.rose, rise{s.rises, name})
}

// roused says whether a rise since then could help r, which failed: whether a gang
// that the risen queue runs might be taken back for it.
func (p *pass) roused(r *record, leaf int, q *queue.Queue, since uint64) bool {
	if p.s.rises-since > risesAsked || len(p.begun) > risesAsked {
		return true
	}
	for _, x := range p.begun { // what this pass starts may have to give way as well
		if p.helps(r, leaf, q, x.queue) {
			return true
		}
	}
	for i := len(p.s.rose) - 1; i >= 0 && p.s.rose[i].n > since; i-- {
		if p.helps(r, leaf, q, p.s.rose[i].queue) {
			return true
		}
	}
	return false
}

func (p *pass) helps(r *record, leaf int, q *queue.Queue, name string) bool {
	id, known := p.s.tree.ID(name)
	if !known || name == r.w.Queue {
		return true
	}
	gains, loses := p.s.tree.Below(leaf, id)
	if gains != leaf || loses != id || len(p.s.tree.Children(id)) > 0 {
		return true // its rise is that of others too
	}
	own, from := p.crewed().byName[r.w.Queue], p.crewed().byName[name]
	if from == nil {
		return false
	}
	if own != nil && len(own.takable) > 0 && q.Within != queue.WithinNever {
		return true
	}
	defer func(was bool) { p.unsure = was }(p.unsure)
	p.unsure = false
	for _, f := range q.Choices() {
		charge := f.Charge(r.w.Least())
		if !p.reaches(leaf, q, from, charge) {
			continue
		}
		var list []victim
		for _, x := range from.takable {
			if !p.evicted[x] && !p.replaced[x] && eligible(r, q, x, charge) {
				list = p.candidate(list, x)
			}
		}
		if p.unsure || p.viable(leaf, charge, p.going(r, charge), list) {
			return true
		}
	}
	return false
}
