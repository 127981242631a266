package v1alpha1

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Outage is why a card takes no new pods, in a word. "" is that it is in order.
//
// +kubebuilder:validation:Enum="";lost;failing;resetNeeded;migModePending
type Outage string

// The outages. The controller shows these words to people who wait.
const (
	Lost           Outage = "lost"           // the driver cannot reach it
	Failing        Outage = "failing"        // it errs, and a reset alone is not known to mend it
	ResetNeeded    Outage = "resetNeeded"    // it, or the node, has to be reset
	MIGModePending Outage = "migModePending" // switched into or out of MIG mode at the next reset
)

// Card is one GPU of the node.
//
// +kubebuilder:validation:XValidation:rule="!has(self.instances) || self.instances.all(a, !has(a.start) || self.instances.all(b, a.id == b.id || !has(b.start) || a.start + a.size <= b.start || b.start + b.size <= a.start))",message="two GPU instances overlap"
// +kubebuilder:validation:XValidation:rule="!has(self.instances) || (has(self.mig) && self.mig.current)",message="GPU instances on a card that is not in MIG mode"
type Card struct {
	// Index is its number in NVML's order. It is the card's name only until one of the
	// node's cards comes or goes: UUID is.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1024
	Index int32 `json:"index"`
	// UUID is its lasting name. Absent if it was lost before anybody read it.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	UUID string `json:"uuid,omitempty"`
	// Model is the name of one of the report's models.
	// +optional
	// +kubebuilder:validation:MaxLength=96
	Model string `json:"model,omitempty"`
	// Serial is what is printed on it.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Serial string `json:"serial,omitempty"`
	// Minor is the number of its device file, by which some device plugins name it.
	// +optional
	Minor *int32 `json:"minor,omitempty"`
	// PCI is where it sits, as the kernel writes it: "0000:65:00.0".
	// +optional
	// +kubebuilder:validation:MaxLength=32
	PCI string `json:"pci,omitempty"`
	// NUMANode is the memory it is close to. Absent if there is none, or only one.
	// +optional
	NUMANode *int32 `json:"numaNode,omitempty"`
	// MemoryMiB is its memory, all of it.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MemoryMiB int64 `json:"memoryMiB,omitempty"`

	// Out is why it takes no new pods; absent if it is in order.
	// +optional
	Out Outage `json:"out,omitempty"`

	// MIG is whether it is cut into slices. Absent if it cannot be, or that is not known.
	// +optional
	MIG *MIGMode `json:"mig,omitempty"`
	// InstancesKnown says that the GPU instances could be read. Without it the MIG
	// devices may still be counted, but where they lie is not known.
	// +optional
	InstancesKnown bool `json:"instancesKnown,omitempty"`
	// Instances are the GPU instances: by Start where that is known, else by ID.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Instances []Instance `json:"instances,omitempty"`

	// Health is what the driver says of its condition.
	// +optional
	Health *Health `json:"health,omitempty"`
	// Fabric is which multi-node NVLink domain it belongs to. Absent unless the fabric is
	// complete.
	// +optional
	Fabric *Fabric `json:"fabric,omitempty"`
}

// MIGMode is whether a card is in MIG mode. If the two differ a reset is needed, and
// nobody can have the card or a part of it.
type MIGMode struct {
	Current bool `json:"current"`
	Pending bool `json:"pending"`
}

// Instance is a GPU instance: a run of units of a card, cut out by a profile.
//
// +kubebuilder:validation:XValidation:rule="!has(self.start) || has(self.size)",message="an instance that starts somewhere and has no size"
type Instance struct {
	// ID is the driver's number for it on this card, -1 if it could not be read. It says
	// nothing of where it lies.
	// +kubebuilder:validation:Minimum=-1
	ID int32 `json:"id"`
	// Profile is the name of a profile of the card's model. Absent if the driver knows
	// none such, or it could not be read.
	// +optional
	// +kubebuilder:validation:MaxLength=48
	Profile string `json:"profile,omitempty"`
	// Start is the first unit it covers. Absent if the agent may not know.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=63
	Start *int32 `json:"start,omitempty"`
	// Size is how many units it covers. Absent if that is not known.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	Size int32 `json:"size,omitempty"`
	// Devices are the MIG devices in it, by compute instance. An instance without any
	// takes its units and offers nothing.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Devices []MIGDevice `json:"devices,omitempty"`
}

