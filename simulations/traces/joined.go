package traces

import "iter"

// Published are the policies for which the joined logs hold the wait of every job.
var Published = [3]string{"EASY", "EASY clairvoyant", "EASY-SJBF clairvoyant"}

// Job is a line of a joined log: a job with the waits that were published for it.
type Job struct {
	ID        int64
	Submit    int64 // s from the log's start
	Run       int64 // s
	Procs     int64
	Requested int64 // s, never below Run
	User      int64
	Waits     [3]int64 // s, in the order of Published
}

// Jobs reads a joined log, in the order of submission.
func (f *File) Jobs() iter.Seq2[Job, error] {
	waits := [3]string{"wait_easy", "wait_easy_clairvoyant", "wait_easysjbf_clairvoyant"}
	need := append([]string{"id", "submit", "run", "procs", "req", "user"}, waits[:]...)
	last := int64(0)
	return each(f, need, func(r *row) Job {
		j := Job{
			ID: r.whole("id"), Submit: r.whole("submit"), Run: r.whole("run"), Procs: r.whole("procs"),
			Requested: r.whole("req"), User: r.whole("user"),
		}
		for i, column := range waits {
			j.Waits[i] = r.whole(column)
		}
		if j.Submit < last && r.err == nil {
			r.err = f.fail(r.line, "submit: %d is before the line above, %d", j.Submit, last)
		}
		last = j.Submit
		return j
	})
}
