package simulations

import (
	"fmt"
	"slices"
	"strings"
)

// Card is a kind of GPU, as the virtual hardware of a scenario needs it: what
// NVML and the feature labels of a real one would show. The controller never
// reads this table; it learns profiles from the nodes.
type Card struct {
	Product   string // as in the label nvidia.com/gpu.product
	MemoryMiB int    // 0: not known, and no label
	Family    string
	Compute   string    // compute capability, "8.0"
	Units     int       // memory units of the placement grid; 0: no MIG
	Profiles  []Profile // empty: no MIG
}

// Profile is a way to cut a slice out of a card. It covers Size units of the
// grid and may start only at Starts.
type Profile struct {
	Name      string // "1g.5gb", "1g.5gb+me"
	Compute   int    // compute slices
	Size      int    // memory units
	Starts    []int
	SMs       int // multiprocessors; 0: not known
	MemoryMiB int // 0: not known
}

// Resource is the name under which the device plugin offers the slice.
func (p Profile) Resource() string { return "nvidia.com/" + p.label() }

// label is the profile in label keys and resource names, where + is illegal.
func (p Profile) label() string { return "mig-" + strings.ReplaceAll(p.Name, "+", ".") }

// media says that the slice takes the card's media engines, which only one
// slice of a card can have.
func (p Profile) media() bool {
	return strings.HasSuffix(p.Name, "+me") || strings.HasSuffix(p.Name, "+me.all")
}

// CardOf looks a product up. A product that is not in the catalogue is a card
// without MIG of which nothing but the name is known.
func CardOf(product string) (card Card, known bool) {
	card, known = catalogue[product]
	if !known {
		card = Card{Product: product}
	}
	return card, known
}

// Profile looks a profile of the card up by its name.
func (c Card) Profile(name string) (Profile, bool) {
	i := slices.IndexFunc(c.Profiles, func(p Profile) bool { return p.Name == name })
	if i < 0 {
		return Profile{}, false
	}
	return c.Profiles[i], true
}

// profileNames are the names of the card's profiles, for messages.
func (c Card) profileNames() []string {
	names := make([]string, len(c.Profiles))
	for i, p := range c.Profiles {
		names[i] = p.Name
	}
	return names
}

// Place finds a start for each profile of a layout on an empty card, in the
// order of the layout, or says why there is none. It tries every placement, so
// "none" is exact.
func (c Card) Place(layout []string) (starts []int, err error) {
	if len(c.Profiles) == 0 {
		return nil, fmt.Errorf("%s has no MIG", orUnnamed(c.Product))
	}
	ps := make([]Profile, len(layout))
	media := 0
	for i, name := range layout {
		p, ok := c.Profile(name)
		if !ok {
			return nil, fmt.Errorf("%s has no profile %q, it has %s", c.Product, name, strings.Join(c.profileNames(), ", "))
		}
		if p.media() {
			media++
		}
		ps[i] = p
	}
	if media > 1 {
		return nil, fmt.Errorf("%d slices want the media engines, %s has them for one", media, c.Product)
	}
	starts = make([]int, len(ps))
	if len(ps) > c.Units || !c.place(bySize(ps), ps, 0, starts) {
		return nil, fmt.Errorf("impossible layout, no placement on %s for %s", c.Product, Layout{Slices: layout})
	}
	return starts, nil
}

// place puts the profiles ps[order[0]], ps[order[1]], … next to what is taken.
func (c Card) place(order []int, ps []Profile, taken uint64, starts []int) bool {
	if len(order) == 0 {
		return true
	}
	i := order[0]
	for _, start := range ps[i].Starts {
		span := (uint64(1)<<ps[i].Size - 1) << start
		if taken&span != 0 {
			continue
		}
		starts[i] = start
		if c.place(order[1:], ps, taken|span, starts) {
			return true
		}
	}
	return false
}

// bySize orders profiles from large to small, equal ones as they stand, so
// that a layout of more slices than units fails early.
func bySize(ps []Profile) []int {
	order := make([]int, len(ps))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return ps[b].Size - ps[a].Size })
	return order
}

func orUnnamed(product string) string {
	if product == "" {
		return "a GPU without product"
	}
	return product
}

// catalogue is the virtual hardware by product.
var catalogue = newCatalogue()

