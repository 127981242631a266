package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"sluice.dev/sluice/simulations/demo/process"
)

const (
	probeTimeout = 2 * time.Second
	watchEvery   = 50 * time.Millisecond
	stopGrace    = 15 * time.Second
	// startTimeout bounds the wait until a controller is ready. A busy machine
	// may need far more than the usual second or two.
	startTimeout = 3 * time.Minute
	// shortLife is how long a controller must live to be started again at once.
	shortLife  = 5 * time.Second
	maxBackoff = 5 * time.Second
)

// Absence is a time in which no controller was ready. To is zero while it lasts.
type Absence struct{ From, To time.Time }

// Supervisor starts the controller and, while Keep runs, starts it again
// whenever it has ended.
type Supervisor struct {
	title   string
	journal string // path
	spec    process.Spec
	digest  string
	record  *recorded // in state
	state   *state
	say     func(format string, args ...any)

	webhook, health, metrics int // ports

	mu       sync.Mutex
	stopped  bool  // by Stop: Keep leaves it so
	killed   bool  // by Kill: its end is no surprise
	logAt    int64 // where the log stood before the start
	starts   int
	kills    int
	ends     []string // what the log says of each controller that ended by itself
	absences []Absence
}

// alive reports whether the recorded controller runs.
func (s *Supervisor) alive() bool { return s.record.Alive() }

// start starts the controller and writes it down before anything else.
func (s *Supervisor) start() error {
	logAt := sizeOf(s.spec.Log)
	identity, err := process.Start(s.spec)
	if err != nil {
		return err
	}
	s.starts++
	s.killed, s.logAt = false, logAt
	*s.record = recorded{Identity: identity, Digest: s.digest, Since: time.Now().Round(0)}
	return s.state.save()
}

// Ensure makes the controller run as it should and returns when it is ready. One
// that runs so already is left alone.
func (s *Supervisor) Ensure(ctx context.Context) (reused bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = false
	if s.alive() && s.record.Digest == s.digest {
		if err := s.waitReady(ctx); err == nil || ctx.Err() != nil {
			s.present()
			return true, err
		}
		s.say(s.title+": pid %d runs but is not ready; starting it anew", s.record.PID)
	}
	if s.alive() {
		s.say(s.title+": stopping pid %d", s.record.PID)
		if err := s.record.Stop(ctx, stopGrace); err != nil {
			return false, err
		}
	}
	const attempts = 3
	for attempt := 1; ; attempt++ {
		if err := s.start(); err != nil {
			return false, err
		}
		err := s.waitReady(ctx)
		if err == nil {
			s.present()
			return false, nil
		}
		if attempt == attempts || !errors.Is(err, errEnded) {
			return false, fmt.Errorf("start %s: %w", s.title, err)
		}
		s.say(s.title + ": ended before it was ready; starting it again")
	}
}

// errEnded says that the controller ended instead of becoming ready.
var errEnded = errors.New("it ended")

func (s *Supervisor) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	told := time.Now()
	for {
		err := probe(ctx, s.health)
		switch {
		case !s.alive():
			return fmt.Errorf("%w; the end of %s:\n%s", errEnded, s.spec.Log, tail(s.spec.Log, s.logAt))
		case err == nil:
			return nil
		case time.Since(told) > 10*time.Second:
			s.say(s.title+": waiting until it is ready: %v", err)
			told = time.Now()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait until it is ready: %w; last: %w; see %s", ctx.Err(), err, s.spec.Log)
		case <-time.After(watchEvery):
		}
	}
}

