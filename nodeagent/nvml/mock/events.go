package mock

import (
	"time"

	gonvml "github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
)

// events that every card can tell of.
const supported = gonvml.EventTypeXidCriticalError | gonvml.EventTypeDoubleBitEccError |
	gonvml.EventTypeGpuRecoveryAction | gonvml.EventTypeGpuUnavailableError

// eventSet holds what happened to its cards until somebody waits for it. Beyond what
// the driver keeps, the oldest are lost.
type eventSet struct {
	*mock.EventSet
	l       *Library
	cards   map[*card]Device
	pending []gonvml.EventData
	stirred chan struct{}
}

// EventSetCreate makes an empty one.
func (l *Library) EventSetCreate() (gonvml.EventSet, gonvml.Return) {
	l.n.mu.Lock()
	defer l.n.mu.Unlock()
	if ret := l.enter("EventSetCreate"); ret != gonvml.SUCCESS {
		return nil, ret
	}
	s := &eventSet{EventSet: &mock.EventSet{}, l: l, cards: map[*card]Device{}, stirred: make(chan struct{}, 1)}
	l.n.sets = append(l.n.sets, s)
	return s, gonvml.SUCCESS
}

// GetSupportedEventTypes are alike for all cards.
func (d Device) GetSupportedEventTypes() (uint64, gonvml.Return) {
	return fact(d, "GetSupportedEventTypes", uint64(supported))
}

// RegisterEvents begins to keep the card's events in the set.
func (d Device) RegisterEvents(types uint64, set gonvml.EventSet) gonvml.Return {
	_, ret := ask(d, "RegisterEvents", func(c *card) (int, gonvml.Return) {
		s, ok := set.(*eventSet)
		if !ok || types&^supported != 0 {
			return 0, gonvml.ERROR_INVALID_ARGUMENT
		}
		s.cards[c] = d
		return 0, gonvml.SUCCESS
	})
	return ret
}

func (s *eventSet) stir() {
	select {
	case s.stirred <- struct{}{}:
	default:
	}
}

// Wait is the next event, TIMEOUT, or GPU_IS_LOST as long as a card of the set is.
func (s *eventSet) Wait(millis uint32) (gonvml.EventData, gonvml.Return) {
	late := time.NewTimer(time.Duration(millis) * time.Millisecond)
	defer late.Stop()
	for {
		if data, ret := s.next(); ret != gonvml.ERROR_TIMEOUT {
			return data, ret
		}
		select {
		case <-late.C:
			return gonvml.EventData{}, gonvml.ERROR_TIMEOUT
		case <-s.stirred:
		}
	}
}

func (s *eventSet) next() (gonvml.EventData, gonvml.Return) {
	n := s.l.n
	n.mu.Lock()
	defer n.mu.Unlock()
	if ret := s.l.enter("EventSetWait"); ret != gonvml.SUCCESS {
		return gonvml.EventData{}, ret
	}
	if len(s.pending) > 0 {
		data := s.pending[0]
		s.pending = s.pending[1:]
		return data, gonvml.SUCCESS
	}
	for c := range s.cards {
		if s.l.lost(c) {
			return gonvml.EventData{}, gonvml.ERROR_GPU_IS_LOST
		}
	}
	return gonvml.EventData{}, gonvml.ERROR_TIMEOUT
}

// Free ends the set.
func (s *eventSet) Free() gonvml.Return {
	n := s.l.n
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, o := range n.sets {
		if o == s {
			n.sets = append(n.sets[:i], n.sets[i+1:]...)
			return gonvml.SUCCESS
		}
	}
	return gonvml.ERROR_INVALID_ARGUMENT
}

// kept is how many events the driver keeps for a set.
const kept = 64

// happen tells every set that has the card. The node is locked.
func (n *Node) happen(c *card, kind, data uint64, gi, ci uint32) {
	for _, s := range n.sets {
		d, ok := s.cards[c]
		if !ok {
			continue
		}
		s.pending = append(s.pending, gonvml.EventData{Device: d, EventType: kind, EventData: data, GpuInstanceId: gi, ComputeInstanceId: ci})
		if len(s.pending) > kept {
			s.pending = s.pending[1:]
		}
		s.stir()
	}
}
