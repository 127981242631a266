package sense

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"sluice.dev/sluice/nodeagent/api/v1alpha1"
)

// nodeOf is a node that offers what is listed as name=count, with a report if strategy
// is not empty.
func nodeOf(name, offers string, strategy v1alpha1.MIGStrategy, labels ...string) Node {
	n := Node{Name: name, Labels: map[string]string{}, Devices: map[string]int64{}}
	for _, o := range strings.Fields(offers) {
		what, count, _ := strings.Cut(o, "=")
		var v int64
		if _, err := fmt.Sscan(count, &v); err != nil {
			panic(err)
		}
		n.Devices["nvidia.com/"+what] = v
	}
	for _, l := range labels {
		k, v, _ := strings.Cut(l, "=")
		n.Labels[k] = v
	}
	if strategy != "" {
		n.Report = &v1alpha1.Report{
			State: v1alpha1.Ready, Sharing: v1alpha1.Sharing{MIGStrategy: strategy},
			Cards: []v1alpha1.Card{{Model: "A100", MemoryMiB: 40960}},
			Models: []v1alpha1.Model{{Name: "A100", Units: 8, Profiles: []v1alpha1.Profile{
				{Name: "1g.5gb", Compute: 1, Size: 1, MemoryMiB: 4864},
				{Name: "1g.5gb+me", Compute: 1, Size: 1, MemoryMiB: 4864, Sole: "media"},
				{Name: "1g.10gb", Compute: 1, Size: 2, MemoryMiB: 9984},
				{Name: "2g.10gb", Compute: 2, Size: 2, MemoryMiB: 9984},
				{Name: "3g.20gb", Compute: 3, Size: 4, MemoryMiB: 20096},
				{Name: "7g.40gb", Compute: 7, Size: 8, MemoryMiB: 40320},
			}}},
		}
	}
	return n
}

func withShare(n Node, s v1alpha1.Share) Node {
	n.Report.Sharing.Shares = []v1alpha1.Share{s}
	return n
}

// pod has one container for each list of name=count.
func pod(count int, containers ...string) Pods {
	p := Pods{Name: "main", Count: count, Spec: &corev1.PodSpec{NodeSelector: map[string]string{}}}
	for i, text := range containers {
		c := corev1.Container{Name: fmt.Sprint("c", i), Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{}}}
		for _, r := range strings.Fields(text) {
			if name, value, ok := strings.Cut(r, "="); ok && strings.HasPrefix(name, "NCCL") {
				c.Env = append(c.Env, corev1.EnvVar{Name: name, Value: value})
			} else {
				c.Resources.Limits[corev1.ResourceName("nvidia.com/"+name)] = resource.MustParse(value)
			}
		}
		p.Spec.Containers = append(p.Spec.Containers, c)
	}
	return p
}

func selecting(p Pods, product string) Pods {
	p.Spec.NodeSelector[v1alpha1.LabelProduct] = product
	return p
}

