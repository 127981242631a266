package kubelet

import (
	"strings"
	"testing"
)

const (
	card  = "GPU-b3e34e6a-ad62-2b9b-9c2e-8a5e24f0e4a1"
	slice = "MIG-2ce7a541-c516-5dbc-a76e-26cc100d9b55"
)

func TestParseDevice(t *testing.T) {
	none := Device{Minor: -1, GPUInstance: -1, ComputeInstance: -1, Start: -1, Replica: -1}
	with := func(change func(*Device)) Device { d := none; change(&d); return d }
	for _, c := range []struct {
		id   string
		want Device
	}{
		{card, with(func(d *Device) { d.ID, d.UUID = card, card })},
		{card + "::3", with(func(d *Device) { d.ID, d.UUID, d.Replica = card, card, 3 })},
		{slice, with(func(d *Device) { d.ID, d.UUID = slice, slice })},
		{slice + "::7", with(func(d *Device) { d.ID, d.UUID, d.Replica = slice, slice, 7 })},
		{"MIG-" + card + "/7/0", with(func(d *Device) {
			d.ID, d.Parent, d.GPUInstance, d.ComputeInstance = "MIG-"+card+"/7/0", card, 7, 0
		})},
		{"MIG-" + card + "/7/0::2", with(func(d *Device) {
			d.ID, d.Parent, d.GPUInstance, d.ComputeInstance, d.Replica = "MIG-"+card+"/7/0", card, 7, 0, 2
		})},
		{"nvidia0", with(func(d *Device) { d.ID, d.Minor = "nvidia0", 0 })},
		{"nvidia0/gi3", with(func(d *Device) { d.ID, d.Minor, d.GPUInstance = "nvidia0/gi3", 0, 3 })},
		{"nvidia0/vgpu2", with(func(d *Device) { d.ID, d.Minor, d.Replica = "nvidia0", 0, 2 })},
		{"nvidia1/gi3/vgpu2", with(func(d *Device) { d.ID, d.Minor, d.GPUInstance, d.Replica = "nvidia1/gi3", 1, 3, 2 })},
	} {
		got, err := ParseDevice(c.id)
		if err != nil || got != c.want {
			t.Errorf("%s: got %+v, %v\nwant %+v", c.id, got, err, c.want)
		}
	}
	for _, id := range []string{
		"", "GPU-1", "::1", card + "::", card + "::x", card + "::+1", card + "::-1", card + "::1::2",
		"MIG-" + card + "/7", "nvidia", "nvidia0/gi", "nvidia0/vgpu1::2", "MIG-" + card + "/99999999999/0", card + "\n",
	} {
		if got, err := ParseDevice(id); err == nil {
			t.Errorf("%q is read as %+v", id, got)
		} else if id != "" && !strings.Contains(err.Error(), "device id") {
			t.Errorf("%q: %v does not say what it is about", id, err)
		}
	}
}

func TestParseDRADevice(t *testing.T) {
	got, err := ParseDRADevice("gpu-1-mig-1g24gb-19-0")
	if want := (Device{ID: "gpu-1-mig-1g24gb-19-0", Minor: 1, GPUInstance: -1, ComputeInstance: -1, Start: 0, Replica: -1}); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	got, err = ParseDRADevice("gpu-3")
	if want := (Device{ID: "gpu-3", Minor: 3, GPUInstance: -1, ComputeInstance: -1, Start: -1, Replica: -1}); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	for _, name := range []string{"", "gpu", "gpu-x", "gpu-1-mig-", "gpu-1-vfio"} {
		if got, err := ParseDRADevice(name); err == nil {
			t.Errorf("%q is read as %+v", name, got)
		}
	}
}

// What is read names the same device again.
func FuzzParseDevice(f *testing.F) {
	for _, id := range []string{card, card + "::3", slice + "::7", "MIG-" + card + "/7/0", "nvidia0/gi3", "nvidia0/vgpu2", "::", "nvidia0::1"} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		d, err := ParseDevice(id)
		if err != nil {
			return
		}
		again, err := ParseDevice(d.String())
		if err != nil || again != d {
			t.Fatalf("%q is %+v, which is called %s and read as %+v, %v", id, d, d, again, err)
		}
	})
}
