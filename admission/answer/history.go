package answer

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"sluice.dev/sluice/admission"
)

// Deed is one thing that was decided, with the numbers as they were then.
type Deed struct {
	Time     time.Time `json:"time"`
	Decision uint64    `json:"decision"` // its number in the journal
	Job      string    `json:"job"`
	What     string    `json:"what"` // Admitted, Moved, Evicted, Took, Waits, Released
	Code     string    `json:"code,omitempty"`
	// By is the gang on the other side of an eviction: who took it, or who gave it.
	By   string `json:"by,omitempty"`
	Text string `json:"text"`
}

// Subject says whom a history is asked of: a job, or else a queue. What is neither now
// may have been a job: its key is then taken as it is.
func (w *World) Subject(namespace, name string) (job, queue string, err error) {
	key, err := w.Find(namespace, name)
	var missing NotFound
	switch {
	case err == nil:
		return key, "", nil
	case !errors.As(err, &missing) || len(missing.Several) > 0:
		return "", "", err
	case w.queueOf(name) != nil && namespace == "":
		return "", name, nil
	case namespace != "":
		return namespace + "/" + name, "", nil
	default:
		return name, "", nil
	}
}

// History tells decisions, the latest first as they come, one deed for each gang that
// they concern. Names of which may does not hold are not told.
func History(list []admission.Decision, job string, may func(namespace string) bool) []Deed {
	t := teller{job: job, may: may, since: map[string]time.Time{}, lost: map[string]time.Duration{}}
	t.lose(list)
	out := []Deed{}
	for i := range list {
		out = append(out, t.deeds(&list[i])...)
	}
	return out
}

// teller tells one history.
type teller struct {
	job   string // of which alone, if it is not ""
	may   func(string) bool
	since map[string]time.Time
	lost  map[string]time.Duration // by decision and job, how long it had run
}

// lose works out how long those who were taken back had run, where their start is in
// the list too.
func (t *teller) lose(list []admission.Decision) {
	for i := len(list) - 1; i >= 0; i-- {
		d := &list[i]
		for j := range d.Evict {
			if at, ok := t.since[d.Evict[j].Key]; ok {
				t.lost[lostKey(d, d.Evict[j].Key)] = d.At.Sub(at)
			}
		}
		for j := range d.Admit {
			t.since[d.Admit[j].Key] = d.Admit[j].At
		}
	}
}

func lostKey(d *admission.Decision, job string) string { return fmt.Sprint(d.Seq, " ", job) }

func (t *teller) name(key string) string {
	if t.may(Namespace(key)) {
		return key
	}
	return "a gang of another team"
}

func (t *teller) deeds(d *admission.Decision) []Deed {
	var out []Deed
	add := func(job, what, code, by, text string) {
		if t.job != "" && job != t.job {
			return
		}
		if by != "" {
			by = t.name(by)
		}
		out = append(out, Deed{Time: d.At, Decision: d.Seq, Job: t.name(job), What: what, Code: code, By: by, Text: text})
	}
	for i := range d.Evict {
		e := &d.Evict[i]
		add(e.Key, "Evicted", string(e.Cause), e.For, t.taken(d, e))
		if e.For != "" {
			add(e.For, "Took", string(e.Cause), e.Key, fmt.Sprintf("room of %s is freed for it: %s", t.name(e.Key), rule(e.Cause)))
		}
	}
	for i := range d.Admit {
		a := &d.Admit[i]
		add(a.Key, "Admitted", "", "", fmt.Sprintf("by queue %s, %s on %s", a.Queue, plural(podsOf(a), "pod", "pods"), fold(a.Plan.Nodes(), 8)))
	}
	for i := range d.Move {
		a := &d.Move[i]
		add(a.Key, "Moved", "", "", fmt.Sprintf("%s are now planned on %s", plural(podsOf(a), "pod", "pods"), fold(a.Plan.Nodes(), 8)))
	}
	released := map[string]int{}
	var order []string
	for _, r := range d.Release {
		if released[r.Workload] == 0 {
			order = append(order, r.Workload)
		}
		released[r.Workload]++
	}
	for _, key := range order {
		add(key, "Released", "", "", plural(released[key], "pod", "pods")+" let go to their nodes")
	}
	for _, v := range d.Verdicts {
		text := v.Text
		for _, named := range append([]string{v.Key}, v.Reason.Names...) {
			if !t.may(Namespace(named)) {
				text = string(v.Reason.Code) // the text has names
			}
		}
		add(v.Key, "Waits", string(v.Reason.Code), "", text)
	}
	return out
}

// taken tells an eviction to who was taken back: by whom, by which rule, what was lost,
// and when it may return.
func (t *teller) taken(d *admission.Decision, e *admission.Eviction) string {
	var b strings.Builder
	b.WriteString(rule(e.Cause))
	if e.For != "" {
		b.WriteString(", for " + t.name(e.For))
	}
	if e.Detail != "" {
		b.WriteString(" (" + e.Detail + ")")
	}
	if ran, ok := t.lost[lostKey(d, e.Key)]; ok {
		b.WriteString("; it had run for " + Age(ran))
	}
	switch e.Cause {
	case admission.Stopped:
		b.WriteString("; it may return when it, or its queue, is resumed")
	case admission.Expired:
		b.WriteString("; it does not return by itself")
	default:
		b.WriteString("; it waits again at its old place in the queue, once its pods are gone")
	}
	return b.String()
}

// rule is by which rule a gang is taken back.
func rule(c admission.Cause) string {
	switch c {
	case admission.Preempted:
		return "a gang of higher priority in its own queue goes first"
	case admission.Reclaimed:
		return "it used what another queue owns, or has the smaller share of"
	case admission.Broken:
		return "pods that it needs were missing for longer than the recovery window"
	case admission.Misplaced:
		return "before it ran its nodes changed, and no others were free"
	case admission.Stopped:
		return "it, or its queue, was stopped"
	case admission.Expired:
		return "it ran for longer than its maximum"
	case admission.TurnedAway:
		return "a kubelet did not let a pod of it in"
	}
	return string(c)
}

func podsOf(a *admission.Admission) int {
	n := 0
	for _, size := range a.Plan.Sizes() {
		n += size
	}
	return n
}

// HistoryTable is a history as a table.
func HistoryTable(list []Deed) Table {
	t := Table{Kind: "deed", Items: list, Columns: columns("TIME", "JOB", "WHAT", "CODE", "+BY", "+>DECISION", "TEXT")}
	for _, d := range list {
		t.Rows = append(t.Rows, Row{Name: d.Job, Labels: map[string]string{"what": d.What, "code": d.Code, "namespace": Namespace(d.Job)}, Cells: []string{
			d.Time.UTC().Format("2006-01-02 15:04:05"), d.Job, d.What, dash(d.Code), dash(d.By), fmt.Sprint(d.Decision), d.Text,
		}})
	}
	return t
}
