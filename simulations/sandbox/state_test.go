package sandbox

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/simulations/sandbox/process"
)

func TestStateIsRememberedWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sub", "state.json")
	st, err := loadState(path)
	if err != nil {
		t.Fatal(err)
	}
	if st.Settings != DefaultSettings() || len(st.Processes) != 0 {
		t.Fatalf("a new sandbox starts as %+v", st)
	}
	st.Settings = Settings{Mode: API, Audit: true, ControllerQPS: 20, SchedulerQPS: 50}
	st.Ports[etcdName] = 20001
	st.NodesGiven = true
	st.Processes[etcdName] = Process{
		Identity: process.Identity{PID: 7, Start: "boot/99"}, Digest: "d", Since: time.Unix(1000, 0).UTC(),
	}
	if err := st.save(path); err != nil {
		t.Fatal(err)
	}
	again, err := loadState(path)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(again, st) {
		t.Errorf("read %+v, want %+v", again, st)
	}
	if names, _ := filepath.Glob(filepath.Dir(path) + "/*"); len(names) != 1 {
		t.Errorf("saving left %v", names)
	}
}

func TestUnreadableStateIsNamedNotIgnored(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"cut off":       {`{"version": 1, "processes": {"etcd"`, "unexpected end"},
		"later version": {`{"version": 2}`, "it has version 2, this command knows 1"},
		"no such mode":  {`{"version": 1, "settings": {"mode": "half", "controllerQPS": 1, "schedulerQPS": 1}}`, `mode "half"`},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "state.json")
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := loadState(path)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
				t.Fatalf("got %v, want %q and the path in it", err, c.want)
			}
		})
	}
}
