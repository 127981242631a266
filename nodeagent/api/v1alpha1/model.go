package v1alpha1

import "strings"

// Model is what all cards of one product have in common, as the driver says it.
//
// +kubebuilder:validation:XValidation:rule="!has(self.profiles) || has(self.units)",message="profiles without a grid"
// +kubebuilder:validation:XValidation:rule="!has(self.profiles) || !has(self.units) || self.profiles.all(p, p.size <= self.units && (!has(p.starts) || p.starts.all(s, s + p.size <= self.units)))",message="a profile reaches beyond the grid"
type Model struct {
	// Name is the product as NVML calls it: "NVIDIA A100-SXM4-40GB". Two models of one
	// product that can be cut in different ways have different names: a number follows.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=96
	Name string `json:"name"`
	// Units are how many units the grid has on which slices are placed. It is not
	// the number of compute slices. Absent if the cards cannot be cut, or it is not known.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	Units int32 `json:"units,omitempty"`
	// Profiles are the ways to cut a slice out of a card. Absent if the cards cannot be
	// cut, or the agent may not ask.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Profiles []Profile `json:"profiles,omitempty"`
}

// Profile is a way to cut a slice out of a card.
type Profile struct {
	// Name is the driver's own: "1g.5gb+me". It may differ between drivers.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=48
	Name string `json:"name"`
	// ID is the driver's number for it, unique only within one model.
	// +optional
	ID int32 `json:"id,omitempty"`
	// Compute is how many compute slices it has.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=64
	Compute int32 `json:"compute,omitempty"`
	// Size is how many units of the grid it covers.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	Size int32 `json:"size"`
	// Starts are the units at which it may begin, in order.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:Minimum=0
	// +kubebuilder:validation:items:Maximum=63
	Starts []int32 `json:"starts,omitempty"`
	// MemoryMiB is the memory of such a slice; absent if the driver does not say, which
	// is not the same as none.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MemoryMiB int64 `json:"memoryMiB,omitempty"`
	// Multiprocessors is how many it has. Their part of the card's is not that of the
	// compute slices.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Multiprocessors int32 `json:"multiprocessors,omitempty"`
	// Sole names something of which a card has only one, such as its media engines: of
	// the profiles with the same Sole a card holds one slice.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Sole string `json:"sole,omitempty"`
}

// MediaEngines is the Sole of profiles that hold the card's media engines.
const MediaEngines = "media"

// Model returns the model of that name, or nil.
func (r *Report) Model(name string) *Model {
	for i := range r.Models {
		if r.Models[i].Name == name {
			return &r.Models[i]
		}
	}
	return nil
}

// Profile returns the profile of that name, or nil.
func (m *Model) Profile(name string) *Profile {
	for i := range m.Profiles {
		if m.Profiles[i].Name == name {
			return &m.Profiles[i]
		}
	}
	return nil
}

// SliceResource is under which name a device plugin with strategy mixed offers slices
// of a profile, unless they are shared and renamed: a plus is illegal in such names.
func SliceResource(profile string) string {
	return "nvidia.com/mig-" + strings.ReplaceAll(profile, "+", ".")
}
