package publish

import (
	"context"
	"errors"
	"fmt"

	"sluice.dev/sluice/nodeagent"
	"sluice.dev/sluice/nodeagent/api/v1alpha1"
	"sluice.dev/sluice/nodeagent/kubelet"
)

// Seen is all that an agent knows of its node at one moment. Nobody changes it
// afterwards.
type Seen struct {
	Report     *nodeagent.Report
	Neighbours Neighbours
	// AgentVersion is that of the agent.
	AgentVersion string
}

// Neighbours is what others on the node, and its labels, say of its devices.
type Neighbours struct {
	Sharing kubelet.Sharing
	// HoldingsKnown and OfferedKnown say that the kubelet answered.
	HoldingsKnown, OfferedKnown bool
	Holdings                    []kubelet.Holding
	Offered                     []kubelet.Offered
	Troubles                    []Trouble
}

// Trouble is something that is wrong beside the cards.
type Trouble struct {
	What    string // one of v1alpha1's problems
	Field   string // what could not be read
	Message string
}

// Neighbourhood is whom to ask.
type Neighbourhood struct {
	PodResources kubelet.PodResources
	Config       kubelet.ConfigSource
	// Labels are the node's. nil if there is no cluster to ask.
	Labels func(context.Context) (map[string]string, error)
}

// Look asks all of them. Whoever does not answer is a trouble, never an error.
func (n *Neighbourhood) Look(ctx context.Context) Neighbours {
	var out Neighbours
	unread := func(field string, err error) {
		out.Troubles = append(out.Troubles, Trouble{v1alpha1.ProblemUnread, field, err.Error()})
	}
	var labels map[string]string
	if n.Labels != nil {
		var err error
		if labels, err = n.Labels(ctx); err != nil {
			unread("node labels", err)
		}
	}
	config, err := n.Config.Read(labels)
	if err != nil {
		unread("sharing", err)
	}
	out.Sharing = kubelet.Join(config, kubelet.FromLabels(labels))

	if out.Holdings, err = n.PodResources.Holdings(ctx); err != nil {
		unread("holdings", err)
		var s *kubelet.SocketError
		if errors.As(err, &s) && s.Why != kubelet.Failed {
			return out // the second question would get the same answer
		}
	}
	out.HoldingsKnown = err == nil
	if out.Offered, err = n.PodResources.Offered(ctx); err != nil {
		unread("registered", err)
	}
	out.OfferedKnown = err == nil
	for _, h := range out.Holdings {
		for _, id := range h.Unread {
			unread("holdings", fmt.Errorf("%s/%s holds the %s %q, whose form is not known", h.Namespace, h.Pod, h.Resource, id))
		}
	}
	return out
}
