package answer

import "time"

// Envelope is how every answer is written as JSON: in a file, by the command line
// and over HTTP. Lists have Items, other answers a Status.
type Envelope struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Time       time.Time `json:"time"` // as of which it holds
	// AgeMillis is how old that was when the answer was given by a controller.
	AgeMillis *int64 `json:"ageMillis,omitempty"`
	Items     any    `json:"items,omitempty"`
	Status    any    `json:"status,omitempty"`
}

// Wrap puts an answer of a kind into its envelope.
func Wrap(kind string, now time.Time, v any) Envelope {
	e := Envelope{APIVersion: Version, Kind: kind, Time: now}
	if len(kind) > 4 && kind[len(kind)-4:] == "List" {
		e.Items = v
	} else {
		e.Status = v
	}
	return e
}
