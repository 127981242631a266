package mock

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	gonvml "github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/gpus"
)

// Model is what all cards of one product have in common.
type Model struct {
	Key          string    `json:"key"` // "A100-40GB"
	Product      string    `json:"product"`
	PCI          string    `json:"pci"` // device and vendor: "0x20B010DE"
	MemoryMiB    int64     `json:"memoryMiB"`
	SMs          int       `json:"sms"`
	Architecture string    `json:"architecture"`
	Capability   string    `json:"capability"`
	Compute      int       `json:"compute"` // compute slices
	Units        int       `json:"units"`   // of the grid
	MaxDevices   int       `json:"maxDevices"`
	Profiles     []Profile `json:"profiles"`
}

// Profile is a way to cut a slice out of a card, as hardware has it.
type Profile struct {
	Name      string         `json:"name"`
	Enum      int            `json:"enum"`
	ID        int            `json:"id"`
	Compute   int            `json:"compute"`
	Size      int            `json:"size"`
	Starts    []int          `json:"starts"`
	Max       int            `json:"max"`
	SMs       int            `json:"sms"`       // 0: not known
	MemoryMiB int64          `json:"memoryMiB"` // 0: not known
	Engines   map[string]int `json:"engines"`
}

func (p *Profile) media() bool { return strings.Contains(p.Name, "+me") }

//go:embed models.json
var modelsJSON []byte

// Models are all that there are, each once.
func Models() []Model {
	var all []Model
	if err := json.Unmarshal(modelsJSON, &all); err != nil {
		panic("mock: models.json: " + err.Error())
	}
	return all
}

// model finds one by its key or product, whatever the case.
func model(name string) (*Model, error) {
	all := Models()
	i := slices.IndexFunc(all, func(m Model) bool {
		return strings.EqualFold(m.Key, name) || strings.EqualFold(m.Product, name)
	})
	if i < 0 {
		var keys []string
		for _, m := range all {
			keys = append(keys, m.Key)
		}
		return nil, fmt.Errorf("no model %q: there are %s", name, strings.Join(keys, ", "))
	}
	return &all[i], nil
}

func (m *Model) profile(name string) *Profile {
	if i := slices.IndexFunc(m.Profiles, func(p Profile) bool { return p.Name == name }); i >= 0 {
		return &m.Profiles[i]
	}
	return nil
}

func (m *Model) byID(id uint32) *Profile {
	if i := slices.IndexFunc(m.Profiles, func(p Profile) bool { return uint32(p.ID) == id }); i >= 0 {
		return &m.Profiles[i]
	}
	return nil
}

// info is the profile as NVML gives it. No slice has peer-to-peer.
func (p *Profile) info() gonvml.GpuInstanceProfileInfo {
	return gonvml.GpuInstanceProfileInfo{
		Id: uint32(p.ID), SliceCount: uint32(p.Compute), InstanceCount: uint32(p.Max),
		MultiprocessorCount: uint32(p.SMs), MemorySizeMB: uint64(p.MemoryMiB),
		CopyEngineCount: uint32(p.Engines["copy"]), DecoderCount: uint32(p.Engines["decoder"]),
		EncoderCount: uint32(p.Engines["encoder"]), JpegCount: uint32(p.Engines["jpeg"]), OfaCount: uint32(p.Engines["ofa"]),
	}
}

var architectures = map[string]gonvml.DeviceArchitecture{
	"ampere": gonvml.DEVICE_ARCH_AMPERE, "hopper": gonvml.DEVICE_ARCH_HOPPER, "blackwell": gonvml.DEVICE_ARCH_BLACKWELL,
}

// config is the model as go-nvml's mock server wants it, with the ids and placements of
// hardware in place of the server's own.
func (m *Model) config() gpus.Config {
	major, minor, _ := strings.Cut(m.Capability, ".")
	pci, _ := strconv.ParseUint(m.PCI, 0, 32)
	cfg := gpus.Config{
		Name: m.Product, Architecture: architectures[m.Architecture], Brand: gonvml.BRAND_NVIDIA,
		MemoryMB: uint64(m.MemoryMiB), PciDeviceId: uint32(pci),
		MIGProfiles: gpus.MIGProfileConfig{
			GpuInstanceProfiles:   map[int]gonvml.GpuInstanceProfileInfo{},
			GpuInstancePlacements: map[int][]gonvml.GpuInstancePlacement{},
		},
	}
	cfg.CudaMajor, _ = strconv.Atoi(major)
	cfg.CudaMinor, _ = strconv.Atoi(minor)
	for i := range m.Profiles {
		p := &m.Profiles[i]
		cfg.MIGProfiles.GpuInstanceProfiles[p.Enum] = p.info()
		for _, start := range p.Starts {
			cfg.MIGProfiles.GpuInstancePlacements[p.ID] = append(cfg.MIGProfiles.GpuInstancePlacements[p.ID],
				gonvml.GpuInstancePlacement{Start: uint32(start), Size: uint32(p.Size)})
		}
	}
	return cfg
}

// order is in which order the driver tries the starts of a profile when it is not
// told one. On seven-slice boards it is known from hardware, elsewhere from the end.
func (m *Model) order(p *Profile) []int {
	if m.Units == 8 && p.Size == 1 {
		return []int{6, 4, 5, 0, 1, 2, 3}
	}
	if m.Units == 8 && p.Compute == 2 {
		return []int{4, 0, 2}
	}
	starts := slices.Clone(p.Starts)
	slices.Reverse(starts)
	return starts
}

// ids are which numbers the driver may give a GPU instance there. The halves of a card
// get theirs as they come.
func (m *Model) ids(p *Profile, start int) []int {
	parts := m.Units / p.Size
	if parts == 2 {
		return []int{1, 2}
	}
	return []int{parts - 1 + start/p.Size}
}

// computes are the sizes of compute instances that fit into a GPU instance of so many
// compute slices, by NVML's number for them.
func computes(slices int) map[int]int {
	out := map[int]int{}
	for enum, n := range map[int]int{
		gonvml.COMPUTE_INSTANCE_PROFILE_1_SLICE: 1, gonvml.COMPUTE_INSTANCE_PROFILE_2_SLICE: 2,
		gonvml.COMPUTE_INSTANCE_PROFILE_3_SLICE: 3, gonvml.COMPUTE_INSTANCE_PROFILE_4_SLICE: 4,
		gonvml.COMPUTE_INSTANCE_PROFILE_7_SLICE: 7,
	} {
		if n <= slices {
			out[enum] = n
		}
	}
	return out
}
