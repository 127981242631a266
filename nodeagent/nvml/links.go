package nvml

import (
	gonvml "github.com/NVIDIA/go-nvml/pkg/nvml"

	"sluice.dev/sluice/nodeagent"
)

// paths are NVML's levels of the PCIe tree.
var paths = map[gonvml.GpuTopologyLevel]nodeagent.Path{
	gonvml.TOPOLOGY_INTERNAL: nodeagent.PathInternal, gonvml.TOPOLOGY_SINGLE: nodeagent.PathSingle,
	gonvml.TOPOLOGY_MULTIPLE: nodeagent.PathMultiple, gonvml.TOPOLOGY_HOSTBRIDGE: nodeagent.PathHostBridge,
	gonvml.TOPOLOGY_NODE: nodeagent.PathNode, gonvml.TOPOLOGY_SYSTEM: nodeagent.PathSystem,
}

// wires is where the active NVLinks of one card lead.
type wires struct {
	switches int
	cards    map[string]int // by PCI
}

// links reads how near the cards are to each other. Handles of lost cards are nil.
func (s *session) links(cards []nodeagent.Card, handles []gonvml.Device) []nodeagent.Link {
	var out []nodeagent.Link
	wired := make([]wires, len(cards))
	for i, h := range handles {
		if h != nil {
			wired[i] = s.wires(h)
		}
	}
	for a := range cards {
		for b := a + 1; b < len(cards); b++ {
			if handles[a] == nil || handles[b] == nil {
				continue
			}
			l := nodeagent.Link{A: a, B: b}
			if level, ret := handles[a].GetTopologyCommonAncestor(handles[b]); ret == gonvml.SUCCESS {
				l.Path = paths[level]
			}
			l.NVLinks = wired[a].cards[cards[b].PCI]
			if switched := min(wired[a].switches, wired[b].switches); l.NVLinks == 0 && switched > 0 {
				l.NVLinks, l.Switched = switched, true
			}
			if l.Path != "" || l.NVLinks > 0 {
				out = append(out, l)
			}
		}
	}
	return out
}

// wires counts active links until the driver says that there are no more.
func (s *session) wires(h gonvml.Device) wires {
	w := wires{cards: map[string]int{}}
	for l := range gonvml.NVLINK_MAX_LINKS {
		state, ret := h.GetNvLinkState(l)
		if ret != gonvml.SUCCESS {
			if absent(ret) || ret == gonvml.ERROR_INVALID_ARGUMENT {
				break
			}
			continue
		}
		if state != gonvml.FEATURE_ENABLED {
			continue
		}
		if s.has(symbolLinkType) {
			if kind, ret := h.GetNvLinkRemoteDeviceType(l); ret == gonvml.SUCCESS && kind == gonvml.NVLINK_DEVICE_TYPE_SWITCH {
				w.switches++
				continue
			}
		}
		if pci, ret := h.GetNvLinkRemotePciInfo(l); ret == gonvml.SUCCESS {
			w.cards[busID(pci.BusId)]++
		}
	}
	return w
}
