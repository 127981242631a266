package nodeagent

import "slices"

// Card is one GPU of the node, or the place of one: a card that the driver counts and
// cannot reach is listed too.
type Card struct {
	// Index is its number in NVML's order, which is that of the PCI bus. It moves when a
	// card before it goes: UUID does not. A card that the driver does not even count
	// any more (Gone) has an index after all others.
	Index int `json:"index"`
	// UUID is its lasting name: "GPU-…". "" if it was lost before anybody read it.
	UUID string `json:"uuid,omitempty"`

	// Lost says that the driver cannot reach it. Identity, memory and profiles are then
	// as this agent read them before; instances, health and the rest are absent.
	Lost bool `json:"lost,omitempty"`
	// Gone says that it is lost and the driver does not count it any more.
	Gone bool `json:"gone,omitempty"`

	Product      string `json:"product,omitempty"`      // "NVIDIA A100-SXM4-40GB"
	Architecture string `json:"architecture,omitempty"` // "ampere", "hopper", "blackwell"
	Compute      string `json:"compute,omitempty"`      // compute capability: "8.0"
	Serial       string `json:"serial,omitempty"`
	Minor        *int   `json:"minor,omitempty"` // the number of its device file
	// PCI is where it sits, as the kernel writes it: "0000:65:00.0".
	PCI string `json:"pci,omitempty"`
	// NUMANode is the memory it is close to. nil: none, only one, or not known.
	NUMANode *int `json:"numaNode,omitempty"`
	// MemoryMiB is its memory, all of it; 0 if it is not known.
	MemoryMiB int64 `json:"memoryMiB,omitempty"`

	// MIG is its MIG mode. nil: it has none, or that is not known.
	MIG *MIGMode `json:"mig,omitempty"`
	// Grid says how it can be cut. nil: it cannot be, or the agent may not ask.
	Grid *Grid `json:"grid,omitempty"`
	// InstancesKnown says that GPU instances could be read. Without it MIG devices may
	// still be listed, but where they lie is not known.
	InstancesKnown bool `json:"instancesKnown,omitempty"`
	// Instances are its GPU instances: by start, then ID.
	Instances []Instance `json:"instances,omitempty"`
	// Devices are its MIG devices by Index; holes between the indexes are normal.
	Devices []MIGDevice `json:"devices,omitempty"`
	// MaxDevices is how many MIG devices it may have at most, in its present mode.
	MaxDevices int `json:"maxDevices,omitempty"`

	Health Health  `json:"health"`
	Fabric *Fabric `json:"fabric,omitempty"` // nil: no multi-node NVLink

	// Errors are what could not be read of this card, by Field. What a card does not
	// have (no ECC, no MIG) is no error.
	Errors []FieldError `json:"errors,omitempty"`
}

// MIGMode is whether a card is cut. If the two differ a reset, or a boot, is needed
// before anybody can have the card or a part of it.
type MIGMode struct {
	Current bool `json:"current"`
	Pending bool `json:"pending"`
}

// Cut says that the card is in MIG mode now.
func (c *Card) Cut() bool { return c.MIG != nil && c.MIG.Current }

// Grid is how cards of one product can be cut, as their driver says it.
type Grid struct {
	// Units are how many units slices are placed on: 8 on an A100, 12 on an RTX PRO 6000.
	Units int `json:"units"`
	// Compute is how many compute slices there are: 7 on an A100.
	Compute int `json:"compute"`
	// Profiles are the ways to cut a slice out, by Enum. Those that this agent does not
	// know by number are listed all the same if the driver gives name and placements.
	Profiles []Profile `json:"profiles"`
}

