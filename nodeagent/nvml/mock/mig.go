package mock

import (
	"slices"

	gonvml "github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
)

// GetMigMode is what is now and what will be after a reset.
func (d Device) GetMigMode() (int, int, gonvml.Return) {
	v, ret := ask(d, "GetMigMode", func(c *card) ([2]int, gonvml.Return) { return [2]int{c.current, c.pending}, gonvml.SUCCESS })
	return v[0], v[1], ret
}

// SetMigMode takes effect at once from Hopper on, and after a reset before it. The
// second answer is why it did not. A card that is cut stays as it is.
func (d Device) SetMigMode(mode int) (gonvml.Return, gonvml.Return) {
	activation, ret := ask(d, "SetMigMode", func(c *card) (gonvml.Return, gonvml.Return) {
		if len(c.instances) > 0 {
			return gonvml.ERROR_IN_USE, gonvml.ERROR_IN_USE
		}
		c.pending = mode
		if c.model.Architecture == "ampere" && c.current != mode {
			return gonvml.ERROR_RESET_REQUIRED, gonvml.SUCCESS
		}
		c.current = mode
		return gonvml.SUCCESS, gonvml.SUCCESS
	})
	return activation, ret
}

// unknownProfile is the number of a profile that only a driver newer than every table
// knows, if a card was told to list it.
const unknownProfile = gonvml.GPU_INSTANCE_PROFILE_COUNT

// GetGpuInstanceProfileInfo is of the profile with this number, whether or not the card
// is in MIG mode.
func (d Device) GetGpuInstanceProfileInfo(enum int) (gonvml.GpuInstanceProfileInfo, gonvml.Return) {
	return ask(d, "GetGpuInstanceProfileInfo", func(c *card) (gonvml.GpuInstanceProfileInfo, gonvml.Return) {
		if enum == unknownProfile && c.malformed {
			return gonvml.GpuInstanceProfileInfo{Id: 99, SliceCount: 5, InstanceCount: 1}, gonvml.SUCCESS
		}
		if enum < 0 || enum >= gonvml.GPU_INSTANCE_PROFILE_COUNT {
			return gonvml.GpuInstanceProfileInfo{}, gonvml.ERROR_INVALID_ARGUMENT
		}
		info, ok := c.base.Config.MIGProfiles.GpuInstanceProfiles[enum]
		if !ok {
			return info, gonvml.ERROR_NOT_SUPPORTED
		}
		return info, gonvml.SUCCESS
	})
}

// ProfileName is the driver's word for the profile.
func (d Device) ProfileName(enum int) (string, gonvml.Return) {
	return ask(d, "GetGpuInstanceProfileInfoV", func(c *card) (string, gonvml.Return) {
		if c.node.lacks["nvmlDeviceGetGpuInstanceProfileInfoV"] {
			return "", gonvml.ERROR_FUNCTION_NOT_FOUND
		}
		for i := range c.model.Profiles {
			if p := &c.model.Profiles[i]; p.Enum == enum {
				return "MIG " + p.Name, gonvml.SUCCESS
			}
		}
		return "", gonvml.ERROR_NOT_SUPPORTED
	})
}

// GetGpuInstancePossiblePlacements are all legal ones, taken or not.
func (d Device) GetGpuInstancePossiblePlacements(info *gonvml.GpuInstanceProfileInfo) ([]gonvml.GpuInstancePlacement, gonvml.Return) {
	return ask(d, "GetGpuInstancePossiblePlacements", func(c *card) ([]gonvml.GpuInstancePlacement, gonvml.Return) {
		return slices.Clone(c.base.Config.MIGProfiles.GpuInstancePlacements[int(info.Id)]), gonvml.SUCCESS
	})
}

// GetGpuInstanceRemainingCapacity is how many of the profile alone could still be made.
func (d Device) GetGpuInstanceRemainingCapacity(info *gonvml.GpuInstanceProfileInfo) (int, gonvml.Return) {
	return ask(d, "GetGpuInstanceRemainingCapacity", func(c *card) (int, gonvml.Return) {
		p := c.model.byID(info.Id)
		if p == nil {
			return 0, gonvml.ERROR_INVALID_ARGUMENT
		}
		if c.current != gonvml.DEVICE_MIG_ENABLE {
			return 0, gonvml.ERROR_NOT_SUPPORTED
		}
		n := 0
		for _, start := range p.Starts { // those of one profile do not overlap
			if c.fits(p, start) {
				n++
			}
		}
		if p.media() {
			n = min(n, 1)
		}
		left := c.model.Compute
		for _, gi := range c.instances {
			left -= gi.profile.Compute
		}
		return min(n, left/p.Compute), gonvml.SUCCESS
	})
}

// CreateGpuInstance lets the driver choose the start.
func (d Device) CreateGpuInstance(info *gonvml.GpuInstanceProfileInfo) (gonvml.GpuInstance, gonvml.Return) {
	return d.create("CreateGpuInstance", info, -1, 0)
}