func newCatalogue() map[string]Card {
	all := map[string]Card{}
	add := func(products string, c Card) {
		for product := range strings.FieldsSeq(products) {
			c.Product = product
			all[product] = c
		}
	}
	for _, r := range plainCards {
		add(r.products, Card{MemoryMiB: r.memoryMiB, Family: r.family, Compute: r.compute})
	}
	for _, r := range sevenSliceCards {
		c := Card{MemoryMiB: r.memoryMiB, Family: r.family, Compute: r.compute, Units: 8}
		c.Profiles = sevenSlices(r.names, r.sms, r.mib)
		add(r.products, c)
	}
	add("NVIDIA-A30", Card{MemoryMiB: 24576, Family: "ampere", Compute: "8.0", Units: 4, Profiles: []Profile{
		{"1g.6gb", 1, 1, []int{0, 1, 2, 3}, 14, 5949},
		{"1g.6gb+me", 1, 1, []int{0, 1, 2, 3}, 14, 5949},
		{"2g.12gb", 2, 2, []int{0, 2}, 28, 11970},
		{"2g.12gb+me", 2, 2, []int{0, 2}, 28, 11970},
		{"4g.24gb", 4, 4, []int{0}, 56, 24002},
	}})
	add("NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition NVIDIA-RTX-PRO-6000-Blackwell-Workstation-Edition"+
		" NVIDIA-RTX-PRO-6000-Blackwell-Max-Q-Workstation-Edition",
		Card{MemoryMiB: 97887, Family: "blackwell", Compute: "12.0", Units: 12, Profiles: rtxPro6000()})
	return all
}

// plainCards have no MIG.
var plainCards = []struct {
	products        string
	memoryMiB       int
	family, compute string
}{
	{"Tesla-T4 NVIDIA-T4", 15360, "turing", "7.5"},
	{"Tesla-V100-SXM2-16GB Tesla-V100-PCIE-16GB", 16384, "volta", "7.0"},
	{"Tesla-V100-SXM2-32GB Tesla-V100-SXM3-32GB Tesla-V100-PCIE-32GB", 32768, "volta", "7.0"},
	{"NVIDIA-A10 NVIDIA-A10G", 23028, "ampere", "8.6"},
	{"NVIDIA-A40", 46068, "ampere", "8.6"},
	{"NVIDIA-L4", 23034, "ada-lovelace", "8.9"},
	{"NVIDIA-L40 NVIDIA-L40S", 46068, "ada-lovelace", "8.9"},
}

