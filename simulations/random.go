package simulations

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Drawn is how a story that was drawn by lot came out.
type Drawn struct {
	Seed   uint64
	Faults Faults
	Events int
	Writes int
	// Wrong is what must not happen, one line each; none if all is well.
	Wrong []string
	// Flags are as of a Report.
	Flags []string

	story *story
	broke time.Duration // when it went wrong, if a promise broke
}

// FaultsOf are the faults that the story of a seed is run with, so that each kind is
// met alone and with others.
func FaultsOf(seed uint64) Faults {
	return Faults{Writes: seed&1 > 0, Watch: seed&2 > 0, Clock: seed&4 > 0}
}

// RunStory draws a story of so many events by its seed and runs it with these
// faults. Beside the promises that every run is held to, what can run must have come
// to its end long after everything was mended.
func RunStory(seed uint64, events int, faults Faults) *Drawn {
	d := &Drawn{Seed: seed, Faults: faults, story: drawStory(seed, events, stream(seed, "hardware"))}
	d.Events = len(d.story.events) + len(d.story.mends)
	s, err := Parse(storyFile(seed), []byte(d.story.whole()))
	if err != nil {
		d.Wrong = []string{fmt.Sprintf("seed %d draws a story that is not valid: %v", seed, err)}
		return d
	}
	o := d.options(faults)
	o.terse = true
	r := Run(s, o)
	d.Writes, d.Wrong, d.Flags = r.Writes, wrong(s, r), r.Flags
	if r.Broken != nil {
		d.broke = r.Broken.At
	}
	return d
}

func storyFile(seed uint64) string { return fmt.Sprintf("story-%d.yaml", seed) }

// options are how the story is run: watches and clock are right once all is mended.
func (d *Drawn) options(f Faults) Options {
	o := f.Options(d.Seed)
	o.Calm = d.story.calm
	return o
}

// wrong is what must not happen in any story.
func wrong(s *Scenario, r *Report) []string {
	if r.Broken != nil {
		return []string{r.File + ": " + r.Broken.String()}
	}
	return starved(r, atRest(s))
}

// atRest are the reasons to wait that may stand for ever. Quota is one of them
// where a queue keeps what it does not lend: a gang may ask for more than is left.
func atRest(s *Scenario) []Reason {
	never := []Reason{ReasonNeverFits, ReasonLabels, ReasonInvalid, ReasonQueueMissing}
	queues := slices.Clone(s.Queues)
	for _, e := range s.Events {
		if a, ok := e.Action.(AddQueue); ok {
			queues = append(queues, a.Queue)
		}
	}
	if slices.ContainsFunc(queues, func(q Queue) bool { return q.Lendable != nil }) {
		never = append(never, ReasonQuota)
	}
	return never
}

// starved are the gangs that have not ended long after everything was mended,
// though nothing says that they never can.
func starved(r *Report, never []Reason) []string {
	var out []string
	for name, why := range r.waiting {
		for range r.waiting { // a strict queue stands still if its first can never go
			rest, behind := strings.CutPrefix(why, "Behind: ")
			first, _, _ := strings.Cut(rest, " is first")
			if !behind {
				break
			}
			if why = r.waiting[first]; why == "" {
				why = "Behind " + first + ", which does not wait"
			}
		}
		code, _, _ := strings.Cut(why, ":")
		if !slices.Contains(never, Reason(code)) {
			out = append(out, fmt.Sprintf("%s: at the end %s still waits: %s", r.File, name, why))
		}
	}
	slices.Sort(out)
	return out
}

