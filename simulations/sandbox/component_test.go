package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"sluice.dev/sluice/simulations/sandbox/certs"
)

func newTestRunner(t *testing.T, settings Settings) *runner {
	t.Helper()
	s := newBox(t)
	ca, err := certs.Open(s.pkiPath())
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range users {
		if err := ca.Client(u); err != nil {
			t.Fatal(err)
		}
	}
	built := make(map[string]string)
	for _, name := range kwokModuleStages {
		built[name] = filepath.Join(t.TempDir(), name)
		text := "kind: Stage\nmetadata: {name: " + strings.TrimSuffix(name, ".yaml") + "}\n"
		if err := os.WriteFile(built[name], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	st := &State{Settings: settings, Ports: map[string]int{apiserverName: 6443}, Processes: make(map[string]Process)}
	return &runner{box: s, st: st, ca: ca, built: built}
}

// Whether a running component is restarted hangs on its digest alone.
func TestDigestFollowsSettingsAndFiles(t *testing.T) {
	r := newTestRunner(t, DefaultSettings())
	all := func() []string {
		t.Helper()
		if err := r.writeFiles(); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range components {
			d, err := r.digest(c)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, d)
		}
		return got
	}
	base := all()
	for name, c := range map[string]struct {
		change, undo func()
		restarts     []string
	}{
		"nothing": {func() {}, func() {}, nil},
		"audit":   {func() { r.st.Settings.Audit = true }, func() { r.st.Settings.Audit = false }, []string{apiserverName}},
		"controller QPS": {
			func() { r.st.Settings.ControllerQPS = 20 }, func() { r.st.Settings.ControllerQPS = 2000 }, []string{controllerName},
		},
		"the API server's port": {
			func() { r.st.Ports[apiserverName] = 7443 }, func() { r.st.Ports[apiserverName] = 6443 },
			[]string{apiserverName, controllerName, schedulerName, kwokName},
		},
		"another kwok": {func() { r.built[kwokName] = "/elsewhere" }, func() { delete(r.built, kwokName) }, []string{kwokName}},
	} {
		t.Run(name, func(t *testing.T) {
			c.change()
			defer c.undo()
			for i, d := range all() {
				name := components[i].name
				if changed := d != base[i]; changed != slices.Contains(c.restarts, name) {
					t.Errorf("%s: restarted=%v", name, changed)
				}
			}
		})
	}
}

func TestModeAPIWaitsForNoController(t *testing.T) {
	const disabled = "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition"
	for mode, want := range map[Mode]bool{All: false, API: true} {
		r := newTestRunner(t, Settings{Mode: mode, ControllerQPS: 1, SchedulerQPS: 1})
		if got := slices.Contains(apiserverArgs(r), disabled); got != want {
			t.Errorf("mode %s: disabled=%v, want %v", mode, got, want)
		}
	}
	names, err := Artifacts(API)
	if err != nil || !slices.Equal(names, []string{etcdName, apiserverName}) {
		t.Errorf("mode api needs %v (%v)", names, err)
	}
}

func TestKWOKConfigurationHasItsStages(t *testing.T) {
	r := newTestRunner(t, DefaultSettings())
	text, err := kwokConfig(r.built)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for d := yaml.NewDecoder(strings.NewReader(string(text))); ; {
		var doc struct {
			Kind     string
			Metadata struct{ Name string }
		}
		if err := d.Decode(&doc); err != nil {
			if err.Error() == "EOF" {
				break
			}
			t.Fatalf("%v in\n%s", err, text)
		}
		kinds = append(kinds, doc.Kind+"/"+doc.Metadata.Name)
	}
	want := []string{
		"KwokConfiguration/kwok", "Stage/node-initialize", "Stage/node-heartbeat-with-lease", "Stage/pod-ready",
		"Stage/pod-complete", "Stage/pod-unreadable", "Stage/pod-delete",
	}
	if !slices.Equal(kinds, want) {
		t.Errorf("documents %v, want %v", kinds, want)
	}
}

func TestStagesStartEtcdFirstAndStopItLast(t *testing.T) {
	var drawn []string
	for _, stage := range stages(components) {
		var names []string
		for _, c := range stage {
			names = append(names, c.name)
		}
		drawn = append(drawn, strings.Join(names, "+"))
	}
	want := "etcd → kube-apiserver → kube-controller-manager+kube-scheduler+kwok"
	if got := strings.Join(drawn, " → "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestShortNamesOfComponents(t *testing.T) {
	for short, want := range map[string]string{"apiserver": apiserverName, "kcm": controllerName, "scheduler": schedulerName, "etcd": etcdName} {
		if c, err := lookup(short); err != nil || c.name != want {
			t.Errorf("%s is %s (%v), want %s", short, c.name, err, want)
		}
	}
}
