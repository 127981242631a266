package demo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	"sluice.dev/sluice/simulations/demo/process"
)

// Names of the controller's ports in the state file.
const (
	webhookPort = "webhook"
	healthPort  = "health"
	metricsPort = "metrics"
	answersPort = "answers"
)

// buildController builds sluice-controller from the repository.
func (d *Demo) buildController(ctx context.Context) error {
	return goBuild(ctx, d.o.Out, d.o.Root, "./cmd/sluice-controller", d.place.program("sluice-controller"))
}

// replica is one of the demo's own controllers.
type replica struct {
	title  string
	dir    string // what it keeps and reads
	log    string
	ports  string // before the names of its ports
	record *recorded
}

func (d *Demo) first() replica {
	return replica{title: "sluice-controller", dir: d.place.controller(), log: d.place.controllerLog(), record: &d.state.Controller}
}

func (d *Demo) second() replica {
	return replica{title: "standby", dir: d.place.standby(), log: d.place.standbyLog(), ports: "standby-", record: &d.state.Standby}
}

func (d *Demo) port(r replica, name string) int { return d.state.Ports[r.ports+name] }

func (r replica) configuration() string { return filepath.Join(r.dir, "sluice.yaml") }

// journal is the controller's journal for one cluster, known by its uid: what
// was decided for another must not be replayed into it.
func (r replica) journal(cluster string) string {
	return filepath.Join(r.dir, "journal-"+cluster+".db")
}

// writeConfiguration writes the controller's configuration file. Everything
// listens on loopback, and the API server is told a URL: there is no Service
// that could lead to a process beside the cluster.
func (d *Demo) writeConfiguration(r replica) error {
	host, front := "127.0.0.1", d.o.FrontPort
	if d.o.WebhookHost != "localhost" {
		host = "" // reached from elsewhere
	}
	if front == 0 {
		front = d.port(d.first(), webhookPort)
	}
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "config.sluice.dev/v1alpha1",
		"kind":       "Configuration",
		"namespace":  controllerNamespace,
		"webhook": map[string]any{
			"host": host, "port": d.port(r, webhookPort), "certDir": filepath.Join(r.dir, "certs"),
			"url": fmt.Sprintf("https://%s:%d", d.o.WebhookHost, front),
		},
		"leaderElection": map[string]any{"enabled": d.o.Standby},
		"health":         map[string]any{"bindAddress": loopback(d.port(r, healthPort))},
		"metrics":        map[string]any{"bindAddress": loopback(d.port(r, metricsPort))},
		"api":            map[string]any{"bindAddress": loopback(d.port(r, answersPort))},
	})
	if err != nil {
		return fmt.Errorf("encode the controller's configuration: %w", err)
	}
	return writeWhole(r.configuration(), text)
}

// supervise writes down what a controller reads and returns its supervisor. A
// controller that runs keeps its ports.
func (d *Demo) supervise(r replica, cluster string) (*Supervisor, error) {
	if !r.record.Alive() {
		if err := assignPorts(d.state.Ports, r.ports+webhookPort, r.ports+healthPort, r.ports+metricsPort, r.ports+answersPort); err != nil {
			return nil, err
		}
	}
	if err := d.writeConfiguration(r); err != nil {
		return nil, err
	}
	args := []string{"--config=" + r.configuration(), "--kubeconfig=" + d.place.kubeconfig(), "--journal=" + r.journal(cluster)}
	digest, err := d.controllerDigest(r, args)
	if err != nil {
		return nil, err
	}
	return &Supervisor{
		spec: process.Spec{
			Program: d.ControllerProgram(), Args: args, Dir: r.dir,
			Env: environment(r.dir), Log: r.log,
		},
		title: r.title, journal: r.journal(cluster), digest: digest, record: r.record, state: d.state, say: d.say,
		webhook: d.port(r, webhookPort), health: d.port(r, healthPort), metrics: d.port(r, metricsPort),
	}, nil
}

// controllerDigest tells one controller, with its arguments and all that it
// reads at its start, from another. The token is not among that: it is read
// again while the controller runs.
func (d *Demo) controllerDigest(r replica, args []string) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%q\n", args)
	for _, path := range []string{d.place.program("sluice-controller"), r.configuration(), d.place.kubeconfig()} {
		if err := addFile(h, path); err != nil {
			return "", fmt.Errorf("digest of the controller: %w", err)
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}

func addFile(w io.Writer, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	_, err = io.Copy(w, file)
	return err
}

// probe asks the controller whether it is ready: nil, or what is missing.
func probe(ctx context.Context, port int) error {
	_, err := fetch(ctx, port, "/readyz?verbose")
	return err
}

// fetch asks a controller on loopback, and takes any answer but a good one for an
// error that says the answer.
func fetch(ctx context.Context, port int, path string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+loopback(port)+path, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<22))
	if response.StatusCode == http.StatusOK {
		return string(text), err
	}
	text = text[:min(len(text), 4096)]
	return "", fmt.Errorf("%s: %s", response.Status, strings.Join(strings.Fields(string(text)), " "))
}

// tail is the end of a file from an offset on, for an error message.
func tail(path string, from int64) string {
	const most = 3000
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return ""
	}
	text, _ := io.ReadAll(io.NewSectionReader(file, max(from, info.Size()-most), most))
	return strings.TrimSpace(string(text))
}

func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}
