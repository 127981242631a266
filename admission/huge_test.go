package admission

import (
	"testing"

	"sluice.dev/sluice/gang"
	"sluice.dev/sluice/quota"
)

// A pod that asks for more than int64 holds, set on a node by name, is rejected by
// its kubelet a moment later. Until then it must not upset what others are counted.
func TestHugePod(t *testing.T) {
	s := NewState(DefaultConfig())
	s.Apply(NodeSeen{Node: &gang.Node{Name: "n", Offer: quota.Resources{8000, 64 << 30, 110}}})
	s.Apply(PodSeen{Pod: Pod{UID: "a", Key: "ns/a", Node: "n", Phase: PodPlaced, Request: quota.Resources{1000, 1 << 30, 1}}})
	s.Apply(PodSeen{Pod: Pod{UID: "b", Key: "ns/b", Node: "n", Phase: PodPlaced, Request: quota.Resources{1000, quota.Most, 1}}})
	s.Apply(PodGone{UID: "b"})
	if bad := s.Check(); len(bad) > 0 {
		t.Errorf("%q", bad)
	}
	s.Apply(PodGone{UID: "a"})
	if bad := s.Check(); len(bad) > 0 {
		t.Errorf("%q", bad)
	}
}
