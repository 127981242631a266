package demo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"sigs.k8s.io/yaml"
)

// Names of the controller's ports in the state file.
const (
	webhookPort = "webhook"
	healthPort  = "health"
	metricsPort = "metrics"
)

// buildController builds sluice-controller from the repository.
func (d *Demo) buildController(ctx context.Context) error {
	return goBuild(ctx, d.o.Out, d.o.Root, "./cmd/sluice-controller", d.place.program("sluice-controller"))
}

// writeConfiguration writes the controller's configuration file. Everything
// listens on loopback, and the API server is told a URL: there is no Service
// that could lead to a process beside the cluster.
func (d *Demo) writeConfiguration() error {
	host := "127.0.0.1"
	if d.o.WebhookHost != "localhost" {
		host = "" // reached from elsewhere
	}
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "config.sluice.dev/v1alpha1",
		"kind":       "Configuration",
		"namespace":  controllerNamespace,
		"webhook": map[string]any{
			"host": host, "port": d.state.Ports[webhookPort], "certDir": d.place.certificates(),
			"url": fmt.Sprintf("https://%s:%d", d.o.WebhookHost, d.state.Ports[webhookPort]),
		},
		"health":  map[string]any{"bindAddress": loopback(d.state.Ports[healthPort])},
		"metrics": map[string]any{"bindAddress": loopback(d.state.Ports[metricsPort])},
	})
	if err != nil {
		return fmt.Errorf("encode the controller's configuration: %w", err)
	}
	return writeWhole(d.place.configuration(), text)
}

func (d *Demo) controllerArgs(cluster string) []string {
	return []string{
		"--config=" + d.place.configuration(),
		"--kubeconfig=" + d.place.kubeconfig(),
		"--journal=" + d.place.journal(cluster),
	}
}

// controllerDigest tells one controller, with its arguments and all that it
// reads at its start, from another. The token is not among that: it is read
// again while the controller runs.
func (d *Demo) controllerDigest(args []string) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%q\n", args)
	for _, path := range []string{d.place.program("sluice-controller"), d.place.configuration(), d.place.kubeconfig()} {
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
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+loopback(port)+"/readyz?verbose", nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	text, _ := io.ReadAll(io.LimitReader(response.Body, 4096))
	if response.StatusCode == http.StatusOK {
		return nil
	}
	return fmt.Errorf("%s: %s", response.Status, strings.Join(strings.Fields(string(text)), " "))
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
