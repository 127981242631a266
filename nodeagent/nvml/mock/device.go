package mock

import (
	"encoding/binary"
	"fmt"

	gonvml "github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/server"
)

// Device is a card as one session of a process sees it. Equal handles of one session
// are equal values.
type Device struct {
	*server.Device // panics with the name of what is not written here
	l              *Library
	c              *card
	session        int
}

func (l *Library) handle(c *card) Device {
	return Device{Device: c.base, l: l, c: c, session: l.session}
}

// state is what every call about the card answers first. The node is locked.
func (d Device) state(method string) gonvml.Return {
	ret := d.l.enter(method)
	switch {
	case ret != gonvml.SUCCESS:
		return ret
	case d.session != d.l.session:
		return gonvml.ERROR_UNINITIALIZED
	case d.l.lost(d.c):
		return gonvml.ERROR_GPU_IS_LOST
	default:
		return d.c.faults[method]
	}
}

// ask answers value, unless the card or the library fails.
func ask[T any](d Device, method string, value func(c *card) (T, gonvml.Return)) (T, gonvml.Return) {
	d.c.node.mu.Lock()
	defer d.c.node.mu.Unlock()
	if ret := d.state(method); ret != gonvml.SUCCESS {
		var none T
		return none, ret
	}
	return value(d.c)
}

func fact[T any](d Device, method string, value T) (T, gonvml.Return) {
	return ask(d, method, func(*card) (T, gonvml.Return) { return value, gonvml.SUCCESS })
}

// GetUUID is for ever.
func (d Device) GetUUID() (string, gonvml.Return) { return fact(d, "GetUUID", d.c.uuid) }

// GetName is the product.
func (d Device) GetName() (string, gonvml.Return) { return fact(d, "GetName", d.c.model.Product) }

// GetSerial follows from the node's name.
func (d Device) GetSerial() (string, gonvml.Return) {
	return fact(d, "GetSerial", fmt.Sprintf("165%s", d.c.uuid[4:12]))
}

// GetMinorNumber is the card's place.
func (d Device) GetMinorNumber() (int, gonvml.Return) { return fact(d, "GetMinorNumber", d.c.at) }

// GetArchitecture is the product's.
func (d Device) GetArchitecture() (gonvml.DeviceArchitecture, gonvml.Return) {
	return fact(d, "GetArchitecture", architectures[d.c.model.Architecture])
}

// GetCudaComputeCapability is the product's.
func (d Device) GetCudaComputeCapability() (int, int, gonvml.Return) {
	major, ret := fact(d, "GetCudaComputeCapability", d.c.base.Config.CudaMajor)
	return major, d.c.base.Config.CudaMinor, ret
}

// GetMemoryInfo has the total alone.
func (d Device) GetMemoryInfo() (gonvml.Memory, gonvml.Return) {
	return fact(d, "GetMemoryInfo", gonvml.Memory{Total: uint64(d.c.model.MemoryMiB) << 20, Free: uint64(d.c.model.MemoryMiB) << 20})
}

// GetPciInfo has the bus id as NVML writes it.
func (d Device) GetPciInfo() (gonvml.PciInfo, gonvml.Return) {
	info := gonvml.PciInfo{PciDeviceId: d.c.base.Config.PciDeviceId}
	put(info.BusId[:], "00000000:"+d.c.pci())
	return fact(d, "GetPciInfo", info)
}

func put(to []int8, s string) {
	for i := range min(len(s), len(to)-1) {
		to[i] = int8(s[i])
	}
}

// GetFieldValues knows the recovery action.
func (d Device) GetFieldValues(values []gonvml.FieldValue) gonvml.Return {
	_, ret := ask(d, "GetFieldValues", func(c *card) (int, gonvml.Return) {
		for i := range values {
			v := &values[i]
			switch {
			case v.FieldId != gonvml.FI_DEV_GET_GPU_RECOVERY_ACTION:
				v.NvmlReturn = uint32(gonvml.ERROR_NOT_SUPPORTED)
			case c.recovery < 0:
				v.NvmlReturn = uint32(gonvml.ERROR_INVALID_ARGUMENT)
			default:
				v.NvmlReturn, v.ValueType = uint32(gonvml.SUCCESS), uint32(gonvml.VALUE_TYPE_UNSIGNED_INT)
				binary.NativeEndian.PutUint32(v.Value[:4], uint32(c.recovery))
			}
		}
		return 0, gonvml.SUCCESS
	})
	return ret
}

// GetEccMode is on unless it was switched off.
func (d Device) GetEccMode() (gonvml.EnableState, gonvml.EnableState, gonvml.Return) {
	on, ret := ask(d, "GetEccMode", func(c *card) (gonvml.EnableState, gonvml.Return) {
		if c.eccOff {
			return gonvml.FEATURE_DISABLED, gonvml.SUCCESS
		}
		return gonvml.FEATURE_ENABLED, gonvml.SUCCESS
	})
	return on, on, ret
}

