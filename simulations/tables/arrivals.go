package tables

import (
	"cmp"
	"fmt"
	"iter"
	"math/rand" //nolint:depguard // the published figures were drawn with this generator
	"path/filepath"
	"slices"
	"strings"

	"sluice.dev/sluice/simulations/traces"
)

const (
	wholeGPU    = 1000 // thousandths of a GPU
	tuningRatio = 1.3  // of the cluster's GPUs arrive in all
	informers   = 10   // draws that the upstream process spends between pods and nodes
)

// arrivals is what a run of the FGD study plays: pods in the order of their arrival,
// and nodes in the order that settles equal scores. Both are drawn from one seed.
type arrivals struct {
	listed []traces.Pod // the list itself, by name
	pods   []traces.Pod
	nodes  []traces.Node
	total  int64 // thousandths of a GPU on all nodes
	rng    *rand.Rand
}

// openb reads the nodes and a workload.
func openb(dir, workload string) (pods []traces.Pod, nodes []traces.Node, err error) {
	at := filepath.Join(dir, "openb-2023")
	if nodes, err = read(filepath.Join(at, "openb_node_list_gpu_node.csv"), (*traces.File).Nodes); err != nil {
		return nil, nil, err
	}
	if pods, err = read(filepath.Join(at, "openb_pod_list_"+workload+".csv"), (*traces.File).Pods); err != nil {
		return nil, nil, err
	}
	for i := range pods {
		p := &pods[i]
		p.Milli = min(p.Milli, wholeGPU)
		if p.GPUs == 0 {
			p.Milli, p.Models = 0, ""
		}
	}
	slices.SortFunc(pods, func(a, b traces.Pod) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(nodes, func(a, b traces.Node) int { return cmp.Compare(a.Name, b.Name) })
	return pods, nodes, nil
}

func read[T any](path string, lines func(*traces.File) iter.Seq2[T, error]) ([]T, error) {
	f, err := traces.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []T
	for v, err := range lines(f) {
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// draw orders pods and nodes by the seed as upstream does, draw by draw.
func draw(listed []traces.Pod, nodes []traces.Node, seed int64) arrivals {
	a := arrivals{listed: listed, rng: rand.New(rand.NewSource(seed))}
	for _, n := range nodes {
		a.total += n.GPUs * wholeGPU
	}
	a.rng.Int()
	a.pods = slices.Clone(listed)
	a.rng.Shuffle(len(a.pods), func(i, k int) { a.pods[i], a.pods[k] = a.pods[k], a.pods[i] })
	asked := int64(0)
	for _, p := range a.pods {
		asked += p.GPUs * p.Milli
	}
	target := int64(tuningRatio * float64(a.total))
	if asked > target {
		for asked > target {
			i := a.rng.Intn(len(a.pods))
			asked -= a.pods[i].GPUs * a.pods[i].Milli
			a.pods = slices.Delete(a.pods, i, i+1)
		}
	} else {
		for {
			p := listed[a.rng.Intn(len(listed))]
			if asked+p.Milli > target {
				break
			}
			asked += p.GPUs * p.Milli
			a.pods = append(a.pods, p)
		}
	}
	for range informers {
		a.rng.Int63()
	}
	ranks := a.rng.Perm(len(nodes))
	a.nodes = make([]traces.Node, len(nodes))
	for i, n := range nodes {
		a.nodes[ranks[i]] = n
		a.nodes[ranks[i]].Name = fmt.Sprintf("n%04d", ranks[i]) // the engine's order of names is that of ranks
	}
	return a
}

// split is the models that a pod allows.
func split(models string) []string { return strings.Split(models, "|") }
