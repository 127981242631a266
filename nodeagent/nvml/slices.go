package nvml

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	gonvml "github.com/NVIDIA/go-nvml/pkg/nvml"

	"sluice.dev/sluice/nodeagent"
)

// beyond is how many profile numbers are asked for at least, in case the driver knows
// more than this program: it ends earlier at the first that NVML calls no number.
const beyond = 32

func (r *reading) mode() {
	if !r.session.has(symbolMIG) {
		return
	}
	if now, then, ret := r.handle.GetMigMode(); r.ok("mig", ret) {
		r.card.MIG = &nodeagent.MIGMode{Current: now == gonvml.DEVICE_MIG_ENABLE, Pending: then == gonvml.DEVICE_MIG_ENABLE}
	}
}

// grid reads how the card can be cut. It is asked once per card and driver; a profile
// that cannot be read is left out, since the others are as good without it.
func (r *reading) grid() {
	s := r.session
	if r.card.MIG == nil || !s.has(symbolPlaces) {
		return
	}
	if g := s.grids[r.card.UUID]; g != nil {
		r.card.Grid = g
		return
	}
	g, whole := &nodeagent.Grid{}, true
	for e := 0; e < max(beyond, gonvml.GPU_INSTANCE_PROFILE_COUNT); e++ {
		info, ret := r.handle.GetGpuInstanceProfileInfo(e)
		if ret == gonvml.ERROR_INVALID_ARGUMENT {
			break
		}
		if absent(ret) {
			continue
		}
		if !r.ok("grid", ret) {
			whole = false
			continue
		}
		places, ret := r.handle.GetGpuInstancePossiblePlacements(&info)
		if !r.ok("grid", ret) {
			whole = whole && absent(ret)
			continue
		}
		if p, ok := r.profile(e, &info, places); ok {
			g.Profiles = append(g.Profiles, p)
			g.Compute = max(g.Compute, p.Compute)
			g.Units = max(g.Units, p.Starts[len(p.Starts)-1]+p.Size)
		}
	}
	if len(g.Profiles) == 0 {
		return
	}
	r.card.Grid = g
	if whole && r.card.UUID != "" {
		s.grids[r.card.UUID] = g
	}
}

// profile puts one together. Without a place to start it is none.
func (r *reading) profile(enum int, info *gonvml.GpuInstanceProfileInfo, places []gonvml.GpuInstancePlacement) (nodeagent.Profile, bool) {
	p := nodeagent.Profile{
		Enum: enum, ID: int(info.Id),
		Compute: int(info.SliceCount), Multiprocessors: int(info.MultiprocessorCount),
		MemoryMiB: int64(info.MemorySizeMB), Max: int(info.InstanceCount),
		Engines: nodeagent.Engines{
			Copy: int(info.CopyEngineCount), Decoder: int(info.DecoderCount), Encoder: int(info.EncoderCount),
			JPEG: int(info.JpegCount), OFA: int(info.OfaCount),
		},
	}
	for _, at := range places {
		p.Size = max(p.Size, int(at.Size))
		p.Starts = append(p.Starts, int(at.Start))
	}
	slices.Sort(p.Starts)
	p.Starts = slices.Compact(p.Starts)
	if len(p.Starts) == 0 || p.Size == 0 {
		return p, false
	}
	p.Name = r.name(enum)
	if p.Name == "" {
		suffix, known := suffixes[enum]
		if !known {
			return p, false
		}
		p.Name, p.Derived = derivedName(&p, suffix, r.card.MemoryMiB), true
	}
	if _, attributes, ok := strings.Cut(p.Name, "+"); ok && strings.HasPrefix(attributes, "me") {
		p.Sole = nodeagent.MediaEngines
	}
	return p, true
}

// name is the driver's own word for a profile; "" if it is too old to have one.
func (r *reading) name(enum int) string {
	name := ""
	if fake, ok := r.handle.(Names); ok {
		n, ret := fake.ProfileName(enum)
		if ret == gonvml.SUCCESS {
			name = n
		}
	} else if r.session.has(symbolNames) {
		if info, ret := r.handle.GetGpuInstanceProfileInfoV(enum).V2(); ret == gonvml.SUCCESS {
			name = text(info.Name[:])
		}
	}
	return strings.TrimSpace(strings.TrimPrefix(name, "MIG "))
}

// suffixes are what NVML's profile numbers mean beside the sizes, for drivers that do
// not name them.
var suffixes = map[int]string{
	gonvml.GPU_INSTANCE_PROFILE_1_SLICE: "", gonvml.GPU_INSTANCE_PROFILE_2_SLICE: "", gonvml.GPU_INSTANCE_PROFILE_3_SLICE: "",
	gonvml.GPU_INSTANCE_PROFILE_4_SLICE: "", gonvml.GPU_INSTANCE_PROFILE_6_SLICE: "", gonvml.GPU_INSTANCE_PROFILE_7_SLICE: "",
	gonvml.GPU_INSTANCE_PROFILE_8_SLICE: "", gonvml.GPU_INSTANCE_PROFILE_1_SLICE_REV2: "",
	gonvml.GPU_INSTANCE_PROFILE_1_SLICE_REV1: "+me", gonvml.GPU_INSTANCE_PROFILE_2_SLICE_REV1: "+me",
	gonvml.GPU_INSTANCE_PROFILE_1_SLICE_GFX: "+gfx", gonvml.GPU_INSTANCE_PROFILE_2_SLICE_GFX: "+gfx",
	gonvml.GPU_INSTANCE_PROFILE_4_SLICE_GFX: "+gfx", gonvml.GPU_INSTANCE_PROFILE_3_SLICE_GFX: "+gfx",
	gonvml.GPU_INSTANCE_PROFILE_1_SLICE_NO_ME: "-me", gonvml.GPU_INSTANCE_PROFILE_2_SLICE_NO_ME: "-me",
	gonvml.GPU_INSTANCE_PROFILE_1_SLICE_ALL_ME: "+me.all", gonvml.GPU_INSTANCE_PROFILE_2_SLICE_ALL_ME: "+me.all",
}

