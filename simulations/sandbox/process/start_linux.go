package process

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"syscall"
)

// bootID tells this run of the machine from every other: start times count
// from its beginning.
var bootID = sync.OnceValues(func() (string, error) {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("read boot id: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
})

// Fields of /proc/PID/stat counted after the program's name, which may itself
// hold spaces and brackets.
const (
	statState   = 0
	statThreads = 17
	statStart   = 19 // clock ticks from boot to the start of the process
)

// startOf reads when the process with this pid was started, and whether it
// runs or has ended and waits to be reaped.
func startOf(pid int) (start string, running bool, err error) {
	boot, err := bootID()
	if err != nil {
		return "", false, err
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ESRCH):
		return "", false, fmt.Errorf("pid %d: %w", pid, ErrGone)
	case err != nil:
		return "", false, err
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) <= statStart {
		return "", false, fmt.Errorf("read /proc/%d/stat: %d fields after the name", pid, len(fields))
	}
	// The first thread may have ended while others still hold the files and
	// ports of the process; only a process of one thread is over.
	state, threads := fields[statState], fields[statThreads]
	ended := state == "X" || state == "Z" && (threads == "1" || threads == "0")
	return boot + "/" + fields[statStart], !ended, nil
}