// CreateGpuInstanceWithPlacement refuses what hardware refuses: MIG off is
// NOT_SUPPORTED, an illegal placement INVALID_ARGUMENT, a taken one
// INSUFFICIENT_RESOURCES.
func (d Device) CreateGpuInstanceWithPlacement(info *gonvml.GpuInstanceProfileInfo, at *gonvml.GpuInstancePlacement) (gonvml.GpuInstance, gonvml.Return) {
	return d.create("CreateGpuInstanceWithPlacement", info, int(at.Start), int(at.Size))
}

func (d Device) create(method string, info *gonvml.GpuInstanceProfileInfo, start, size int) (gonvml.GpuInstance, gonvml.Return) {
	return ask(d, method, func(c *card) (gonvml.GpuInstance, gonvml.Return) {
		p := c.model.byID(info.Id)
		if p == nil || size != 0 && size != p.Size {
			return nil, gonvml.ERROR_INVALID_ARGUMENT
		}
		gi, ret := c.create(p, start)
		if ret != gonvml.SUCCESS {
			return nil, ret
		}
		return gpuInstance{gi.GpuInstance, d, gi}, gonvml.SUCCESS
	})
}

// GetGpuInstances are those of one profile.
func (d Device) GetGpuInstances(info *gonvml.GpuInstanceProfileInfo) ([]gonvml.GpuInstance, gonvml.Return) {
	return ask(d, "GetGpuInstances", func(c *card) ([]gonvml.GpuInstance, gonvml.Return) {
		var out []gonvml.GpuInstance
		for _, gi := range c.instances {
			if uint32(gi.profile.ID) == info.Id {
				out = append(out, gpuInstance{gi.GpuInstance, d, gi})
			}
		}
		return out, gonvml.SUCCESS
	})
}

// GetMaxMigDeviceCount is 0 with MIG off.
func (d Device) GetMaxMigDeviceCount() (int, gonvml.Return) {
	return ask(d, "GetMaxMigDeviceCount", func(c *card) (int, gonvml.Return) {
		if c.current != gonvml.DEVICE_MIG_ENABLE {
			return 0, gonvml.SUCCESS
		}
		return c.model.MaxDevices, gonvml.SUCCESS
	})
}

// GetMigDeviceHandleByIndex has holes, which are NOT_FOUND.
func (d Device) GetMigDeviceHandleByIndex(index int) (gonvml.Device, gonvml.Return) {
	return ask(d, "GetMigDeviceHandleByIndex", func(c *card) (gonvml.Device, gonvml.Return) {
		switch {
		case c.current != gonvml.DEVICE_MIG_ENABLE:
			return nil, gonvml.ERROR_NOT_SUPPORTED
		case index < 0 || index >= len(c.slots):
			return nil, gonvml.ERROR_INVALID_ARGUMENT
		case c.slots[index] == nil:
			return nil, gonvml.ERROR_NOT_FOUND
		default:
			return d.l.migHandle(c.slots[index]), gonvml.SUCCESS
		}
	})
}

// GetAttributes is for MIG devices alone.
func (d Device) GetAttributes() (gonvml.DeviceAttributes, gonvml.Return) {
	_, ret := ask(d, "GetAttributes", func(*card) (int, gonvml.Return) { return 0, gonvml.ERROR_INVALID_ARGUMENT })
	return gonvml.DeviceAttributes{}, ret
}

// IsMigDeviceHandle says no.
func (d Device) IsMigDeviceHandle() (bool, gonvml.Return) { return fact(d, "IsMigDeviceHandle", false) }

// gpuInstance is a handle of a GPU instance in a session.
type gpuInstance struct {
	*mock.GpuInstance
	d  Device
	gi *instance
}

func within[T any](g gpuInstance, method string, value func() (T, gonvml.Return)) (T, gonvml.Return) {
	return ask(g.d, method, func(*card) (T, gonvml.Return) {
		if g.gi.dead {
			var none T
			return none, gonvml.ERROR_NOT_FOUND
		}
		return value()
	})
}

func (g gpuInstance) GetInfo() (gonvml.GpuInstanceInfo, gonvml.Return) {
	return within(g, "GpuInstanceGetInfo", func() (gonvml.GpuInstanceInfo, gonvml.Return) {
		return gonvml.GpuInstanceInfo{
			Device: g.d, Id: uint32(g.gi.id), ProfileId: uint32(g.gi.profile.ID),
			Placement: gonvml.GpuInstancePlacement{Start: uint32(g.gi.start), Size: uint32(g.gi.profile.Size)},
		}, gonvml.SUCCESS
	})
}

func (g gpuInstance) GetComputeInstanceProfileInfo(enum, engines int) (gonvml.ComputeInstanceProfileInfo, gonvml.Return) {
	return within(g, "GpuInstanceGetComputeInstanceProfileInfo", func() (gonvml.ComputeInstanceProfileInfo, gonvml.Return) {
		n, ok := computes(g.gi.profile.Compute)[enum]
		switch {
		case enum < 0 || enum >= gonvml.COMPUTE_INSTANCE_PROFILE_COUNT:
			return gonvml.ComputeInstanceProfileInfo{}, gonvml.ERROR_INVALID_ARGUMENT
		case !ok || engines != gonvml.COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED:
			return gonvml.ComputeInstanceProfileInfo{}, gonvml.ERROR_NOT_SUPPORTED
		}
		return gonvml.ComputeInstanceProfileInfo{
			Id: uint32(enum), SliceCount: uint32(n), InstanceCount: uint32(g.gi.profile.Compute / n),
			MultiprocessorCount: uint32(g.gi.profile.SMs * n / g.gi.profile.Compute),
		}, gonvml.SUCCESS
	})
}

