//go:build unix

package tables

import (
	"syscall"
	"time"
)

// usedCPU is what this process has used of the processors, which on a machine that
// others use as well says more than the time that passed.
func usedCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic("tables: the system does not say what was used: " + err.Error())
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