// derivedName is how NVIDIA's tools name a profile for a driver that does not: its memory
// in eighths of the card's, rounded up, of the card's GiB.
func derivedName(p *nodeagent.Profile, suffix string, cardMiB int64) string {
	gb := 0.0
	if cardMiB > 0 {
		eighths := math.Ceil(float64(p.MemoryMiB) / float64(cardMiB) * 8)
		gb = math.Round(eighths / 8 * math.Ceil(float64(cardMiB)/1024))
	}
	return fmt.Sprintf("%dg.%.0fgb%s", p.Compute, gb, suffix)
}

// instances reads the GPU instances, each once: several numbers of profiles may mean
// one id.
func (r *reading) instances() {
	if !r.card.Cut() || !r.session.has(symbolInstances) {
		return
	}
	known, seen := true, map[int]bool{}
	for e := 0; e < max(beyond, gonvml.GPU_INSTANCE_PROFILE_COUNT); e++ {
		info, ret := r.handle.GetGpuInstanceProfileInfo(e)
		if ret == gonvml.ERROR_INVALID_ARGUMENT {
			break
		}
		if ret != gonvml.SUCCESS {
			known = known && absent(ret)
			r.ok("instances", ret)
			continue
		}
		list, ret := r.handle.GetGpuInstances(&info)
		if !r.ok("instances", ret) {
			known = known && absent(ret)
			continue
		}
		for _, gi := range list {
			at, ret := gi.GetInfo()
			switch {
			case ret == gonvml.ERROR_NOT_FOUND: // destroyed while we looked
			case !r.ok("instances", ret):
				known = false
			case !seen[int(at.Id)]:
				seen[int(at.Id)] = true
				r.card.Instances = append(r.card.Instances, r.instance(gi, &at, int(info.SliceCount)))
			}
		}
	}
	slices.SortFunc(r.card.Instances, func(a, b nodeagent.Instance) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.ID, b.ID))
	})
	r.card.InstancesKnown = known
	if !known { // half a layout invites to use what is taken
		r.card.Instances = nil
	}
}

func (r *reading) instance(gi gonvml.GpuInstance, at *gonvml.GpuInstanceInfo, compute int) nodeagent.Instance {
	out := nodeagent.Instance{
		ID: int(at.Id), ProfileID: int(at.ProfileId),
		Start: int(at.Placement.Start), Size: int(at.Placement.Size),
	}
	if p := r.card.Grid.Profile(out.ProfileID); p != nil {
		out.Profile = p.Name
	}
	seen := map[int]bool{}
	for e := range gonvml.COMPUTE_INSTANCE_PROFILE_COUNT {
		info, ret := gi.GetComputeInstanceProfileInfo(e, gonvml.COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED)
		if absent(ret) || ret == gonvml.ERROR_INVALID_ARGUMENT {
			continue
		}
		if !r.ok("instances.compute", ret) {
			out.Unread = true
			continue
		}
		list, ret := gi.GetComputeInstances(&info)
		if !r.ok("instances.compute", ret) {
			out.Unread = out.Unread || !absent(ret)
			continue
		}
		for _, ci := range list {
			at, ret := ci.GetInfo()
			if ret == gonvml.ERROR_NOT_FOUND || !r.ok("instances.compute", ret) || seen[int(at.Id)] {
				continue
			}
			seen[int(at.Id)] = true
			out.Compute = append(out.Compute, nodeagent.ComputeInstance{
				ID: int(at.Id), ProfileID: int(at.ProfileId), Slices: int(info.SliceCount),
				Start: int(at.Placement.Start), Partial: int(info.SliceCount) < compute,
			})
		}
	}
	slices.SortFunc(out.Compute, func(a, b nodeagent.ComputeInstance) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// devices reads the MIG devices. One that is not there is a hole, not the end. Handles
// live as long as what they stand for, so they are asked for anew each time.
func (r *reading) devices() {
	if !r.card.Cut() {
		return
	}
	n, ret := r.handle.GetMaxMigDeviceCount()
	if !r.ok("devices", ret) {
		return
	}
	r.card.MaxDevices = n
	for i := range n {
		handle, ret := r.handle.GetMigDeviceHandleByIndex(i)
		if ret == gonvml.ERROR_NOT_FOUND || !r.ok("devices", ret) {
			continue
		}
		d := nodeagent.MIGDevice{Index: i, Instance: -1, ComputeInstance: -1}
		if d.UUID, ret = handle.GetUUID(); ret == gonvml.ERROR_NOT_FOUND || !r.ok("devices.uuid", ret) {
			continue // destroyed while we looked; without a name nobody can use it
		}
		if v, ret := handle.GetGpuInstanceId(); r.ok("devices.instance", ret) {
			d.Instance = v
		}
		if v, ret := handle.GetComputeInstanceId(); r.ok("devices.computeInstance", ret) {
			d.ComputeInstance = v
		}
		if a, ret := handle.GetAttributes(); r.ok("devices.attributes", ret) {
			d.MemoryMiB, d.Multiprocessors = int64(a.MemorySizeMB), int(a.MultiprocessorCount)
			d.InstanceSlices, d.ComputeSlices = int(a.GpuInstanceSliceCount), int(a.ComputeInstanceSliceCount)
		}
		r.card.Devices = append(r.card.Devices, d)
	}
}
