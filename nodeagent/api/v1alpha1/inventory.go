package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SliceInventory is what the GPUs of one node are: which cards there are and how they
// are cut and shared, which pod holds which device, and what is wrong. It has the
// name of its node and is written by that node's agent alone.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=slices
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.report.state`
// +kubebuilder:printcolumn:name="Cards",type=string,JSONPath=`.report.summary.cards`,description="in order, of all"
// +kubebuilder:printcolumn:name="Layout",type=string,JSONPath=`.report.summary.layout`
// +kubebuilder:printcolumn:name="Taken",type=string,JSONPath=`.report.summary.taken`,description="devices held by pods, of those offered"
// +kubebuilder:printcolumn:name="Problems",type=string,JSONPath=`.report.summary.problems`
// +kubebuilder:printcolumn:name="Driver",type=string,JSONPath=`.report.driver.version`,priority=1
// +kubebuilder:printcolumn:name="Changed",type=date,JSONPath=`.report.changed`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type SliceInventory struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Report is what the node's agent saw.
	Report Report `json:"report"`

	// Status is what the controller makes of it.
	// +optional
	Status Status `json:"status,omitempty,omitzero"`
}

// SliceInventoryList is a list of SliceInventory.
//
// +kubebuilder:object:root=true
type SliceInventoryList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SliceInventory `json:"items"`
}

// Status is what the controller makes of a report.
type Status struct {
	// Conditions are verdicts of the controller, such as that the node's labels or
	// its allocatable say something else than its cards. ObservedGeneration is that of the
	// object, which counts changes of the report.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// State is how an agent found its node, in a word.
//
// +kubebuilder:validation:Enum=Ready;Degraded;NoDevices;NoDriver;NoPermission;DriverChanged;Failed
type State string

// The states. In all but the first two no card could be read, so that none is listed.
const (
	Ready         State = "Ready"         // every card is in order and was read
	Degraded      State = "Degraded"      // some card is not, or something could not be read
	NoDevices     State = "NoDevices"     // a driver without cards
	NoDriver      State = "NoDriver"      // no driver, or not the library that speaks to it
	NoPermission  State = "NoPermission"  // the agent may not ask the driver
	DriverChanged State = "DriverChanged" // replaced under the running agent, which has to start anew
	Failed        State = "Failed"        // anything else; Message has the words
)

// Report is what the agent of a node saw. It is replaced as a whole.
//
// +structType=atomic
// +kubebuilder:validation:XValidation:rule="!has(self.cards) || self.cards.all(c, !has(c.model) || (has(self.models) && self.models.exists(m, m.name == c.model)))",message="a card is of a model that is not listed"
// +kubebuilder:validation:XValidation:rule="self.state in ['Ready', 'Degraded'] || !has(self.cards) || size(self.cards) == 0",message="cards are listed although none could be read"
type Report struct {
	// State is how the agent found the node, in a word.
	State State `json:"state"`
	// Message is why the state is not Ready, in a sentence.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
	// Summary is the rest in a few words, for people.
	Summary Summary `json:"summary"`
	// Changed is when the agent saw the last change of anything else here.
	Changed metav1.Time `json:"changed"`
	// BootID is the kernel's name of this boot of the node. No layout survives a boot.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	BootID string `json:"bootID,omitempty"`
	// AgentVersion is that of the agent.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	AgentVersion string `json:"agentVersion,omitempty"`
	// Driver is the driver that was asked.
	// +optional
	Driver *Driver `json:"driver,omitempty"`
	// Layout says when cards were cut otherwise the last time.
	// +optional
	Layout *LayoutChange `json:"layout,omitempty"`

	// Models are what the cards are, each once.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Models []Model `json:"models,omitempty"`
	// Cards are the GPUs of the node in the order of their index, lost ones included.
	// +optional
	// +listType=map
	// +listMapKey=index
	// +kubebuilder:validation:MaxItems=32
	Cards []Card `json:"cards,omitempty"`
	// Links are how near pairs of cards are to each other. Pairs of which nothing is
	// known are left out.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=496
	Links []Link `json:"links,omitempty"`

	// Sharing is under which names, and how many times, devices are offered.
	Sharing Sharing `json:"sharing"`
	// Registered is what the device plugin has told the kubelet of, healthy or not.
	// Absent if the kubelet does not say.
	// +optional
	// +listType=map
	// +listMapKey=resource
	// +kubebuilder:validation:MaxItems=64
	Registered []Registered `json:"registered,omitempty"`
	// HoldingsKnown says that the kubelet was asked: without it, that Holdings is
	// empty means nothing.
	// +optional
	HoldingsKnown bool `json:"holdingsKnown,omitempty"`
	// Holdings are which container holds which devices, by namespace, pod, container
	// and resource.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=512
	Holdings []Holding `json:"holdings,omitempty"`

	// Problems are what is wrong with the node's cards, and what could not be read,
	// the gravest first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	Problems []Problem `json:"problems,omitempty"`
}

// Summary is a report in a few words.
type Summary struct {
	// Cards is how many are in order, of how many: "7/8".
	// +kubebuilder:validation:MaxLength=16
	Cards string `json:"cards"`
	// Layout is how they are cut and shared: "8x A100-SXM4-40GB mig: 3g.20gb 2g.10gb".
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Layout string `json:"layout,omitempty"`
	// Taken is how many devices pods hold, of how many that are offered: "5/16". "?" if
	// the kubelet does not say.
	// +kubebuilder:validation:MaxLength=32
	Taken string `json:"taken"`
	// Problems is how many, and the gravest: "2: card 3 lost".
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Problems string `json:"problems,omitempty"`
}

// Driver is the driver of the node.
type Driver struct {
	// Version is that of the kernel module: "580.65.06".
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Version string `json:"version,omitempty"`
	// CUDA is the newest CUDA that it serves: "13.0".
	// +optional
	// +kubebuilder:validation:MaxLength=64
	CUDA string `json:"cuda,omitempty"`
	// NVML is that of the library that was asked.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	NVML string `json:"nvml,omitempty"`
}

// LayoutChange counts how often cards were cut otherwise.
type LayoutChange struct {
	// Generation grows with every change of the layout that an agent saw.
	// +kubebuilder:validation:Minimum=0
	Generation int64 `json:"generation"`
	// Since is when the agent saw the last of them.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
	// Print is equal for equal layouts.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Print string `json:"print,omitempty"`
}
