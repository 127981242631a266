package tables

import (
	"fmt"
	"math"
	"math/rand" //nolint:depguard // the published figures were drawn with this generator
	"strconv"

	"sluice.dev/sluice/gang"
	"sluice.dev/sluice/quota"
	"sluice.dev/sluice/simulations/traces"
)

// What the FGD study replays: policies, in the order of its tables, workloads, seeds.
var (
	Placements = []string{"Random", "DotProd", "Clustering", "Packing", "BestFit", "FGD"}
	Workloads  = []string{
		"default", "cpu050", "cpu100", "cpu200", "cpu250", "gpushare40", "gpushare60", "gpushare80", "gpushare100",
		"gpuspec10", "gpuspec20", "gpuspec25", "gpuspec33", "multigpu20", "multigpu30", "multigpu40", "multigpu50",
	}
	Seeds = []int64{42, 43, 44, 45, 46, 47, 48, 49, 50, 51}
)

// Names of what is ours alone.
const (
	Plain = "ours, by default"
	Whole = "ours, placement: fragmentation"
)

// gpuMilli is the dimension in which thousandths of GPUs are counted.
const gpuMilli = quota.Pods + 1

const modelLabel = "model"

// hosts is the cards of all nodes, and how a policy chooses among them: the
// gang.Preference of a run. The inventory counts what is taken of a node; on which
// card, the studies fix, so that it is counted here.
type hosts struct {
	at     map[string]*host
	names  []string // by rank
	models map[string]int
	shapes map[shape]int
	listed []kind
	score  scorer
	pick   func(rated []gang.Rated) int
	card   func(hs *hosts, h *host, k kind) int // on which a share goes; nil is the tightest
	frag   *fragments
	rng    *rand.Rand
}

// scorer rates a node for a pod of the kind, for which there is room.
type scorer func(hs *hosts, h *host, k kind) int64

// shape is all that pods of one rating ask for.
type shape struct {
	kind
	memory int64
}

// Kind numbers shapes of pods: it is the name of the pod set.
func (hs *hosts) Kind(ps *gang.PodSet) int { return number(ps.Name) }

// Rate finds cards for the pod, one at least, and scores the node.
func (hs *hosts) Rate(ps *gang.PodSet, n *gang.Node, _ quota.Resources, _ int) (room int, score int64) {
	h, k := hs.at[n.Name], hs.listed[hs.Kind(ps)]
	if !h.holds(k) {
		return 0, 0
	}
	return 1, hs.score(hs, h, k)
}

// Choose leaves it to the policy.
func (hs *hosts) Choose(rated []gang.Rated) int { return hs.pick(rated) }

// holds says whether the cards have room for the pod: one with as much left as it
// asks for or, for several, so many times that.
func (h *host) holds(k kind) bool {
	if k.num == 0 {
		return true
	}
	slots := int64(0)
	for i := range h.gpus {
		slots += h.left[i] / k.milli
	}
	return slots >= k.num
}

// first takes the highest score, and of these the first.
func first(rated []gang.Rated) int {
	best := 0
	for i, r := range rated {
		if r.Score > rated[best].Score {
			best = i
		}
	}
	return best
}

func newHosts(a *arrivals, policy string) (*hosts, *gang.Inventory, error) {
	hs := &hosts{at: map[string]*host{}, models: map[string]int{}, shapes: map[shape]int{}, rng: a.rng}
	if err := hs.choose(policy); err != nil {
		return nil, nil, err
	}
	v := gang.NewInventory()
	for _, n := range a.nodes {
		if _, ok := hs.models[n.Model]; !ok {
			hs.models[n.Model] = len(hs.models)
		}
		h := &host{model: hs.models[n.Model], gpus: int(n.GPUs), cpu: n.CPU, accepted: map[string]bool{}}
		if n.GPUs > gpusMost {
			return nil, nil, fmt.Errorf("node %s has %d GPUs, at most %d are known", n.Name, n.GPUs, gpusMost)
		}
		for i := range h.gpus {
			h.left[i] = wholeGPU
		}
		hs.at[n.Name] = h
		hs.names = append(hs.names, n.Name)
		offer := quota.Resources{n.CPU, n.Memory, 1 << 30}
		offer.Set(gpuMilli, n.GPUs*wholeGPU)
		v.Put(&gang.Node{Name: n.Name, Labels: map[string]string{modelLabel: n.Model}, Offer: offer})
	}
	hs.frag = &fragments{typical: typicals(a.listed, hs.models), memo: map[[10 + 2*gpusMost]byte]float64{}}
	v.Prefer(hs)
	return hs, v, nil
}

