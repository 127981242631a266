package publish_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sluice.dev/sluice/nodeagent"
	"sluice.dev/sluice/nodeagent/api/v1alpha1"
	"sluice.dev/sluice/nodeagent/kubelet"
	"sluice.dev/sluice/nodeagent/publish"
)

// dice draws what nobody would expect.
type dice struct{ *rand.Rand }

func (d dice) odds(p float64) bool { return d.Float64() < p }

// text is any text, now and then a long one or one that is none.
func (d dice) text() string {
	odd := []string{
		"", "NVIDIA A100-SXM4-40GB", "NVIDIA A100-SXM4-40GB", "1g.5gb", "3g.20gb+me", "nvidia.com/gpu", fmt.Sprint("t", d.IntN(50)),
		strings.Repeat("Ö", 3000), "\xff\xfe\x00", "a\nb\t", "🦑", `{"a": 1}`,
	}
	return odd[d.IntN(len(odd))]
}

func (d dice) pick(of ...string) string { return of[d.IntN(len(of))] }

func (d dice) number() int {
	if d.odds(0.7) {
		return d.IntN(11) - 1
	}
	odd := []int{64, 65, 1024, 1025, 1 << 40, -1 << 40}
	return odd[d.IntN(len(odd))]
}

// few is how many of something there are: a few, or at times far too many.
func (d dice) few(tooMany int) int {
	if d.odds(0.05) {
		return tooMany
	}
	return d.IntN(4)
}

func (d dice) seen() publish.Seen {
	r := &nodeagent.Report{
		Time: noon, BootID: d.text(), Message: d.text(), State: nodeagent.Ready,
		Driver: nodeagent.Driver{Version: d.text()}, Layout: nodeagent.Layout{Generation: int64(d.number()), Print: d.text()}, Errors: d.errors(),
	}
	if d.odds(0.2) {
		r.State = nodeagent.State(d.pick("NoDriver", "NoPermission", "DriverChanged", "NoDevices", "Failed"))
	}
	for i := range d.few(40) {
		r.Cards = append(r.Cards, d.card(i))
	}
	for range d.few(600) {
		r.Links = append(r.Links, nodeagent.Link{A: d.number(), B: 1, NVLinks: d.number(), Path: nodeagent.Path(d.pick("", "node", "odd"))})
	}
	n := publish.Neighbours{HoldingsKnown: true, OfferedKnown: d.odds(0.5)}
	n.Sharing = kubelet.Sharing{MIG: kubelet.MIGStrategy(d.pick("", "none", "single", "mixed", "odd")), From: d.text(), Warnings: []string{d.text()}}
	for range d.few(40) {
		n.Sharing.Shares = append(n.Sharing.Shares, kubelet.Share{Resource: d.text(), Strategy: kubelet.Strategy(d.pick("", "TimeSlicing", "MPS")), Replicas: d.number()})
	}
	for i := range d.few(700) {
		devices := make([]kubelet.Device, d.few(80))
		for k := range devices {
			devices[k] = kubelet.Device{ID: d.text(), UUID: "GPU-0", Minor: -1, GPUInstance: -1, ComputeInstance: -1, Start: -1, Replica: k - 1}
		}
		n.Holdings = append(n.Holdings, kubelet.Holding{Namespace: "ml", Pod: fmt.Sprint(i), Container: d.text(), Resource: d.text(), Devices: devices})
		if i < 70 {
			n.Offered = append(n.Offered, kubelet.Offered{Resource: fmt.Sprint("r", i), Devices: devices})
		}
	}
	return publish.Seen{Report: r, Neighbours: n, AgentVersion: d.text()}
}

func (d dice) errors() (all []nodeagent.FieldError) {
	for range d.few(200) {
		all = append(all, nodeagent.FieldError{Field: d.text(), Code: d.text(), Message: d.text()})
	}
	return all
}

