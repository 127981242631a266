package pages

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/admission/answer"
	"sluice.dev/sluice/simulations"
)

// Pages load nothing from elsewhere, and nothing in them is inline: then the policy
// that they send breaks none of them.
func TestNothingInline(t *testing.T) {
	h := serve(fleetAt(t, afternoon), history(t))
	inline := regexp.MustCompile(`(?i)\sstyle=|<style|\son[a-z]+=|javascript:|<script>|(src|href)="(https?:)?//|href="/|action="/|src="/`)
	for _, p := range everyPage {
		res, body := open(t, h, p)
		if found := inline.FindString(body); found != "" {
			t.Errorf("%s holds %q", p, found)
		}
		csp := res.Header.Get("Content-Security-Policy")
		if strings.Contains(csp, "unsafe") || !strings.Contains(csp, "default-src 'none'") || !strings.Contains(csp, "frame-ancestors 'none'") {
			t.Errorf("%s: the policy is %q", p, csp)
		}
	}
	for _, p := range []string{"/ui/static/pages.css", "/ui/static/pages.js", "/ui/static/icon.svg"} {
		res, body := open(t, h, p)
		if res.StatusCode != http.StatusOK || body == "" || res.Header.Get("Content-Type") == "" {
			t.Errorf("%s: %d %s", p, res.StatusCode, res.Header.Get("Content-Type"))
		}
		if again, body := open(t, h, p, "If-None-Match", res.Header.Get("ETag")); again.StatusCode != http.StatusNotModified || body != "" {
			t.Errorf("%s is sent twice", p)
		}
	}
	if res, _ := open(t, h, "/ui"); res.Header.Get("Location") != "ui/" {
		t.Errorf("/ui leads to %q, which no prefix survives", res.Header.Get("Location"))
	}
}

// What people name things is text wherever it stands, and no formula in a spreadsheet.
func TestNamesAreText(t *testing.T) {
	const evil = `x"><script>alert(1)</script>'{{.}}`
	w := fleetAt(t, afternoon)
	s := w.Snapshot()
	for i := range s.Workloads {
		x := &s.Workloads[i]
		old := x.Key
		x.Key, x.Name = old+evil, old+evil
		if x.Admission != nil {
			x.Admission.Key = x.Key
		}
		for k := range x.Pods {
			x.Pods[k].Workload = x.Key
		}
		x.User = "=cmd|calc"
	}
	s.Nominees = nil
	w, err := answer.Open(s)
	if err != nil {
		t.Fatal(err)
	}
	h := serve(w, nil)
	for _, p := range append([]string{"/ui/jobs?q=" + "%22%3E%3Cscript%3E", "/ui/job?name=%3Cscript%3E", "/ui/queue?name=%3Cscript%3E", "/ui/map?team=%3Cscript%3E&only=%22%3E%3Cscript%3E"}, everyPage...) {
		_, body := open(t, h, p)
		if strings.Contains(body, "<script>") || strings.Contains(body, `x">`) {
			t.Errorf("%s takes a name for markup: %s", p, body)
		}
	}
	_, body := open(t, h, "/ui/job?name="+"language%2Fpretrain-7b"+"x%22%3E%3Cscript%3Ealert(1)%3C%2Fscript%3E%27%7B%7B.%7D%7D")
	if !strings.Contains(body, "=cmd|calc") || !strings.Contains(body, "&lt;script&gt;alert(1)&lt;/script&gt;") {
		t.Errorf("its own page does not name it: %s", body)
	}
	for in, want := range map[string]string{"=1+1": "'=1+1", "+1": "'+1", "-1": "'-1", "@x": "'@x", "a=b": "a=b", "–": "", "": ""} {
		if got := plain(in); got != want {
			t.Errorf("%q is written as %q, want %q", in, got, want)
		}
	}
}

// Only what changed is sent again.
func TestPartsHaveTags(t *testing.T) {
	h := serve(fleetAt(t, afternoon), history(t))
	for _, p := range everyPage {
		whole, page := open(t, h, p)
		part, body := open(t, h, p, partHeader, "main")
		if part.StatusCode != http.StatusOK || strings.Contains(body, "<html") || !strings.Contains(page, body) || part.Header.Get("Sluice-As-Of") == "" {
			t.Errorf("%s: the part is not of the page", p)
		}
		if same, body := open(t, h, p, partHeader, "main", "If-None-Match", whole.Header.Get("ETag")); same.StatusCode != http.StatusNotModified || body != "" {
			t.Errorf("%s is sent again though nothing changed: %d", p, same.StatusCode)
		}
	}
	later := serve(fleetAt(t, afternoon+30*time.Minute), nil)
	_, tag := open(t, h, "/ui/jobs")
	if res, _ := open(t, later, "/ui/jobs", partHeader, "main", "If-None-Match", etag([]byte(tag))); res.StatusCode != http.StatusOK {
		t.Errorf("half an hour later: %d", res.StatusCode)
	}
}

// heads are the row heads of a page's table.
func heads(body string) []string {
	var out []string
	for _, m := range regexp.MustCompile(`<th scope="row"[^>]*>(?:<span class="name">|<a [^>]*>)?([^<]*)`).FindAllStringSubmatch(body, -1) {
		out = append(out, m[1])
	}
	return out
}

