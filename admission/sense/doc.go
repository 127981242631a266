// Package sense says at submit what a submitter would else learn hours later: that
// pods ask for devices in a way in which they can never start, or will disappoint.
//
//	pods as written ─┐
//	                 ├─ Notes ─▶ warnings of the API server, or a refusal
//	Facts of nodes ──┘
//
// It decides only what can be known from the pods and from what nodes offer now. What
// depends on who else runs is for the queue. A note is never about capacity that is
// merely taken: a resource that some node could offer if it were cut otherwise is
// said, not refused.
//
// It leaves to others where the facts come from, and whether a note refuses.
//
// What always holds: pods that ask for no devices and no product get no note; without any
// fact about devices there are no notes about names; each text names the container, the
// resource or label as written, and what would be right.
package sense