// GetTotalEccErrors are what they were set to.
func (d Device) GetTotalEccErrors(kind gonvml.MemoryErrorType, counter gonvml.EccCounterType) (uint64, gonvml.Return) {
	return ask(d, "GetTotalEccErrors", func(c *card) (uint64, gonvml.Return) {
		switch {
		case c.eccOff:
			return 0, gonvml.ERROR_NOT_SUPPORTED
		case kind == gonvml.MEMORY_ERROR_TYPE_CORRECTED:
			return c.ecc[0], gonvml.SUCCESS
		case counter == gonvml.VOLATILE_ECC:
			return c.ecc[1], gonvml.SUCCESS
		default:
			return c.ecc[2], gonvml.SUCCESS
		}
	})
}

// GetRemappedRows is not supported in MIG mode.
func (d Device) GetRemappedRows() (int, int, bool, bool, gonvml.Return) {
	v, ret := ask(d, "GetRemappedRows", func(c *card) ([4]int, gonvml.Return) {
		if c.current == gonvml.DEVICE_MIG_ENABLE {
			return [4]int{}, gonvml.ERROR_NOT_SUPPORTED
		}
		return c.remap, gonvml.SUCCESS
	})
	return v[0], v[1], v[2] != 0, v[3] != 0, ret
}

// GetCurrentClocksEventReasons is idle, and what was set.
func (d Device) GetCurrentClocksEventReasons() (uint64, gonvml.Return) {
	return ask(d, "GetCurrentClocksEventReasons", clocks)
}

// GetCurrentClocksThrottleReasons is the same by its old name.
func (d Device) GetCurrentClocksThrottleReasons() (uint64, gonvml.Return) {
	return ask(d, "GetCurrentClocksThrottleReasons", clocks)
}

func clocks(c *card) (uint64, gonvml.Return) {
	return c.clocks | gonvml.ClocksEventReasonGpuIdle, gonvml.SUCCESS
}

// GetGpuFabricInfo is what it was set to.
func (d Device) GetGpuFabricInfo() (gonvml.GpuFabricInfo, gonvml.Return) {
	return ask(d, "GetGpuFabricInfo", func(c *card) (gonvml.GpuFabricInfo, gonvml.Return) {
		if c.fabric.State == gonvml.GPU_FABRIC_STATE_NOT_SUPPORTED {
			return c.fabric, gonvml.ERROR_NOT_SUPPORTED
		}
		return c.fabric, gonvml.SUCCESS
	})
}

// GetTopologyCommonAncestor follows from the NUMA nodes.
func (d Device) GetTopologyCommonAncestor(other gonvml.Device) (gonvml.GpuTopologyLevel, gonvml.Return) {
	return ask(d, "GetTopologyCommonAncestor", func(c *card) (gonvml.GpuTopologyLevel, gonvml.Return) {
		if o := other.(Device); o.c.numa != c.numa {
			return gonvml.TOPOLOGY_SYSTEM, gonvml.SUCCESS
		}
		return gonvml.TOPOLOGY_NODE, gonvml.SUCCESS
	})
}

// GetNvLinkState is not supported beyond the last link, nor in MIG mode.
func (d Device) GetNvLinkState(link int) (gonvml.EnableState, gonvml.Return) {
	return ask(d, "GetNvLinkState", func(c *card) (gonvml.EnableState, gonvml.Return) {
		if link >= c.links || c.current == gonvml.DEVICE_MIG_ENABLE {
			return 0, gonvml.ERROR_NOT_SUPPORTED
		}
		return gonvml.FEATURE_ENABLED, gonvml.SUCCESS
	})
}

// GetNvLinkRemoteDeviceType is a switch, or the next card.
func (d Device) GetNvLinkRemoteDeviceType(int) (gonvml.IntNvLinkDeviceType, gonvml.Return) {
	return ask(d, "GetNvLinkRemoteDeviceType", func(c *card) (gonvml.IntNvLinkDeviceType, gonvml.Return) {
		if c.switched {
			return gonvml.NVLINK_DEVICE_TYPE_SWITCH, gonvml.SUCCESS
		}
		return gonvml.NVLINK_DEVICE_TYPE_GPU, gonvml.SUCCESS
	})
}

// GetNvLinkRemotePciInfo is the card beside it: cards are bridged in pairs.
func (d Device) GetNvLinkRemotePciInfo(int) (gonvml.PciInfo, gonvml.Return) {
	return ask(d, "GetNvLinkRemotePciInfo", func(c *card) (gonvml.PciInfo, gonvml.Return) {
		var info gonvml.PciInfo
		if other := c.at ^ 1; other < len(c.node.cards) {
			put(info.BusId[:], "00000000:"+c.node.cards[other].pci())
		}
		return info, gonvml.SUCCESS
	})
}