func TestFilterAndSort(t *testing.T) {
	h := serve(fleetAt(t, afternoon), nil)
	for _, c := range []struct {
		path string
		want string
	}{
		{"/ui/jobs?q=pretrain", "language/pretrain-7b language/pretrain-70b"},
		{"/ui/jobs?q=PRETRAIN+waiting", "language/pretrain-70b"},
		{"/ui/jobs?state=Held", "speech/tts"},
		{"/ui/jobs?queue=batch&sort=-name", "batch/oversized batch/index"},
		{"/ui/jobs?queue=speech&sort=age", "speech/align speech/tts speech/whisper"},
		{"/ui/jobs?q=nobody", ""},
		{"/ui/queues?resource=nvidia.com%2Fgpu&sort=-share&q=a", "research language platform batch"},
		{"/ui/map?q=mig", "m-0 m-1 m-2"},
		{"/ui/map?only=out", "h-4 h-5"},
		{"/ui/map?only=drift", "h-3 h-4"},
		{"/ui/map?only=holes", "m-0 m-1 m-2"},
		{"/ui/map?team=batch", "m-1"},
		{"/ui/map?q=whisper+h-4", "h-4"},
		{"/ui/drift?q=product", "h-3"},
	} {
		_, body := open(t, h, c.path)
		if got := strings.Join(heads(body), " "); got != c.want {
			t.Errorf("%s shows %q, want %q", c.path, got, c.want)
		}
	}
	_, body := open(t, h, "/ui/jobs?sort=name&q=speech")
	if !strings.Contains(body, `aria-sort="ascending"`) || !strings.Contains(body, "?q=speech&amp;sort=-name") {
		t.Errorf("the order is not told, or not to be turned round: %s", body)
	}
}

func TestCSV(t *testing.T) {
	h := serve(fleetAt(t, afternoon), nil)
	for p, c := range map[string]struct {
		rows int
		has  string
	}{
		"/ui/jobs?format=csv":               {17, "language/pretrain-70b"},
		"/ui/jobs?format=csv&q=speech":      {4, "speech/tts"},
		"/ui/queues?format=csv":             {8, "research"},
		"/ui/drift?format=csv":              {3, "nvidia.com/gpu.product"},
		"/ui/queue?name=speech&format=csv":  {2, "speech/align"},
		"/ui/map?format=csv&only=holes":     {36, "3g.20gb"},
		"/ui/map?format=csv&q=t&team=batch": {16, "batch/index"},
	} {
		res, body := open(t, h, p)
		rows, err := csv.NewReader(strings.NewReader(body)).ReadAll()
		if err != nil || len(rows) != c.rows || !strings.Contains(body, c.has) || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/csv") {
			t.Errorf("%s: %d rows, want %d with %q: %v\n%s", p, len(rows), c.rows, c.has, err, body)
		}
	}
	if res, _ := open(t, h, "/ui/?format=csv"); res.StatusCode != http.StatusNotFound {
		t.Errorf("the overview has no one table: %d", res.StatusCode)
	}
}

// A large fleet is shown a page at a time.
func TestLargeFleet(t *testing.T) {
	s, err := simulations.Parse("large.yaml", []byte("name: large\nnodes: [{name: n-, count: 250, gpus: 8}]\nqueues: [{name: A}]\nevents: [{at: 0s, submit: [{name: J, queue: A, pods: 250, requests: {nvidia.com/gpu: 8}}]}]\nexpect: [{at: 1s, admitted: [J]}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	state, now, err := simulations.StateAt(s, simulations.Options{}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	h := serve(answer.New(state.Image(), now), nil)
	for page, want := range []int{100, 100, 50} {
		_, body := open(t, h, fmt.Sprintf("/ui/map?page=%d", page))
		if got := heads(body); len(got) != want || !strings.Contains(body, "250 nodes") {
			t.Errorf("page %d shows %d nodes, want %d", page, len(got), want)
		}
	}
	for _, wrong := range []string{"-1", "99", "x"} {
		if res, body := open(t, h, "/ui/map?page="+wrong); res.StatusCode != http.StatusOK || len(heads(body)) == 0 {
			t.Errorf("page %s: %d", wrong, res.StatusCode)
		}
	}
}

// The page of a gang that runs draws the nodes that it is on, and no others.
func TestGangOnItsNodes(t *testing.T) {
	h := serve(fleetAt(t, afternoon), nil)
	_, body := open(t, h, "/ui/job?name=serving%2Frank")
	for node, is := range map[string]bool{"m-0": true, "m-2": true, "m-1": false, "h-0": false} {
		if strings.Contains(body, `id="n-`+node+`"`) != is {
			t.Errorf("serving/rank is drawn on %s: %t", node, !is)
		}
	}
	if _, body := open(t, h, "/ui/job?name=speech%2Falign"); strings.Contains(body, `class="card"`) {
		t.Error("a gang that waits is drawn on cards")
	}
}

func TestWrongQuestions(t *testing.T) {
	h := serve(fleetAt(t, afternoon), nil)
	for _, p := range []string{"/ui/queue?name=nobody", "/ui/job?name=nobody", "/ui/job", "/ui/queues?resource=gold", "/ui/what-if?queue=vision&weight=-1", "/ui/what-if?queue=vision&weight=x", "/ui/what-if?queue=nobody&weight=1", "/ui/nothing", "/ui/static/nothing"} {
		if res, _ := open(t, h, p); res.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", p, res.StatusCode)
		}
	}
}
