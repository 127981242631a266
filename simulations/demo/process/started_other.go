//go:build unix && !linux

package process

import (
	"os/exec"
	"strconv"
	"strings"
)

// startOf reads when the process that has this pid was started, and whether it
// runs.
func startOf(pid int) (start string, running bool) {
	cmd := exec.Command("ps", "-o", "stat=,lstart=", "-p", strconv.Itoa(pid))
	cmd.Env = []string{"LC_ALL=C", "TZ=UTC", "PATH=/bin:/usr/bin"}
	out, err := cmd.Output()
	status, start, found := strings.Cut(strings.TrimSpace(string(out)), " ")
	if err != nil || !found {
		return "", false
	}
	return strings.TrimSpace(start), !strings.HasPrefix(status, "Z")
}
