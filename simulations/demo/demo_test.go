package demo

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The first example is what the demo shows: five gangs, two queues.
func TestFirstGangs(t *testing.T) {
	root, err := RootAbove(".")
	if err != nil {
		t.Fatal(err)
	}
	gangs, needs, err := readGangs(filepath.Join(root, "deploy", "examples", "first-gangs"))
	if err != nil {
		t.Fatal(err)
	}
	var names, expected []string
	for _, g := range gangs {
		names, expected = append(names, g.key.Name), append(expected, g.expect)
	}
	if got, want := strings.Join(names, " "), "prepare train sweep pretrain oversized"; got != want {
		t.Errorf("gangs in the order of submission: got %s, want %s", got, want)
	}
	if got, want := strings.Join(expected, " "), "Succeeded Succeeded Succeeded Succeeded Pending/NeverFits"; got != want {
		t.Errorf("expected outcomes: got %s, want %s", got, want)
	}
	queues := 0
	for _, o := range needs {
		if o.GetKind() == "ClusterQueue" {
			queues++
		}
	}
	if queues != 2 {
		t.Errorf("got %d queues, want 2", queues)
	}
}

func TestBadGangs(t *testing.T) {
	const job = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a"
	for name, test := range map[string]struct{ text, want string }{
		"no expectation": {job + ", namespace: ml}\n", "Job ml/a in DIR: want the annotation demo.sluice.dev/expect"},
		"no namespace":   {job + "}\n", "want a metadata.namespace"},
		"no name":        {"kind: Job\n", "DIR/f.yaml, document 1: want a kind and a metadata.name"},
		"not YAML":       {"a: [\n", "DIR/f.yaml, document 1:"},
		"no Job":         {"apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n", "there is no Job in DIR"},
		"in the second document": {
			"apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n---\n# nothing\n---\nkind: Job\n",
			"document 3: want a kind",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "f.yaml"), test.text)
			_, _, err := readGangs(dir)
			if want := strings.ReplaceAll(test.want, "DIR", dir); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
	if _, _, err := readGangs(t.TempDir()); err == nil || !strings.Contains(err.Error(), "there is no manifest") {
		t.Errorf("an empty folder: got %v", err)
	}
}

// What others need is applied first, whatever the names of the files.
func TestOrderOfApplying(t *testing.T) {
	var objects []*unstructured.Unstructured
	for _, kind := range []string{"ClusterRoleBinding", "LocalQueue", "ClusterQueue", "ServiceAccount", "ResourceFlavor", "Namespace", "CustomResourceDefinition", "Secret"} {
		objects = append(objects, &unstructured.Unstructured{Object: map[string]any{"kind": kind}})
	}
	var kinds []string
	for _, o := range inOrder(objects) {
		kinds = append(kinds, o.GetKind())
	}
	want := "Namespace CustomResourceDefinition ServiceAccount ResourceFlavor ClusterQueue LocalQueue ClusterRoleBinding Secret"
	if got := strings.Join(kinds, " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestOneDemoAtATime(t *testing.T) {
	root, err := RootAbove(".")
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Root: root, Dir: t.TempDir(), Out: io.Discard}
	first, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(o); err == nil || !strings.Contains(err.Error(), "another demo works in "+o.Dir) {
		t.Errorf("a second demo in the folder: %v", err)
	}
	first.Close()
	again, err := Open(o)
	if err != nil {
		t.Fatalf("after the first has ended: %v", err)
	}
	again.Close()
}

func TestOptions(t *testing.T) {
	for name, o := range map[string]Options{
		"no root":                       {Out: io.Discard},
		"no output":                     {Root: "."},
		"nobody's controller, no place": {Root: ".", Out: io.Discard, NoController: true},
		"a negative timeout":            {Root: ".", Out: io.Discard, Timeout: -1},
	} {
		if _, err := o.complete(); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestRootAbove(t *testing.T) {
	dir := t.TempDir()
	if root, err := RootAbove(dir); err == nil {
		t.Errorf("found %s above an empty folder", root)
	}
	write(t, filepath.Join(dir, "go.mod"), "module sluice.dev/sluice\n\ngo 1.26\n")
	write(t, filepath.Join(dir, "a", "b", "go.mod"), "module sluice.dev/sluice/a/b\n")
	root, err := RootAbove(filepath.Join(dir, "a", "b"))
	if err != nil || root != dir {
		t.Errorf("got %s (%v), want %s", root, err, dir)
	}
}

// The state file is refused whole if it is not what this demo wrote, before any
// pid in it is believed.
func TestState(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	s, err := loadState(path)
	if err != nil {
		t.Fatal(err)
	}
	s.Ports["webhook"], s.Controller.PID, s.Controller.Start = 17001, 42, "then"
	if err := s.save(); err != nil {
		t.Fatal(err)
	}
	again, err := loadState(path)
	if err != nil || again.Ports["webhook"] != 17001 || again.Controller.Identity != s.Controller.Identity {
		t.Errorf("got %+v (%v), want %+v", again, err, s)
	}
	for name, text := range map[string]string{"not JSON": "{", "another version": `{"version": 99}`} {
		write(t, path, text)
		if _, err := loadState(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAssignPortsKeepsWhatIsFree(t *testing.T) {
	ports := make(map[string]int)
	if err := assignPorts(ports, "a", "b"); err != nil {
		t.Fatal(err)
	}
	a, b := ports["a"], ports["b"]
	if a == b || a < firstPort || a > lastPort {
		t.Fatalf("got %d and %d", a, b)
	}
	if err := assignPorts(ports, "a", "b"); err != nil || ports["a"] != a || ports["b"] != b {
		t.Errorf("free ports were changed: %v, had %d and %d (%v)", ports, a, b, err)
	}
}

func TestSurprises(t *testing.T) {
	r := Result{Rows: []Row{
		{Gang: "a/good", State: Succeeded, Expect: "Succeeded"},
		{Gang: "a/bad", State: Pending, Code: "Quota", Expect: "Pending/NeverFits"},
	}}
	want := "a/bad: Pending/Quota, its manifest expects Pending/NeverFits"
	if got := r.Surprises(); len(got) != 1 || got[0] != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
