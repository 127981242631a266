package tables

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"sluice.dev/sluice/simulations/traces"
)

// share is the nodes of a team.
type share = traces.Share

// Wait is how long the jobs of a queue were in the system beyond what they ran.
type Wait struct {
	Jobs      int
	Mean      float64 // s
	P99       float64 // s
	Longest   float64 // s
	Evictions int
}

// Teams is the waits of every queue in one way to run the cluster.
type Teams struct {
	By    map[string]Wait
	Ended []float64 // by job, s from the first submission
}

const (
	shared  = "one pool, nodes as quota"
	private = "a private cluster each"
	single  = "one pool, first come first served"
)

// Ways are how the Philly cluster is run.
var ways = []string{private, shared, single}

func phillyJobs(dir string, most int) ([]fleetJob, []share, error) {
	shares, err := read(filepath.Join(dir, "philly", "philly_vc.csv"), (*traces.File).Shares)
	if err != nil {
		return nil, nil, err
	}
	rows, err := read(filepath.Join(dir, "philly", "philly.csv"), (*traces.File).Trainings)
	if err != nil {
		return nil, nil, err
	}
	slices.SortStableFunc(rows, func(a, b traces.Training) int { return a.Submit.Compare(b.Submit) })
	own := map[string]int64{}
	for _, s := range shares {
		own[s.Cluster] = s.Nodes * fleetNode
	}
	var jobs []fleetJob
	for _, r := range rows {
		if r.GPUs > 0 && r.GPUs <= own[r.Cluster] {
			jobs = append(jobs, fleetJob{queue: r.Cluster, submit: r.Submit.Sub(rows[0].Submit).Seconds(), run: r.Run, gpus: r.GPUs})
		}
	}
	if most > 0 {
		jobs = jobs[:most]
	}
	return jobs, shares, nil
}

// runTeams plays all jobs in the given way.
func runTeams(jobs []fleetJob, shares []share, way string) Teams {
	out := Teams{By: map[string]Wait{}, Ended: make([]float64, len(jobs))}
	fleets := map[string]*fleet{}
	numbers := map[*fleet][]int{}
	pool := int64(0)
	for _, s := range shares {
		pool += s.Nodes
	}
	common := newFleet(pool)
	for _, s := range shares {
		switch way {
		case private:
			f := newFleet(s.Nodes)
			f.queue(s.Cluster, s.Nodes*fleetNode, false)
			fleets[s.Cluster] = f
		case shared:
			common.queue(s.Cluster, s.Nodes*fleetNode, false)
			fleets[s.Cluster] = common
		case single:
			fleets[s.Cluster] = common
		}
	}
	if way == single {
		common.queue(poolQueue, -1, true)
	}
	for i, j := range jobs {
		f := fleets[j.queue]
		if way == single {
			j.queue = poolQueue
		}
		f.until(j.submit)
		f.submit(j)
		f.settle(j.submit)
		numbers[f] = append(numbers[f], i)
	}
	for f, list := range numbers {
		f.until(math.MaxInt32)
		for k, i := range list {
			j := &f.jobs[k]
			out.Ended[i] = j.ended
			w := out.By[jobs[i].queue]
			w.Evictions += j.evictions
			out.By[jobs[i].queue] = w
		}
	}
	out.sum(jobs)
	return out
}

func (t *Teams) sum(jobs []fleetJob) {
	waits := map[string][]float64{}
	for i, j := range jobs {
		waits[j.queue] = append(waits[j.queue], max(0, t.Ended[i]-j.submit-j.run))
	}
	for name, list := range waits {
		slices.Sort(list)
		w := t.By[name]
		w.Jobs = len(list)
		for _, x := range list {
			w.Mean += x / float64(len(list))
		}
		w.P99, w.Longest = list[(len(list)*99+99)/100-1], list[len(list)-1]
		t.By[name] = w
	}
}

// later counts, by queue, jobs that ended later than in their private cluster, and
// of these those that ended later by more than a run of their own.
func (t *Teams) later(own Teams, jobs []fleetJob) (late, beyond map[string]int) {
	late, beyond = map[string]int{}, map[string]int{}
	for i, j := range jobs {
		d := t.Ended[i] - own.Ended[i]
		if d > 1 {
			late[j.queue]++
		}
		if d > j.run+1 {
			beyond[j.queue]++
		}
	}
	return late, beyond
}

// Philly is the study of what teams gain and lose when they share.
func (s Scope) Philly(store *Store) (Table, error) {
	t := Table{
		Title: "Philly: eleven teams that share, beside eleven that do not",
		Notes: []string{
			"Jeon et al., USENIX ATC 2019; nodes by virtual cluster as in Hu et al., SC 2021: 352 nodes of 8 GPUs. Waits are the time in the system beyond the run, in s, so that work lost when a job is taken back counts. " +
				"Nobody says how long a job runs. A queue should wait no longer on average than in its private cluster. First come first served is one strict queue on all nodes. None of it was published: all rows are ours.",
		},
	}
	most := 0
	if s.Quick {
		most = 8000
	}
	jobs, shares, err := phillyJobs(s.Traces, most)
	if err != nil {
		return t, err
	}
	got := map[string]Teams{}
	for _, way := range ways {
		r, err := Keep(store, s.part()+"philly/"+way, func() (Teams, error) { return runTeams(jobs, shares, way), nil })
		if errors.Is(err, ErrNotRun) {
			t.After = append(t.After, "Not run: "+way+".")
			continue
		}
		if err != nil {
			return t, err
		}
		got[way] = r
	}
	t.After = append(t.After, teamRows(got, jobs))
	own, haveOwn := got[private]
	if !haveOwn {
		return t, nil
	}
	if r, ok := got[shared]; ok {
		longer := r.longer(own, jobs)
		t.Cells = append(t.Cells, Cell{What: "queues that wait longer on average than in their private cluster", Got: float64(len(longer))})
		t.Known = len(longer)
		t.After = append(t.After, longer...)
	}
	return t, nil
}

// longer says for which queues the waits are longer than in their private cluster.
func (t *Teams) longer(own Teams, jobs []fleetJob) (lines []string) {
	later, beyond := t.later(own, jobs)
	for _, name := range slices.Sorted(maps.Keys(t.By)) {
		if w := t.By[name]; w.Mean > own.By[name].Mean+.5 {
			lines = append(lines, fmt.Sprintf("%s waits %.0f s on average, and %.0f s in its private cluster: %d of its %d jobs end later, %d of them by more than a run of their own; its jobs were taken back %d times.",
				name, w.Mean, own.By[name].Mean, later[name], w.Jobs, beyond[name], w.Evictions))
		}
	}
	return lines
}

// teamRows is the waits of every queue in every way.
func teamRows(got map[string]Teams, jobs []fleetJob) string {
	var b strings.Builder
	b.WriteString("| queue | jobs | taken back |")
	for _, way := range ways {
		b.WriteString(" " + way + ": mean; 99 % wait at most, s |")
	}
	b.WriteString("\n|---|---:|---:|---:|---:|---:|\n")
	count := map[string]int{}
	for _, j := range jobs {
		count[j.queue]++
	}
	for _, name := range slices.Sorted(maps.Keys(count)) {
		fmt.Fprintf(&b, "| %s | %d | %d |", name, count[name], got[shared].By[name].Evictions)
		for _, way := range ways {
			if r, ok := got[way]; ok {
				fmt.Fprintf(&b, " %.0f; %.0f |", r.By[name].Mean, r.By[name].P99)
			} else {
				b.WriteString(" not run |")
			}
		}
		b.WriteByte('\n')
	}
	return strings.TrimRight(b.String(), "\n")
}