// Profile is a way to cut a slice out of a card.
type Profile struct {
	// Name is the driver's own, "1g.5gb+me". It may differ between drivers; for a driver
	// too old to say, it is worked out from sizes, and Derived is set.
	Name    string `json:"name"`
	Derived bool   `json:"derived,omitempty"`
	// Enum is the number by which NVML is asked for it, ID the one that it gives: the ID
	// column of nvidia-smi mig -lgip, unique only within a product.
	Enum int `json:"enum"`
	ID   int `json:"id"`

	Compute         int `json:"compute"` // compute slices
	Multiprocessors int `json:"multiprocessors,omitempty"`
	// MemoryMiB is what a slice has at least; 0 if the driver does not say.
	MemoryMiB int64 `json:"memoryMiB,omitempty"`
	// Size is how many units it covers.
	Size int `json:"size"`
	// Starts are the units at which it may begin, in order. They tell of an empty card:
	// which are free follows from the instances.
	Starts []int `json:"starts"`
	// Sole names what a card has only once: slices with the same Sole exclude each
	// other although units are free. MediaEngines or "".
	Sole    string  `json:"sole,omitempty"`
	Engines Engines `json:"engines"`
	// Max is how many the driver says fit at most. It is wrong on some boards (A30):
	// count placements instead.
	Max int `json:"max,omitempty"`
}

// MediaEngines is the Sole of profiles that hold the card's media engines (+me).
const MediaEngines = "media"

// Engines are the fixed-function engines of a slice.
type Engines struct {
	Copy    int `json:"copy,omitempty"`
	Decoder int `json:"decoder,omitempty"`
	Encoder int `json:"encoder,omitempty"`
	JPEG    int `json:"jpeg,omitempty"`
	OFA     int `json:"ofa,omitempty"`
}

// Profile returns the profile that the driver calls by this id, or nil.
func (g *Grid) Profile(id int) *Profile {
	if g == nil {
		return nil
	}
	if i := slices.IndexFunc(g.Profiles, func(p Profile) bool { return p.ID == id }); i >= 0 {
		return &g.Profiles[i]
	}
	return nil
}

// Named returns the profile of this name, or nil.
func (g *Grid) Named(name string) *Profile {
	if g == nil {
		return nil
	}
	if i := slices.IndexFunc(g.Profiles, func(p Profile) bool { return p.Name == name }); i >= 0 {
		return &g.Profiles[i]
	}
	return nil
}

// Instance is a GPU instance: a run of units of the card.
type Instance struct {
	// ID is the driver's number for it. It says nothing of where it lies.
	ID int `json:"id"`
	// ProfileID is the id of its profile, Profile its name; "" if the driver lists no
	// such profile.
	ProfileID int    `json:"profileID"`
	Profile   string `json:"profile,omitempty"`
	Start     int    `json:"start"` // the first unit it covers
	Size      int    `json:"size"`  // how many
	// Compute are its compute instances, by ID. Without any it takes its units and
	// offers nothing. Unread is that they could not be read.
	Compute []ComputeInstance `json:"compute,omitempty"`
	Unread  bool              `json:"unread,omitempty"`
}

// ComputeInstance is a part of a GPU instance's compute slices, or all of them.
type ComputeInstance struct {
	ID        int `json:"id"`
	ProfileID int `json:"profileID"`
	Slices    int `json:"slices"` // compute slices
	Start     int `json:"start"`  // the first of them in the GPU instance
	// Partial says that it is smaller than its GPU instance: no device plugin offers
	// such a device.
	Partial bool `json:"partial,omitempty"`
}

// MIGDevice is what a program can be given of a card that is cut: a compute instance
// in a GPU instance.
type MIGDevice struct {
	// Index is its number on the card, as in nvidia-smi -L.
	Index int `json:"index"`
	// UUID is its name, "MIG-…", until it is cut anew.
	UUID string `json:"uuid,omitempty"`
	// Instance and ComputeInstance are the ids of the instances it is made of; -1 if
	// they could not be read.
	Instance        int   `json:"instance"`
	ComputeInstance int   `json:"computeInstance"`
	MemoryMiB       int64 `json:"memoryMiB,omitempty"`
	Multiprocessors int   `json:"multiprocessors,omitempty"`
	// Slices are the compute slices of the GPU instance and of the compute instance.
	InstanceSlices int `json:"instanceSlices,omitempty"`
	ComputeSlices  int `json:"computeSlices,omitempty"`
}

// Fabric is the multi-node NVLink domain of a card.
type Fabric struct {
	// State is "completed", or how far the fabric manager is: notStarted, inProgress,
	// failed. Unless it is completed the rest is empty.
	State       string `json:"state"`
	ClusterUUID string `json:"clusterUUID,omitempty"`
	Clique      uint32 `json:"clique,omitempty"`
}
