package nodeagent

import "time"

// Report is what one look at the GPUs of a node answered. What could not be read is
// left out and named in Errors, here or in the card; nothing is guessed.
//
// A Report is a value: whoever gets one may keep it, nobody changes it afterwards.
// Cards are in the order of Index, everything else is sorted too, so that equal
// states are equal values except for Time.
type Report struct {
	// Node is the node's name in the cluster, if the agent was told it.
	Node string `json:"node,omitempty"`
	// Time is when the look began.
	Time time.Time `json:"time"`
	// BootID is the kernel's name of this boot. No layout survives a boot.
	BootID string `json:"bootID,omitempty"`

	// State is how the agent found the driver. Unless it is Ready, Cards is empty.
	State State `json:"state"`
	// Message is why the state is not Ready, in a sentence, with what would mend it.
	Message string `json:"message,omitempty"`
	// Driver is what was asked.
	Driver Driver `json:"driver"`
	// Layout says when cards were cut otherwise the last time.
	Layout Layout `json:"layout"`

	Cards []Card `json:"cards,omitempty"`
	// Links are how near pairs of cards are to each other, by A, then B. Pairs of which
	// nothing is known are left out.
	Links []Link `json:"links,omitempty"`
	// Sharing is how the device plugin offers the devices. The driver does not know it:
	// whoever reads the plugin's configuration fills it in. nil: nobody did.
	Sharing *Sharing `json:"sharing,omitempty"`

	// Errors are what could not be read of the node as a whole, by Field.
	Errors []FieldError `json:"errors,omitempty"`
}

// State is how the driver was found, in a word.
type State string

// The states. None of them ends an agent: it looks again, seldomer the longer it lasts.
const (
	Ready         State = "Ready"         // there are cards; each says for itself what is wrong with it
	NoDevices     State = "NoDevices"     // a driver without cards
	NoDriver      State = "NoDriver"      // no driver loaded, or not the library that speaks to it
	NoPermission  State = "NoPermission"  // the agent may not ask the driver
	DriverChanged State = "DriverChanged" // replaced under the running agent: library and module differ
	Failed        State = "Failed"        // anything else; Message has the driver's words
)

// Driver is the versions of what was asked.
type Driver struct {
	Version string `json:"version,omitempty"` // of the kernel module: "580.65.06"
	NVML    string `json:"nvml,omitempty"`    // of the library: "13.580.65.06"
	CUDA    string `json:"cuda,omitempty"`    // the newest that the driver serves: "13.0"
}

// Layout counts how often the cards of a node were cut otherwise: instances or MIG
// devices came or went, MIG mode was switched. A card that is lost and comes back as
// it was is no change.
type Layout struct {
	// Generation is 1 for the first layout that this agent saw and grows with every
	// change. It starts anew with the agent.
	Generation int64 `json:"generation"`
	// Since is when this layout was seen first; zero if none was read yet.
	Since time.Time `json:"since,omitzero"`
	// Print is equal for equal layouts, over restarts of the agent too.
	Print string `json:"print,omitempty"`
}

// FieldError is one thing that could not be read.
type FieldError struct {
	// Field is its name in the report: "instances", "health.ecc".
	Field string `json:"field"`
	// Code is the driver's answer without NVML_ERROR_: "NO_PERMISSION".
	Code string `json:"code"`
	// Message is for people.
	Message string `json:"message"`
}

// Error lets a FieldError be wrapped and printed.
func (e FieldError) Error() string { return e.Field + ": " + e.Message }

// Link is how near two cards are to each other.
type Link struct {
	A int `json:"a"` // indexes of the cards, the lower first
	B int `json:"b"`
	// NVLinks is how many active NVLinks join them: directly, or over switches, where it
	// is the smaller number that the two have to switches.
	NVLinks int `json:"nvLinks,omitempty"`
	// Switched says that the NVLinks run over switches.
	Switched bool `json:"switched,omitempty"`
	// Path is how far apart they are on PCIe; "" if that is not known.
	Path Path `json:"path,omitempty"`
}

// Path is how far apart two cards are on PCIe.
type Path string

// The paths, from near to far.
const (
	PathInternal   Path = "internal"   // on one board
	PathSingle     Path = "single"     // one PCIe switch between them
	PathMultiple   Path = "multiple"   // several switches, no host bridge
	PathHostBridge Path = "hostBridge" // one host bridge
	PathNode       Path = "node"       // several host bridges of one NUMA node
	PathSystem     Path = "system"     // the link between NUMA nodes
)

// Sharing is under which names, and how many times, the device plugin offers devices.
type Sharing struct {
	// MIGStrategy is none, single or mixed; "" if nobody says.
	MIGStrategy string  `json:"migStrategy,omitempty"`
	Shares      []Share `json:"shares,omitempty"` // by Resource
	// From is whose word this is, for people: a file, "labels".
	From string `json:"from,omitempty"`
}

// Share is how the devices of one resource are shared.
type Share struct {
	Resource string `json:"resource"` // as without sharing: nvidia.com/gpu
	Strategy string `json:"strategy"` // TimeSlicing or MPS
	Replicas int    `json:"replicas"` // of each device, at least 2
	// Renamed says that the plugin offers Resource + ".shared" instead.
	Renamed bool `json:"renamed,omitempty"`
	// FailAboveOne says that a container that asks for more than one replica is refused
	// on the node, after it was bound there. nil: not known.
	FailAboveOne *bool `json:"failAboveOne,omitempty"`
}
