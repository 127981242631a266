package answer

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// Token names what an answer about a change was worked out on: the queues, and which
// gangs wait and run where. It is another as soon as any of that is.
func (w *World) Token() string {
	s := w.Snapshot()
	h := sha256.New()
	e := json.NewEncoder(h)
	for _, q := range s.Queues {
		_ = e.Encode(q) // a hash takes everything
	}
	for i := range s.Workloads {
		x := &s.Workloads[i]
		fmt.Fprintln(h, x.Name, x.UID, x.Phase, x.Queue, x.Priority, x.Held)
		_ = e.Encode(x.Admission)
	}
	return hex.EncodeToString(h.Sum(nil)[:6])
}
