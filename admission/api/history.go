package api

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/admission/answer"
)

// Records returns the latest decisions about a workload or a queue, latest first, at
// most limit of them: what the journal keeps. Its error is ErrNoRecords where none is open.
type Records func(workload, queue string, limit int) ([]admission.Decision, error)

// ErrNoRecords says that this replica has no journal to read.
var ErrNoRecords = errors.New("this replica has no journal open: it does not lead")

// historyMost bounds how many decisions are told at once.
const historyMost = 500

// Remember has the handler tell history from these records. It is called before it serves.
func (h *Handler) Remember(r Records) { h.records = r }

// history tells what was decided about a job, or else about the queue of that name.
func (h *Handler) history(w http.ResponseWriter, r *http.Request) {
	h.serve(w, r, func(age time.Duration, x *answer.World) error {
		limit := 100
		if text := r.URL.Query().Get("limit"); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 || n > historyMost {
				return badRequest{fmt.Errorf("limit is 1 to %d, not %q", historyMost, text)}
			}
			limit = n
		}
		if h.records == nil {
			return ErrNoRecords
		}
		job, queue, err := x.Subject(namespaceOf(r), r.PathValue("name"))
		if err != nil {
			return err
		}
		may, err := h.mayKnow(r)
		if err != nil {
			return err
		}
		if job != "" && !may(answer.Namespace(job)) {
			return answer.NotFound{What: "job", Name: r.PathValue("name")}
		}
		list, err := h.records(job, queue, limit)
		if err != nil {
			return err
		}
		return write(w, "DeedList", x, age, answer.History(list, job, may))
	})
}

// mayKnow says of which namespaces the one who asks sees names. What cannot be reviewed
// is not seen.
func (h *Handler) mayKnow(r *http.Request) (func(string) bool, error) {
	user, err := h.who(r)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	return func(ns string) bool {
		may, asked := known[ns]
		if !asked {
			all, err := h.access.MayList(r.Context(), user, "")
			one := false
			if err == nil && !all && ns != "" {
				one, err = h.access.MayList(r.Context(), user, ns)
			}
			may = err == nil && (all || one)
			known[ns] = may
		}
		return may
	}, nil
}
