package nodes

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"
)

const (
	readyPollEvery = 100 * time.Millisecond
	notReadyTaint  = "node.kubernetes.io/not-ready"
)

// Readiness counts the simulated nodes and names those that pods cannot start on
// yet: not Ready, or still tainted as such. Nodes without the simulated label
// play failed nodes and are not counted.
func (a Applier) Readiness(ctx context.Context) (total int, waiting []string, err error) {
	var list struct{ Items []object }
	selector := "?labelSelector=" + url.QueryEscape(SimulatedLabel+"=true")
	if err := a.API.Read(ctx, path+selector, &list); err != nil {
		return 0, nil, fmt.Errorf("list nodes: %w", err)
	}
	for _, o := range list.Items {
		if !o.ready() {
			waiting = append(waiting, o.Metadata.Name)
		}
	}
	return len(list.Items), waiting, nil
}

// WaitReady returns the number of simulated nodes once pods can start on all
// of them.
func (a Applier) WaitReady(ctx context.Context) (int, error) {
	for {
		total, waiting, err := a.Readiness(ctx)
		if err == nil && len(waiting) == 0 {
			return total, nil
		}
		select {
		case <-ctx.Done():
			if err != nil {
				return 0, err
			}
			return 0, fmt.Errorf("%d of %d nodes are not ready: %s: %w", len(waiting), total, someOf(waiting), ctx.Err())
		case <-time.After(readyPollEvery):
		}
	}
}

func (o object) ready() bool {
	for _, t := range o.Spec.Taints {
		if t["key"] == notReadyTaint {
			return false
		}
	}
	for _, c := range o.Status.Conditions {
		if c.Type == "Ready" {
			return c.Status == "True"
		}
	}
	return false
}

func someOf(names []string) string {
	const most = 5
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}
