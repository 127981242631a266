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
	at    int // its position among the nodes
	waste int // the more, the rather to be left alone: see wastes
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
	free := cmp.Compare(x.free, y.free)
	if emptiest {
		free = -free
	}
	return cmp.Or(cmp.Compare(x.waste, y.waste), free, cmp.Compare(x.at, y.at))
}

// unfit is how much a node is wasted on pods that should rather go elsewhere, whatever
// they leave idle there, and doubtful on any pods at all.
const (
	unfit    = 1 << 20
	doubtful = 1 << 21
)

// wastes is how much is wasted if pods of set i go to the node: the kinds of devices
// free there that they leave idle, since what fits beside them gets less likely with
// each. Pods without devices are unfit for nodes that offer any; so are whole cards for
// pods to which a shared one would do.
func (a *attempt) wastes(p *place, i int) int {
	ps := &a.spec.PodSets[i]
	if p.node.Doubtful { // not sure to take them
		return doubtful
	}
	if d := p.node.Cards; d != nil && ps.Sharing == AnyCards && d.shared == 0 && ps.Request.At(d.Whole) > 0 {
		return unfit
	}
	req := ps.Request
	idle, asks, offers := 0, false, false
	for d := quota.Pods + 1; d < len(p.node.Offer); d++ {
		if p.node.Offer[d] == 0 {
			continue
		}
		offers = true
		switch {
		case req.At(d) > 0:
			asks = true
		case p.free.At(d) > 0:
			idle++
		}
	}
	if offers && !asks {
		return unfit
	}
	return idle
}
