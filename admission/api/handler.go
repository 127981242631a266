package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/admission/answer"
	"sluice.dev/sluice/admission/api/pages"
)

// MaxAge is how old a copy may be when the work on an answer begins.
const MaxAge = time.Second

// patience is how long a request waits for a copy.
const patience = 5 * time.Second

// bodyMost bounds what may be sent with a question.
const bodyMost = 1 << 20

// worldsMost bounds for how many sets of namespaces a world is kept.
const worldsMost = 16

// Handler answers questions over HTTP.
type Handler struct {
	source  Source
	access  Access
	now     func() time.Time
	mux     *http.ServeMux
	shares  *pages.Shares
	records Records

	mu     sync.Mutex
	at     time.Time         // of the copy that worlds are of
	worlds map[string]*world // by what may be seen
}

// world is a World that one request uses at a time.
type world struct {
	once sync.Once
	mu   sync.Mutex
	w    *answer.World
}

// New returns the handler.
func New(s Source, a Access, now func() time.Time) *Handler {
	h := &Handler{source: s, access: a, now: now, mux: http.NewServeMux(), shares: &pages.Shares{}, worlds: map[string]*world{}}
	h.routes()
	ui := pages.New(h.look, codeOf, h.shares)
	h.mux.Handle("/ui/", ui)
	h.mux.Handle("/ui", ui)
	return h
}

// ServeHTTP answers.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	h.mux.ServeHTTP(w, r)
}

func (h *Handler) routes() {
	h.get("/v1/jobs", "JobList", func(w *answer.World, _ *http.Request) (any, error) { return w.Jobs(), nil })
	h.get("/v1/queues", "QueueList", func(w *answer.World, r *http.Request) (any, error) { return w.Queues(r.URL.Query().Get("resource")) })
	h.get("/v1/nodes", "NodeList", func(w *answer.World, _ *http.Request) (any, error) { return w.Nodes(), nil })
	h.get("/v1/map", "MapList", func(w *answer.World, r *http.Request) (any, error) { return w.Map(r.URL.Query()["node"]...) })
	h.get("/v1/drift", "DriftList", func(w *answer.World, _ *http.Request) (any, error) { return w.Drifts(), nil })
	h.get("/v1/lint", "FindingList", func(w *answer.World, _ *http.Request) (any, error) { return w.Lint(), nil })
	h.get("/v1/check", "ViolationList", func(w *answer.World, _ *http.Request) (any, error) { return append([]string{}, w.Check()...), nil })
	h.get("/v1/order/{queue}", "TurnList", func(w *answer.World, r *http.Request) (any, error) { return w.Order(r.PathValue("queue")) })
	h.mux.HandleFunc("GET /v1/history/{namespace}/{name}", h.history)
	h.get("/v1/why/{namespace}/{job}", "Why", func(w *answer.World, r *http.Request) (any, error) {
		key, err := w.Find(namespaceOf(r), r.PathValue("job"))
		if err != nil {
			return nil, err
		}
		return w.Why(key)
	})
	h.get("/v1/priority/{namespace}/{job}", "Priority", func(w *answer.World, r *http.Request) (any, error) {
		key, err := w.Find(namespaceOf(r), r.PathValue("job"))
		if err != nil {
			return nil, err
		}
		return w.Priority(key)
	})
	h.post("/v1/plan", "Plan", func(w *answer.World, body io.Reader) (any, error) {
		var x answer.Workload
		if err := decode(body, &x); err != nil {
			return nil, err
		}
		p, err := w.Plan(x)
		return p, asked(err)
	})
	h.post("/v1/what-if", "WhatIf", func(w *answer.World, body io.Reader) (any, error) {
		var e answer.Edit
		if err := decode(body, &e); err != nil {
			return nil, err
		}
		x, err := w.WhatIf(e)
		return x, asked(err)
	})
	h.mux.HandleFunc("GET /v1/snapshot", func(w http.ResponseWriter, r *http.Request) {
		h.serve(w, r, func(_ time.Duration, x *answer.World) error {
			w.Header().Set("Content-Type", "application/json")
			return x.Snapshot().Encode(w)
		})
	})
}

func namespaceOf(r *http.Request) string {
	if ns := r.PathValue("namespace"); ns != "-" {
		return ns
	}
	return ""
}

func decode(body io.Reader, v any) error {
	d := json.NewDecoder(body)
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return badRequest{err}
	}
	return nil
}

// badRequest is an error of who asks.
type badRequest struct{ error }

func asked(err error) error {
	var missing answer.NotFound
	if err == nil || errors.As(err, &missing) {
		return err
	}
	return badRequest{err}
}

func (h *Handler) get(pattern, kind string, f func(w *answer.World, r *http.Request) (any, error)) {
	h.mux.HandleFunc("GET "+pattern, func(w http.ResponseWriter, r *http.Request) {
		h.serve(w, r, func(age time.Duration, x *answer.World) error {
			v, err := f(x, r)
			if err != nil {
				return err
			}
			return write(w, kind, x, age, v)
		})
	})
}