// Keep is the supervisor until ctx ends.
func (s *Supervisor) Keep(ctx context.Context) {
	var backoff time.Duration
	for {
		wait := watchEvery
		if s.revive(backoff) {
			backoff = min(max(2*backoff, 250*time.Millisecond), maxBackoff)
			wait = max(wait, backoff)
		} else if s.settled(ctx) {
			backoff = 0
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// revive starts a controller that has ended and reports whether that one had a
// short life of its own making, so that the next attempt should wait.
func (s *Supervisor) revive(backoff time.Duration) (short bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped || s.alive() {
		return false
	}
	s.absent(time.Now())
	gone, how := *s.record, "was killed"
	if !s.killed {
		last := lastLine(tail(s.spec.Log, s.logAt))
		s.ends = append(s.ends, last)
		how = fmt.Sprintf("ended by itself (%s: %s)", s.spec.Log, last)
	}
	short = !s.killed && time.Since(gone.Since) < shortLife+backoff
	if err := s.start(); err != nil {
		s.say(s.title+": pid %d %s; it cannot be started again: %v", gone.PID, how, err)
		return true
	}
	s.say(s.title+": pid %d %s; started again as pid %d", gone.PID, how, s.record.PID)
	return short
}

// settled ends an absence if the controller is ready, and reports whether it is.
func (s *Supervisor) settled(ctx context.Context) bool {
	s.mu.Lock()
	waiting := len(s.absences) > 0 && s.absences[len(s.absences)-1].To.IsZero()
	pid := s.record.PID
	s.mu.Unlock()
	if !waiting {
		return true
	}
	if probe(ctx, s.health) != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if pid != s.record.PID || !s.alive() {
		return false
	}
	s.present()
	return true
}

func (s *Supervisor) absent(from time.Time) {
	if n := len(s.absences); n > 0 && s.absences[n-1].To.IsZero() {
		return
	}
	s.absences = append(s.absences, Absence{From: from})
}

func (s *Supervisor) present() {
	if n := len(s.absences); n > 0 && s.absences[n-1].To.IsZero() {
		s.absences[n-1].To = time.Now()
	}
}

// Kill ends the controller as a crash would. While Keep runs it is started again.
func (s *Supervisor) Kill(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.alive() {
		return nil
	}
	s.killed = true
	s.kills++
	s.absent(time.Now())
	return s.record.Kill(ctx)
}

// Stop ends the controller in order, and it stays down until Ensure.
func (s *Supervisor) Stop(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	if s.alive() {
		s.absent(time.Now())
	}
	return s.record.Stop(ctx, stopGrace)
}

// Replace stops the controller in order and starts another program in its place,
// with the same arguments and files. It returns when that one is ready.
func (s *Supervisor) Replace(ctx context.Context, program string) error {
	if err := s.Stop(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	s.spec.Program, s.digest = program, "program "+program
	s.mu.Unlock()
	_, err := s.Ensure(ctx)
	return err
}

// Pause holds the controller where it stands, with all that it believes, until
// Resume.
func (s *Supervisor) Pause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.record.Pause()
}

// Resume lets a paused controller go on.
func (s *Supervisor) Resume() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.record.Resume()
}

// Title is what the controller is called in what is said of it.
func (s *Supervisor) Title() string { return s.title }

// Journal and Log are paths.
func (s *Supervisor) Journal() string { return s.journal }

// Log is the path of the log of every controller that was started.
func (s *Supervisor) Log() string { return s.spec.Log }

// WebhookPort is where the controller answers for its webhooks.
func (s *Supervisor) WebhookPort() int { return s.webhook }

// Ready reports whether the controller says that it is.
func (s *Supervisor) Ready(ctx context.Context) bool { return probe(ctx, s.health) == nil }

// leads is the line of the metrics by which a controller says that it decides.
var leads = regexp.MustCompile(`(?m)^leader_election_master_status\{[^}]*\} 1$`)

// Leads reports whether the controller says that it decides. One that does not
// answer does not say so, whatever it believes.
func (s *Supervisor) Leads(ctx context.Context) bool {
	text, err := fetch(ctx, s.metrics, "/metrics")
	return err == nil && leads.MatchString(text)
}

// Kills counts the calls of Kill that found a controller to end.
func (s *Supervisor) Kills() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kills
}

// Starts counts the controllers that were started.
func (s *Supervisor) Starts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.starts
}

// Ends tells of each controller that ended without being asked to, by the last
// line of its log.
func (s *Supervisor) Ends() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.ends...)
}

// Absences lists the times without a ready controller so far.
func (s *Supervisor) Absences() []Absence {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Absence(nil), s.absences...)
}

func lastLine(text string) string { return text[strings.LastIndexByte(text, '\n')+1:] }

// environment is what the controller sees of the caller's: nothing that could
// lead it to another cluster.
func environment(home string) []string {
	return []string{"HOME=" + home, "PATH=/usr/bin:/bin", "TMPDIR=" + os.TempDir()}
}