func (d dice) card(i int) nodeagent.Card {
	number := d.number()
	c := nodeagent.Card{
		Index: i, UUID: fmt.Sprint("GPU-", i), Lost: d.odds(0.2), Product: d.text(), Minor: &number, NUMANode: &number,
		MemoryMiB: int64(d.number()), InstancesKnown: d.odds(0.5), Errors: d.errors(),
	}
	if d.odds(0.1) {
		c.Index = d.number()
	}
	if d.odds(0.7) {
		c.MIG = &nodeagent.MIGMode{Current: d.odds(0.7), Pending: d.odds(0.7)}
	}
	if d.odds(0.7) {
		c.Grid = d.grid()
	}
	for k := range d.few(20) {
		c.Instances = append(c.Instances, nodeagent.Instance{
			ID: d.number(), Profile: d.text(), Start: d.number(), Size: d.number(), Unread: d.odds(0.3), Compute: make([]nodeagent.ComputeInstance, d.few(12)),
		})
		c.Devices = append(c.Devices, nodeagent.MIGDevice{Index: k, UUID: fmt.Sprint("MIG-", i, k), Instance: d.number(), ComputeInstance: d.number()})
	}
	c.Health = nodeagent.Health{RecoveryAction: d.text(), Slowdown: []string{"swThermal", d.text()}}
	if d.odds(0.5) {
		c.Health.ECC = &nodeagent.ECC{Uncorrected: d.Uint64()}
		c.Fabric = &nodeagent.Fabric{State: d.pick("completed", "failed"), ClusterUUID: d.text(), Clique: 1<<32 - 1}
		c.Health.RowRemap = &nodeagent.RowRemap{Failed: d.odds(0.2), Pending: d.odds(0.2)}
	}
	for range d.few(50) {
		c.Health.Xids = append(c.Health.Xids, nodeagent.Xid{Code: d.Uint64(), Action: d.text(), Description: d.text(), Instance: &number, Last: noon})
	}
	return c
}

func (d dice) grid() *nodeagent.Grid {
	g := &nodeagent.Grid{Units: d.number()}
	for range d.few(40) {
		p := nodeagent.Profile{Name: d.text(), ID: d.number(), Compute: d.number(), Size: d.number(), MemoryMiB: int64(d.number()), Sole: d.text()}
		for range d.IntN(9) {
			p.Starts = append(p.Starts, d.number())
		}
		g.Profiles = append(g.Profiles, p)
	}
	return g
}