// Shrink looks for a shorter story with the same fault, and returns it as a file
// whose first lines say how to run it. progress is told of each step.
func (d *Drawn) Shrink(progress func(events int)) string {
	kind, faults := kindOf(d.Wrong), d.Faults
	fails := func(lines []string, faults Faults) ([]string, bool) {
		lines, s := d.story.valid(lines)
		if s == nil {
			return nil, false
		}
		return lines, kindOf(wrong(s, runOnce(s, d.options(faults)))) == kind
	}
	lines := slices.Clone(d.story.events)
	if strings.HasPrefix(kind, waitsKind) {
		d.story.keep = d.story.mends // else they wait for what nobody mends
	} else { // what comes later has no part in it
		lines = slices.DeleteFunc(append(lines, d.story.mends...), func(l string) bool { return lineTime(l) > d.broke })
		d.story.expect = fmt.Sprintf("expect: [{at: %s, quiet: 1s}]", Spoken(d.broke))
	}
	for _, fewer := range faults.fewer() {
		if _, ok := fails(lines, fewer); ok {
			faults = fewer
			break
		}
	}
	for part, tries := len(lines)/2, 0; part > 0 && tries < maxTries; {
		shorter := false
		for from := 0; from < len(lines) && tries < maxTries; tries++ {
			rest := slices.Concat(lines[:from], lines[min(from+part, len(lines)):])
			if left, ok := fails(rest, faults); ok {
				lines, shorter = left, true
				progress(len(lines))
			} else {
				from += part
			}
		}
		if !shorter || part > len(lines) {
			part /= 2
		}
	}
	flag := ""
	if text := faults.String(); text != "" {
		flag = " --faults=" + text
		if faults.Watch || faults.Clock {
			flag += " --calm " + Spoken(d.story.calm)
		}
	}
	head := fmt.Sprintf("# sluice simulate --seed %d%s FILE\n# %s\n", d.Seed, flag, strings.Join(d.Wrong, "\n# "))
	text, _ := d.story.validText(lines)
	return head + text
}

// maxTries bounds how often a story is run to make it shorter.
const maxTries = 400

var lineStart = regexp.MustCompile(`^- {at: ([^,]+),`)

// lineTime is when the event of a line happens.
func lineTime(line string) time.Duration {
	if m := lineStart.FindStringSubmatch(line); m != nil {
		d, _ := time.ParseDuration(m[1])
		return d
	}
	return 0
}

// valid drops the lines that no longer make sense without others.
func (s *story) valid(lines []string) ([]string, *Scenario) {
	for {
		text, keep := s.validText(lines)
		sc, err := Parse("story.yaml", []byte(text))
		if err == nil {
			return lines, sc
		}
		left := without(err, lines, len(s.head))
		kept := without(err, keep, len(s.head)+len(lines))
		if len(left) == len(lines) && len(kept) == len(keep) {
			return nil, nil
		}
		lines = left
	}
}

// validText is the story with the given lines, and with those of its kept lines
// that make sense with them.
func (s *story) validText(lines []string) (text string, keep []string) {
	for keep = s.keep; ; {
		text = s.text(slices.Concat(lines, keep))
		_, err := Parse("story.yaml", []byte(text))
		left := without(err, keep, len(s.head)+len(lines))
		if len(left) == len(keep) {
			return text, keep
		}
		keep = left
	}
}

// without is the lines of a file, from the given one on, that have no error.
func without(err error, lines []string, from int) []string {
	var list Errors
	if !errors.As(err, &list) {
		return lines
	}
	bad := map[int]bool{}
	for _, e := range list {
		bad[e.Line-1-from] = true
	}
	var left []string
	for i, l := range lines {
		if !bad[i] {
			left = append(left, l)
		}
	}
	return left
}

var varying = regexp.MustCompile(`[0-9]+|at [^:]*:|\(seed [0-9]+\)`)

// waitsKind is the kind of faults in which a gang waits at the end.
const waitsKind = "waits: "

// kindOf is what is wrong without names, numbers and times.
func kindOf(wrong []string) string {
	if len(wrong) == 0 {
		return ""
	}
	_, text, _ := strings.Cut(wrong[0], ": ")
	if _, why, waits := strings.Cut(text, " still waits: "); waits {
		code, _, _ := strings.Cut(why, ":")
		return waitsKind + code
	}
	first, _, _ := strings.Cut(text, ";")
	return varying.ReplaceAllString(first, "")
}