func TestNotes(t *testing.T) {
	product := func(p string) string { return v1alpha1.LabelProduct + "=" + p }
	strictShare := v1alpha1.Share{Resource: v1alpha1.WholeCard, Strategy: v1alpha1.TimeSlicing, Replicas: 4, Renamed: true, FailAboveOne: ptr.To(true)}
	for name, c := range map[string]struct {
		nodes []Node
		pods  Pods
		want  string // kinds, with ! for what never starts, and a part of the text
	}{
		"no devices":           {[]Node{nodeOf("n", "gpu=8", "")}, pod(4, ""), ""},
		"as offered":           {[]Node{nodeOf("n", "gpu=8", "")}, pod(4, "gpu=8"), ""},
		"nothing known":        {nil, pod(1, "mig-1g.5gb=1"), ""},
		"a plus":               {[]Node{nodeOf("n", "mig-1g.5gb.me=1", "")}, pod(1, "mig-1g.5gb+me=1"), "illegalName!: nvidia.com/mig-1g.5gb.me"},
		"unknown":              {[]Node{nodeOf("n", "gpu=8", "")}, pod(1, "mig-1g.5gb=1"), "unknownName!: offered are nvidia.com/gpu"},
		"another card's slice": {[]Node{nodeOf("n", "gpu=1", v1alpha1.MIGMixed)}, pod(1, "mig-1g.6gb=1"), "unknownName!: no node offers nvidia.com/mig-1g.6gb"},
		"could be cut":         {[]Node{nodeOf("n", "gpu=1", v1alpha1.MIGMixed)}, pod(1, "mig-1g.5gb=1"), "notCut: those of n could"},
		"ghosts":               {[]Node{nodeOf("n", "gpu=1 mig-1g.6gb=0", "")}, pod(1, "mig-1g.6gb=1"), "unknownName!: no node offers"},
		"single":               {[]Node{nodeOf("n", "gpu=7", v1alpha1.MIGSingle)}, pod(1, "mig-1g.5gb=1"), "unknownName!: on n such slices are called nvidia.com/gpu"},
		"none":                 {[]Node{nodeOf("n", "gpu=1", v1alpha1.MIGNone)}, pod(1, "mig-1g.5gb=1"), "unknownName!: its MIG strategy is none"},
		"not renamed":          {[]Node{nodeOf("n", "gpu=8", "")}, pod(1, "gpu.shared=1"), "unknownName!: nvidia.com/gpu.shared"},
		"one share":            {[]Node{withShare(nodeOf("n", "gpu.shared=8", v1alpha1.MIGNone), strictShare)}, pod(1, "gpu.shared=1"), ""},
		"two shares":           {[]Node{withShare(nodeOf("n", "gpu.shared=8", v1alpha1.MIGNone), strictShare)}, pod(1, "gpu.shared=2"), "tooManyShares!: asks 2 of nvidia.com/gpu.shared"},
		"two shares, somewhere": {
			[]Node{withShare(nodeOf("n", "gpu.shared=8", v1alpha1.MIGNone), strictShare), nodeOf("m", "gpu.shared=8", "")},
			pod(1, "gpu.shared=2"), "tooManyShares: asks 2",
		},
		"MPS is strict": {
			[]Node{withShare(nodeOf("n", "gpu=8", v1alpha1.MIGNone), v1alpha1.Share{Resource: v1alpha1.WholeCard, Strategy: v1alpha1.MPS, Replicas: 4})},
			pod(1, "gpu=2"), "tooManyShares!: asks 2",
		},
		"MPS on slices": {
			[]Node{withShare(nodeOf("n", "mig-1g.5gb=14", v1alpha1.MIGMixed), v1alpha1.Share{Resource: "nvidia.com/mig-1g.5gb", Strategy: v1alpha1.MPS, Replicas: 2})},
			pod(1, "mig-1g.5gb=1"), "sharedSlices: MPS, which serves whole cards only",
		},
		"a product that is shared": {[]Node{nodeOf("n", "gpu=8", "", product("A10-SHARED"))}, selecting(pod(1, "gpu=1"), "A10"), "product: n has A10-SHARED"},
		"a product that is cut":    {[]Node{nodeOf("n", "gpu=7", "", product("A100-MIG-1g.5gb"))}, selecting(pod(1, "gpu=1"), "A100"), "product: n has A100-MIG-1g.5gb"},
		"a product that is there":  {[]Node{nodeOf("n", "gpu=8", "", product("A10")), nodeOf("m", "gpu=8", "", product("A10-SHARED"))}, selecting(pod(1, "gpu=1"), "A10"), ""},
		"another product":          {[]Node{nodeOf("n", "gpu=8", "", product("A10"))}, selecting(pod(1, "gpu=1"), "H100"), ""},
		"pods on slices":           {[]Node{nodeOf("n", "mig-1g.5gb=14", "")}, pod(8, "mig-1g.5gb=1"), ""},
		"pods on many slices":      {[]Node{nodeOf("n", "mig-1g.5gb=14", "")}, pod(8, "mig-1g.5gb=2"), "trainOnSlices: training wants whole cards"},
		"NCCL on a slice":          {[]Node{nodeOf("n", "mig-1g.5gb=14", "")}, pod(1, "mig-1g.5gb=1 NCCL_DEBUG=INFO"), "trainOnSlices: no NVLink"},
		"NCCL on cards":            {[]Node{nodeOf("n", "gpu=8", "")}, pod(4, "gpu=8 NCCL_DEBUG=INFO"), ""},
		"two profiles on two nodes": {
			[]Node{nodeOf("n", "mig-1g.5gb=7", ""), nodeOf("m", "mig-3g.20gb=2", "")}, pod(1, "mig-1g.5gb=1", "mig-3g.20gb=1"), "twoProfiles!: nvidia.com/mig-1g.5gb, nvidia.com/mig-3g.20gb",
		},
		"two profiles on one": {[]Node{nodeOf("n", "mig-1g.5gb=2 mig-3g.20gb=1", "")}, pod(1, "mig-1g.5gb=1", "mig-3g.20gb=1"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := Facts{Nodes: c.nodes}
			var got []string
			for _, n := range f.Notes([]Pods{c.pods}) {
				mark := ""
				if n.Never {
					mark = "!"
				}
				got = append(got, string(n.What)+mark+": "+n.Text)
			}
			what, part, _ := strings.Cut(c.want, ": ")
			switch {
			case c.want == "" && len(got) > 0, c.want != "" && len(got) != 1:
				t.Errorf("got %q", got)
			case c.want != "" && (!strings.HasPrefix(got[0], what+": ") || !strings.Contains(got[0], part)):
				t.Errorf("got %q, want %s", got[0], c.want)
			}
		})
	}
}

