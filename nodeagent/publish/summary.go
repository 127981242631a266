package publish

import (
	"fmt"
	"strconv"
	"strings"

	"sluice.dev/sluice/nodeagent/api/v1alpha1"
)

// summarize says a report in a few words.
func summarize(r *v1alpha1.Report) v1alpha1.Summary {
	sound, offered := 0, int64(0)
	for i := range r.Cards {
		c := &r.Cards[i]
		if c.Out == "" {
			sound++
		}
		if c.Out != v1alpha1.Lost {
			for _, o := range r.Offers(c) {
				offered += o.Count
			}
		}
	}
	taken := "?"
	if r.HoldingsKnown {
		held := 0
		for i := range r.Holdings {
			held += len(r.Holdings[i].Devices)
		}
		taken = strconv.Itoa(held)
	}
	return v1alpha1.Summary{
		Cards: fmt.Sprintf("%d/%d", sound, len(r.Cards)), Layout: clip(layout(r), 512),
		Taken: clip(fmt.Sprintf("%s/%d", taken, offered), 32), Problems: clip(gravest(r.Problems), 256),
	}
}

// layout is how the cards are cut and shared, those that are alike together.
func layout(r *v1alpha1.Report) string {
	var order []string
	n := map[string]int{}
	for i := range r.Cards {
		text := cardText(r, &r.Cards[i])
		if n[text] == 0 {
			order = append(order, text)
		}
		n[text]++
	}
	for i, text := range order {
		order[i] = fmt.Sprintf("%dx %s", n[text], text)
	}
	return strings.Join(order, ", ")
}

func cardText(r *v1alpha1.Report, c *v1alpha1.Card) string {
	name := strings.TrimPrefix(c.Model, "NVIDIA ")
	if name == "" {
		name = "card"
	}
	share := r.Share(v1alpha1.WholeCard)
	switch {
	case c.Out == v1alpha1.Lost:
		return name + " lost"
	case c.InMIGMode() && len(c.Instances) == 0:
		return name + " mig: empty"
	case c.InMIGMode():
		return name + " mig: " + strings.ReplaceAll(c.Layout(), ", ", " ")
	case share != nil && share.Strategy == v1alpha1.MPS:
		return fmt.Sprintf("%s mps: %d", name, share.Replicas)
	case share != nil:
		return fmt.Sprintf("%s shared: %d", name, share.Replicas)
	default:
		return name
	}
}

// gravest is how many problems there are, and the first: "2: card 3 lost". Cards that
// have the first in common are named together.
func gravest(all []v1alpha1.Problem) string {
	if len(all) == 0 {
		return ""
	}
	first := all[0]
	if first.Card == nil || v1alpha1.Gravity(first.What) > v1alpha1.Gravity(v1alpha1.ProblemMIGModePending) {
		return fmt.Sprintf("%d: %s: %s", len(all), first.What, said(&first))
	}
	var indexes []int32
	for _, p := range all {
		if p.What == first.What {
			indexes = append(indexes, *p.Card)
		}
	}
	return fmt.Sprintf("%d: %s %s", len(all), cards(indexes), first.What)
}
