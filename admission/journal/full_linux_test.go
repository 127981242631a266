package journal

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// limitFiles keeps every file of this process from growing beyond size.
func limitFiles(t *testing.T, size uint64) (lift func()) {
	t.Helper()
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: size, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	lift = func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(lift)
	return lift
}

// No room on the disk is an error of Append, the decision is not made, and all goes
// on once there is room again.
func TestNoRoom(t *testing.T) {
	if os.Getenv("NO_ROOM") == "" {
		// The limit is the process's, and the test's own log is a file of it too.
		child := exec.Command(os.Args[0], "-test.run=^TestNoRoom$", "-test.v")
		child.Env = append(os.Environ(), "NO_ROOM=1")
		if out, err := child.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestNoRoom") {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	path := filepath.Join(t.TempDir(), "journal.db")
	j := mustOpen(t, path, DefaultLimits())
	first := mustAppend(t, j, decide(1))
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	lift := limitFiles(t, uint64(info.Size()))
	big := decide(2)
	big.Verdicts[0].Text = strings.Repeat("x", 1<<20)
	if _, err := j.Append(big); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), syscall.EFBIG.Error()) {
		t.Fatalf("append without room: %v", err)
	}
	wantNumbers(t, "unsettled without room", unsettled(t, j), first)
	lift()
	second := mustAppend(t, j, decide(3))
	mustClose(t, j)
	j = mustOpen(t, path, DefaultLimits())
	wantNumbers(t, "unsettled", unsettled(t, j), first, second)
	if j.Notice() != "" {
		t.Error(j.Notice())
	}
}

// A file that cannot be written is an error of Open that names it.
func TestReadOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	mustClose(t, mustOpen(t, path, DefaultLimits()))
	if err := os.Chmod(path, 0o400); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 { // whom no mode keeps out; a file system that is read-only does
		path = "/proc/version"
	}
	if _, err := open(path, DefaultLimits(), 0); err == nil || !strings.Contains(err.Error(), "open journal "+path) {
		t.Fatalf("open: %v", err)
	}
}
