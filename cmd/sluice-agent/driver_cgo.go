//go:build cgo

package main

import "sluice.dev/sluice/nodeagent/nvml"

// openDriver opens NVIDIA's driver, as far as there is one.
func openDriver(node, path string) looker {
	return nvml.New(nvml.System(path), nvml.Options{Node: node})
}
