package mock

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"

	gonvml "github.com/NVIDIA/go-nvml/pkg/nvml"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// one is a node with one card in MIG mode, and a handle of it.
func one(t *testing.T, model string) (*Node, gonvml.Device) {
	t.Helper()
	n, err := New("n", model)
	if err != nil {
		t.Fatal(err)
	}
	n.Must("mig 0 on")
	l := n.Library()
	if ret := l.Init(); ret != gonvml.SUCCESS {
		t.Fatal(ret)
	}
	d, ret := l.DeviceGetHandleByIndex(0)
	if ret != gonvml.SUCCESS {
		t.Fatal(ret)
	}
	return n, d
}

func profile(t *testing.T, d gonvml.Device, enum int) gonvml.GpuInstanceProfileInfo {
	t.Helper()
	info, ret := d.GetGpuInstanceProfileInfo(enum)
	if ret != gonvml.SUCCESS {
		t.Fatalf("profile %d: %v", enum, ret)
	}
	return info
}

// The checks that a mock of these cards has to pass: an unplaced 3g lands at 4:4 with
// profile id 9; then four 1g have room, and at 5 there is none.
func TestHardwareChecks(t *testing.T) {
	for _, model := range []string{"A100-40GB", "A100-80GB", "H100-80GB-SXM", "H200-141GB", "B200-180GB"} {
		t.Run(model, func(t *testing.T) {
			_, d := one(t, model)
			threeG, oneG := profile(t, d, gonvml.GPU_INSTANCE_PROFILE_3_SLICE), profile(t, d, gonvml.GPU_INSTANCE_PROFILE_1_SLICE)
			gi, ret := d.CreateGpuInstance(&threeG)
			if ret != gonvml.SUCCESS {
				t.Fatal(ret)
			}
			info, _ := gi.GetInfo()
			if info.ProfileId != 9 || info.Placement != (gonvml.GpuInstancePlacement{Start: 4, Size: 4}) {
				t.Errorf("an unplaced 3g has profile id %d and lies at %+v", info.ProfileId, info.Placement)
			}
			if n, ret := d.GetGpuInstanceRemainingCapacity(&oneG); n != 4 || ret != gonvml.SUCCESS {
				t.Errorf("%d 1g left (%v), want 4", n, ret)
			}
			if _, ret := d.CreateGpuInstanceWithPlacement(&oneG, &gonvml.GpuInstancePlacement{Start: 5, Size: 1}); ret != gonvml.ERROR_INSUFFICIENT_RESOURCES {
				t.Errorf("1g at 5: %v", ret)
			}
			if threeG.IsP2pSupported != 0 {
				t.Error("a slice with peer-to-peer")
			}
		})
	}
}

// Layouts that hardware takes, and those it refuses with what it answers.
func TestLayouts(t *testing.T) {
	for _, c := range []struct{ model, cut, want string }{
		{"A100-40GB", "3g.20gb@0 1g.5gb@3", "INSUFFICIENT_RESOURCES"},
		{"A100-40GB", "3g.20gb@4 1g.5gb@0 1g.5gb@1 1g.5gb@2 1g.5gb@3", ""},
		{"A100-40GB", "3g.20gb@0 1g.5gb@4 1g.5gb@5 1g.5gb@6", ""},
		{"A100-40GB", "4g.20gb@0 3g.20gb@4", ""},
		{"A100-40GB", "3g.20gb@0 4g.20gb", "INSUFFICIENT_RESOURCES"},
		{"A100-40GB", "4g.20gb@0 2g.10gb@4 1g.5gb@6", ""},
		{"A100-40GB", "2g.10gb@0 2g.10gb@2 2g.10gb@4 1g.5gb@6", ""},
		{"A100-40GB", "2g.10gb@6", "INVALID_ARGUMENT"},
		{"A100-40GB", "1g.10gb@6", ""},
		{"A100-40GB", "1g.5gb@0 1g.5gb@1 1g.5gb@2 1g.5gb@3 1g.5gb@4 1g.5gb@5 1g.10gb@6", ""},
		{"A100-40GB", "1g.5gb 1g.5gb 1g.5gb 1g.5gb 1g.5gb 1g.5gb 1g.5gb 1g.5gb", "INSUFFICIENT_RESOURCES"},
		{"A100-40GB", "1g.5gb+me@0 1g.5gb+me@1", "INSUFFICIENT_RESOURCES"},
		{"A100-40GB", "1g.5gb+me@0 1g.5gb@1", ""},
		{"A100-40GB", "1g.5gb 1g.5gb 2g.10gb 3g.20gb", "INSUFFICIENT_RESOURCES"},
		{"A100-40GB", "3g.20gb 2g.10gb 1g.5gb 1g.5gb", ""},
		{"A100-40GB", "1g.6gb", "no such profile"},
		{"A30-24GB", "2g.12gb@0 1g.6gb@2 1g.6gb@3", ""},
		{"RTX-PRO-6000-Blackwell-96GB", "1g.24gb@1", "INVALID_ARGUMENT"},
		{"RTX-PRO-6000-Blackwell-96GB", "2g.48gb@6 1g.24gb@0 1g.24gb@3", ""},
		{"RTX-PRO-6000-Blackwell-96GB", "1g.24gb+me.all@0 1g.24gb+me@3", "INSUFFICIENT_RESOURCES"},
		{"H100-80GB-SXM", "3g.40gb@0 1g.10gb@3", "INSUFFICIENT_RESOURCES"}, // go-nvml's own mock takes it
		{"B200-180GB", "7g.180gb 1g.23gb", "INSUFFICIENT_RESOURCES"},
	} {
		n, _ := one(t, c.model)
		_, err := n.Do("cut 0 " + c.cut)
		if got := fmt.Sprint(err); c.want == "" && err != nil || c.want != "" && !strings.Contains(got, c.want) {
			t.Errorf("%s: %s: %v, want %q", c.model, c.cut, err, c.want)
		}
	}
}

