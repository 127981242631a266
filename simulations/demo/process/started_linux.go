package process

import (
	"bytes"
	"fmt"
	"os"
	"strings"
)

// Places in /proc/PID/stat behind the program's name, which stands in brackets
// and may itself hold spaces and brackets.
const (
	fieldState   = 0
	fieldThreads = 17
	fieldStart   = 19 // in ticks since boot
)

// startOf reads when the process that has this pid was started, and whether it
// runs. Times since boot are told apart by the id of the boot.
func startOf(pid int) (start string, running bool) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", false
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) <= fieldStart {
		return "", false
	}
	// The first thread of a process that was killed may be gone while others still
	// hold its ports and files.
	state, threads := fields[fieldState], fields[fieldThreads]
	ended := state == "X" || state == "Z" && (threads == "1" || threads == "0")
	return strings.TrimSpace(string(boot)) + "/" + fields[fieldStart], !ended
}
