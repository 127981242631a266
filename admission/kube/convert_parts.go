package kube

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"sluice.dev/sluice/nodeagent/api/v1alpha1"
	"sluice.dev/sluice/queue"
	"sluice.dev/sluice/quota"
)

// A queue may own cards rather than each kind of slice of them: quota.Cards. What it
// names itself it counts by itself; every other device counts as its part of a card.

// wholeCard is a card in the unit of quota.Cards.
const wholeCard = 1000

// countCards has the flavors of the queue that count cards charge devices as parts.
func (c *catalog) countCards(space *quota.Space, q *queue.Queue) {
	cards := space.Index(quota.Cards)
	for k := range q.Flavors {
		f := &q.Flavors[k]
		to, counts := f.Dims[cards]
		if !counts {
			continue
		}
		f.Card, f.Parts = to, map[int]int64{}
		for i := range space.Len() {
			if _, itself := f.Dims[i]; !itself && device(corev1.ResourceName(space.Name(i))) {
				f.Parts[i] = c.partOf(corev1.ResourceName(space.Name(i)))
			}
		}
	}
}

// namesCards is what a Volcano Queue names if it counts cards, else nil.
func (c *catalog) namesCards(v *volcano.Queue) map[corev1.ResourceName]bool {
	named := map[corev1.ResourceName]bool{}
	for _, list := range []corev1.ResourceList{v.Spec.Capability, v.Spec.Deserved, v.Spec.Guarantee.Resource} {
		for name := range list {
			named[name] = true
		}
	}
	if !named[quota.Cards] {
		return nil
	}
	return named
}

// ofCards is the one flavor of a queue without pools that counts cards.
func (c *catalog) ofCards(space *quota.Space, named map[corev1.ResourceName]bool) queue.Flavor {
	f := queue.Flavor{Name: DefaultFlavor, Card: space.Index(quota.Cards), Parts: map[int]int64{}}
	for i := range space.Len() {
		if name := corev1.ResourceName(space.Name(i)); !named[name] && device(name) {
			f.Parts[i] = c.partOf(name)
		}
	}
	return f
}

var sliceName = regexp.MustCompile(`^nvidia\.com/mig-(\d+)g\.`)

// partOf is how many thousandths of a card the device is: what agents report of it,
// else as much as its name tells. A time slice of unknown length counts as the card.
func (c *catalog) partOf(name corev1.ResourceName) int64 {
	if part, ok := c.parts[name]; ok {
		return part
	}
	if m := sliceName.FindStringSubmatch(string(name)); m != nil {
		if n, err := strconv.ParseInt(m[1], 10, 64); err == nil {
			return min(wholeCard, upper(wholeCard*n, 7)) // no card has more compute slices
		}
	}
	return wholeCard
}

// partsOf are the devices that agents know, each as its part of a card: of a slice the
// larger of compute and memory, rounded up, divided by how often it is offered. A
// name that means different things on different nodes counts as the largest.
func partsOf(inventories map[string]*v1alpha1.SliceInventory) map[corev1.ResourceName]int64 {
	parts := map[corev1.ResourceName]int64{}
	put := func(name string, part int64, s *v1alpha1.Share) {
		if s != nil && s.Replicas > 0 {
			if !s.Renamed {
				return // under its plain name a share cannot be told from the whole
			}
			name, part = name+".shared", upper(part, int64(s.Replicas))
		}
		if n := corev1.ResourceName(name); part > parts[n] {
			parts[n] = part
		}
	}
	for _, node := range slices.Sorted(maps.Keys(inventories)) {
		r := &inventories[node].Report
		put(v1alpha1.WholeCard, wholeCard, r.Share(v1alpha1.WholeCard))
		for i := range r.Models {
			m := &r.Models[i]
			most := int64(0)
			for k := range m.Profiles {
				most = max(most, int64(m.Profiles[k].Compute))
			}
			for k := range m.Profiles {
				p := &m.Profiles[k]
				part := upper(wholeCard*int64(p.Size), int64(max(1, m.Units)))
				if most > 0 {
					part = max(part, upper(wholeCard*int64(p.Compute), most))
				}
				name := v1alpha1.SliceResource(p.Name)
				put(name, min(part, wholeCard), r.Share(name))
			}
		}
	}
	return parts
}

// upper is a/b, rounded up.
func upper(a, b int64) int64 { return (a + b - 1) / b }

// cardsOf is how many cards the node has, in the unit of quota.Cards: what queues that
// count cards divide among them.
func cardsOf(n *corev1.Node, inv *v1alpha1.SliceInventory) int64 {
	if inv != nil && len(inv.Report.Cards) > 0 {
		return wholeCard * int64(len(inv.Report.Cards))
	}
	if count, err := strconv.ParseInt(n.Labels[v1alpha1.LabelCount], 10, 32); err == nil && count > 0 && !strings.Contains(n.Labels[v1alpha1.LabelProduct], "-MIG-") {
		return wholeCard * count
	}
	whole := n.Status.Allocatable[v1alpha1.WholeCard]
	return wholeCard * max(0, whole.Value())
}
