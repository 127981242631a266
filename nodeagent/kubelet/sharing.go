package kubelet

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Strategy is by what means several pods use one device.
type Strategy string

// The means that NVIDIA's device plugin knows.
const (
	TimeSlicing Strategy = "TimeSlicing" // in turn, without a bound on memory
	MPS         Strategy = "MPS"         // at once, each with its part of memory and threads
)

// MIGStrategy is under which names the device plugin offers MIG devices.
type MIGStrategy string

// The strategies of NVIDIA's device plugin.
const (
	MIGNone   MIGStrategy = "none"   // not at all
	MIGSingle MIGStrategy = "single" // as nvidia.com/gpu, all alike
	MIGMixed  MIGStrategy = "mixed"  // as nvidia.com/mig-<profile>
)

// Share is how the devices of one resource are shared on this node.
type Share struct {
	Resource string // as without sharing: nvidia.com/gpu, nvidia.com/mig-1g.5gb
	Strategy Strategy
	Replicas int // of each device, at least 2
	// Renamed says that the plugin offers Resource + ".shared" instead.
	Renamed bool
	// FailAboveOne says that a container that asks for more than one replica is
	// refused on the node, after it was bound there. nil: not known.
	FailAboveOne *bool
}

// Offered is the name under which the replicas are offered.
func (s Share) Offered() string {
	if s.Renamed {
		return s.Resource + ".shared"
	}
	return s.Resource
}

// Sharing is how a node's devices are offered.
type Sharing struct {
	// MIG is the strategy for MIG devices; "" if nobody says.
	MIG    MIGStrategy
	Shares []Share // by resource
	// From says whose word this is, for people: a file, "labels", or "" if nobody's.
	From string
	// Warnings are what is odd about it, each a sentence. None of it stops the agent.
	Warnings []string
}

// Labels of feature discovery, and the one that chooses the plugin's configuration.
const (
	ConfigLabel      = "nvidia.com/device-plugin.config"
	migStrategyLabel = "nvidia.com/mig.strategy"
	productLabel     = "nvidia.com/gpu.product"
	replicasSuffix   = ".replicas"
	strategySuffix   = ".sharing-strategy"
)

// FromLabels is the sharing as feature discovery labels it. It lags the plugin by up
// to a minute, and does not say whether requests above one replica fail.
func FromLabels(labels map[string]string) Sharing {
	s := Sharing{}
	switch m := MIGStrategy(labels[migStrategyLabel]); m {
	case MIGNone, MIGSingle, MIGMixed:
		s.MIG = m
	case "":
		// Feature discovery sets no such label under none.
		if labels[productLabel] != "" {
			s.MIG = MIGNone
		}
	default:
		s.warn("label %s=%s is no strategy", migStrategyLabel, m)
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		name, ok := strings.CutSuffix(key, replicasSuffix)
		if !ok || !gpuResource(name) {
			continue
		}
		n, err := strconv.Atoi(labels[key])
		if err != nil || n < 0 {
			s.warn("label %s=%s is no number of replicas", key, labels[key])
			continue
		}
		if n < 2 {
			continue
		}
		share := Share{Resource: name, Strategy: TimeSlicing, Replicas: n, Renamed: !strings.HasSuffix(labels[name+".product"], "-SHARED")}
		switch strategy := labels[name+strategySuffix]; strategy {
		case "mps":
			share.Strategy = MPS
		case "time-slicing", "":
		default:
			s.warn("label %s=%s is no way to share", name+strategySuffix, strategy)
		}
		s.Shares = append(s.Shares, share)
	}
	if s.MIG != "" || len(s.Shares) > 0 {
		s.From = "labels"
	}
	return s
}

// Join is the sharing by the configuration where there is one, and by the labels
// where it says nothing. Where both speak and differ, a warning says so: the plugin
// may not have read the file yet, or reads another.
func Join(config *Config, labels Sharing) Sharing {
	if config == nil {
		return labels
	}
	s := Sharing{
		MIG: cmp.Or(config.MIG, labels.MIG), Shares: config.Shares, From: config.Path,
		Warnings: slices.Concat(config.Warnings, labels.Warnings),
	}
	if labels.From == "" {
		return s
	}
	if config.MIG != "" && labels.MIG != "" && config.MIG != labels.MIG {
		s.warn("the MIG strategy is %s in %s, %s in the labels", config.MIG, config.Path, labels.MIG)
	}
	said := map[string]Share{}
	for _, l := range labels.Shares {
		said[l.Resource] = l
	}
	for _, c := range config.Shares {
		l, ok := said[c.Resource]
		delete(said, c.Resource)
		switch {
		case !ok:
			// Feature discovery labels what the node has. A resource that it lacks is no
			// difference: one file may serve unlike nodes.
		case l.Replicas != c.Replicas || l.Strategy != c.Strategy:
			s.warn("%s is shared as %s × %d in %s, as %s × %d in the labels", c.Resource, c.Strategy, c.Replicas, config.Path, l.Strategy, l.Replicas)
		case l.Renamed != c.Renamed:
			s.warn("%s is offered as %s by %s, as %s by the labels", c.Resource, c.Offered(), config.Path, l.Offered())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(said)) {
		s.warn("%s is shared as %s × %d in the labels, not in %s", name, said[name].Strategy, said[name].Replicas, config.Path)
	}
	return s
}

func (s *Sharing) warn(format string, args ...any) {
	s.Warnings = append(s.Warnings, fmt.Sprintf(format, args...))
}
