package nvml

import (
	"bytes"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	gonvml "github.com/NVIDIA/go-nvml/pkg/nvml"

	"sluice.dev/sluice/nodeagent"
)

// read looks at every card of the node. Each stands for itself: one that is lost, or
// that errs, hides no other.
func (s *session) read(root fs.FS) (cards []nodeagent.Card, links []nodeagent.Link, ret gonvml.Return) {
	n, ret := s.lib.DeviceGetCount()
	if ret != gonvml.SUCCESS {
		return nil, nil, ret
	}
	handles := make([]gonvml.Device, n)
	for i := range n {
		handle, ret := s.lib.DeviceGetHandleByIndex(i)
		r := reading{session: s, root: root, card: nodeagent.Card{Index: i}}
		if ret == gonvml.SUCCESS {
			r.handle, handles[i] = handle, handle
			r.all()
		} else {
			r.lost(ret)
			r.fail("handle", ret)
		}
		if r.card.Lost {
			handles[i] = nil
			r.card = nodeagent.Card{Index: i, UUID: r.card.UUID, Lost: true, Errors: r.card.Errors}
		}
		slices.SortStableFunc(r.card.Errors, func(a, b nodeagent.FieldError) int { return strings.Compare(a.Field, b.Field) })
		cards = append(cards, r.card)
	}
	if s.events != nil {
		s.events.start()
	}
	return cards, s.links(cards, handles), gonvml.SUCCESS
}

// reading is one look at one card.
type reading struct {
	session *session
	root    fs.FS
	handle  gonvml.Device
	card    nodeagent.Card
}

func (r *reading) all() {
	r.identity()
	if r.card.Lost { // whatever else is asked waits for the card in vain
		return
	}
	r.mode()
	r.grid()
	r.instances()
	r.devices()
	r.health()
	r.fabric()
	r.register()
}

// ok says whether an answer is one, and notes it if it is an error. What a card does
// not have is none.
func (r *reading) ok(field string, ret gonvml.Return) bool {
	if ret == gonvml.SUCCESS {
		return true
	}
	r.lost(ret)
	if !absent(ret) {
		r.fail(field, ret)
	}
	return false
}

// lost notes that an answer says that the card is not there. A card that cannot be had
// for want of power or interrupts is as good as lost.
func (r *reading) lost(ret gonvml.Return) {
	switch ret {
	case gonvml.ERROR_GPU_IS_LOST, gonvml.ERROR_GPU_NOT_FOUND:
		r.card.Lost = true
	case gonvml.ERROR_INSUFFICIENT_POWER, gonvml.ERROR_IRQ_ISSUE, gonvml.ERROR_NOT_FOUND, gonvml.ERROR_UNKNOWN:
		r.card.Lost = r.card.Lost || r.handle == nil
	default:
	}
}

// fail notes an error once per field.
func (r *reading) fail(field string, ret gonvml.Return) {
	if !slices.ContainsFunc(r.card.Errors, func(e nodeagent.FieldError) bool { return e.Field == field }) {
		r.card.Errors = append(r.card.Errors, fieldError(field, ret))
	}
}

func (r *reading) identity() {
	d, c := device(r.handle), &r.card
	var ret gonvml.Return
	if c.UUID, ret = d.GetUUID(); !r.ok("uuid", ret) {
		c.UUID = ""
	}
	c.Product, ret = d.GetName()
	r.ok("product", ret)
	c.Serial, ret = d.GetSerial()
	r.ok("serial", ret)
	if minor, ret := d.GetMinorNumber(); r.ok("minor", ret) {
		c.Minor = &minor
	}
	if pci, ret := d.GetPciInfo(); r.ok("pci", ret) {
		c.PCI = busID(pci.BusId)
		r.numa()
	}
	if r.session.has(symbolArch) {
		if arch, ret := d.GetArchitecture(); r.ok("architecture", ret) {
			c.Architecture = architectures[arch]
		}
	}
	if major, minor, ret := d.GetCudaComputeCapability(); r.ok("compute", ret) {
		c.Compute = strconv.Itoa(major) + "." + strconv.Itoa(minor)
	}
	if memory, ret := d.GetMemoryInfo(); r.ok("memory", ret) {
		c.MemoryMiB = int64(memory.Total >> 20)
	}
}

var architectures = map[gonvml.DeviceArchitecture]string{
	gonvml.DEVICE_ARCH_KEPLER: "kepler", gonvml.DEVICE_ARCH_MAXWELL: "maxwell", gonvml.DEVICE_ARCH_PASCAL: "pascal",
	gonvml.DEVICE_ARCH_VOLTA: "volta", gonvml.DEVICE_ARCH_TURING: "turing", gonvml.DEVICE_ARCH_AMPERE: "ampere",
	gonvml.DEVICE_ARCH_ADA: "ada-lovelace", gonvml.DEVICE_ARCH_HOPPER: "hopper", gonvml.DEVICE_ARCH_BLACKWELL: "blackwell",
	gonvml.DEVICE_ARCH_RUBIN: "rubin",
}

// busID turns NVML's "00000000:65:00.0" into the kernel's "0000:65:00.0". A domain of
// more than four digits is kept.
func busID(raw [32]int8) string {
	id := strings.ToLower(text(raw[:]))
	if domain, rest, ok := strings.Cut(id, ":"); ok && len(domain) == 8 && strings.HasPrefix(domain, "0000") {
		return domain[4:] + ":" + rest
	}
	return id
}

// text reads a C string.
func text(raw []int8) string {
	b := make([]byte, 0, len(raw))
	for _, c := range raw {
		if c == 0 {
			break
		}
		b = append(b, byte(c))
	}
	return string(b)
}

// numa asks the kernel; it answers -1 if there is only one NUMA node.
func (r *reading) numa() {
	if r.card.PCI == "" {
		return
	}
	raw, err := fs.ReadFile(r.root, "sys/bus/pci/devices/"+r.card.PCI+"/numa_node")
	if err != nil {
		r.card.Errors = append(r.card.Errors, nodeagent.FieldError{Field: "numaNode", Code: "UNREADABLE", Message: err.Error()})
		return
	}
	if node, err := strconv.Atoi(string(bytes.TrimSpace(raw))); err == nil && node >= 0 {
		r.card.NUMANode = &node
	}
}

func (r *reading) register() {
	e := r.session.events
	if e == nil || r.card.UUID == "" {
		return
	}
	r.card.Health.Watched = r.ok("health.xids", e.register(r.handle, r.card.UUID))
}
