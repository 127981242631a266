// Command pin draws the pinned go.mod and go.sum of every recipe anew. It is
// run by `go generate ./build` after a version in recipe.go has changed.
package main

import (
	"context"
	"fmt"
	"os"

	"sluice.dev/sluice/simulations/sandbox/build"
)

func main() {
	if err := build.Pin(context.Background(), "recipes"); err != nil {
		fmt.Fprintln(os.Stderr, "pin:", err)
		os.Exit(1)
	}
}
