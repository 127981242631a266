package nodeagent

import (
	"fmt"
	"slices"
	"strings"
)

// Outage is why a card takes no new work, in a word.
type Outage string

// The outages, the gravest first.
const (
	InOrder        Outage = ""
	Lost           Outage = "lost"           // the driver cannot reach it
	Failing        Outage = "failing"        // it errs, and a reset alone is not known to mend it
	ResetNeeded    Outage = "resetNeeded"    // it, or the node, has to be reset
	MIGModePending Outage = "migModePending" // switched into or out of MIG mode at the next reset
)

// Outage is why the card takes no new work, and why in a sentence. The driver's recovery
// action is believed before any Xid; Xids count only where the driver is too old to
// give one, and only those for which NVIDIA's catalog asks for more than to restart
// the program. Every outage ends: with the reset, or when the driver says none.
func (c *Card) Outage() (Outage, string) {
	for _, look := range []func() (Outage, string){c.lost, c.broken, c.recovery, c.events, c.pending} {
		if out, why := look(); out != InOrder {
			return out, why
		}
	}
	return InOrder, ""
}

func (c *Card) lost() (Outage, string) {
	switch {
	case c.Gone:
		return Lost, "the driver does not list the card any more"
	case c.Lost:
		return Lost, "the driver cannot reach the card"
	default:
		return InOrder, ""
	}
}

func (c *Card) broken() (Outage, string) {
	r := c.Health.RowRemap
	switch {
	case r == nil:
		return InOrder, ""
	case r.Failed:
		return Failing, "broken memory cannot be mapped out any more: the card has to be replaced"
	case r.Pending:
		return ResetNeeded, "broken memory is mapped out at the next reset"
	default:
		return InOrder, ""
	}
}

func (c *Card) recovery() (Outage, string) {
	switch a := c.Health.RecoveryAction; a {
	case "", "none":
	case "recoverIMEX":
		return Failing, "the driver asks for its IMEX domain to be recovered"
	default:
		return ResetNeeded, "the driver asks for " + a
	}
	if slices.ContainsFunc(c.Errors, func(e FieldError) bool { return e.Code == "RESET_REQUIRED" }) {
		return ResetNeeded, "the driver answers that the card has to be reset"
	}
	return InOrder, ""
}

// events judges the card by its Xids, if the driver does not judge it.
func (c *Card) events() (Outage, string) {
	if c.Health.RecoveryAction != "" {
		return InOrder, ""
	}
	for _, x := range c.Health.Xids {
		why := fmt.Sprintf("Xid %d (%s) at %s", x.Code, x.Description, x.Last.UTC().Format("2006-01-02 15:04:05Z"))
		switch {
		case x.Action == "RESET_GPU" || x.Action == "RESTART_VM" || x.Code == 48:
			return ResetNeeded, why
		case x.Action == "RESTART_BM" || x.Action == "CHECK_MECHANICALS" || strings.HasPrefix(x.Action, "WORKFLOW_NVLINK"):
			return Failing, why
		}
	}
	return InOrder, ""
}

func (c *Card) pending() (Outage, string) {
	if c.MIG == nil || c.MIG.Current == c.MIG.Pending {
		return InOrder, ""
	}
	if c.MIG.Pending {
		return MIGModePending, "MIG mode is switched on at the next reset"
	}
	return MIGModePending, "MIG mode is switched off at the next reset"
}
