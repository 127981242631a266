package demo

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports come from below the range from which systems take those of outgoing
// connections, and beside the one that the sandbox uses.
const (
	firstPort = 17_000
	lastPort  = 19_999
)

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

func isFree(port int) bool {
	l, err := net.Listen("tcp4", loopback(port))
	if err != nil {
		return false
	}
	_ = l.Close()
	return true
}

// assignPorts gives each name a free port, the one it had if that is still free.
func assignPorts(ports map[string]int, names ...string) error {
	for _, name := range names {
		if had := ports[name]; had != 0 && isFree(had) {
			continue
		}
		taken := make(map[int]bool)
		for other, port := range ports {
			if other != name {
				taken[port] = true
			}
		}
		port, err := freePort(taken)
		if err != nil {
			return err
		}
		ports[name] = port
	}
	return nil
}

// freePort starts at random, so that demos which start together seldom meet.
func freePort(taken map[int]bool) (int, error) {
	const count = lastPort - firstPort + 1
	start := rand.IntN(count)
	for i := range count {
		if port := firstPort + (start+i)%count; !taken[port] && isFree(port) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no port from %d to %d is free", firstPort, lastPort)
}