func TestModeRefuses(t *testing.T) {
	n, err := New("n", "A100-40GB", "H100-80GB-SXM")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Do("cut 0 1g.5gb"); err == nil || !strings.Contains(err.Error(), "NOT_SUPPORTED") {
		t.Errorf("a card that is not in MIG mode was cut: %v", err)
	}
	l := n.Library()
	_ = l.Init()
	a100, _ := l.DeviceGetHandleByIndex(0)
	h100, _ := l.DeviceGetHandleByIndex(1)
	for _, c := range []struct {
		d       gonvml.Device
		current int // after it was switched on
	}{{a100, 0}, {h100, 1}} {
		_, _ = c.d.SetMigMode(gonvml.DEVICE_MIG_ENABLE)
		if now, then, _ := c.d.GetMigMode(); now != c.current || then != 1 {
			t.Errorf("MIG mode is %d, pending %d", now, then)
		}
	}
	n.Must("cut 1 7g.80gb")
	if _, ret := h100.SetMigMode(gonvml.DEVICE_MIG_DISABLE); ret != gonvml.ERROR_IN_USE {
		t.Errorf("MIG mode of a cut card was switched off: %v", ret)
	}
	n.Must("reset 0")
	_ = l.Shutdown()
	_ = l.Init()
	a100, _ = l.DeviceGetHandleByIndex(0)
	if now, _, _ := a100.GetMigMode(); now != 1 {
		t.Error("a reset does not switch MIG mode on")
	}
	// Of a boot: Ampere keeps its mode, Hopper does not, layouts go.
	n.Must("reboot")
	_ = l.Shutdown()
	_ = l.Init()
	for i, want := range []int{1, 0} {
		d, _ := l.DeviceGetHandleByIndex(i)
		if now, _, _ := d.GetMigMode(); now != want || len(n.cards[i].instances) != 0 {
			t.Errorf("card %d after a boot: mode %d, %d instances", i, now, len(n.cards[i].instances))
		}
	}
}

// A GPU instance stays while a compute instance lives in it; what is destroyed leaves
// a hole, and what is made anew has a new name.
func TestDevicesAndHoles(t *testing.T) {
	n, d := one(t, "A100-40GB")
	n.Must("cut 0 1g.5gb@0 1g.5gb@1 1g.5gb@2 2g.10gb@4:-")
	before, _ := d.GetMigDeviceHandleByIndex(1)
	old, _ := before.GetUUID()
	oneG := profile(t, d, gonvml.GPU_INSTANCE_PROFILE_1_SLICE)
	list, _ := d.GetGpuInstances(&oneG)
	if ret := list[1].Destroy(); ret != gonvml.ERROR_IN_USE {
		t.Errorf("a GPU instance was destroyed under its compute instance: %v", ret)
	}
	n.Must("drop 0 1")
	if _, ret := d.GetMigDeviceHandleByIndex(1); ret != gonvml.ERROR_NOT_FOUND {
		t.Errorf("no hole: %v", ret)
	}
	if _, ret := d.GetMigDeviceHandleByIndex(2); ret != gonvml.SUCCESS {
		t.Errorf("behind the hole: %v", ret)
	}
	if _, ret := before.GetUUID(); ret != gonvml.ERROR_NOT_FOUND {
		t.Errorf("the handle outlived its device: %v", ret)
	}
	if _, ret := d.GetMigDeviceHandleByIndex(7); ret != gonvml.ERROR_INVALID_ARGUMENT {
		t.Errorf("index 7 of 7: %v", ret)
	}
	n.Must("cut 0 1g.5gb@1")
	again, _ := d.GetMigDeviceHandleByIndex(1)
	if now, _ := again.GetUUID(); now == old || now == "" {
		t.Errorf("cut anew, the device is still %s", now)
	}
	if _, ret := d.GetAttributes(); ret != gonvml.ERROR_INVALID_ARGUMENT {
		t.Errorf("attributes of a whole card: %v", ret)
	}
	if _, err := n.Do("cut 0 3g.20gb:1c,3c"); err == nil {
		t.Error("a compute instance of 3 beside one of 1 in 3 slices")
	}
}

