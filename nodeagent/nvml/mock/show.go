package mock

import (
	"fmt"
	"slices"
	"strings"

	gonvml "github.com/NVIDIA/go-nvml/pkg/nvml"
)

// sharing is what the node's device plugin is configured to.
type sharing struct {
	strategy string
	shares   []share
}

type share struct {
	resource string
	replicas int
	mps      bool
	renamed  bool
}

func setStrategy(n *Node, args []string) (string, error) {
	if len(args) != 1 || !slices.Contains([]string{"none", "single", "mixed"}, args[0]) {
		return "", errUsage
	}
	n.sharing.strategy = args[0]
	return "", nil
}

// setShare replaces what is said of the resource. One replica is no sharing.
func setShare(n *Node, args []string) (string, error) {
	if len(args) < 2 {
		return "", errUsage
	}
	v, err := numbers(args[1:2], 1)
	if err != nil {
		return "", err
	}
	n.sharing.shares = slices.DeleteFunc(n.sharing.shares, func(s share) bool { return s.resource == args[0] })
	if v[0] > 1 {
		n.sharing.shares = append(n.sharing.shares, share{
			args[0], v[0], slices.Contains(args, "mps"), slices.Contains(args, "renamed"),
		})
	}
	return "", nil
}

// PluginConfig is the configuration file of the node's device plugin.
func (n *Node) PluginConfig() []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	var b strings.Builder
	strategy := n.sharing.strategy
	if strategy == "" {
		strategy = "none"
	}
	fmt.Fprintf(&b, "version: v1\nflags:\n  migStrategy: %s\n", strategy)
	for i, s := range n.sharing.shares {
		if i == 0 {
			kind := "timeSlicing"
			if s.mps {
				kind = "mps"
			}
			fmt.Fprintf(&b, "sharing:\n  %s:\n    renameByDefault: %t\n    resources:\n", kind, s.renamed)
		}
		fmt.Fprintf(&b, "    - name: %s\n      replicas: %d\n", s.resource, s.replicas)
	}
	return []byte(b.String())
}

// show is the node in a few lines, for people.
func (n *Node) show() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d cards, boot %d", n.Name, len(n.cards), n.boot)
	if n.driver != gonvml.SUCCESS {
		fmt.Fprintf(&b, ", driver answers %d", n.driver)
	}
	if n.silent {
		b.WriteString(", silent")
	}
	b.WriteString("\n")
	for _, c := range n.cards {
		fmt.Fprintf(&b, "%2d %-12s mig=%d", c.at, c.model.Key, c.current)
		if c.pending != c.current {
			fmt.Fprintf(&b, " pending=%d", c.pending)
		}
		for _, gi := range c.instances {
			fmt.Fprintf(&b, " %s@%d", gi.profile.Name, gi.start)
			if len(gi.computes) == 0 {
				b.WriteString(":-")
			}
		}
		if c.lost || c.gone {
			b.WriteString(" lost")
		}
		b.WriteString("\n")
	}
	return b.String()
}
