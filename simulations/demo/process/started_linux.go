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
	fieldState = 0
	fieldStart = 19 // in ticks since boot
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
	ended := fields[fieldState] == "Z" || fields[fieldState] == "X"
	return strings.TrimSpace(string(boot)) + "/" + fields[fieldStart], !ended
}
