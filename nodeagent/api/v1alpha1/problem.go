package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Problem is one thing that is wrong with the node's cards, or could not be read.
type Problem struct {
	// What is the kind, in a word: one of those below, or a newer one.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	What string `json:"what"`
	// Card is the index of the card. Absent if it concerns the node.
	// +optional
	Card *int32 `json:"card,omitempty"`
	// Field is what could not be read, or is odd.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Field string `json:"field,omitempty"`
	// Message is for people, with numbers and names.
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message"`
	// Since is when the agent first saw it, as long as it lasts.
	Since metav1.Time `json:"since"`
}

// What problems are called, the gravest first. The outages of cards are called as
// in Card.Out.
const (
	ProblemLost           = string(Lost)
	ProblemFailing        = string(Failing)
	ProblemResetNeeded    = string(ResetNeeded)
	ProblemMIGModePending = string(MIGModePending)
	ProblemRefused        = "refused"    // the device plugin offers nothing, as the cards are cut
	ProblemStale          = "stale"      // the kubelet knows devices that are not there
	ProblemUnread         = "unread"     // something could not be read
	ProblemEmptySlice     = "emptySlice" // a GPU instance without a device
	ProblemSlow           = "slow"       // clocks are held down
	ProblemError          = "error"      // an error that takes no card out
	ProblemSharing        = "sharing"    // the configuration of sharing is odd
	ProblemLeftOut        = "leftOut"    // more than an object holds
)

// Gravity orders problems: the gravest is 0. What is not known here is the least.
func Gravity(what string) int {
	for i, w := range []string{
		ProblemLost, ProblemFailing, ProblemResetNeeded, ProblemMIGModePending, ProblemRefused, ProblemStale,
		ProblemUnread, ProblemEmptySlice, ProblemSlow, ProblemError, ProblemSharing, ProblemLeftOut,
	} {
		if w == what {
			return i
		}
	}
	return 100
}