func TestAdvise(t *testing.T) {
	time := withShare(nodeOf("t", "gpu=16", v1alpha1.MIGNone), v1alpha1.Share{Resource: v1alpha1.WholeCard, Strategy: v1alpha1.TimeSlicing, Replicas: 4})
	time.Report.Models = []v1alpha1.Model{{Name: "A10"}}
	time.Report.Cards = []v1alpha1.Card{{Model: "A10", MemoryMiB: 23028}}
	f := Facts{Nodes: []Node{nodeOf("m", "gpu=1 mig-3g.20gb=2", v1alpha1.MIGMixed), time}}
	for name, c := range map[string]struct {
		need Need
		want string
	}{
		"18Gi, isolated": {Need{MemoryMiB: 18 << 10, Isolated: true}, "A10: 1 nvidia.com/gpu ; A100: 1 nvidia.com/mig-3g.20gb  offered"},
		"8Gi, isolated":  {Need{MemoryMiB: 8 << 10, Isolated: true}, "A10: 1 nvidia.com/gpu ; A100: 1 nvidia.com/mig-1g.10gb "},
		"8Gi":            {Need{MemoryMiB: 8 << 10}, "A10: 1 nvidia.com/gpu shared offered; A100: 1 nvidia.com/gpu  offered"},
		"NCCL":           {Need{MemoryMiB: 8 << 10, Talks: true}, "A10: 1 nvidia.com/gpu  offered; A100: 1 nvidia.com/gpu  offered"},
		"100Gi":          {Need{MemoryMiB: 100 << 10}, "A10: 5 nvidia.com/gpu  offered; A100: 3 nvidia.com/gpu  offered"},
	} {
		var got []string
		for _, a := range f.Advise(c.need) {
			text := fmt.Sprintf("%s: %d %s %s", a.Product, a.Count, a.Resource, a.Sharing)
			if a.Offered {
				text += " offered"
			}
			if a.Why == "" {
				t.Errorf("%s: no reason", name)
			}
			got = append(got, text)
		}
		want := strings.ReplaceAll(c.want, "nvidia.com/gpu ; ", "nvidia.com/gpu  offered; ")
		if strings.Join(got, "; ") != want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, strings.Join(got, "; "), want)
		}
	}
}
