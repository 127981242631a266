//go:build !cgo

package main

import (
	"context"
	"time"

	"sluice.dev/sluice/nodeagent"
)

// openDriver cannot: NVIDIA's library is called through C.
func openDriver(node, _ string) looker { return noDriver{node} }

// noDriver is an agent that was built without a C compiler. It says so, and goes on.
type noDriver struct{ node string }

// Look says what is missing.
func (n noDriver) Look() *nodeagent.Report {
	return &nodeagent.Report{Node: n.node, Time: time.Now(), State: nodeagent.NoDriver, Message: "this agent was built without cgo, which NVIDIA's library needs: build it with CGO_ENABLED=1"}
}

// Run says so again and again: an agent that is there is not silent.
func (n noDriver) Run(ctx context.Context, report func(*nodeagent.Report)) error {
	for {
		report(n.Look())
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(15 * time.Second):
		}
	}
}

// Yield has nothing to let go.
func (noDriver) Yield(string) {}

// Close has nothing to close.
func (noDriver) Close() {}
