package kubelet

import (
	"reflect"
	"testing"

	"k8s.io/utils/ptr"
)

func TestFromLabels(t *testing.T) {
	for _, c := range []struct {
		name     string
		labels   map[string]string
		mig      MIGStrategy
		shares   []Share
		warnings []string
	}{
		{name: "no feature discovery", labels: map[string]string{"kubernetes.io/hostname": "n1"}},
		{name: "whole cards under none", labels: map[string]string{"nvidia.com/gpu.product": "NVIDIA-L4", "nvidia.com/gpu.replicas": "1", "nvidia.com/gpu.sharing-strategy": "none"}, mig: MIGNone},
		{name: "MIG parents under mixed", labels: map[string]string{
			"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB", "nvidia.com/gpu.replicas": "0", "nvidia.com/mig.strategy": "mixed",
			"nvidia.com/mig-1g.5gb.replicas": "1",
		}, mig: MIGMixed},
		{name: "time slices", labels: map[string]string{
			"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-SHARED", "nvidia.com/gpu.replicas": "10", "nvidia.com/gpu.sharing-strategy": "time-slicing",
		}, mig: MIGNone, shares: []Share{{Resource: "nvidia.com/gpu", Strategy: TimeSlicing, Replicas: 10}}},
		{name: "renamed: no -SHARED", labels: map[string]string{
			"nvidia.com/gpu.product": "NVIDIA-L4", "nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.sharing-strategy": "time-slicing",
		}, mig: MIGNone, shares: []Share{{Resource: "nvidia.com/gpu", Strategy: TimeSlicing, Replicas: 4, Renamed: true}}},
		{name: "MPS, and slices shared", labels: map[string]string{
			"nvidia.com/gpu.product": "NVIDIA-L4-SHARED", "nvidia.com/gpu.replicas": "3", "nvidia.com/gpu.sharing-strategy": "mps", "nvidia.com/mig.strategy": "mixed",
			"nvidia.com/mig-1g.5gb.me.replicas": "2", "nvidia.com/mig-1g.5gb.me.product": "NVIDIA-A100-MIG-1g.5gb.me-SHARED",
		}, mig: MIGMixed, shares: []Share{
			{Resource: "nvidia.com/gpu", Strategy: MPS, Replicas: 3},
			{Resource: "nvidia.com/mig-1g.5gb.me", Strategy: TimeSlicing, Replicas: 2},
		}},
		{
			name: "set by hand", labels: map[string]string{
				"nvidia.com/gpu.product": "L4-SHARED", "nvidia.com/gpu.replicas": "ten", "nvidia.com/mig.strategy": "both",
				"nvidia.com/mig-1g.5gb.replicas": "2", "nvidia.com/mig-1g.5gb.sharing-strategy": "by-turns", "nvidia.com/mig-1g.5gb.product": "x-SHARED",
			}, shares: []Share{{Resource: "nvidia.com/mig-1g.5gb", Strategy: TimeSlicing, Replicas: 2}},
			warnings: []string{"mig.strategy=both", "gpu.replicas=ten", "sharing-strategy=by-turns"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := FromLabels(c.labels)
			if got.MIG != c.mig || !reflect.DeepEqual(got.Shares, c.shares) {
				t.Errorf("got  %q %+v\nwant %q %+v", got.MIG, got.Shares, c.mig, c.shares)
			}
			compareParts(t, got.Warnings, c.warnings)
		})
	}
}

func TestJoin(t *testing.T) {
	ten := Share{Resource: "nvidia.com/gpu", Strategy: TimeSlicing, Replicas: 10, FailAboveOne: ptr.To(false)}
	change := func(f func(*Share)) Share { s := ten; f(&s); return s }
	labels := func(m MIGStrategy, s ...Share) Sharing { return Sharing{MIG: m, Shares: s, From: "labels"} }
	for _, c := range []struct {
		name   string
		config *Config
		labels Sharing
		want   Sharing
	}{
		{"labels alone", nil, labels(MIGMixed, ten), labels(MIGMixed, ten)},
		{"the file alone", &Config{Path: "f", MIG: MIGNone, Shares: []Share{ten}}, Sharing{}, Sharing{MIG: MIGNone, Shares: []Share{ten}, From: "f"}},
		{
			"they agree", &Config{Path: "f", MIG: MIGNone, Shares: []Share{ten}}, labels(MIGNone, change(func(s *Share) { s.FailAboveOne = nil })),
			Sharing{MIG: MIGNone, Shares: []Share{ten}, From: "f"},
		},
		{"the strategy comes from the plugin's command line", &Config{Path: "f"}, labels(MIGMixed), Sharing{MIG: MIGMixed, From: "f"}},
		{
			"a resource that this node lacks", &Config{Path: "f", MIG: MIGNone, Shares: []Share{ten, {Resource: "nvidia.com/mig-1g.5gb", Strategy: TimeSlicing, Replicas: 2}}}, labels(MIGNone, ten),
			Sharing{MIG: MIGNone, From: "f", Shares: []Share{ten, {Resource: "nvidia.com/mig-1g.5gb", Strategy: TimeSlicing, Replicas: 2}}},
		},
		{
			"all differs", &Config{Path: "f", MIG: MIGMixed, Shares: []Share{ten}, Warnings: []string{"f: odd"}},
			labels(MIGSingle, change(func(s *Share) { s.Replicas = 4 }), Share{Resource: "nvidia.com/mig-1g.5gb", Strategy: MPS, Replicas: 2}),
			Sharing{MIG: MIGMixed, Shares: []Share{ten}, From: "f", Warnings: []string{
				"f: odd",
				"the MIG strategy is mixed in f, single in the labels",
				"nvidia.com/gpu is shared as TimeSlicing × 10 in f, as TimeSlicing × 4 in the labels",
				"nvidia.com/mig-1g.5gb is shared as MPS × 2 in the labels, not in f",
			}},
		},
		{
			"another name", &Config{Path: "f", MIG: MIGNone, Shares: []Share{change(func(s *Share) { s.Renamed = true })}}, labels(MIGNone, ten),
			Sharing{MIG: MIGNone, From: "f", Shares: []Share{change(func(s *Share) { s.Renamed = true })}, Warnings: []string{
				"nvidia.com/gpu is offered as nvidia.com/gpu.shared by f, as nvidia.com/gpu by the labels",
			}},
		},
	} {
		if got := Join(c.config, c.labels); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", c.name, got, c.want)
		}
	}
}