func TestLossIsSticky(t *testing.T) {
	n, err := New("n", Alike(2, "H200-141GB")...)
	if err != nil {
		t.Fatal(err)
	}
	l := n.Library()
	_ = l.Init()
	d, _ := l.DeviceGetHandleByIndex(1)
	n.Must("lose 1")
	if _, ret := d.GetUUID(); ret != gonvml.ERROR_GPU_IS_LOST {
		t.Errorf("lost: %v", ret)
	}
	if c, _ := l.DeviceGetCount(); c != 2 {
		t.Errorf("%d cards are counted, want the lost one too", c)
	}
	if _, ret := l.DeviceGetHandleByUUID(n.cards[0].uuid); ret != gonvml.ERROR_GPU_IS_LOST {
		t.Errorf("by UUID while a card is lost: %v", ret)
	}
	n.Must("return 1")
	if _, ret := l.DeviceGetHandleByIndex(1); ret != gonvml.ERROR_GPU_IS_LOST {
		t.Errorf("back for a session that lost it: %v", ret)
	}
	_ = l.Shutdown()
	_ = l.Init()
	if _, ret := l.DeviceGetHandleByIndex(1); ret != gonvml.SUCCESS {
		t.Errorf("back: %v", ret)
	}
	if _, ret := d.GetUUID(); ret != gonvml.ERROR_UNINITIALIZED {
		t.Errorf("a handle outlived its session: %v", ret)
	}
}

func TestEvents(t *testing.T) {
	n, d := one(t, "A100-40GB")
	set, _ := d.(Device).l.EventSetCreate()
	defer func() { _ = set.Free() }()
	if _, ret := set.Wait(1); ret != gonvml.ERROR_TIMEOUT {
		t.Errorf("nothing happened: %v", ret)
	}
	n.Must("xid 0 31") // nobody asked for it
	if ret := d.RegisterEvents(gonvml.EventTypeXidCriticalError, set); ret != gonvml.SUCCESS {
		t.Fatal(ret)
	}
	n.Must("xid 0 94 3 0", "xid 0 79")
	first, ret := set.Wait(60_000)
	if ret != gonvml.SUCCESS || first.EventData != 94 || first.GpuInstanceId != 3 || first.Device != d {
		t.Errorf("%+v %v", first, ret)
	}
	second, _ := set.Wait(60_000)
	if second.EventData != 79 || second.GpuInstanceId != 0xFFFFFFFF {
		t.Errorf("%+v", second)
	}
}

// Commands over a socket, as another process gives them.
func TestServe(t *testing.T) {
	n, _ := one(t, "A100-40GB")
	ctx, end := context.WithCancel(context.Background())
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "node.sock"))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- n.Serve(ctx, l) }()
	conn, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	lines := bufio.NewScanner(conn)
	say := func(command string) string {
		fmt.Fprintln(conn, command)
		lines.Scan()
		return lines.Text()
	}
	for _, c := range []struct{ command, want string }{
		{"cut 0 3g.20gb # a half", "ok"},
		{"cut 0 7g.40gb", "error: cut 0 7g.40gb: card 0: 7g.40gb: refused: INSUFFICIENT_RESOURCES"},
		{"cut 9 7g.40gb", "error: cut 9 7g.40gb: there is no card \"9\" among 1"},
		{"explode 0", "error: explode 0: no such command; see the commands of package mock"},
		{"", "ok"},
	} {
		if got := say(c.command); got != c.want {
			t.Errorf("%q: %q, want %q", c.command, got, c.want)
		}
	}
	if got := say("show"); !strings.Contains(got, "1 cards") {
		t.Errorf("show: %q", got)
	}
	end()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestScriptNamesTheLine(t *testing.T) {
	n, _ := one(t, "A100-40GB")
	err := n.Script(strings.NewReader("# a comment\nclear 0\nxid 0 many\n"))
	if err == nil || !strings.HasPrefix(err.Error(), "line 3: xid 0 many") {
		t.Errorf("%v", err)
	}
}
