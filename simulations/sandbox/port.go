package sandbox

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"time"
)

// Ports come from below the range from which systems take those of outgoing
// connections, so that none of these sits on one between a down and an up.
const (
	firstPort = 20_000
	lastPort  = 29_999
)

// isFree reports whether a server could listen on the port now.
func isFree(port int) bool {
	l, err := net.Listen("tcp4", hostPort(port))
	if err != nil {
		return false
	}
	_ = l.Close()
	return true
}

// freePort finds a port that is free and not among those taken. It starts at
// random, so that sandboxes which start together seldom try the same one.
func freePort(taken map[string]int) (int, error) {
	const count = lastPort - firstPort + 1
	start := rand.IntN(count)
	for i := range count {
		port := firstPort + (start+i)%count
		if !isTaken(taken, port) && isFree(port) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no port from %d to %d is free", firstPort, lastPort)
}

func isTaken(taken map[string]int, port int) bool {
	for _, p := range taken {
		if p == port {
			return true
		}
	}
	return false
}

// portPatience is how long a port that was used before may take to become
// free. Clients know it, so it is worth a wait.
const portPatience = 3 * time.Second

// becomesFree waits a little for a port that was used before.
func becomesFree(port int) bool {
	for end := time.Now().Add(portPatience); ; time.Sleep(20 * time.Millisecond) {
		if isFree(port) {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}

// assignPorts gives each name a free port, the one it had if that is free.
func assignPorts(ports map[string]int, names []string) error {
	for _, name := range names {
		if had := ports[name]; had != 0 && becomesFree(had) {
			continue
		}
		port, err := freePort(ports)
		if err != nil {
			return err
		}
		ports[name] = port
	}
	return nil
}

func hostPort(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
