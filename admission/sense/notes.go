package sense

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"sluice.dev/sluice/nodeagent/api/v1alpha1"
)

// Note is one thing that a submitter should know.
type Note struct {
	// What is the kind, in a word.
	What What
	Text string
	// Never says that pods as written cannot start on any node, however its cards are
	// cut. Else they may start late, or run worse than expected.
	Never bool
}

// What is the kind of a note.
type What string

// The kinds, in the order in which they are told.
const (
	IllegalName   What = "illegalName"   // a plus in the name of a resource
	UnknownName   What = "unknownName"   // a device that no node offers, nor could
	NotCut        What = "notCut"        // a slice that some node could offer, cut otherwise
	TooManyShares What = "tooManyShares" // more shares than the plugin gives to one container
	SharedSlices  What = "sharedSlices"  // MPS on slices
	Product       What = "product"       // a product that is labelled otherwise now
	TrainOnSlices What = "trainOnSlices" // pods that talk to each other over devices that cannot
	TwoProfiles   What = "twoProfiles"   // different slices for one pod where nodes have one kind
)

// Pods are the pods of one set as they are submitted.
type Pods struct {
	Name  string
	Count int
	Spec  *corev1.PodSpec
}

// Notes says what there is to know of the pods together, in the order of the kinds.
func (f *Facts) Notes(sets []Pods) []Note {
	var notes []Note
	add := func(what What, never bool, format string, args ...any) {
		n := Note{what, fmt.Sprintf(format, args...), never}
		if !slices.Contains(notes, n) {
			notes = append(notes, n)
		}
	}
	total := 0
	for i := range sets {
		total += sets[i].Count
	}
	for i := range sets {
		set := &sets[i]
		for _, c := range slices.Concat(set.Spec.InitContainers, set.Spec.Containers) {
			f.container(set, &c, add)
		}
		f.products(set, add)
		f.training(set, total, add)
		f.profiles(set, add)
	}
	slices.SortStableFunc(notes, func(a, b Note) int { return slices.Index(kinds, a.What) - slices.Index(kinds, b.What) })
	return notes
}

var kinds = []What{IllegalName, UnknownName, NotCut, TooManyShares, SharedSlices, Product, TrainOnSlices, TwoProfiles}

type add func(what What, never bool, format string, args ...any)

// asks are the devices that a container asks for, by name.
func asks(c *corev1.Container) map[string]int64 {
	out := map[string]int64{}
	for _, list := range []corev1.ResourceList{c.Resources.Requests, c.Resources.Limits} {
		for name, q := range list {
			if strings.HasPrefix(string(name), vendor) && q.Value() > 0 && isDevice(string(name)) {
				out[string(name)] = max(out[string(name)], q.Value())
			}
		}
	}
	return out
}

func (f *Facts) container(set *Pods, c *corev1.Container, add add) {
	for _, name := range sorted(asks(c)) {
		where := fmt.Sprintf("pod set %s, container %s", set.Name, c.Name)
		if right := strings.ReplaceAll(name, "+", "."); right != name {
			add(IllegalName, true, "%s: %s: a plus is not legal in the name of a resource; this one is called %s", where, name, right)
			continue
		}
		f.name(where, name, add)
		f.shares(where, name, asks(c)[name], add)
	}
}

// name is about a device that nobody offers.
func (f *Facts) name(where, name string, add add) {
	offered := f.offered()
	if len(offered) == 0 && len(f.cuttable(name)) == 0 || f.offers(name) {
		return // nothing is known of devices, or all is well
	}
	if nodes := f.cuttable(name); len(nodes) > 0 {
		add(NotCut, false, "%s: no node offers %s as its cards are cut now; those of %s could be cut so", where, name, list(nodes))
		return
	}
	if nodes, other := f.named(name); len(nodes) > 0 {
		if other == "" {
			add(UnknownName, true, "%s: %s: the device plugin of %s offers no slices, its MIG strategy is none", where, name, list(nodes))
		} else {
			add(UnknownName, true, "%s: %s: on %s such slices are called %s", where, name, list(nodes), other)
		}
		return
	}
	text := "nothing of the kind is offered"
	if len(offered) > 0 {
		text = "offered are " + list(offered)
	}
	add(UnknownName, true, "%s: no node offers %s; %s", where, name, text)
}

