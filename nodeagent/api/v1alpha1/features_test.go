package v1alpha1

import (
	"fmt"
	"strings"
	"testing"
)

func slice(id int32, profile string) Instance {
	return Instance{ID: id, Profile: profile, Size: 1, Devices: []MIGDevice{{}}}
}

func TestFeatures(t *testing.T) {
	model := Model{Name: "NVIDIA A100-SXM4-40GB", Units: 8, Profiles: []Profile{{Name: "1g.5gb", Size: 1}, {Name: "1g.5gb+me", Size: 1}, {Name: "3g.20gb", Size: 4}}}
	whole := Card{Model: model.Name}
	cut := Card{Model: model.Name, MIG: &MIGMode{Current: true, Pending: true}, Instances: []Instance{slice(1, "3g.20gb"), slice(7, "1g.5gb"), slice(8, "1g.5gb")}}
	alike := Card{Model: model.Name, MIG: &MIGMode{Current: true, Pending: true}, Instances: []Instance{slice(7, "1g.5gb"), slice(8, "1g.5gb")}}
	shared := func(renamed bool) Sharing {
		return Sharing{Shares: []Share{{Resource: WholeCard, Strategy: TimeSlicing, Replicas: 4, Renamed: renamed}}}
	}
	for name, c := range map[string]struct {
		report Report
		want   string
	}{
		"no cards":    {Report{}, ""},
		"whole cards": {Report{Cards: []Card{whole, whole}}, "gpu.count=2 gpu.product=NVIDIA-A100-SXM4-40GB gpu.replicas=1 gpu.sharing-strategy=none"},
		"a lost card": {Report{Cards: []Card{whole, {Model: model.Name, Out: Lost}}}, "gpu.count=2 gpu.product=NVIDIA-A100-SXM4-40GB gpu.replicas=1 gpu.sharing-strategy=none"},
		"time slices": {Report{Cards: []Card{whole}, Sharing: shared(false)}, "gpu.count=1 gpu.product=NVIDIA-A100-SXM4-40GB-SHARED gpu.replicas=4 gpu.sharing-strategy=time-slicing"},
		"renamed":     {Report{Cards: []Card{whole}, Sharing: shared(true)}, "gpu.count=1 gpu.product=NVIDIA-A100-SXM4-40GB gpu.replicas=4 gpu.sharing-strategy=time-slicing"},
		"mixed": {
			Report{Models: []Model{model}, Cards: []Card{cut, cut}, Sharing: Sharing{MIGStrategy: MIGMixed}},
			"gpu.count=2 gpu.product=NVIDIA-A100-SXM4-40GB gpu.replicas=0 gpu.sharing-strategy=none mig-1g.5gb.count=4 mig-1g.5gb.me.count= mig-3g.20gb.count=2 mig.strategy=mixed",
		},
		"single": {
			Report{Models: []Model{model}, Cards: []Card{alike, alike}, Sharing: Sharing{MIGStrategy: MIGSingle}},
			"gpu.count=4 gpu.product=NVIDIA-A100-SXM4-40GB-MIG-1g.5gb gpu.replicas=1 gpu.sharing-strategy=none mig.strategy=single",
		},
		"single, not alike": {
			Report{Models: []Model{model}, Cards: []Card{alike, cut}, Sharing: Sharing{MIGStrategy: MIGSingle}},
			"gpu.count=0 gpu.product=NVIDIA-A100-SXM4-40GB-MIG-INVALID gpu.replicas=0 gpu.sharing-strategy=none mig.strategy=single",
		},
		"single, not cut": {
			Report{Models: []Model{model}, Cards: []Card{whole}, Sharing: Sharing{MIGStrategy: MIGSingle}},
			"gpu.count=1 gpu.product=NVIDIA-A100-SXM4-40GB gpu.replicas=1 gpu.sharing-strategy=none mig.strategy=single",
		},
	} {
		var got []string
		for _, f := range c.report.Features() {
			got = append(got, fmt.Sprintf("%s=%s", strings.TrimPrefix(f.Key, "nvidia.com/"), f.Value))
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, text, c.want)
		}
	}
	if got := productText("NVIDIA A10 (24 GB), rev.2"); got != "NVIDIA-A10-24-GB-rev.2" {
		t.Errorf("product %q", got)
	}
}