// sevenSliceCards share one grid: seven compute slices on eight memory units.
// The columns are 1g, 1g of double memory, 2g, 3g, 4g and 7g; 1g+me equals 1g.
// What is 0 is not known.
var sevenSliceCards = []struct {
	products        string
	memoryMiB       int
	family, compute string
	names           string
	sms, mib        [6]int
}{
	{
		"NVIDIA-A100-SXM4-40GB NVIDIA-A100-PCIE-40GB NVIDIA-A800-SXM4-40GB", 40960, "ampere", "8.0",
		"1g.5gb 1g.10gb 2g.10gb 3g.20gb 4g.20gb 7g.40gb",
		[6]int{14, 14, 28, 42, 56, 98},
		[6]int{4864, 9984, 9984, 20096, 20096, 40320},
	},
	{
		"NVIDIA-A100-SXM4-80GB NVIDIA-A100-80GB-PCIe NVIDIA-A800-SXM4-80GB NVIDIA-A800-80GB-PCIe", 81920, "ampere", "8.0",
		"1g.10gb 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb",
		[6]int{14, 14, 28, 42, 56, 98},
		[6]int{9728, 19968, 19968, 40192, 40192, 80896},
	},
	{
		"NVIDIA-H100-80GB-HBM3 NVIDIA-H800", 81559, "hopper", "9.0",
		"1g.10gb 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb",
		[6]int{16, 26, 32, 60, 64, 132},
		[6]int{9984, 20096, 20096, 40448, 40448, 81152},
	},
	{
		"NVIDIA-H100-PCIe", 81559, "hopper", "9.0",
		"1g.10gb 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb",
		[6]int{14, 14, 30, 46, 62, 114},
		[6]int{9984, 20091, 20091, 40448, 40448, 81152},
	},
	{
		"NVIDIA-H100-NVL NVIDIA-H800-NVL", 95830, "hopper", "9.0",
		"1g.12gb 1g.24gb 2g.24gb 3g.47gb 4g.47gb 7g.94gb",
		[6]int{16, 26, 32, 60, 64, 132},
		[6]int{11008, 22139, 22139, 47493, 47493, 95355},
	},
	{
		"NVIDIA-H100-96GB-HBM3 NVIDIA-GH200-96GB-HBM3 NVIDIA-GH200-120GB NVIDIA-GH200-480GB NVIDIA-H20", 97871, "hopper", "9.0",
		"1g.12gb 1g.24gb 2g.24gb 3g.48gb 4g.48gb 7g.96gb",
		[6]int{16, 26, 32, 60, 64, 132},
		[6]int{11264, 22528, 22528, 47616, 47616, 96768},
	},
	{
		"NVIDIA-GH200-144G-HBM3e", 146831, "hopper", "9.0",
		"1g.18gb 1g.36gb 2g.36gb 3g.72gb 4g.72gb 7g.144gb",
		[6]int{16, 26, 32, 60, 64, 132},
		[6]int{17920, 36096, 36096},
	},
	{
		"NVIDIA-H200 NVIDIA-H200-NVL", 143771, "hopper", "9.0",
		"1g.18gb 1g.35gb 2g.35gb 3g.71gb 4g.71gb 7g.141gb",
		[6]int{16, 26, 32, 60, 64, 132},
		[6]int{16384, 33024, 33024, 71168, 71168, 143104},
	},
	{
		"NVIDIA-B200", 183359, "blackwell", "10.0",
		"1g.23gb 1g.45gb 2g.45gb 3g.90gb 4g.90gb 7g.180gb",
		[6]int{18, 30, 36, 70, 72, 148},
		[6]int{20992, 45312, 45312, 91136, 91136, 182784},
	},
	{
		"NVIDIA-GB200", 189471, "blackwell", "10.0",
		"1g.23gb 1g.47gb 2g.47gb 3g.93gb 4g.93gb 7g.186gb",
		[6]int{18, 32, 38},
		[6]int{22528, 46592, 46592},
	},
	{
		"NVIDIA-B300-SXM6-AC", 0, "blackwell", "10.3",
		"1g.34gb 1g.67gb 2g.67gb 3g.135gb 4g.135gb 7g.269gb",
		[6]int{},
		[6]int{},
	},
	{
		"NVIDIA-GB300", 0, "blackwell", "10.3",
		"1g.35gb 1g.70gb 2g.70gb 3g.139gb 4g.139gb 7g.278gb",
		[6]int{},
		[6]int{},
	},
}

// sevenSlices are the profiles of a card of seven compute slices.
func sevenSlices(names string, sms, mib [6]int) []Profile {
	grid := [6]Profile{
		{Compute: 1, Size: 1, Starts: []int{0, 1, 2, 3, 4, 5, 6}},
		{Compute: 1, Size: 2, Starts: []int{0, 2, 4, 6}},
		{Compute: 2, Size: 2, Starts: []int{0, 2, 4}},
		{Compute: 3, Size: 4, Starts: []int{0, 4}},
		{Compute: 4, Size: 4, Starts: []int{0}},
		{Compute: 7, Size: 8, Starts: []int{0}},
	}
	var out []Profile
	for i, name := range strings.Fields(names) {
		p := grid[i]
		p.Name, p.SMs, p.MemoryMiB = name, sms[i], mib[i]
		out = append(out, p)
		if i == 0 {
			p.Name += "+me"
			out = append(out, p)
		}
	}
	return out
}

// rtxPro6000 are the profiles of a grid of twelve units, on which a start is
// no slice number.
func rtxPro6000() []Profile {
	one := Profile{Compute: 1, Size: 3, Starts: []int{0, 3, 6, 9}, SMs: 46, MemoryMiB: 24186}
	two := Profile{Compute: 2, Size: 6, Starts: []int{0, 6}, SMs: 94, MemoryMiB: 48517}
	four := Profile{Compute: 4, Size: 12, Starts: []int{0}, SMs: 188, MemoryMiB: 97280}
	var out []Profile
	add := func(p Profile, names ...string) {
		for _, name := range names {
			p.Name = name
			out = append(out, p)
		}
	}
	add(one, "1g.24gb", "1g.24gb+me", "1g.24gb+gfx", "1g.24gb+me.all", "1g.24gb-me")
	add(two, "2g.48gb", "2g.48gb+gfx", "2g.48gb+me.all", "2g.48gb-me")
	add(four, "4g.96gb", "4g.96gb+gfx")
	return out
}
