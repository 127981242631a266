package fleet

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sluice.dev/sluice/nodeagent"
	"sluice.dev/sluice/nodeagent/api/v1alpha1"
	"sluice.dev/sluice/nodeagent/kubelet"
	"sluice.dev/sluice/nodeagent/nvml"
	"sluice.dev/sluice/nodeagent/nvml/mock"
	"sluice.dev/sluice/nodeagent/publish"
)

const (
	// retryAfter is the pause after something failed.
	retryAfter = time.Second
	// retryMost is the longest pause of an agent after the API server refused it.
	retryMost = 5 * time.Second
	// lookEvery is how often an agent looks at its cards. A change of them that makes
	// no event is seen after so long.
	lookEvery = time.Second
	// openEvery is the longest pause before an agent opens the driver anew for a card that
	// was lost. Real agents wait longer.
	openEvery = 2 * time.Second
	// version is what the agents say of themselves.
	version = "fleet"
)

// Host is one machine.
type Host struct {
	Machine
	cards  *mock.Node
	claims *claims
	log    logr.Logger

	mu    sync.Mutex
	stop  context.CancelFunc // of its agent; nil while it is silent
	start func()
}

// newHost is the machine with its cards as the file says.
func newHost(m Machine, c client.Client, log logr.Logger) (*Host, error) {
	cards, err := mock.New(m.Node, mock.Alike(m.Cards, m.Model)...)
	if err != nil {
		return nil, err
	}
	h := &Host{Machine: m, cards: cards, claims: newClaims(c, m.Node), log: log.WithValues("node", m.Node)}
	for _, line := range m.Control {
		if err := h.Control(line); err != nil {
			return nil, fmt.Errorf("node %s: %w", m.Node, err)
		}
	}
	return h, nil
}

// run plays the machine until ctx ends.
func (h *Host) run(ctx context.Context, config *rest.Config) {
	defer h.cards.Close()
	var parts sync.WaitGroup
	defer parts.Wait()
	parts.Go(func() { h.claims.run(ctx, func(err error) { h.log.Info("tries again", "reason", err.Error()) }) })
	h.mu.Lock()
	h.start = func() {
		if h.stop != nil || ctx.Err() != nil {
			return
		}
		of, cancel := context.WithCancel(ctx)
		h.stop = cancel
		parts.Go(func() { h.agent(of, config) })
	}
	h.start()
	h.mu.Unlock()
	// The plugin looks at the cards itself, so that it goes on if the agent is silent.
	probe := nvml.New(h.cards.Library(), nvml.Options{Node: h.Node, Root: h.cards.Files(), Interval: lookEvery, Between: lookEvery / 4, RetryMost: openEvery})
	_ = probe.Run(ctx, func(r *nodeagent.Report) { h.claims.saw(publish.Convert(h.seen(r))) })
}

// agent is the node's agent: the code that runs on real machines, with its own token.
func (h *Host) agent(ctx context.Context, config *rest.Config) {
	var parts sync.WaitGroup
	defer parts.Wait()
	c, err := client.New(config, client.Options{Scheme: scheme()})
	if err != nil {
		h.log.Error(err, "make a client")
		return
	}
	publisher := publish.New(publish.Node{Client: c, Name: h.Node}, publish.Options{Log: h.log, RetryMost: retryMost})
	parts.Go(func() { publisher.Run(ctx) })
	probe := nvml.New(h.cards.Library(), nvml.Options{Node: h.Node, Root: h.cards.Files(), Interval: lookEvery, Between: lookEvery / 4, RetryMost: openEvery})
	_ = probe.Run(ctx, func(r *nodeagent.Report) { publisher.See(h.seen(r)) })
}

// seen is what the agent knows of the node: its cards, and how the device plugin is
// configured. There is no kubelet whom it could ask who holds what.
func (h *Host) seen(r *nodeagent.Report) publish.Seen {
	s := publish.Seen{Report: r, AgentVersion: version}
	config, err := kubelet.ParseConfig("device-plugin.yaml", h.cards.PluginConfig())
	if err != nil {
		s.Neighbours.Troubles = []publish.Trouble{{What: v1alpha1.ProblemUnread, Field: "sharing", Message: err.Error()}}
		return s
	}
	s.Neighbours.Sharing = kubelet.Join(config, kubelet.Sharing{})
	return s
}

// Control does something to the machine. Besides what the mock of the cards knows:
//
//	plugin freeze|follow      the device plugin stops looking at the cards, or looks again
//	discovery freeze|follow   so does feature discovery
//	agent silence|speak       the agent stops without a word, or starts again
func (h *Host) Control(line string) error {
	who, what, _ := strings.Cut(strings.TrimSpace(line), " ")
	looks := what == "follow"
	switch who + " " + what {
	case "plugin freeze", "plugin follow":
		h.claims.look(&looks, nil)
	case "discovery freeze", "discovery follow":
		h.claims.look(nil, &looks)
	case "agent silence":
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.stop != nil {
			h.stop()
			h.stop = nil
		}
	case "agent speak":
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.start == nil {
			return fmt.Errorf("node %s does not run yet", h.Node)
		}
		h.start()
	default:
		_, err := h.cards.Do(line)
		return err
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
