package answer

import (
	"fmt"

	"sluice.dev/sluice/gang"
)

// DriftText says in a sentence what is claimed of a node and what its cards are.
func DriftText(d gang.Difference) string {
	switch d.About {
	case gang.DriftSilent:
		return "its agent has not reported in time, so nothing can be compared"
	case gang.DriftLost:
		return d.What + " is lost"
	case gang.DriftAllocatable:
		return fmt.Sprintf("%s: the node offers %s, its cards are %s", d.What, d.Claimed, d.Found)
	case gang.DriftLabels, gang.DriftLayout, gang.DriftReplicas:
	}
	switch {
	case d.Found == gang.Recutting:
		return d.What + " is being cut anew"
	case d.Found == gang.BrokenCut:
		return d.What + " was not cut as it should be"
	case d.Claimed == "":
		return fmt.Sprintf("label %s is missing, should be %s", d.What, d.Found)
	case d.Found == "":
		return fmt.Sprintf("label %s is %s, should not be there", d.What, d.Claimed)
	default:
		return fmt.Sprintf("label %s is %s, should be %s", d.What, d.Claimed, d.Found)
	}
}

// Mend is the command that ends the difference, as far as a command can; "" if it is
// to be waited for.
func Mend(node string, d gang.Difference) string {
	switch d.About {
	case gang.DriftSilent:
		return "kubectl -n sluice-agents delete pod --field-selector spec.nodeName=" + node
	case gang.DriftLost:
		return fmt.Sprintf("kubectl drain %s --ignore-daemonsets --delete-emptydir-data, then reset the card or reboot the node", node)
	case gang.DriftAllocatable:
		return "kubectl -n gpu-operator delete pod -l app=nvidia-device-plugin-daemonset --field-selector spec.nodeName=" + node
	case gang.DriftLabels, gang.DriftLayout, gang.DriftReplicas:
	}
	switch d.Found {
	case gang.Recutting:
		return ""
	case gang.BrokenCut:
		return fmt.Sprintf("kubectl label node %s nvidia.com/mig.config=all-disabled --overwrite, then the layout that was wanted once more", node)
	case "":
		return fmt.Sprintf("kubectl label node %s %s-", node, d.What)
	default:
		return fmt.Sprintf("kubectl label node %s %s=%s --overwrite", node, d.What, d.Found)
	}
}