// spec is the pod as a gang of one.
func (hs *hosts) spec(p *traces.Pod) *gang.Spec {
	k := shape{kindOf(p), p.Memory}
	n, ok := hs.shapes[k]
	if !ok {
		n = len(hs.listed)
		hs.shapes[k] = n
		hs.listed = append(hs.listed, k.kind)
	}
	req := quota.Resources{p.CPU, p.Memory, 1}
	req.Set(gpuMilli, p.GPUs*p.Milli)
	ps := gang.PodSet{Name: strconv.Itoa(n), Count: 1, Min: 1, Request: req}
	if p.Models != "" {
		ps.Filter.All = []gang.Requirement{{Key: modelLabel, Op: gang.In, Values: split(p.Models)}}
	}
	return &gang.Spec{PodSets: []gang.PodSet{ps}}
}

// Packing is what came out of a run: by percent of the cluster's GPUs that had
// arrived, as the study prints it.
type Packing struct {
	Workload, Policy string
	Seed             int64
	Allocated        []float64 // percent of all GPUs
	Fragmented       []float64 // percent of all GPUs; nil if not asked for
	OfIdle           []float64 // the same in percent of what is idle
	Dropped          int       // pods that fit nowhere
	Seconds          float64
}

// Pack replays a workload under a policy. Fragmentation is worked out on demand,
// after every pod.
func Pack(listed []traces.Pod, nodes []traces.Node, workload, policy string, seed int64, fragmented bool) (Packing, error) {
	begin := usedCPU()
	a := draw(listed, nodes, seed)
	hs, v, err := newHosts(&a, policy)
	if err != nil {
		return Packing{}, err
	}
	out := Packing{Workload: workload, Policy: policy, Seed: seed}
	s := series{total: a.total, columns: map[int]*column{}}
	if fragmented {
		s.by = make([]float64, len(hs.names))
		for i, n := range hs.names {
			s.by[i] = hs.frag.of(hs.at[n])
		}
	}
	rank := map[string]int{}
	for i, n := range hs.names {
		rank[n] = i
	}
	for i := range a.pods {
		p := &a.pods[i]
		spec := hs.spec(p)
		plan, short := gang.Place(v, spec, []int{1})
		s.arrived += p.GPUs * p.Milli
		if short == nil {
			v.TakePlan(spec, plan)
			node := plan.Sets[0].Slots[0].Node
			hs.take(hs.at[node], kindOf(p))
			s.used += p.GPUs * p.Milli
			if fragmented {
				s.by[rank[node]] = hs.frag.of(hs.at[node])
			}
		} else {
			out.Dropped++
		}
		s.note()
	}
	s.close(&out)
	out.Seconds = (usedCPU() - begin).Seconds()
	return out, nil
}

// series collects what is known after every pod, by what had arrived then.
type series struct {
	total, arrived, used int64
	by                   []float64 // fragments of each node, nil if not asked for
	columns              map[int]*column
}

type column struct{ allocated, fragmented, ofIdle []float64 }

func (s *series) note() {
	gpus := float64(s.total) / wholeGPU
	at := int(math.RoundToEven(float64(s.arrived) / gpus / 10))
	c := s.columns[at]
	if c == nil {
		c = &column{}
		s.columns[at] = c
	}
	c.allocated = append(c.allocated, rounded(float64(s.used)/gpus/10))
	if s.by == nil {
		return
	}
	sum := 0.0
	for _, x := range s.by {
		sum += x
	}
	sum = rounded(sum)
	c.fragmented = append(c.fragmented, sum)
	c.ofIdle = append(c.ofIdle, rounded(100*sum/float64(s.total-s.used)))
}

func (s *series) close(out *Packing) {
	for at := 0; s.columns[at] != nil; at++ {
		c := s.columns[at]
		out.Allocated = append(out.Allocated, rounded(mean(c.allocated)))
		if s.by != nil {
			out.Fragmented = append(out.Fragmented, rounded(100*mean(c.fragmented)/wholeGPU/(float64(s.total)/wholeGPU)))
			out.OfIdle = append(out.OfIdle, mean(c.ofIdle))
		}
	}
}
