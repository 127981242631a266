package tables

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
)

// Report is what a replay comes to.
type Report struct {
	Name                         string
	Jobs                         int
	Slowdown, Wait, P99, Longest float64 // bounded at 10 s; s
	From, To                     int64   // first submission, last end
	Used                         []float64
	Waiting                      []float64
	Users                        []UserWait
}

// UserWait is how long the jobs of a user waited.
type UserWait struct {
	User       int64
	Jobs       int
	Mean, Most float64 // s
	Work       float64 // processor seconds
}

// slots is into how many parts the time of a report is cut.
const slots = 240

// Sum makes a report of rows. Used is the processors in use, Waiting the jobs that
// wait, on average over each part of the time.
func Sum(name string, rows []Row) Report {
	r := Report{Name: name, Jobs: len(rows), Used: make([]float64, slots), Waiting: make([]float64, slots)}
	if len(rows) == 0 {
		return r
	}
	r.From, r.To = rows[0].Submit, rows[0].End
	for _, x := range rows {
		r.From, r.To = min(r.From, x.Submit), max(r.To, x.End)
	}
	users := map[int64]*UserWait{}
	waits := make([]float64, 0, len(rows))
	for _, x := range rows {
		wait, run := float64(x.Start-x.Submit), float64(x.End-x.Start)
		waits = append(waits, wait)
		r.Wait += wait / float64(len(rows))
		r.Slowdown += max(1, (wait+run)/max(run, 10)) / float64(len(rows))
		r.over(r.Used, x.Start, x.End, float64(x.Procs))
		r.over(r.Waiting, x.Submit, x.Start, 1)
		u := users[x.User]
		if u == nil {
			u = &UserWait{User: x.User}
			users[x.User] = u
		}
		u.Jobs++
		u.Mean += wait
		u.Most = max(u.Most, wait)
		u.Work += run * float64(x.Procs)
	}
	slices.Sort(waits)
	r.P99, r.Longest = waits[(len(waits)*99+99)/100-1], waits[len(waits)-1]
	for _, u := range users {
		u.Mean /= float64(u.Jobs)
	}
	for _, u := range slices.SortedFunc(maps.Values(users), func(a, b *UserWait) int {
		return cmp.Or(cmp.Compare(b.Work, a.Work), cmp.Compare(a.User, b.User))
	}) {
		r.Users = append(r.Users, *u)
	}
	return r
}

// over adds the amount to every part of the time that lies between from and to, by
// how much of it does.
func (r *Report) over(parts []float64, from, to int64, amount float64) {
	width := float64(r.To-r.From) / slots
	if width == 0 || from >= to {
		return
	}
	begin, end := float64(from-r.From)/width, float64(to-r.From)/width
	for i := int(begin); i < slots && float64(i) < end; i++ {
		parts[i] += amount * (min(end, float64(i+1)) - max(begin, float64(i)))
	}
}

// usersMost is how many users a report names.
const usersMost = 12

// WriteReports writes one report, or several side by side.
func WriteReports(w io.Writer, reports ...Report) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	line := func(what string, value func(*Report) string) {
		fmt.Fprint(out, what+"\t")
		for i := range reports {
			fmt.Fprint(out, value(&reports[i])+"\t")
		}
		fmt.Fprintln(out)
	}
	line("", func(r *Report) string { return r.Name })
	line("jobs", func(r *Report) string { return fmt.Sprint(r.Jobs) })
	line("mean bounded slowdown", func(r *Report) string { return fmt.Sprintf("%.3f", r.Slowdown) })
	line("mean wait, s", func(r *Report) string { return fmt.Sprintf("%.0f", r.Wait) })
	line("99 % wait at most, s", func(r *Report) string { return fmt.Sprintf("%.0f", r.P99) })
	line("longest wait, s", func(r *Report) string { return fmt.Sprintf("%.0f", r.Longest) })
	line("processors in use, mean", func(r *Report) string { return fmt.Sprintf("%.1f", average(r.Used)) })
	line("jobs waiting, mean", func(r *Report) string { return fmt.Sprintf("%.1f", average(r.Waiting)) })
	for _, u := range reports[0].Users[:min(usersMost, len(reports[0].Users))] {
		line(fmt.Sprintf("mean wait of user %d, %d jobs", u.User, u.Jobs), func(r *Report) string {
			i := slices.IndexFunc(r.Users, func(x UserWait) bool { return x.User == u.User })
			if i < 0 {
				return "-"
			}
			return fmt.Sprintf("%.0f", r.Users[i].Mean)
		})
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

func average(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(max(1, len(v)))
}
