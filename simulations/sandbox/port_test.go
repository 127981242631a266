package sandbox

import (
	"net"
	"testing"
)

func TestPortsAreFreeDistinctAndKept(t *testing.T) {
	ports := make(map[string]int)
	names := []string{"a", "b", "c"}
	if err := assignPorts(ports, names); err != nil {
		t.Fatal(err)
	}
	seen := make(map[int]bool)
	for _, name := range names {
		port := ports[name]
		if port < firstPort || port > lastPort || seen[port] {
			t.Errorf("%s has port %d of %v", name, port, ports)
		}
		seen[port] = true
	}

	// Somebody takes one of them while nothing runs.
	taken := ports["b"]
	l, err := net.Listen("tcp4", hostPort(taken))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	before := map[string]int{"a": ports["a"], "c": ports["c"]}
	if err := assignPorts(ports, names); err != nil {
		t.Fatal(err)
	}
	if ports["b"] == taken {
		t.Error("a port that somebody else listens on was kept")
	}
	for name, port := range before {
		if ports[name] != port {
			t.Errorf("%s moved from %d to %d for nothing", name, port, ports[name])
		}
	}
}
