package pages

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"sluice.dev/sluice/admission/answer"
	"sluice.dev/sluice/admission/api/pages/browser"
)

// playhouse is the pages of a fleet whose story goes on when the test says so, behind
// a prefix as a proxy would put before them, with the few paths of an API server that
// a change of a weight needs.
type playhouse struct {
	*httptest.Server
	mu      sync.Mutex
	world   *answer.World
	may     bool
	patches []string
}

func (p *playhouse) set(w *answer.World) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.world = w
}

// written is what reached the API server as changes.
func (p *playhouse) written() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.patches)
}

func newPlayhouse(t *testing.T) *playhouse {
	p := &playhouse{world: fleetAt(t, afternoon), may: true}
	h := New(func(_ *http.Request, f func(time.Duration, *answer.World) error) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		return f(0, p.world)
	}, code, history(t))
	mux := http.NewServeMux()
	mux.Handle("/some/prefix/ui/", http.StripPrefix("/some/prefix", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set(WritesHeader, "yes")
		h.ServeHTTP(w, r)
	})))
	mux.HandleFunc("POST /some/prefix/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", func(w http.ResponseWriter, r *http.Request) {
		var review struct {
			Spec struct {
				ResourceAttributes struct{ Verb, Resource, Name string }
			}
		}
		err := json.NewDecoder(r.Body).Decode(&review)
		a := review.Spec.ResourceAttributes
		p.mu.Lock()
		defer p.mu.Unlock()
		fmt.Fprintf(w, `{"status": {"allowed": %t}}`, err == nil && p.may && a.Verb == "patch" && a.Resource == "clusterqueues" && a.Name == "vision")
	})
	mux.HandleFunc("GET /some/prefix/apis/kueue.x-k8s.io/v1beta2/clusterqueues/vision", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"metadata": {"resourceVersion": "41"}}`)
	})
	mux.HandleFunc("PATCH /some/prefix/apis/kueue.x-k8s.io/v1beta2/clusterqueues/vision", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.patches = append(p.patches, r.Header.Get("Content-Type")+" "+string(body))
		fmt.Fprint(w, `{}`)
	})
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	return p
}

const text = `document.querySelector("main").innerText`

// Pages are used as people use them: with a keyboard, a filter, a preview of a weight,
// while the cluster goes on.
func TestUse(t *testing.T) {
	b := browser.Open(t)
	p := newPlayhouse(t)
	at := p.URL + "/some/prefix/ui/"
	b.Show(browser.Screens[0])
	for _, use := range []struct {
		name string
		do   func(t *testing.T, b *browser.Browser, p *playhouse, at string)
	}{{"keyboard", useKeyboard}, {"filter", useFilter}, {"live", useLive}, {"weight", useWeight}} {
		t.Run(use.name, func(t *testing.T) {
			b.In(t)
			use.do(t, b, p, at)
			for _, c := range b.Complaints() {
				t.Error(c)
			}
		})
	}
}

// The tabulator reaches all that can be pressed, the skip link first, and what has the
// focus can be seen.
func useKeyboard(t *testing.T, b *browser.Browser, _ *playhouse, at string) {
	for _, page := range []string{"", "queues", "queue?name=vision", "jobs", "job?name=speech%2Falign", "map", "drift", "what-if?queue=vision&weight=0"} {
		b.Visit(at + page)
		b.Until(`document.documentElement.classList.contains("js")`)
		if page == "what-if?queue=vision&weight=0" {
			b.Until(`!document.getElementById("apply").hidden`)
		}
		want := browser.Eval[[]string](b, `[...document.querySelectorAll('a[href], button, input:not([type=hidden]), select, summary, .scroll')].filter(e => e.checkVisibility()).map((e, i) => (e.dataset.nth = String(i)))`)
		var got []string
		for range len(want) + 1 {
			b.Do("press Tab", chromedp.KeyEvent(kb.Tab))
			x := browser.Eval[map[string]string](b, `(() => { const e = document.activeElement, s = getComputedStyle(e); return {nth: e.dataset.nth || "", outline: s.outlineStyle, what: e.outerHTML.slice(0, 80), text: e.innerText || ""} })()`)
			if x["nth"] == "" {
				break
			}
			if len(got) == 0 && !strings.Contains(x["text"], "Skip") {
				t.Errorf("%q: the first is %s", page, x["what"])
			}
			if x["outline"] == "none" {
				t.Errorf("%q: the focus on %s cannot be seen", page, x["what"])
			}
			got = append(got, x["nth"])
		}
		for _, n := range want {
			if !slices.Contains(got, n) {
				t.Errorf("%q: the keyboard does not reach %s", page, browser.Eval[string](b, `document.querySelector('[data-nth="`+n+`"]').outerHTML.slice(0, 120)`))
			}
		}
	}
}

func useFilter(t *testing.T, b *browser.Browser, _ *playhouse, at string) {
	b.Visit(at + "jobs")
	b.Do("type", chromedp.SendKeys(chromedp.CSS("#q"), "speech", chromedp.NodeVisible))
	b.Until(`document.querySelectorAll("#t-jobs tbody tr").length === 3`)
	if q := browser.Eval[string](b, `location.search + " " + document.activeElement.id + " " + document.activeElement.value`); q != "?q=speech q speech" {
		t.Errorf("while typing: %q", q)
	}
	b.Until(`document.getElementById("said").textContent.startsWith("3 of them")`)
	b.Do("sort", chromedp.Click(chromedp.CSS("#s-jobs-age"), chromedp.NodeVisible))
	b.Until(`document.querySelector("#t-jobs tbody th").innerText === "speech/align"`)
	if focus := browser.Eval[string](b, `document.activeElement.id`); focus != "s-jobs-age" {
		t.Errorf("after sorting the focus is on %q", focus)
	}
	b.Do("go back", chromedp.NavigateBack())
	b.Until(`!location.search.includes("sort")`)
}

func useLive(t *testing.T, b *browser.Browser, p *playhouse, at string) {
	b.Visit(at + "map")
	const h0 = `document.getElementById("n-h-3").innerText`
	before := browser.Eval[string](b, h0)
	p.set(fleetAt(t, afternoon+3*time.Hour))
	b.Until(h0 + " !== " + fmt.Sprintf("%q", before))
	if asof := browser.Eval[string](b, `document.getElementById("asof").textContent`); asof != "04:30:00 UTC" {
		t.Errorf("as of %s", asof)
	}
	b.Do("pause", chromedp.Click(chromedp.CSS("#live"), chromedp.NodeVisible))
	if pressed := browser.Eval[string](b, `document.getElementById("live").getAttribute("aria-pressed") + document.getElementById("live").textContent`); pressed != "falsepaused" {
		t.Errorf("paused is %q", pressed)
	}
	p.set(fleetAt(t, afternoon))
	b.Do("go on", chromedp.Click(chromedp.CSS("#live"), chromedp.NodeVisible))
	b.Until(h0 + " === " + fmt.Sprintf("%q", before))
}

func useWeight(t *testing.T, b *browser.Browser, p *playhouse, at string) {
	b.Visit(at + "queue?name=vision")
	b.Do("ask", chromedp.SetValue(chromedp.CSS("#weight"), "0"), chromedp.Submit(chromedp.CSS("form.ask")))
	b.Until(`location.pathname.endsWith("what-if") && document.querySelector("h1") !== null`)
	if said := browser.Eval[string](b, text); !strings.Contains(said, "vision weighed 0") || !strings.Contains(said, "vision/sweep") {
		t.Errorf("the preview says %s", said)
	}
	b.Until(`!document.getElementById("apply").hidden`)
	p.set(fleetAt(t, afternoon+3*time.Hour))
	b.Do("apply", chromedp.Click(chromedp.CSS("#apply"), chromedp.NodeVisible))
	b.Until(`document.getElementById("applied").textContent.includes("moved on")`)
	if written := p.written(); len(written) > 0 {
		t.Errorf("applied though the state moved on: %q", written)
	}
	p.set(fleetAt(t, afternoon))
	b.Do("apply", chromedp.Click(chromedp.CSS("#apply"), chromedp.NodeVisible))
	b.Until(`document.getElementById("applied").textContent.includes("Applied")`)
	if want := `application/merge-patch+json {"metadata":{"resourceVersion":"41"},"spec":{"fairSharing":{"weight":"0"}}}`; len(p.written()) != 1 || p.written()[0] != want {
		t.Errorf("written: %q, want %q", p.written(), want)
	}
	p.mu.Lock()
	p.may = false
	p.mu.Unlock()
	b.Visit(at + "what-if?queue=vision&weight=3")
	b.Until(`document.getElementById("applied").textContent.includes("may not")`)
	if browser.Eval[bool](b, `document.getElementById("apply").checkVisibility()`) {
		t.Error("who may not change it is offered to")
	}
}
