package traces

import (
	"compress/gzip"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func open(t *testing.T, name, text string) *File {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(name, ".gz") {
		z := gzip.NewWriter(out)
		_, err = z.Write([]byte(text))
		err = errors.Join(err, z.Close())
	} else {
		_, err = out.WriteString(text)
	}
	if err = errors.Join(err, out.Close()); err != nil {
		t.Fatal(err)
	}
	f, err := Open(strings.TrimSuffix(path, ".gz"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// all reads to the end or to the first error.
func all[T any](seq iter.Seq2[T, error]) (out []T, err error) {
	for v, err := range seq {
		if err != nil {
			return out, err
		}
		out = append(out, v)
	}
	return out, nil
}

const podHead = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"

func TestReadersKeepEveryField(t *testing.T) {
	pods, err := all(open(t, "pods.csv.gz", podHead+"a,12000,16384,1,460,G2|T4,LS,Running,7,12537496,\n").Pods())
	if want := (Pod{"a", 12000, 16384, 1, 460, "G2|T4", "LS", "Running", 7, 12537496, -1}); err != nil || len(pods) != 1 || pods[0] != want {
		t.Errorf("pods %+v, %v", pods, err)
	}
	short, err := all(open(t, "multi.csv", "name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,1,2,8,1000\n").Pods())
	if want := (Pod{Name: "a", CPU: 1, Memory: 2, GPUs: 8, Milli: 1000, Created: -1, Deleted: -1, Scheduled: -1}); err != nil || len(short) != 1 || short[0] != want {
		t.Errorf("five columns: %+v, %v", short, err)
	}
	nodes, err := all(open(t, "nodes.csv", "sn,cpu_milli,memory_mib,gpu,model\nn,64000,262144,2,P100\n").Nodes())
	if want := (Node{"n", 64000, 262144, 2, "P100"}); err != nil || len(nodes) != 1 || nodes[0] != want {
		t.Errorf("nodes %+v, %v", nodes, err)
	}
	records, err := all(open(t, "a.swf", "; Version: 2\n\n1 5094 -1 12072 16 -1 -1 32 60 -1 1 4 -1 -1 9 -1 -1 -1\n").Records())
	if want := (Record{1, 5094, -1, 12072, 16, 32, 60, 1, 4, 9}); err != nil || len(records) != 1 || records[0] != want {
		t.Errorf("records %+v, %v", records, err)
	}
	jobs, err := all(open(t, "j.csv", "id,submit,run,procs,req,user,wait_easy,wait_easy_clairvoyant,wait_easysjbf_clairvoyant\n3,1,177,84,14400,2,9,8,7\n").Jobs())
	if want := (Job{3, 1, 177, 84, 14400, 2, [3]int64{9, 8, 7}}); err != nil || len(jobs) != 1 || jobs[0] != want {
		t.Errorf("jobs %+v, %v", jobs, err)
	}
	runs, err := all(open(t, "p.csv", "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:01:55,66.5,4,266,11cb48\n").Trainings())
	if want := (Training{time.Date(2017, 10, 9, 7, 1, 55, 0, time.UTC), 66.5, 4, "11cb48"}); err != nil || len(runs) != 1 || runs[0] != want {
		t.Errorf("trainings %+v, %v", runs, err)
	}
	shares, err := all(open(t, "vc.csv", "vc,node num\n6214e9,64\n").Shares())
	if err != nil || len(shares) != 1 || shares[0] != (Share{"6214e9", 64}) {
		t.Errorf("shares %+v, %v", shares, err)
	}
	series, err := all(open(t, "s.csv", "workload,sc_policy,tune,seed,total_gpus,0,1,2\nw,06-FGD,1.3,42,6212,0.25,0.99,2.0\n").Series())
	if err != nil || len(series) != 1 || series[0].Seed != 42 || len(series[0].At) != 3 || series[0].At[1] != 0.99 {
		t.Errorf("series %+v, %v", series, err)
	}
}

// What is wrong with a line is said with file, line and column, and what came before
// it has been handed out.
func TestBadLinesAreNamed(t *testing.T) {
	for _, c := range []struct {
		name, text, want string
		before           int
		read             func(*File) (int, error)
	}{
		{"a.csv", podHead + "a,1,1,0,0,,,,,,\nb,x,1,0,0,,,,,,\n", `a.csv:3: cpu_milli: "x" is not a whole number from 0 up`, 1, count((*File).Pods)},
		{"a.csv", podHead + "a,1\n", "a.csv:2: wrong number of fields", 0, count((*File).Pods)},
		{"a.csv", "name,cpu_milli\n", `a.csv:1: no column "memory_mib"`, 0, count((*File).Pods)},
		{"a.csv", "", "a.csv:1: no header: EOF", 0, count((*File).Pods)},
		{"a.swf", "1 2 3\n", "a.swf:1: 3 columns, the format has 18", 0, count((*File).Records)},
		{"a.swf", "; c\n1 x -1 12072 16 -1 -1 32 60 -1 1 4 -1 -1 9 -1 -1 -1\n", `a.swf:2: column 2: "x" is not a number`, 0, count((*File).Records)},
		{"j.csv", "id,submit,run,procs,req,user,wait_easy,wait_easy_clairvoyant,wait_easysjbf_clairvoyant\n1,9,1,1,1,1,0,0,0\n2,8,1,1,1,1,0,0,0\n", "j.csv:3: submit: 8 is before the line above, 9", 1, count((*File).Jobs)},
		{"p.csv", "timestamp,duration,num_gpus,gpu_time,cluster\nnoon,66.0,1,66.0,c\n", `p.csv:2: timestamp: "noon" is not like "2006-01-02 15:04:05"`, 0, count((*File).Trainings)},
	} {
		n, err := c.read(open(t, c.name, c.text))
		if err == nil || !strings.HasSuffix(err.Error(), c.want) || n != c.before {
			t.Errorf("%q: %d lines, %v; want %d and %s", c.text, n, err, c.before, c.want)
		}
		var bad *Error
		if !errors.As(err, &bad) || bad.Line == 0 {
			t.Errorf("%v does not say where", err)
		}
	}
}

func count[T any](read func(*File) iter.Seq2[T, error]) func(*File) (int, error) {
	return func(f *File) (int, error) {
		list, err := all(read(f))
		return len(list), err
	}
}

// The published files have the numbers of lines and the sums that are known of them.
func TestPublishedFiles(t *testing.T) {
	dir, err := Dir()
	if err != nil {
		t.Skip(err)
	}
	read := func(name string) *File {
		f, err := Open(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	nodes, err := all(read("openb-2023/openb_node_list_gpu_node.csv").Nodes())
	gpus, cpu := int64(0), int64(0)
	for _, n := range nodes {
		gpus, cpu = gpus+n.GPUs, cpu+n.CPU
	}
	if err != nil || len(nodes) != 1213 || gpus != 6212 || cpu != 107_018_000 {
		t.Errorf("%d nodes with %d GPUs and %d millicores, %v", len(nodes), gpus, cpu, err)
	}
	pods, err := all(read("openb-2023/openb_pod_list_default.csv").Pods())
	milli := int64(0)
	for _, p := range pods {
		milli += p.GPUs * min(p.Milli, 1000)
	}
	if err != nil || len(pods) != 8152 || milli/100 != 60868 {
		t.Errorf("%d pods that ask for %d thousandths of a GPU, %v", len(pods), milli, err)
	}
	total := 0
	for name, want := range map[string]int{"kth-sp2": 28481, "ctc-sp2": 77199, "sdsc-sp2": 54006, "sdsc-blue": 232542, "cea-curie": 295540} {
		f := read("swf/" + name + ".csv")
		n, err := count((*File).Jobs)(f)
		if err != nil || n != want || f.Fraction() < 1 {
			t.Errorf("%s: %d jobs, want %d, %v; %.3f read", name, n, want, err, f.Fraction())
		}
		total += n
	}
	if total != 687_768 {
		t.Errorf("%d jobs in all", total)
	}
	for _, name := range []string{"lublin_256", "lublin_256_new2"} {
		if n, err := count((*File).Records)(read("swf/" + name + ".swf")); err != nil || n != 10_000 {
			t.Errorf("%s: %d jobs, %v", name, n, err)
		}
	}
	if n, err := count((*File).Trainings)(read("philly/philly.csv")); err != nil || n != 82_247 {
		t.Errorf("philly: %d jobs, %v", n, err)
	}
	if n, err := count((*File).Series)(read("fgd-expected/analysis_allo_discrete.csv")); err != nil || n != 1020 {
		t.Errorf("%d published runs, %v", n, err)
	}
}

func FuzzReaders(f *testing.F) {
	f.Add(podHead + "a,1,1,0,0,,,,,,\n")
	f.Add("1 5094 -1 12072 16 -1 -1 32 60 -1 1 4 -1 -1 9 -1 -1 -1\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, read := range []func(*File) (int, error){count((*File).Pods), count((*File).Records), count((*File).Jobs), count((*File).Trainings), count((*File).Series)} {
			_, err := read(&File{path: "x", text: strings.NewReader(text)})
			var bad *Error
			if err != nil && !errors.As(err, &bad) {
				t.Fatalf("%v does not say where", err)
			}
		}
	})
}
