package nvml

import (
	"sync"
	"time"

	gonvml "github.com/NVIDIA/go-nvml/pkg/nvml"
)

// wanted are the kinds of events that change what a report says. Those beside Xids
// only hasten the next look.
const wanted = gonvml.EventTypeXidCriticalError | gonvml.EventTypeDoubleBitEccError |
	gonvml.EventTypeDramRetirementFailure | gonvml.EventTypeGpuUnavailableError | gonvml.EventTypeGpuRecoveryAction

// event is one that was heard.
type event struct {
	uuid              string
	xid               uint64 // 0: none
	instance, compute int    // below 0: the whole card
	failure           gonvml.Return
}

// events waits for the driver's events in a goroutine of its own until it is closed.
type events struct {
	set     gonvml.EventSet
	wait    time.Duration // of one wait in the driver, hence how long close may take
	heard   func(event)
	quit    chan struct{}
	over    chan struct{}
	started bool
	mu      sync.Mutex
	cards   map[gonvml.Device]string // registered handles ▶ UUID
	watched map[string]bool
}

// listen prepares to wait; start begins. heard is called from another goroutine.
func listen(lib Library, wait time.Duration, heard func(event)) (*events, gonvml.Return) {
	set, ret := lib.EventSetCreate()
	if ret != gonvml.SUCCESS {
		return nil, ret
	}
	e := &events{
		set: set, wait: wait, heard: heard,
		quit: make(chan struct{}), over: make(chan struct{}),
		cards: map[gonvml.Device]string{}, watched: map[string]bool{},
	}
	return e, gonvml.SUCCESS
}

// start begins to wait, once. The first look calls it after it registered its cards.
func (e *events) start() {
	if !e.started {
		e.started = true
		go e.loop()
	}
}

// register asks for the events of a card, once.
func (e *events) register(card gonvml.Device, uuid string) gonvml.Return {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.watched[uuid] {
		return gonvml.SUCCESS
	}
	types, ret := card.GetSupportedEventTypes()
	if ret != gonvml.SUCCESS {
		return ret
	}
	if types&wanted&gonvml.EventTypeXidCriticalError == 0 {
		return gonvml.ERROR_NOT_SUPPORTED
	}
	if ret := card.RegisterEvents(types&wanted, e.set); ret != gonvml.SUCCESS {
		return ret
	}
	e.cards[card] = uuid
	e.watched[uuid] = true
	return gonvml.SUCCESS
}

func (e *events) close() {
	close(e.quit)
	if e.started {
		<-e.over
	}
	_ = e.set.Free()
}

// loop waits. After a failed wait it pauses, ever longer: the driver would answer the
// same at once, again and again.
func (e *events) loop() {
	defer close(e.over)
	pause, deaf := e.wait, false
	for {
		select {
		case <-e.quit:
			return
		default:
		}
		data, ret := e.set.Wait(uint32(e.wait.Milliseconds()))
		switch {
		case ret == gonvml.SUCCESS:
			pause, deaf = e.wait, false
			e.heard(e.understand(data))
			continue
		case ret == gonvml.ERROR_TIMEOUT && deaf: // it waits again
			pause, deaf = e.wait, false
			e.heard(event{instance: -1, compute: -1})
			continue
		case ret == gonvml.ERROR_TIMEOUT:
			continue
		}
		deaf = true
		e.heard(event{failure: ret})
		select {
		case <-e.quit:
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, time.Minute)
	}
}

func (e *events) understand(data gonvml.EventData) event {
	out := event{instance: -1, compute: -1}
	e.mu.Lock()
	out.uuid = e.cards[data.Device]
	e.mu.Unlock()
	if out.uuid == "" && data.Device != nil {
		out.uuid, _ = data.Device.GetUUID()
	}
	if data.EventType == gonvml.EventTypeXidCriticalError {
		out.xid = data.EventData
		out.instance, out.compute = id(data.GpuInstanceId), id(data.ComputeInstanceId)
	}
	return out
}

// id reads the id of an instance, -1 for the driver's word for none.
func id(v uint32) int {
	if v == 0xFFFFFFFF {
		return -1
	}
	return int(v)
}
