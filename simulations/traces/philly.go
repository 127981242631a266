package traces

import (
	"iter"
	"time"
)

// Training is a job of the Philly log.
type Training struct {
	Submit  time.Time // local time without a zone, read as UTC
	Run     float64   // s
	GPUs    int64
	Cluster string // the virtual cluster, which is a team
}

// Share is how many nodes of 8 GPUs a virtual cluster of Philly has to itself.
type Share struct {
	Cluster string
	Nodes   int64
}

// Trainings reads the Philly log. It is not in the order of time.
func (f *File) Trainings() iter.Seq2[Training, error] {
	return each(f, []string{"timestamp", "duration", "num_gpus", "cluster"}, func(r *row) Training {
		at, err := time.Parse(time.DateTime, r.text("timestamp"))
		if err != nil && r.err == nil {
			r.err = f.fail(r.line, "timestamp: %q is not like %q", r.text("timestamp"), time.DateTime)
		}
		return Training{Submit: at, Run: r.number("duration"), GPUs: r.whole("num_gpus"), Cluster: r.text("cluster")}
	})
}

// Shares reads the list of virtual clusters.
func (f *File) Shares() iter.Seq2[Share, error] {
	return each(f, []string{"vc", "node num"}, func(r *row) Share {
		return Share{Cluster: r.text("vc"), Nodes: r.whole("node num")}
	})
}
