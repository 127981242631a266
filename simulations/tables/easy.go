package tables

import (
	"fmt"
	"math"
	"path/filepath"

	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/simulations/traces"
)

// Log is one of the joined logs, with what was published about its schedules: in
// the order of traces.Published.
type Log struct {
	Name     string
	Procs    int64
	Jobs     int
	Slowdown [3]float64
	Wait     [3]float64 // mean, s
	Longest  [3]float64 // s
	Use      float64    // part of the machine, under EASY
}

// Logs are the five, smallest first.
var Logs = []Log{
	{
		"kth-sp2", 100, 28_481,
		[3]float64{92.576540, 71.722385, 49.847719},
		[3]float64{6836.872, 6327.682, 5436.021},
		[3]float64{262194, 258803, 275239},
		.6856,
	},
	{
		"sdsc-sp2", 128, 54_006,
		[3]float64{87.870324, 70.477942, 56.836221},
		[3]float64{20497.761, 17337.106, 16307.078},
		[3]float64{459740, 456876, 441651},
		.8229,
	},
	{
		"ctc-sp2", 338, 77_199,
		[3]float64{49.571290, 37.165401, 17.571687},
		[3]float64{14272.595, 13581.716, 10004.961},
		[3]float64{303954, 250827, 309810},
		.8358,
	},
	{
		"sdsc-blue", 1152, 232_542,
		[3]float64{36.523364, 30.621454, 13.177588},
		[3]float64{7690.844, 7336.315, 5114.067},
		[3]float64{428774, 358395, 414411},
		.7618,
	},
	{
		"cea-curie", 80_640, 295_540,
		[3]float64{202.133162, 69.925935, 12.079795},
		[3]float64{6369.102, 4946.119, 2795.916},
		[3]float64{254229, 193009, 193720},
		.7120,
	},
}

// Policy is how the engine is set for a run of a log.
type Policy struct {
	Name   string
	Config admission.Config
	// Known says that owners state exactly how long their jobs run, and not what they
	// asked for.
	Known bool
	// Always runs a cycle at a submission that does not fit what is free as well.
	Always bool
	// Published is the place in traces.Published, -1 for what is ours alone.
	Published int
}

// Policies are the three that were published, and what the product does by itself.
func Policies() []Policy {
	easy := admission.DefaultConfig()
	easy.ReserveAfter, easy.Reservations = 0, 1
	shortest := easy
	shortest.ShortestFirst = true
	plain := admission.DefaultConfig()
	ordered := plain
	ordered.ShortestFirst = true
	return []Policy{
		{traces.Published[0], easy, false, false, 0},
		{traces.Published[1], easy, true, false, 1},
		{traces.Published[2], shortest, true, true, 2},
		{"ours, by default, requested times", plain, false, true, -1},
		{"ours, by default, exact times", plain, true, true, -1},
		{"ours, shortest first, requested times", ordered, false, true, -1},
		{"ours, shortest first, exact times", ordered, true, true, -1},
	}
}

// Replay is what came out of a log under a policy.
type Replay struct {
	Log, Policy string
	Jobs        int
	Differ      int // starts that are not those published
	First       int // number of the first of them, -1 for none
	Slowdown    float64
	Wait        float64 // mean, s
	Longest     float64 // s
	Use         float64 // part of the machine from the first submission to the last end
	Cycles      int
	Late        int     // jobs that started after the start that was first promised to them
	Seconds     float64 // of the processors that it took
}

// Run plays the first most jobs of the log (0: all). What starts after the last
// submission of a part lacks those who would have come then, so it is not compared.
func (l Log) Run(dir string, policy Policy, most int, progress func(part float64)) (Replay, error) {
	f, err := traces.Open(filepath.Join(dir, "swf", l.Name+".csv"))
	if err != nil {
		return Replay{}, err
	}
	defer f.Close()
	begin := usedCPU()
	p := newPool(l.Procs, policy.Config)
	var jobs []traces.Job
	for j, err := range f.Jobs() {
		if err != nil {
			return Replay{}, err
		}
		if j.Procs > l.Procs {
			return Replay{}, fmt.Errorf("%s: job %d asks for %d processors of %d", l.Name, j.ID, j.Procs, l.Procs)
		}
		jobs = append(jobs, j)
		p.until(j.Submit, false)
		p.expire(j.Submit)
		limit := j.Requested
		if policy.Known {
			limit = j.Run
		}
		p.submit(j.Submit, j.Run, j.Procs, limit)
		if policy.Always || p.free >= j.Procs {
			p.cycle(j.Submit)
		}
		if len(jobs)%1000 == 0 && progress != nil {
			progress(f.Fraction())
		}
		if len(jobs) == most {
			break
		}
	}
	p.until(1<<60, true)
	horizon := int64(math.MaxInt64)
	if len(jobs) < l.Jobs {
		horizon = jobs[len(jobs)-1].Submit
	}
	r := p.replay(jobs, policy, horizon)
	r.Log, r.Policy, r.Seconds = l.Name, policy.Name, (usedCPU() - begin).Seconds()
	return r, nil
}

// replay sums up; published starts count up to the horizon.
func (p *pool) replay(jobs []traces.Job, policy Policy, horizon int64) Replay {
	r := Replay{Jobs: len(jobs), First: -1, Cycles: p.cycles}
	work, last := 0.0, int64(0)
	for i, j := range jobs {
		got := p.jobs[i]
		if got.started < 0 {
			panic(fmt.Sprintf("tables: job %d never started", j.ID))
		}
		if k := policy.Published; k >= 0 {
			want := j.Submit + j.Waits[k]
			if got.started != want && min(got.started, want) < horizon {
				if r.Differ++; r.First < 0 {
					r.First = i
				}
			}
		}
		if got.promised >= 0 && got.started > got.promised {
			r.Late++
		}
		wait := float64(got.started - j.Submit)
		r.Slowdown += max(1, (wait+float64(j.Run))/max(float64(j.Run), 10))
		r.Wait += wait
		r.Longest = max(r.Longest, wait)
		work += float64(j.Run * j.Procs)
		last = max(last, got.started+j.Run)
	}
	n := float64(len(jobs))
	r.Slowdown, r.Wait = r.Slowdown/n, r.Wait/n
	r.Use = work / float64(p.procs) / float64(last-jobs[0].Submit)
	return r
}
