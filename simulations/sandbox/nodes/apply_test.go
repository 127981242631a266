package nodes

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"

	"sluice.dev/sluice/simulations/sandbox/kube"
)

// api is an API server that knows nodes only: merge patches, the status
// subresource and resource versions as the real one has them.
type api struct {
	mu      sync.Mutex
	nodes   map[string]map[string]any
	version int
	writes  int
	// beforePatch is called once before a patch of a node itself: somebody else
	// comes in between.
	beforePatch func()
}

func newAPI(t *testing.T) (*api, Applier) {
	t.Helper()
	a := &api{nodes: make(map[string]map[string]any)}
	server := httptest.NewUnstartedServer(a)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of connections that are dialled in vain
	server.StartTLS()
	t.Cleanup(server.Close)
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	return a, Applier{API: kube.New(server.URL, &tls.Config{RootCAs: pool})}
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	name, sub, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, path), "/"), "/")
	var body map[string]any
	if r.Method != http.MethodGet {
		a.writes++
		_ = json.NewDecoder(r.Body).Decode(&body)
	}
	if name != "" && a.nodes[name] == nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	switch {
	case r.Method == http.MethodGet && name == "":
		items := []any{}
		for _, n := range a.nodes {
			items = append(items, n)
		}
		answer(w, map[string]any{"items": items})
		return
	case r.Method == http.MethodPost:
		name = body["metadata"].(map[string]any)["name"].(string)
		a.nodes[name] = body
	case r.Method == http.MethodDelete:
		delete(a.nodes, name)
		answer(w, map[string]any{})
		return
	case r.Method == http.MethodPatch:
		if hook := a.beforePatch; hook != nil && sub == "" {
			a.beforePatch = nil
			hook()
		}
		meta, _ := body["metadata"].(map[string]any)
		if want := meta["resourceVersion"]; want != nil && want != a.nodes[name]["metadata"].(map[string]any)["resourceVersion"] {
			w.WriteHeader(http.StatusConflict)
			return
		}
		status := a.nodes[name]["status"]
		merge(a.nodes[name], body)
		if sub == "" {
			a.nodes[name]["status"] = status // only its subresource changes it
		}
	}
	if r.Method != http.MethodGet {
		a.touch(name)
	}
	answer(w, a.nodes[name])
}

func (a *api) touch(name string) {
	a.version++
	a.nodes[name]["metadata"].(map[string]any)["resourceVersion"] = fmt.Sprint(a.version)
}

func answer(w http.ResponseWriter, v any) { _ = json.NewEncoder(w).Encode(v) }

func merge(into, patch map[string]any) {
	for key, value := range patch {
		inner, isMap := value.(map[string]any)
		have, hasMap := into[key].(map[string]any)
		switch {
		case value == nil:
			delete(into, key)
		case isMap && hasMap:
			merge(have, inner)
		default:
			into[key] = value
		}
	}
}

func (a *api) at(name string, fields ...string) any {
	var v any = a.nodes[name]
	for _, f := range fields {
		v = v.(map[string]any)[f]
	}
	return v
}