func (g gpuInstance) CreateComputeInstance(info *gonvml.ComputeInstanceProfileInfo) (gonvml.ComputeInstance, gonvml.Return) {
	return within(g, "GpuInstanceCreateComputeInstance", func() (gonvml.ComputeInstance, gonvml.Return) {
		ci, ret := g.gi.split(int(info.SliceCount))
		if ret != gonvml.SUCCESS {
			return nil, ret
		}
		return computeInstance{ci.ComputeInstance, g, ci}, gonvml.SUCCESS
	})
}

func (g gpuInstance) GetComputeInstances(info *gonvml.ComputeInstanceProfileInfo) ([]gonvml.ComputeInstance, gonvml.Return) {
	return within(g, "GpuInstanceGetComputeInstances", func() ([]gonvml.ComputeInstance, gonvml.Return) {
		var out []gonvml.ComputeInstance
		for _, ci := range g.gi.computes {
			if uint32(ci.enum) == info.Id {
				out = append(out, computeInstance{ci.ComputeInstance, g, ci})
			}
		}
		return out, gonvml.SUCCESS
	})
}

func (g gpuInstance) Destroy() gonvml.Return {
	_, ret := within(g, "GpuInstanceDestroy", func() (int, gonvml.Return) { return 0, g.gi.destroy() })
	return ret
}

// computeInstance is a handle of a compute instance in a session.
type computeInstance struct {
	*mock.ComputeInstance
	g  gpuInstance
	ci *compute
}

func (h computeInstance) GetInfo() (gonvml.ComputeInstanceInfo, gonvml.Return) {
	return within(h.g, "ComputeInstanceGetInfo", func() (gonvml.ComputeInstanceInfo, gonvml.Return) {
		if !slices.Contains(h.g.gi.computes, h.ci) {
			return gonvml.ComputeInstanceInfo{}, gonvml.ERROR_NOT_FOUND
		}
		return gonvml.ComputeInstanceInfo{
			Device: h.g.d, GpuInstance: h.g, Id: uint32(h.ci.id), ProfileId: uint32(h.ci.enum),
			Placement: gonvml.ComputeInstancePlacement{Start: uint32(h.ci.start), Size: uint32(h.ci.len)},
		}, gonvml.SUCCESS
	})
}

func (h computeInstance) Destroy() gonvml.Return {
	_, ret := within(h.g, "ComputeInstanceDestroy", func() (int, gonvml.Return) { return 0, h.ci.destroy() })
	return ret
}

// migDevice is a handle of a MIG device in a session.
type migDevice struct {
	*mock.Device // panics with the name of what is not written here
	d            Device
	ci           *compute
}

var noDevice = &mock.Device{}

func (l *Library) migHandle(ci *compute) migDevice {
	return migDevice{noDevice, l.handle(ci.gi.card), ci}
}

func alive[T any](m migDevice, method string, value T) (T, gonvml.Return) {
	return ask(m.d, method, func(c *card) (T, gonvml.Return) {
		if !slices.Contains(c.slots, m.ci) {
			var none T
			return none, gonvml.ERROR_NOT_FOUND
		}
		return value, gonvml.SUCCESS
	})
}

func (m migDevice) GetUUID() (string, gonvml.Return) { return alive(m, "MigGetUUID", m.ci.uuid) }

//nolint:revive // go-nvml's name
func (m migDevice) GetGpuInstanceId() (int, gonvml.Return) {
	return alive(m, "GetGpuInstanceId", m.ci.gi.id)
}

//nolint:revive // go-nvml's name
func (m migDevice) GetComputeInstanceId() (int, gonvml.Return) {
	return alive(m, "GetComputeInstanceId", m.ci.id)
}

func (m migDevice) IsMigDeviceHandle() (bool, gonvml.Return) {
	return alive(m, "IsMigDeviceHandle", true)
}

func (m migDevice) GetDeviceHandleFromMigDeviceHandle() (gonvml.Device, gonvml.Return) {
	return alive[gonvml.Device](m, "GetDeviceHandleFromMigDeviceHandle", m.d)
}

func (m migDevice) GetAttributes() (gonvml.DeviceAttributes, gonvml.Return) {
	p := m.ci.gi.profile
	return alive(m, "MigGetAttributes", gonvml.DeviceAttributes{
		MultiprocessorCount: uint32(p.SMs * m.ci.len / p.Compute), MemorySizeMB: uint64(p.MemoryMiB),
		GpuInstanceSliceCount: uint32(p.Compute), ComputeInstanceSliceCount: uint32(m.ci.len),
	})
}
