package pages

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/admission/answer"
	"sluice.dev/sluice/simulations"
)

// afternoon is how far into the story of the fleet the pages look.
const afternoon = 90 * time.Minute

// fleetAt is the world of the fleet at a time of its story.
func fleetAt(t testing.TB, at time.Duration) *answer.World {
	t.Helper()
	s, err := simulations.Load("testdata/fleet.yaml")
	if err != nil {
		t.Fatal(err)
	}
	state, now, err := simulations.StateAt(s, simulations.Options{}, at)
	if err != nil {
		t.Fatal(err)
	}
	return answer.New(state.Image(), now)
}

// serve is the pages over one world, for anybody.
func serve(w *answer.World, shares *Shares) *Handler {
	return New(func(_ *http.Request, f func(time.Duration, *answer.World) error) error { return f(0, w) }, code, shares)
}

func code(err error) int {
	var missing answer.NotFound
	if errors.As(err, &missing) {
		return http.StatusNotFound
	}
	return http.StatusInternalServerError
}

// history samples the story until the afternoon every few minutes, as a controller
// would.
func history(t testing.TB) *Shares {
	t.Helper()
	s := &Shares{}
	for at := time.Minute; at <= afternoon; at += 5 * time.Minute {
		w := fleetAt(t, at)
		list, err := w.Queues("nvidia.com/gpu")
		if err != nil {
			t.Fatal(err)
		}
		s.Add(w.Now(), list)
	}
	return s
}

// open asks for a page, and says its code and text.
func open(t testing.TB, h http.Handler, path string, headers ...string) (*http.Response, string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result(), w.Body.String()
}

// everyPage is all that a person can open.
var everyPage = []string{
	"/ui/", "/ui/queues", "/ui/queue?name=language", "/ui/queue?name=research", "/ui/jobs", "/ui/job?name=language%2Fpretrain-70b", "/ui/job?name=speech%2Falign",
	"/ui/job?name=batch%2Foversized", "/ui/job?name=serving%2Frank", "/ui/map", "/ui/drift", "/ui/what-if?queue=vision&weight=0",
}

func TestEveryPageOpens(t *testing.T) {
	h := serve(fleetAt(t, afternoon), history(t))
	for _, p := range everyPage {
		res, body := open(t, h, p)
		if res.StatusCode != http.StatusOK || !strings.Contains(body, "<h1>") || strings.Contains(body, "ZgotmplZ") {
			t.Errorf("%s: %d\n%s", p, res.StatusCode, body)
		}
	}
}
