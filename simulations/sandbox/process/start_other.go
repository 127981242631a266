//go:build unix && !linux

package process

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// startOf reads when the process with this pid was started, and whether it
// runs or has ended and waits to be reaped. ps tells the time to the second.
func startOf(pid int) (start string, running bool, err error) {
	cmd := exec.Command("ps", "-o", "stat=,lstart=", "-p", strconv.Itoa(pid))
	cmd.Env = []string{"LC_ALL=C", "TZ=UTC", "PATH=/bin:/usr/bin"}
	out, err := cmd.Output()
	state, start, found := strings.Cut(strings.TrimSpace(string(out)), " ")
	if err != nil || !found {
		return "", false, fmt.Errorf("pid %d: %w", pid, ErrGone)
	}
	return strings.TrimSpace(start), !strings.HasPrefix(state, "Z"), nil
}
