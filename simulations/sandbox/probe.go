package sandbox

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"sluice.dev/sluice/simulations/sandbox/certs"
)

// probeTimeout bounds one question for a component's health.
const probeTimeout = 5 * time.Second

// probe asks a component for its health; nil means that it is well.
func probe(ctx context.Context, c component, port int, trust *tls.Config) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.scheme+"://"+hostPort(port)+c.healthPath, nil)
	if err != nil {
		return err
	}
	client := http.Client{Transport: &http.Transport{TLSClientConfig: trust.Clone(), DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 4096))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %d: %s", c.healthPath, resp.StatusCode, unhealthyPart(string(text)))
	}
	return nil
}

// unhealthyPart picks what is not well out of an answer that lists every check.
func unhealthyPart(text string) string {
	var failed []string
	for line := range strings.Lines(text) {
		if check, isFailed := strings.CutPrefix(line, "[-]"); isFailed {
			failed = append(failed, strings.TrimSpace(check))
		}
	}
	if len(failed) == 0 {
		return strings.TrimSpace(text)
	}
	return strings.Join(failed, ", ")
}

// adminTLS trusts the sandbox's own authority and proves to be its
// administrator.
func adminTLS(ca *certs.Authority) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(ca.Cert(adminUser.Name), ca.Key(adminUser.Name))
	if err != nil {
		return nil, err
	}
	return &tls.Config{RootCAs: ca.Pool(), Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}