func apply(t *testing.T, a Applier, text string) Changes {
	t.Helper()
	groups, err := Parse("nodes.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	changes, err := a.Apply(t.Context(), Expand(groups))
	if err != nil {
		t.Fatal(err)
	}
	return changes
}

func TestSameFileAgainWritesNothing(t *testing.T) {
	server, a := newAPI(t)
	text := `[{name: gpu, count: 3, gpus: 8, labels: {rack: a}, taints: ["k=v:NoSchedule"]}]`
	if got, want := apply(t, a, text), (Changes{Created: []string{"gpu-0", "gpu-1", "gpu-2"}}); !reflect.DeepEqual(got, want) {
		t.Errorf("first: %+v, want %+v", got, want)
	}
	if got := server.at("gpu-1", "status", "allocatable", "nvidia.com/gpu"); got != "8" {
		t.Errorf("allocatable GPUs: %v", got)
	}
	writes := server.writes
	if got := apply(t, a, text); !got.Empty() || server.writes != writes {
		t.Errorf("second: %+v after %d writes, want none", got, server.writes-writes)
	}
}

func TestOnlyWhatTheFileChangedIsChanged(t *testing.T) {
	server, a := newAPI(t)
	apply(t, a, `[{name: n, gpus: 8, resources: {x.io/a: 1, x.io/b: 2}, labels: {rack: a, old: "1"}, taints: ["mine:NoSchedule"]}]`)
	// Others put theirs on the node, one of them while it is being changed.
	merge(server.nodes["n"], map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"theirs": "1"}},
		"spec": map[string]any{"unschedulable": true, "taints": []any{
			map[string]any{"key": "mine", "effect": "NoSchedule"},
			map[string]any{"key": notReadyTaint, "effect": "NoExecute", "timeAdded": "2020-01-01T00:00:00Z"},
		}},
		"status": map[string]any{"allocatable": map[string]any{"their.io/r": "5"}},
	})
	server.beforePatch = func() {
		merge(server.nodes["n"], map[string]any{"metadata": map[string]any{"annotations": map[string]any{"late": "1"}}})
		server.touch("n")
	}

	got := apply(t, a, `[{name: n, gpus: 4, resources: {x.io/a: 3}, labels: {rack: b}, taints: ["new=v:NoExecute"]}]`)
	if want := (Changes{Changed: []string{"n"}}); !reflect.DeepEqual(got, want) {
		t.Errorf("changes %+v, want %+v", got, want)
	}
	for _, c := range []struct {
		path []string
		want any
	}{
		{[]string{"metadata", "labels"}, map[string]any{
			"rack": "b", "theirs": "1", SimulatedLabel: "true",
			"kubernetes.io/hostname": "n", "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
		}},
		{[]string{"metadata", "annotations", "late"}, "1"},
		{[]string{"spec", "unschedulable"}, true},
		{[]string{"spec", "taints"}, []any{
			map[string]any{"key": notReadyTaint, "effect": "NoExecute", "timeAdded": "2020-01-01T00:00:00Z"},
			map[string]any{"key": "new", "value": "v", "effect": "NoExecute"},
		}},
		{[]string{"status", "allocatable"}, map[string]any{
			"cpu": "64", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": "4", "x.io/a": "3", "their.io/r": "5",
		}},
	} {
		if got := server.at("n", c.path...); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v: %v, want %v", c.path, got, c.want)
		}
	}
}

func TestNodesOfAnEarlierFileGoAndOthersStay(t *testing.T) {
	server, a := newAPI(t)
	apply(t, a, `[{name: gpu, count: 3}]`)
	server.nodes["foreign"] = map[string]any{"metadata": map[string]any{"name": "foreign"}}
	got := apply(t, a, `[{name: gpu, count: 2}]`)
	if want := (Changes{Removed: []string{"gpu-2"}}); !reflect.DeepEqual(got, want) {
		t.Errorf("changes %+v, want %+v", got, want)
	}
	if server.nodes["foreign"] == nil || server.nodes["gpu-2"] != nil || len(server.nodes) != 3 {
		t.Errorf("left are %d nodes", len(server.nodes))
	}
	if _, err := a.Apply(t.Context(), []Node{{Name: "foreign"}}); err == nil || !strings.Contains(err.Error(), "foreign") {
		t.Errorf("a node of somebody else was taken over: %v", err)
	}
}

func TestReadinessNeedsConditionAndNoTaint(t *testing.T) {
	ready := func(status string) []any { return []any{map[string]any{"type": "Ready", "status": status}} }
	taint := []any{map[string]any{"key": notReadyTaint, "effect": "NoSchedule"}}
	server, a := newAPI(t)
	for name, n := range map[string]map[string]any{
		"silent":  {},
		"unknown": {"status": map[string]any{"conditions": ready("Unknown")}},
		"tainted": {"status": map[string]any{"conditions": ready("True")}, "spec": map[string]any{"taints": taint}},
		"ready":   {"status": map[string]any{"conditions": ready("True")}},
	} {
		n["metadata"] = map[string]any{"name": name}
		server.nodes[name] = n
	}
	total, waiting, err := a.Readiness(t.Context())
	if err != nil || total != 4 || len(waiting) != 3 {
		t.Errorf("%d nodes, waiting for %v, err %v", total, waiting, err)
	}
	for _, name := range waiting {
		if name == "ready" {
			t.Error("waiting for the ready one")
		}
	}
}
