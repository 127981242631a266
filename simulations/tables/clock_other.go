//go:build !unix

package tables

import "time"

var began = time.Now()

// usedCPU is the time since the start, where nobody says what was used.
func usedCPU() time.Duration { return time.Since(began) }