// MIGDevice is what a pod can be given of a card that is cut: a compute instance in a
// GPU instance.
type MIGDevice struct {
	// ComputeInstance is the driver's number for it in its GPU instance, -1 if it could not
	// be read.
	// +kubebuilder:validation:Minimum=-1
	ComputeInstance int32 `json:"computeInstance"`
	// UUID is its name until it is cut anew.
	// +optional
	// +kubebuilder:validation:MaxLength=96
	UUID string `json:"uuid,omitempty"`
	// Partial says that it is smaller than its GPU instance. The device plugin offers
	// no such devices.
	// +optional
	Partial bool `json:"partial,omitempty"`
}

// Health is what the driver says of a card's condition. What only counts up in a
// healthy card is left out.
type Health struct {
	// RecoveryAction is what the driver says would mend the card: none, gpuReset, nodeReboot,
	// drainP2P, drainAndReset, recoverIMEX, busReset, systemReboot, or a newer word. Absent if
	// the driver does not say.
	// +optional
	// +kubebuilder:validation:MaxLength=48
	RecoveryAction string `json:"recoveryAction,omitempty"`
	// Xids are the driver's error events that the agent saw, the last of each code and
	// instance, by code.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Xids []Xid `json:"xids,omitempty"`
	// UncorrectedErrors are memory errors that could not be corrected, since the
	// card was reset.
	// +optional
	// +kubebuilder:validation:Minimum=0
	UncorrectedErrors int64 `json:"uncorrectedErrors,omitempty"`
	// RowRemap is "pending" if a reset is needed to map broken memory out, "failed" if
	// that cannot be done any more.
	// +optional
	// +kubebuilder:validation:Enum="";pending;failed
	RowRemap string `json:"rowRemap,omitempty"`
	// Slowdown are reasons why its clocks are held down that point at hardware: hwSlowdown,
	// hwThermal, swThermal, powerBrake.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=32
	Slowdown []string `json:"slowdown,omitempty"`
}

// Xid is an error event of the driver.
type Xid struct {
	// Code is its number in NVIDIA's catalog.
	// +kubebuilder:validation:Minimum=0
	Code int64 `json:"code"`
	// Action is what NVIDIA's catalog says to do: "RESET_GPU".
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Action string `json:"action,omitempty"`
	// Instance is the GPU instance that it concerns. Absent if it is the whole card.
	// +optional
	Instance *int32 `json:"instance,omitempty"`
	// Time is when the agent saw it last, to ten minutes: a storm of them is not one of
	// writes.
	Time metav1.Time `json:"time"`
}

// Fabric is which multi-node NVLink domain a card belongs to.
type Fabric struct {
	// +kubebuilder:validation:MaxLength=64
	ClusterUUID string `json:"clusterUUID"`
	Clique      int64  `json:"clique"`
}

// Link is how near two cards are to each other.
type Link struct {
	// A and B are indexes of cards, the lower first.
	A int32 `json:"a"`
	B int32 `json:"b"`
	// NVLinks is how many NVLinks join them, directly or over switches.
	// +optional
	// +kubebuilder:validation:Minimum=0
	NVLinks int32 `json:"nvLinks,omitempty"`
	// Path is how far apart they are on PCIe, from near to far: internal, single,
	// multiple, hostBridge, node, system.
	// +optional
	// +kubebuilder:validation:Enum="";internal;single;multiple;hostBridge;node;system
	Path string `json:"path,omitempty"`
}

// InMIGMode says that the card is cut, or to be cut, so that nobody gets it whole.
func (c *Card) InMIGMode() bool { return c.MIG != nil && c.MIG.Current }

// Layout is how the card is cut, for people: "3g.20gb, 1g.5gb x2", from large to small.
// "" if it is whole, or in MIG mode without slices.
func (c *Card) Layout() string {
	ordered := slices.Clone(c.Instances)
	slices.SortStableFunc(ordered, func(a, b Instance) int {
		if a.Size != b.Size {
			return int(b.Size - a.Size)
		}
		return strings.Compare(b.Profile, a.Profile)
	})
	var parts []string
	for i := 0; i < len(ordered); {
		n := i + 1
		for n < len(ordered) && ordered[n].Profile == ordered[i].Profile {
			n++
		}
		if n-i == 1 {
			parts = append(parts, cmp.Or(ordered[i].Profile, "?"))
		} else {
			parts = append(parts, fmt.Sprintf("%s x%d", cmp.Or(ordered[i].Profile, "?"), n-i))
		}
		i = n
	}
	return strings.Join(parts, ", ")
}