// Whatever drivers, kubelets and files say, the API server accepts what is made of it.
func TestEveryReportIsAccepted(t *testing.T) {
	s := apiServer(t)
	node := s.node(t, "wild")
	cluster := publish.Node{Client: s.agent(t, "wild"), Name: "wild"}
	for seed := range uint64(60) {
		book := publish.NewBook(nil)
		r, _ := book.Enter(dice{rand.New(rand.NewPCG(seed, 0))}.seen())
		if err := cluster.Write(t.Context(), node, r); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		inv, err := cluster.Inventory(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !equality.Semantic.DeepEqual(&inv.Report, r) {
			t.Fatalf("seed %d: what is read is not what was written:\n%s", seed, firstDifference(t, &inv.Report, r))
		}
	}
}

// What contradicts itself is refused by the API server, whoever writes it.
func TestWhatIsRefused(t *testing.T) {
	s := apiServer(t)
	s.node(t, "refused")
	agent := s.agent(t, "refused")
	three := func(starts ...int32) []v1alpha1.Instance {
		var all []v1alpha1.Instance
		for i := range starts {
			all = append(all, v1alpha1.Instance{ID: int32(i), Profile: "3g.20gb", Start: &starts[i], Size: 4})
		}
		return all
	}
	cut := &v1alpha1.MIGMode{Current: true, Pending: true}
	for _, c := range []struct {
		says string // "" is accepted
		make func(*v1alpha1.Report)
	}{
		{"", func(*v1alpha1.Report) {}},
		{"", func(r *v1alpha1.Report) { r.Cards = []v1alpha1.Card{{MIG: cut, Instances: three(0, 4)}} }},
		{"two GPU instances overlap", func(r *v1alpha1.Report) { r.Cards = []v1alpha1.Card{{MIG: cut, Instances: three(0, 2)}} }},
		{"not in MIG mode", func(r *v1alpha1.Report) { r.Cards = []v1alpha1.Card{{Instances: three(0)}} }},
		{"a model that is not listed", func(r *v1alpha1.Report) { r.Cards = []v1alpha1.Card{{Model: "NVIDIA L4"}} }},
		{"although none could be read", func(r *v1alpha1.Report) { r.State = v1alpha1.NoDriver; r.Cards = []v1alpha1.Card{{}} }},
		{"reaches beyond the grid", func(r *v1alpha1.Report) {
			r.Models = []v1alpha1.Model{{Name: "m", Units: 8, Profiles: []v1alpha1.Profile{{Name: "p", Size: 4, Starts: []int32{0, 5}}}}}
		}},
		{"profiles without a grid", func(r *v1alpha1.Report) {
			r.Models = []v1alpha1.Model{{Name: "m", Profiles: []v1alpha1.Profile{{Name: "p", Size: 4}}}}
		}},
		{"duplicate entries", func(r *v1alpha1.Report) { r.Cards = []v1alpha1.Card{{Index: 1}, {Index: 1}} }},
		{"Unsupported value", func(r *v1alpha1.Report) { r.State = "Fine" }},
		{"Unsupported value", func(r *v1alpha1.Report) { r.Cards = []v1alpha1.Card{{Out: "broken"}} }},
		{"should be greater than or equal to 2", func(r *v1alpha1.Report) {
			r.Sharing.Shares = []v1alpha1.Share{{Resource: "nvidia.com/gpu", Strategy: v1alpha1.MPS, Replicas: 1}}
		}},
		{"must have at most 32 items", func(r *v1alpha1.Report) {
			for i := range int32(33) {
				r.Cards = append(r.Cards, v1alpha1.Card{Index: i})
			}
		}},
	} {
		inv := inventory("refused")
		inv.Report.State = v1alpha1.Ready
		c.make(&inv.Report)
		err := applied(t, agent, inv, "SliceInventory")
		switch {
		case c.says == "" && err != nil:
			t.Errorf("refused: %v", err)
		case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
			t.Errorf("got %v, want a refusal that says %q", err, c.says)
		}
	}
}

// A publisher with the rights of an agent, on a real API server: the inventory and the
// heartbeat are the node's, and only changes move the generation.
func TestPublishing(t *testing.T) {
	s := apiServer(t)
	node := s.node(t, "publishing")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	p := publish.New(publish.Node{Client: s.agent(t, "publishing"), Name: "publishing"}, publish.Options{Between: 10 * time.Millisecond, Renew: 50 * time.Millisecond})
	go func() { defer close(done); p.Run(ctx) }()
	defer func() { cancel(); <-done }()

	inv := &v1alpha1.SliceInventory{}
	lease := &coordinationv1.Lease{}
	until := func(what string, check func() bool) {
		t.Helper()
		for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
			invErr := s.Get(ctx, client.ObjectKey{Name: "publishing"}, inv)
			leaseErr := s.Get(ctx, client.ObjectKey{Namespace: v1alpha1.HeartbeatNamespace, Name: "publishing"}, lease)
			if invErr == nil && leaseErr == nil && check() {
				return
			}
		}
		t.Fatalf("%s: %+v, %+v", what, inv, lease)
	}
	p.See(told("one"))
	until("the first", func() bool { return inv.Report.Message == "one" })
	if inv.Generation != 1 || len(inv.OwnerReferences) != 1 || inv.OwnerReferences[0].UID != node.UID || inv.OwnerReferences[0].Kind != "Node" {
		t.Errorf("generation %d, owned by %+v", inv.Generation, inv.OwnerReferences)
	}
	if v1alpha1.Silent(lease, time.Now()) || !v1alpha1.Silent(lease, time.Now().Add(v1alpha1.HeartbeatTime+time.Second)) || lease.OwnerReferences[0].UID != node.UID {
		t.Errorf("heartbeat %+v", lease)
	}
	renewed := lease.Spec.RenewTime.Time
	p.See(told("one"))
	until("another heartbeat", func() bool { return lease.Spec.RenewTime.After(renewed) })
	if inv.Generation != 1 {
		t.Errorf("the same moved the generation to %d", inv.Generation)
	}
	p.See(told("two"))
	until("a change", func() bool { return inv.Report.Message == "two" && inv.Generation == 2 })
	for _, m := range inv.ManagedFields {
		if len(m.FieldsV1.Raw) > 300 {
			t.Errorf("%d bytes of managed fields: the report is one field", len(m.FieldsV1.Raw))
		}
	}
}

// firstDifference is the first line in which the two differ as JSON.
func firstDifference(t *testing.T, got, want *v1alpha1.Report) string {
	t.Helper()
	var lines [2][]string
	for i, r := range []*v1alpha1.Report{got, want} {
		text, err := json.MarshalIndent(r, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		lines[i] = strings.Split(string(text), "\n")
	}
	for i := range min(len(lines[0]), len(lines[1])) {
		if lines[0][i] != lines[1][i] {
			return "got  " + strings.Join(lines[0][max(0, i-3):i+1], "\n") + "\nwant " + lines[1][i]
		}
	}
	return fmt.Sprintf("%d lines and %d", len(lines[0]), len(lines[1]))
}
