package gang

import (
	"cmp"
	"container/heap"

	"sluice.dev/sluice/quota"
)

// seat is a node with room for n pods of the pod set at hand.
type seat struct {
	p     *place
	n     int
	at    int  // its position among the nodes
	waste bool // rather to be left alone: see wastes
	free  int64
	score int // how much its pods would rather be here
}

func (a *attempt) seat(p *place, i, n, at int) seat {
	return seat{p: p, n: n, at: at, waste: a.wastes(p, i), free: p.free.At(a.key[i]), score: a.score(i, p, false)}
}

// seatHeap gives seats in the order of compareSeats.
type seatHeap struct {
	seats    []seat
	emptiest bool
}

func (h *seatHeap) Len() int           { return len(h.seats) }
func (h *seatHeap) Less(i, j int) bool { return compareSeats(h.seats[i], h.seats[j], h.emptiest) < 0 }
func (h *seatHeap) Swap(i, j int)      { h.seats[i], h.seats[j] = h.seats[j], h.seats[i] }

// Push is needed by heap.Interface.
func (h *seatHeap) Push(s any) { h.seats = append(h.seats, s.(seat)) }

// Pop is needed by heap.Interface, pop is the typed one.
func (h *seatHeap) Pop() any {
	s := h.seats[len(h.seats)-1]
	h.seats = h.seats[:len(h.seats)-1]
	return s
}

func (h *seatHeap) pop() seat { return heap.Pop(h).(seat) }

// compareSeats orders nodes for pods of one set: those where they would rather be
// first, then those without idle devices, then the fullest (or emptiest), then by the
// order of the inventory.
func compareSeats(x, y seat, emptiest bool) int {
	if x.score != y.score {
		return cmp.Compare(y.score, x.score)
	}
	if x.waste != y.waste {
		if x.waste {
			return 1
		}
		return -1
	}
	free := cmp.Compare(x.free, y.free)
	if emptiest {
		free = -free
	}
	return cmp.Or(free, cmp.Compare(x.at, y.at))
}

// wastes says whether pods of set i should rather go elsewhere: the node offers
// devices that they leave idle, or whole cards where a shared one would do, or it is
// not sure to take them.
func (a *attempt) wastes(p *place, i int) bool {
	ps := &a.spec.PodSets[i]
	if p.node.Doubtful {
		return true
	}
	if d := p.node.Cards; d != nil && ps.Sharing == AnyCards && d.shared == 0 && ps.Request.At(d.Whole) > 0 {
		return true
	}
	req := ps.Request
	for d := quota.Pods + 1; d < len(p.node.Offer); d++ {
		if p.node.Offer[d] > 0 && req.At(d) == 0 {
			return true
		}
	}
	return false
}
