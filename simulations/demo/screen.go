package demo

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// quietFor is how long a screen that is no terminal may show nothing.
const quietFor = 10 * time.Second

// screen shows rows while they change. On a terminal it draws the table in
// place, below the lines that were said; elsewhere it writes a line for each
// change.
type screen struct {
	out   io.Writer
	width func() int // nil: no terminal
	begin time.Time

	mu    sync.Mutex
	drawn []string
	shown []Row
	last  time.Time // of the last line, where there is no terminal
}

func newScreen(out io.Writer) *screen {
	s := &screen{out: out, begin: time.Now(), last: time.Now()}
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		s.width = func() int {
			width, _, err := term.GetSize(int(file.Fd()))
			if err != nil {
				return 80
			}
			return width
		}
	}
	return s
}

// restart begins a table anew, for other gangs.
func (s *screen) restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin, s.shown = time.Now(), nil
}

// say writes a line above the table.
func (s *screen) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	drawn := s.drawn
	s.erase()
	fmt.Fprintf(s.out, format+"\n", args...)
	s.last = time.Now()
	s.draw(drawn)
}

func (s *screen) erase() {
	if len(s.drawn) > 0 {
		fmt.Fprintf(s.out, "\x1b[%dA\x1b[J", len(s.drawn))
	}
	s.drawn = nil
}

func (s *screen) draw(lines []string) {
	if len(lines) > 0 {
		fmt.Fprintln(s.out, strings.Join(lines, "\n"))
	}
	s.drawn = lines
}

// show shows how the gangs stand now; note is a line about all.
func (s *screen) show(rows []Row, note string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.width != nil {
		width := s.width() - 1
		lines := append([]string{cut(fmt.Sprintf("%s  %s", s.since(), note), width)}, table(rows, width)...)
		if !slices.Equal(lines, s.drawn) {
			s.erase()
			s.draw(lines)
		}
		return
	}
	for i, r := range rows {
		var before Row
		if i < len(s.shown) {
			before = s.shown[i]
		}
		if r.State != before.State || r.Code != before.Code || r.Text != before.Text {
			s.line("%s", change(before, r))
		}
	}
	s.shown = slices.Clone(rows)
	if time.Since(s.last) > quietFor {
		s.line("%s", note)
	}
}

func (s *screen) line(format string, args ...any) {
	fmt.Fprintf(s.out, "%s  %s\n", s.since(), fmt.Sprintf(format, args...))
	s.last = time.Now()
}

func (s *screen) since() string { return fmt.Sprintf("%6.1fs", time.Since(s.begin).Seconds()) }

// change tells in a line what is new about a gang.
func change(before, now Row) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  ", now.Gang)
	if before.State != "" && before.State != now.State {
		fmt.Fprintf(&b, "%s → ", before.State)
	}
	fmt.Fprintf(&b, "%s", now.State)
	if len(now.Nodes) > 0 {
		fmt.Fprintf(&b, "  %d/%d pods on %s", now.Pods, now.Wanted, shortNodes(now.Nodes))
	}
	if now.Code != "" {
		fmt.Fprintf(&b, "  %s: %s", now.Code, now.Text)
	} else if now.Text != "" {
		fmt.Fprintf(&b, "  %s", now.Text)
	}
	return b.String()
}

// final writes the table whole, for the last time.
func (s *screen) final(rows []Row) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	fmt.Fprintf(s.out, "\n%s\n\n", strings.Join(table(rows, 0), "\n"))
}

// tally says in a line how many gangs stand where.
func tally(rows []Row) string {
	counts := make(map[State]int)
	for _, r := range rows {
		counts[r.State]++
	}
	var parts []string
	for _, state := range []State{Running, Admitted, Pending, Submitted, Stopping, Succeeded, Failed, Refused, Missing} {
		if n := counts[state]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, state))
		}
	}
	return strings.Join(parts, ", ")
}
