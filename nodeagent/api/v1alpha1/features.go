package v1alpha1

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Feature is a label of a node that follows from its cards.
type Feature struct {
	Key   string
	Value string // "" is that the label should not be there
}

// The labels of NVIDIA's GPU feature discovery that follow from a report.
const (
	LabelProduct  = "nvidia.com/gpu.product"
	LabelCount    = "nvidia.com/gpu.count"
	LabelReplicas = "nvidia.com/gpu.replicas"
	LabelSharing  = "nvidia.com/gpu.sharing-strategy"
	LabelStrategy = "nvidia.com/mig.strategy"

	labelSlicePrefix = "nvidia.com/mig-"
	labelSliceCount  = ".count"
)

// Labels of mig-manager and of the operator that say what becomes of the cards.
const (
	// LabelMIGState is pending or rebooting while cards are cut, failed if that did not
	// succeed, success otherwise.
	LabelMIGState = "nvidia.com/mig.config.state"
	// LabelPluginPaused is PausedForMIG while the device plugin is stopped for that.
	LabelPluginPaused = "nvidia.com/gpu.deploy.device-plugin"
	PausedForMIG      = "paused-for-mig-change"
)

// SliceCount is the label that counts slices of a profile under strategy mixed.
func SliceCount(profile string) string {
	return labelSlicePrefix + strings.ReplaceAll(profile, "+", ".") + labelSliceCount
}

// Features are the labels that feature discovery sets on a node with these cards, as
// far as placing pods depends on them, in the order of their keys. Cards that are lost
// are built in still. Of cards of several models the last counts, as it does there.
func (r *Report) Features() []Feature {
	if len(r.Cards) == 0 {
		return nil
	}
	labels := map[string]string{LabelSharing: "none", LabelReplicas: "1", LabelCount: strconv.Itoa(len(r.Cards))}
	last := &r.Cards[len(r.Cards)-1]
	for i := range r.Cards {
		if r.Cards[i].Model != "" { // one that was lost before anybody read it has none
			last = &r.Cards[i]
		}
	}
	product := productText(last.Model)
	if s := r.Share(WholeCard); s != nil {
		labels[LabelReplicas], labels[LabelSharing] = strconv.Itoa(int(s.Replicas)), sharingText(s.Strategy)
		if !s.Renamed {
			product += "-SHARED"
		}
	}
	labels[LabelProduct] = product
	if r.strategy() != MIGNone {
		labels[LabelStrategy] = string(r.strategy())
	}
	switch r.strategy() {
	case MIGMixed:
		r.mixedFeatures(labels, last)
	case MIGSingle:
		r.singleFeatures(labels, last)
	case MIGNone, "":
	}
	var all []Feature
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		all = append(all, Feature{key, labels[key]})
	}
	return all
}

// mixedFeatures count the slices by profile; a profile of which there is none has no
// count. A card that is cut has no replicas of itself.
func (r *Report) mixedFeatures(labels map[string]string, last *Card) {
	for i := range r.Models {
		for k := range r.Models[i].Profiles {
			labels[SliceCount(r.Models[i].Profiles[k].Name)] = ""
		}
	}
	counts := map[string]int{}
	for i := range r.Cards {
		for k := range r.Cards[i].Instances {
			if r.Cards[i].Instances[k].usable() {
				counts[SliceCount(r.Cards[i].Instances[k].Profile)]++
			}
		}
	}
	for key, n := range counts {
		labels[key] = strconv.Itoa(n)
	}
	if last.InMIGMode() {
		labels[LabelReplicas] = "0"
	}
}

// singleFeatures speak of slices as if they were cards, once cards are cut.
func (r *Report) singleFeatures(labels map[string]string, last *Card) {
	cut, slicesOf, profile := 0, 0, ""
	for i := range r.Cards {
		if !r.Cards[i].InMIGMode() {
			continue
		}
		cut++
		for k := range r.Cards[i].Instances {
			if r.Cards[i].Instances[k].usable() {
				slicesOf++
				profile = r.Cards[i].Instances[k].Profile
			}
		}
	}
	switch {
	case cut == 0:
	case r.Refusal() != "":
		labels[LabelProduct], labels[LabelCount], labels[LabelReplicas] = productText(last.Model)+"-MIG-INVALID", "0", "0"
	default:
		shared := strings.TrimPrefix(labels[LabelProduct], productText(last.Model))
		labels[LabelProduct] = fmt.Sprintf("%s-MIG-%s%s", productText(last.Model), strings.ReplaceAll(profile, "+", "."), shared)
		labels[LabelCount] = strconv.Itoa(slicesOf)
	}
}

var notInProducts = regexp.MustCompile(`[^A-Za-z0-9\-_. ]`)

// productText is a product as a label has it.
func productText(model string) string {
	return strings.Join(strings.Fields(notInProducts.ReplaceAllString(model, "")), "-")
}

func sharingText(s ShareStrategy) string {
	if s == MPS {
		return "mps"
	}
	return "time-slicing"
}
