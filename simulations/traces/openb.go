package traces

import "iter"

// Node is a line of an openb node list.
type Node struct {
	Name   string
	CPU    int64 // thousandths of a core
	Memory int64 // MiB
	GPUs   int64
	Model  string // of its GPUs
}

// Pod is a line of an openb pod list. Times are seconds from the trace's start, -1
// where the list has none.
type Pod struct {
	Name   string
	CPU    int64 // thousandths of a core
	Memory int64 // MiB
	GPUs   int64
	Milli  int64  // of each GPU, thousandths
	Models string // allowed ones, A|B; "" is any
	QoS    string
	Phase  string

	Created, Deleted, Scheduled int64
}

// Nodes reads an openb node list.
func (f *File) Nodes() iter.Seq2[Node, error] {
	return each(f, []string{"sn", "cpu_milli", "memory_mib", "gpu", "model"}, func(r *row) Node {
		return Node{
			Name: r.text("sn"), Model: r.text("model"),
			CPU: r.whole("cpu_milli"), Memory: r.whole("memory_mib"), GPUs: r.whole("gpu"),
		}
	})
}

// Pods reads an openb pod list; only its first five columns have to be there.
func (f *File) Pods() iter.Seq2[Pod, error] {
	return each(f, []string{"name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli"}, func(r *row) Pod {
		return Pod{
			Name: r.text("name"), Models: r.text("gpu_spec"), QoS: r.text("qos"), Phase: r.text("pod_phase"),
			CPU: r.whole("cpu_milli"), Memory: r.whole("memory_mib"), GPUs: r.whole("num_gpu"), Milli: r.whole("gpu_milli"),
			Created: r.optional("creation_time", -1), Deleted: r.optional("deletion_time", -1), Scheduled: r.optional("scheduled_time", -1),
		}
	})
}
