package publish

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"sluice.dev/sluice/nodeagent"
	"sluice.dev/sluice/nodeagent/api/v1alpha1"
)

const maxProblems = 128

// trouble is a problem in the making: of one card, or of the node.
type trouble struct {
	what, field, message string
	card                 *int32
}

// look notes all that is wrong with what was seen.
func (c *conversion) look(s Seen) {
	for _, t := range s.Neighbours.Troubles {
		c.troubles = append(c.troubles, trouble{what: t.What, field: t.Field, message: t.Message})
	}
	for _, w := range s.Neighbours.Sharing.Warnings {
		c.troubles = append(c.troubles, trouble{what: v1alpha1.ProblemSharing, field: "sharing", message: w})
	}
	for _, e := range s.Report.Errors {
		c.troubles = append(c.troubles, trouble{what: v1alpha1.ProblemUnread, field: e.Field, message: unread(e)})
	}
	if s.Report.State != nodeagent.Ready {
		return
	}
	for i := range s.Report.Cards {
		card := &s.Report.Cards[i]
		index := within(card.Index, 0)
		c.lookAt(card, func(what, field, format string, args ...any) {
			c.troubles = append(c.troubles, trouble{what, field, fmt.Sprintf(format, args...), &index})
		})
	}
	if why := c.out.Refusal(); why != "" {
		c.troubles = append(c.troubles, trouble{what: v1alpha1.ProblemRefused, message: "the device plugin offers nothing: " + why})
	}
	for _, r := range c.out.Registered {
		if r.Unknown > 0 {
			c.troubles = append(c.troubles, trouble{what: v1alpha1.ProblemStale, field: r.Resource, message: fmt.Sprintf(
				"the device plugin offers %d of %s, of which %d are not there: it has not seen a change of the layout", r.Devices, r.Resource, r.Unknown)})
		}
	}
}

// lookAt notes what is wrong with one card.
func (c *conversion) lookAt(card *nodeagent.Card, note func(what, field, format string, args ...any)) {
	outage, why := card.Outage()
	if outage != nodeagent.InOrder {
		note(string(outage), "", "%s", why)
	}
	for _, e := range card.Errors {
		if !card.Lost { // of which one problem says all
			note(v1alpha1.ProblemUnread, e.Field, "%s", unread(e))
		}
	}
	for _, g := range card.Instances {
		if len(g.Compute) == 0 && !g.Unread {
			note(v1alpha1.ProblemEmptySlice, "", "GPU instance %d (%s at %d) has no compute instance: it takes room and offers nothing", g.ID, g.Profile, g.Start)
		}
	}
	if len(card.Health.Slowdown) > 0 {
		note(v1alpha1.ProblemSlow, "", "clocks are held down: %s", strings.Join(card.Health.Slowdown, ", "))
	}
	if outage != nodeagent.InOrder {
		return
	}
	if e := card.Health.ECC; e != nil && e.Uncorrected > 0 {
		note(v1alpha1.ProblemError, "health.ecc", "%d memory errors that could not be corrected since the last reset", e.Uncorrected)
	}
	if f := card.Fabric; f != nil && f.State != "completed" {
		note(v1alpha1.ProblemError, "fabric", "the NVLink fabric is not complete: %s", f.State)
	}
	for _, x := range card.Health.Xids {
		switch x.Action {
		case "", "IGNORE", "RESTART_APP":
		default:
			note(v1alpha1.ProblemError, "health.xids", "Xid %d (%s), for which NVIDIA's catalog says %s", x.Code, x.Description, x.Action)
		}
	}
}

func unread(e nodeagent.FieldError) string {
	if e.Code == "" || strings.Contains(e.Message, e.Code) {
		return e.Message
	}
	return e.Message + " (" + e.Code + ")"
}

// problems are the troubles, the gravest first. Those that several cards have in
// common, other than being out, are one.
func problems(troubles []trouble) []v1alpha1.Problem {
	type key struct{ what, field, message string }
	var order []key
	at := map[key][]int32{}
	node := map[key]bool{}
	for _, t := range troubles {
		k := key{t.what, t.field, t.message}
		if _, known := at[k]; !known {
			order = append(order, k)
			at[k] = nil
		}
		if t.card == nil {
			node[k] = true
		} else if !slices.Contains(at[k], *t.card) {
			at[k] = append(at[k], *t.card)
		}
	}
	var all []v1alpha1.Problem
	for _, k := range order {
		out := v1alpha1.Problem{What: clip(k.what, 32), Field: clip(k.field, 128), Message: clip(k.message, 512)}
		indexes := at[k]
		switch {
		case node[k] || len(indexes) == 0:
			all = append(all, out)
		case len(indexes) == 1 || v1alpha1.Gravity(k.what) <= v1alpha1.Gravity(v1alpha1.ProblemMIGModePending):
			for _, i := range indexes {
				one := out
				one.Card = &i
				all = append(all, one)
			}
		default:
			out.Message = clip(cards(indexes)+": "+k.message, 512)
			all = append(all, out)
		}
	}
	slices.SortStableFunc(all, func(a, b v1alpha1.Problem) int {
		return cmp.Or(cmp.Compare(v1alpha1.Gravity(a.What), v1alpha1.Gravity(b.What)), compareCards(a.Card, b.Card),
			cmp.Compare(a.Field, b.Field), cmp.Compare(a.Message, b.Message))
	})
	if more := len(all) - maxProblems + 1; more > 1 {
		all = append(all[:maxProblems-1], v1alpha1.Problem{What: v1alpha1.ProblemLeftOut, Field: "problems", Message: fmt.Sprintf("%d more problems", more)})
	}
	return all
}

// compareCards puts what concerns the node first.
func compareCards(a, b *int32) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return -1
	case b == nil:
		return 1
	default:
		return cmp.Compare(*a, *b)
	}
}

// said is a problem in a line.
func said(p *v1alpha1.Problem) string {
	if p.Card != nil {
		return fmt.Sprintf("card %d: %s", *p.Card, p.Message)
	}
	return p.Message
}
