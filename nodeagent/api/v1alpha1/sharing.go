package v1alpha1

// MIGStrategy is under which names the device plugin offers MIG devices.
//
// +kubebuilder:validation:Enum="";none;single;mixed
type MIGStrategy string

// The strategies of NVIDIA's device plugin.
const (
	MIGNone   MIGStrategy = "none"   // not at all; a card in MIG mode is still one nvidia.com/gpu
	MIGSingle MIGStrategy = "single" // as nvidia.com/gpu, if all of the node are alike
	MIGMixed  MIGStrategy = "mixed"  // as nvidia.com/mig-<profile>
)

// Sharing is under which names, and how many times, the node's devices are offered.
type Sharing struct {
	// MIGStrategy is how MIG devices are offered; absent if nobody says.
	// +optional
	MIGStrategy MIGStrategy `json:"migStrategy,omitempty"`
	// Shares are the resources whose devices several pods may use.
	// +optional
	// +listType=map
	// +listMapKey=resource
	// +kubebuilder:validation:MaxItems=32
	Shares []Share `json:"shares,omitempty"`
	// From is whose word this is: the path of the device plugin's configuration,
	// "labels", or absent if nobody says anything.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	From string `json:"from,omitempty"`
}

// ShareStrategy is by what means several pods use one device.
//
// +kubebuilder:validation:Enum=TimeSlicing;MPS
type ShareStrategy string

// The means that NVIDIA's device plugin knows.
const (
	TimeSlicing ShareStrategy = "TimeSlicing" // in turn, without a bound on memory
	MPS         ShareStrategy = "MPS"         // at once, each with its part of memory and threads
)

// Share is how the devices of one resource are shared.
type Share struct {
	// Resource is what is shared: nvidia.com/gpu, or the name of a slice under mixed.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=96
	Resource string        `json:"resource"`
	Strategy ShareStrategy `json:"strategy"`
	// Replicas is how many times each device is offered.
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=1024
	Replicas int32 `json:"replicas"`
	// Renamed says that the plugin offers Resource with ".shared" appended, and nothing
	// as Resource.
	// +optional
	Renamed bool `json:"renamed,omitempty"`
	// FailAboveOne says that a container that asks for more than one replica is
	// refused on the node, after it was bound there. Absent if that is not known.
	// +optional
	FailAboveOne *bool `json:"failAboveOne,omitempty"`
}

// Registered is what a device plugin has told the kubelet of.
type Registered struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=96
	Resource string `json:"resource"`
	// Devices is how many, replicas counted each.
	// +kubebuilder:validation:Minimum=0
	Devices int32 `json:"devices"`
	// Unknown is how many of them are none that the agent sees: left from an earlier
	// layout, for one. A pod that is given such a device cannot start.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Unknown int32 `json:"unknown,omitempty"`
}

// Holding is the devices of one resource that one container was given.
type Holding struct {
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`
	// +kubebuilder:validation:MaxLength=253
	Pod string `json:"pod"`
	// +kubebuilder:validation:MaxLength=63
	Container string `json:"container"`
	// Resource is the name that was asked for; "claim/" and its name for a DRA claim.
	// +kubebuilder:validation:MaxLength=260
	Resource string `json:"resource"`
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Devices []HeldDevice `json:"devices,omitempty"`
}

// HeldDevice is a device that a container was given.
type HeldDevice struct {
	// ID is the kubelet's name for it, without the replica.
	// +kubebuilder:validation:MaxLength=128
	ID string `json:"id"`
	// Card is the index of the card. Absent if the id is none that the agent sees.
	// +optional
	Card *int32 `json:"card,omitempty"`
	// Instance is the GPU instance on that card. Absent if it is the whole card.
	// +optional
	Instance *int32 `json:"instance,omitempty"`
	// Replica is which of the shares of the device. It does not say where the container
	// computes: shares of a device are alike.
	// +optional
	Replica *int32 `json:"replica,omitempty"`
}
