package kubelet

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Device is a device id as the kubelet has it, read. Which fields are set depends on
// who named the device; ID always is.
type Device struct {
	ID string // as the kubelet has it, without the replica
	// UUID is what NVML calls the card ("GPU-…") or the MIG device ("MIG-…"); "" where
	// the id names it otherwise.
	UUID string
	// Parent is the UUID of the card of a MIG device, where the id holds it.
	Parent string
	// Minor is the card's device minor, for ids that name cards that way; -1 if unset.
	Minor int
	// GPUInstance and ComputeInstance are NVML's ids of the slice; -1 if unset.
	GPUInstance, ComputeInstance int
	// Start is the first memory unit of the slice, where the id holds it; -1 if unset.
	Start int
	// Replica is which of the shares of the device; -1 if it is not shared.
	Replica int
}

// String is the id as the kubelet has it.
func (d Device) String() string {
	if d.Replica < 0 {
		return d.ID
	}
	return fmt.Sprintf("%s::%d", d.ID, d.Replica)
}

var (
	uuidForm   = regexp.MustCompile(`^(GPU|MIG)-[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
	oldMIGForm = regexp.MustCompile(`^MIG-(GPU-[0-9a-fA-F-]{36})/(\d{1,9})/(\d{1,9})$`)
	gkeForm    = regexp.MustCompile(`^nvidia(\d{1,9})(?:/gi(\d{1,9}))?(?:/vgpu(\d{1,9}))?$`)
	draForm    = regexp.MustCompile(`^gpu-(\d{1,9})(?:-mig-[0-9a-z.-]+-(\d{1,9})-(\d{1,9}))?$`)
)

// ParseDevice reads a device id of a device plugin: NVIDIA's, with the MIG form of
// drivers before 470 and the replicas of sharing, or that of Google's clusters.
func ParseDevice(id string) (Device, error) {
	d := Device{ID: id, Minor: -1, GPUInstance: -1, ComputeInstance: -1, Start: -1, Replica: -1}
	if base, replica, shared := strings.Cut(id, "::"); shared {
		n, err := number(replica)
		if err != nil {
			return Device{}, fmt.Errorf("device id %q: replica %q is no number", id, replica)
		}
		d.ID, d.Replica = base, n
	}
	if uuidForm.MatchString(d.ID) {
		d.UUID = d.ID
		return d, nil
	}
	if m := oldMIGForm.FindStringSubmatch(d.ID); m != nil {
		d.Parent, d.GPUInstance, d.ComputeInstance = m[1], digits(m[2]), digits(m[3])
		return d, nil
	}
	if m := gkeForm.FindStringSubmatch(d.ID); m != nil && (d.Replica < 0 || m[3] == "") {
		d.Minor = digits(m[1])
		if m[2] != "" {
			d.GPUInstance = digits(m[2])
		}
		if m[3] != "" {
			d.ID, d.Replica = strings.TrimSuffix(d.ID, "/vgpu"+m[3]), digits(m[3])
		}
		return d, nil
	}
	return Device{}, fmt.Errorf("device id %q is of no known form", id)
}

// ParseDRADevice reads a device name of the DRA driver gpu.nvidia.com: gpu-1, or
// gpu-1-mig-1g24gb-19-0 with the profile's id and the start.
func ParseDRADevice(name string) (Device, error) {
	m := draForm.FindStringSubmatch(name)
	if m == nil {
		return Device{}, fmt.Errorf("DRA device %q is of no known form", name)
	}
	d := Device{ID: name, Minor: digits(m[1]), GPUInstance: -1, ComputeInstance: -1, Start: -1, Replica: -1}
	if m[3] != "" {
		d.Start = digits(m[3])
	}
	return d, nil
}

// digits is the number in a text that a form has already held to be one.
func digits(s string) int {
	n, err := number(s)
	if err != nil {
		panic(fmt.Sprintf("kubelet: %q passed as digits", s))
	}
	return n
}

// number reads at most nine digits and nothing else.
func number(s string) (int, error) {
	if len(s) > 9 || strings.ContainsAny(s, "+-") {
		return 0, strconv.ErrSyntax
	}
	return strconv.Atoi(s)
}
