package build

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// meter reads what the go command prints while it works and says at regular
// intervals how far it is. A Go build is silent for long stretches; a person
// who waits ten minutes should not have to guess whether it still lives.
type meter struct {
	what    string
	main    string // the package that is compiled last and then linked
	started time.Time

	mu       sync.Mutex
	rest     []byte // of a line that has not ended yet
	total    int    // packages at most; 0 before it is known
	fetched  int
	compiled int
	last     string
	linking  bool
	tail     []string // the last lines that are not progress
}

// tailLines is how much of the go command's complaints an error quotes.
const tailLines = 20

func (m *meter) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rest = append(m.rest, p...)
	for {
		line, after, found := bytes.Cut(m.rest, []byte{'\n'})
		if !found {
			return len(p), nil
		}
		m.read(string(line))
		m.rest = append([]byte(nil), after...)
	}
}

// read counts one line: a module fetched, a package compiled, or a complaint.
func (m *meter) read(line string) {
	switch fetched, isFetch := strings.CutPrefix(line, "go: downloading "); {
	case isFetch:
		m.fetched++
		m.last = fetched
	case strings.ContainsAny(line, " :\t#"): // an import path has none of these
		m.tail = append(m.tail, line)
		if len(m.tail) > tailLines {
			m.tail = m.tail[1:]
		}
	case line != "":
		m.compiled++
		m.last = line
		m.linking = line == m.main
	}
}

// setTotal says how many packages there are at most.
func (m *meter) setTotal(packages int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.total = packages
	m.last = ""
}

// line draws the state as one line of text.
func (m *meter) line(now time.Time) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	elapsed := now.Sub(m.started).Truncate(time.Second)
	switch {
	case m.total == 0 && m.fetched == 0:
		return fmt.Sprintf("%s: reading its imports, %v", m.what, elapsed)
	case m.total == 0:
		return fmt.Sprintf("%s: %d modules fetched, %s, %v", m.what, m.fetched, m.last, elapsed)
	case m.linking:
		return fmt.Sprintf("%s: linking, %v", m.what, elapsed)
	case m.compiled == 0:
		return fmt.Sprintf("%s: %d packages, looking for those already compiled, %v", m.what, m.total, elapsed)
	default:
		return fmt.Sprintf("%s: %d of at most %d packages compiled, %s, %v", m.what, m.compiled, m.total, m.last, elapsed)
	}
}

// complaints returns the last lines that were not progress.
func (m *meter) complaints() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.Join(m.tail, "\n")
}

// report prints a line to out at each interval, until stop is called.
func (m *meter) report(out io.Writer, every time.Duration) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case now := <-tick.C:
				_, _ = fmt.Fprintln(out, m.line(now))
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}
