package tables

import (
	"cmp"
	"encoding/binary"
	"slices"

	"sluice.dev/sluice/simulations/traces"
)

// kind is what a study tells pods apart by.
type kind struct {
	cpu, milli, num int64
	models          string
}

func kindOf(p *traces.Pod) kind { return kind{p.CPU, p.Milli, p.GPUs, p.Models} }

// shares says whether such a pod takes part of one GPU.
func (k kind) shares() bool { return k.num == 1 && k.milli < wholeGPU }

// typical is a kind of pod with how often it comes.
type typical struct {
	kind
	often   float64
	allowed uint64 // models, by number; all bits for any
}

// typicalPart of the pods is what the typical kinds cover.
const typicalPart = 0.95

// typicals are the most frequent kinds of a list, down to typicalPart of it.
func typicals(listed []traces.Pod, models map[string]int) []typical {
	count := map[kind]int{}
	for i := range listed {
		count[kindOf(&listed[i])]++
	}
	var kinds []kind
	for k := range count {
		kinds = append(kinds, k)
	}
	slices.SortFunc(kinds, func(a, b kind) int {
		return -cmp.Or(cmp.Compare(count[a], count[b]), cmp.Compare(a.cpu, b.cpu), cmp.Compare(a.milli, b.milli),
			cmp.Compare(a.num, b.num), cmp.Compare(a.models, b.models))
	})
	var out []typical
	covered := 0
	for _, k := range kinds {
		if float64(covered) >= typicalPart*float64(len(listed)) {
			break
		}
		covered += count[k]
		t := typical{kind: k, allowed: ^uint64(0)}
		if k.models != "" {
			t.allowed = 0
			for _, m := range split(k.models) {
				if n, ok := models[m]; ok {
					t.allowed |= 1 << n
				}
			}
		}
		out = append(out, t)
	}
	for i := range out {
		out[i].often = float64(count[out[i].kind]) / float64(covered)
	}
	return out
}

// gpusMost is how many GPUs a node has at most.
const gpusMost = 8

// host is a node's cards and what is left on it.
type host struct {
	model    int
	gpus     int
	cpu      int64 // left, thousandths of a core
	left     [gpusMost]int64
	accepted map[string]bool // classes of pods, see Clustering
}

// fragments works out how much of a node is of no use to a typical pod, and
// remembers it: nodes come back to where others have been.
type fragments struct {
	typical []typical
	memo    map[[10 + 2*gpusMost]byte]float64
}

// of is the expected part of the node's GPUs, in thousandths, that a pod drawn from
// the typical ones could not use. Parts are summed by why, as upstream does, since
// the scores that follow are cut to whole numbers.
func (f *fragments) of(h *host) float64 {
	var key [10 + 2*gpusMost]byte
	key[0], key[1] = byte(h.model), byte(h.gpus)
	binary.LittleEndian.PutUint64(key[2:], uint64(h.cpu))
	left := h.left
	slices.Sort(left[:h.gpus])
	for i := range h.gpus {
		binary.LittleEndian.PutUint16(key[10+2*i:], uint16(left[i]))
	}
	if v, ok := f.memo[key]; ok {
		return v
	}
	v := f.work(h)
	f.memo[key] = v
	return v
}

func (f *fragments) work(h *host) float64 {
	total := 0.0
	for i := range h.gpus {
		total += float64(h.left[i])
	}
	var lacksBoth, lacksGPU, lacksCPU, plain, plainLacksCPU, barred float64
	for i := range f.typical {
		t := &f.typical[i]
		cpu := h.cpu >= t.cpu
		switch {
		case t.num == 0 && cpu:
			plain += t.often * total
			continue
		case t.num == 0:
			plainLacksCPU += t.often * total
			continue
		case t.allowed>>h.model&1 == 0:
			barred += t.often * total
			continue
		}
		slots, small := int64(0), int64(0)
		for j := range h.gpus {
			if h.left[j] < t.milli {
				small += h.left[j]
			} else if t.num > 1 || t.milli < wholeGPU {
				slots += h.left[j] / t.milli
			} else {
				slots++
			}
		}
		switch gpu := slots >= t.num; {
		case gpu && cpu:
			lacksGPU += t.often * float64(small)
		case gpu:
			lacksCPU += t.often * total
		case cpu:
			lacksGPU += t.often * total
		default:
			lacksBoth += t.often * total
		}
	}
	return lacksBoth + lacksGPU + lacksCPU + plain + plainLacksCPU + barred
}