// shares is about devices that several pods use.
func (f *Facts) shares(where, name string, n int64, add add) {
	base := strings.TrimSuffix(name, shared)
	var strict, mps []string
	open := false
	for i := range f.Nodes {
		node := &f.Nodes[i]
		if node.Devices[name] == 0 {
			continue
		}
		var s *v1alpha1.Share
		if node.Report != nil {
			s = node.Report.Share(base)
		}
		switch {
		case s == nil:
			open = true
			continue
		case s.Strategy == v1alpha1.MPS && isSlice(base):
			mps = append(mps, node.Name)
		case s.FailAboveOne != nil && *s.FailAboveOne, s.FailAboveOne == nil && s.Strategy == v1alpha1.MPS:
			strict = append(strict, node.Name)
			continue
		}
		open = true
	}
	if n > 1 && len(strict) > 0 {
		add(TooManyShares, !open, "%s: asks %d of %s; %s gives one share to a container and refuses more after the pod was bound", where, n, name, list(strict))
	}
	if len(mps) > 0 {
		add(SharedSlices, false, "%s: %s: on %s slices are shared by MPS, which serves whole cards only", where, name, list(mps))
	}
}

// products is about selectors of products whose label has changed with how the cards
// are shared or cut.
func (f *Facts) products(set *Pods, add add) {
	have := map[string][]string{}
	for _, n := range f.Nodes {
		if p := n.Labels[v1alpha1.LabelProduct]; p != "" {
			have[p] = append(have[p], n.Name)
		}
	}
	for _, want := range wanted(set.Spec) {
		if len(have) == 0 || len(have[want]) > 0 {
			continue
		}
		for _, p := range sortedKeys(have) {
			if bare(p) == bare(want) {
				add(Product, false, "pod set %s: no node has the label %s=%s; %s has %s, since its cards are shared or cut otherwise", set.Name, v1alpha1.LabelProduct, want, list(have[p]), p)
			}
		}
	}
}

// bare is a product without how its cards are shared or cut.
func bare(product string) string {
	product = strings.TrimSuffix(product, "-SHARED")
	if i := strings.Index(product, "-MIG-"); i >= 0 {
		product = product[:i]
	}
	return product
}

// wanted are the products that the pod selects.
func wanted(spec *corev1.PodSpec) []string {
	var out []string
	if p := spec.NodeSelector[v1alpha1.LabelProduct]; p != "" {
		out = append(out, p)
	}
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil || spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return out
	}
	for _, t := range spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, e := range t.MatchExpressions {
			if e.Key == v1alpha1.LabelProduct && e.Operator == corev1.NodeSelectorOpIn {
				out = append(out, e.Values...)
			}
		}
	}
	return out
}

// training is about pods that talk to each other over devices that cannot.
func (f *Facts) training(set *Pods, total int, add add) {
	for _, c := range set.Spec.Containers {
		nccl := slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return strings.HasPrefix(e.Name, "NCCL_") })
		var parts []string
		n := int64(0)
		for _, name := range sorted(asks(&c)) {
			if isSlice(name) || strings.HasSuffix(name, shared) {
				parts = append(parts, name)
				n += asks(&c)[name]
			}
		}
		if len(parts) > 0 && (nccl || total > 1 && n > 1) {
			add(TrainOnSlices, false, "pod set %s, container %s: asks %s; slices and shares have no NVLink and no peer access, so that NCCL between them fails or is slow: training wants whole cards", set.Name, c.Name, list(parts))
		}
	}
}

// profiles is about different slices for one pod where every node has one kind.
func (f *Facts) profiles(set *Pods, add add) {
	kinds := map[string]int64{}
	for _, c := range set.Spec.Containers {
		for name, n := range asks(&c) {
			if isSlice(name) {
				kinds[name] += n
			}
		}
	}
	if len(kinds) < 2 {
		return
	}
	could := f.nodesWhere(func(n *Node) bool {
		for name := range kinds {
			if n.Devices[name] == 0 && (n.Report == nil || !(&Facts{[]Node{*n}}).canCut(name)) {
				return false
			}
		}
		return true
	})
	if len(could) == 0 && len(f.offered()) > 0 {
		add(TwoProfiles, true, "pod set %s: asks for %s in one pod; no node has, or could have, all of them", set.Name, list(sorted(kinds)))
	}
}

func (f *Facts) canCut(resource string) bool { return len(f.cuttable(resource)) > 0 }