func (h *Handler) post(pattern, kind string, f func(w *answer.World, body io.Reader) (any, error)) {
	h.mux.HandleFunc("POST "+pattern, func(w http.ResponseWriter, r *http.Request) {
		h.serve(w, r, func(age time.Duration, x *answer.World) error {
			v, err := f(x, http.MaxBytesReader(w, r.Body, bodyMost))
			if err != nil {
				return err
			}
			return write(w, kind, x, age, v)
		})
	})
}

func write(w http.ResponseWriter, kind string, x *answer.World, age time.Duration, v any) error {
	e := answer.Wrap(kind, x.Now(), v)
	ms := max(0, age.Milliseconds())
	e.AgeMillis = &ms
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(e)
}

// serve has f answer, and tells its error.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request, f func(age time.Duration, x *answer.World) error) {
	if err := h.look(r, f); err != nil {
		fail(w, err)
	}
}

// look finds out who asks, gets them the world that they may see, and has f answer.
func (h *Handler) look(r *http.Request, f func(age time.Duration, x *answer.World) error) error {
	user, err := h.who(r)
	if err != nil {
		return err
	}
	x, at, err := h.world(r.Context(), user)
	if err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return f(h.now().Sub(at), x.w)
}

var errNoToken = errors.New("who asks? send a token as Authorization: Bearer, or past the API server's proxy as " + TokenHeader)

func (h *Handler) who(r *http.Request) (User, error) {
	token := tokenOf(r)
	if _, open := h.access.(Everybody); token == "" && !open {
		return User{}, errNoToken
	}
	return h.access.Who(r.Context(), token)
}

// world is that of the newest copy, without the names that the user may not see.
func (h *Handler) world(ctx context.Context, u User) (*world, time.Time, error) {
	wait, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c, err := h.source.Copy(wait, MaxAge)
	if err != nil {
		return nil, time.Time{}, err
	}
	may, key, err := h.visible(ctx, u, &c.Image)
	if err != nil {
		return nil, time.Time{}, err
	}
	h.mu.Lock()
	if !c.At.Equal(h.at) || len(h.worlds) >= worldsMost {
		if c.At.Before(h.at) { // another request has a newer copy already
			h.mu.Unlock()
			x := &world{w: answer.New(answer.Conceal(c.Image, may), c.At)}
			return x, c.At, nil
		}
		h.at = c.At
		clear(h.worlds)
	}
	x := h.worlds[key]
	if x == nil {
		x = &world{}
		h.worlds[key] = x
	}
	h.mu.Unlock()
	x.once.Do(func() { x.w = answer.New(answer.Conceal(c.Image, may), c.At) })
	return x, c.At, nil
}

// visible are the namespaces of which the user may see names, as a function and as a
// text that is equal for equal sets.
func (h *Handler) visible(ctx context.Context, u User, im *admission.Image) (may func(string) bool, key string, err error) {
	all, err := h.access.MayList(ctx, u, "")
	if err != nil {
		return nil, "", err
	}
	if all {
		return func(string) bool { return true }, "*", nil
	}
	seen := map[string]bool{"": false}
	var names []string
	check := func(ns string) error {
		if _, done := seen[ns]; done {
			return nil
		}
		ok, err := h.access.MayList(ctx, u, ns)
		if err != nil {
			return err
		}
		if seen[ns] = ok; ok {
			names = append(names, ns)
		}
		return nil
	}
	for i := range im.Workloads {
		if err := check(answer.Namespace(im.Workloads[i].Workload.Key)); err != nil {
			return nil, "", err
		}
	}
	for i := range im.Pods {
		if err := check(answer.Namespace(im.Pods[i].Key)); err != nil {
			return nil, "", err
		}
	}
	slices.Sort(names)
	return func(ns string) bool { return seen[ns] }, "in " + strings.Join(names, ","), nil
}

// fail writes an error. What is not the fault of who asks is told in no detail.
func fail(w http.ResponseWriter, err error) {
	code := codeOf(err)
	if code == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	fmt.Fprintf(w, "{\"error\": %s}\n", quote(err.Error()))
}

// codeOf is the HTTP code of an error.
func codeOf(err error) int {
	var missing answer.NotFound
	var bad badRequest
	switch {
	case errors.As(err, &missing):
		return http.StatusNotFound
	case errors.As(err, &bad):
		return http.StatusBadRequest
	case errors.Is(err, ErrUnknown), errors.Is(err, errNoToken):
		return http.StatusUnauthorized
	case errors.Is(err, errNoCopy), errors.Is(err, ErrNoRecords):
		return http.StatusServiceUnavailable
	default:
		return http.StatusInternalServerError
	}
}

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return `"?"`
	}
	return string(b)
}
