package pages

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"strings"
	"time"

	"sluice.dev/sluice/admission/answer"
)

//go:embed templates/*.html static
var files embed.FS

// Look finds the world that whoever sent the request may see, and lets f answer from
// it, alone.
type Look func(r *http.Request, f func(age time.Duration, w *answer.World) error) error

// WritesHeader is set by a proxy that also leads to the API server with the rights of
// the one who looks, so that a page may offer to change a weight.
const WritesHeader = "Sluice-Writes"

// partHeader asks for the part of a page that changes.
const partHeader = "Sluice-Part"

// policy lets a page load what this package serves, and nothing else.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// Handler serves the pages below /ui/.
type Handler struct {
	look   Look
	status func(error) int
	shares *Shares
	mux    *http.ServeMux
	pages  map[string]*template.Template
	static map[string]string // ETags by path
}

// New returns the handler. status is the HTTP code of an error of look; shares may be
// nil, if nobody samples them.
func New(look Look, status func(error) int, shares *Shares) *Handler {
	h := &Handler{look: look, status: status, shares: shares, mux: http.NewServeMux(), pages: map[string]*template.Template{}, static: map[string]string{}}
	base := template.Must(template.New("base.html").Funcs(functions).ParseFS(files, "templates/base.html", "templates/table.html", "templates/fleet.html"))
	for _, p := range []struct {
		path, name string
		show       show
	}{
		{"/ui/{$}", "overview", h.overview},
		{"/ui/queues", "queues", h.queues},
		{"/ui/queue", "queue", h.queue},
		{"/ui/jobs", "jobs", h.jobs},
		{"/ui/job", "job", h.job},
		{"/ui/map", "map", h.fleet},
		{"/ui/drift", "drift", h.drift},
		{"/ui/what-if", "whatif", h.whatIf},
	} {
		h.pages[p.name] = template.Must(template.Must(base.Clone()).ParseFS(files, "templates/"+p.name+".html"))
		h.mux.HandleFunc("GET "+p.path, func(w http.ResponseWriter, r *http.Request) { h.page(w, r, p.name, p.show) })
	}
	h.pages["error"] = template.Must(template.Must(base.Clone()).ParseFS(files, "templates/error.html"))
	h.mux.HandleFunc("GET /ui/token", h.token)
	h.mux.HandleFunc("GET /ui/static/{file}", h.file)
	h.mux.HandleFunc("GET /ui", to("ui/"))
	h.mux.HandleFunc("GET /ui/", func(w http.ResponseWriter, r *http.Request) {
		h.fail(w, answer.NotFound{What: "page", Name: strings.TrimPrefix(r.URL.Path, "/ui/")})
	})
	_ = fs.WalkDir(files, "static", func(path string, d fs.DirEntry, err error) error { // an embedded folder is always read
		if err == nil && !d.IsDir() {
			b, _ := files.ReadFile(path)
			h.static[path] = etag(b)
		}
		return err
	})
	return h
}

// ServeHTTP serves one page.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Security-Policy", policy)
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	h.mux.ServeHTTP(w, r)
}

// to redirects to a path beside the one asked for, whatever lies before that.
func to(relative string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", relative)
		w.WriteHeader(http.StatusFound)
	}
}

// view is what one page shows.
type view struct {
	Title   string
	Section string // of the navigation
	Now     time.Time
	Writes  bool
	Still   bool   // it is not asked for again
	Table   *table // what CSV shows
	Filter  *filter
	Data    any
}

// show makes the view that a request asks for.
type show func(w *answer.World, r *http.Request) (*view, error)

// page answers with a page, its changing part or its table as CSV. Nothing is written
// while the world is held.
func (h *Handler) page(w http.ResponseWriter, r *http.Request, name string, f show) {
	var v *view
	var main bytes.Buffer
	age := time.Duration(0)
	csv := r.URL.Query().Get("format") == "csv"
	err := h.look(r, func(old time.Duration, x *answer.World) error {
		var err error
		age = old
		if v, err = f(x, r); err != nil {
			return err
		}
		v.Now, v.Writes = x.Now(), r.Header.Get(WritesHeader) != ""
		if csv {
			return nil
		}
		return h.pages[name].ExecuteTemplate(&main, "main", v)
	})
	switch {
	case err != nil:
		h.fail(w, err)
		return
	case csv && v.Table == nil:
		h.fail(w, answer.NotFound{What: "table on the page", Name: name})
		return
	case csv:
		w.Header().Set("Content-Type", "text/csv; charset=utf-8")
		w.Header().Set("Content-Disposition", "attachment; filename=\"sluice-"+name+".csv\"")
		_ = v.Table.writeCSV(w) // the reader went away
		return
	}
	w.Header().Set("Sluice-As-Of", v.Now.UTC().Format(time.RFC3339))
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	tag := etag(main.Bytes())
	w.Header().Set("ETag", tag)
	if r.Header.Get(partHeader) != "" {
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = w.Write(main.Bytes())
		return
	}
	h.whole(w, name, http.StatusOK, &frame{view: v, Age: age, Tag: tag, Main: template.HTML(main.String())}) //nolint:gosec // our own template escaped it
}

// frame is what lies around the changing part.
type frame struct {
	*view
	Age  time.Duration
	Tag  string
	Main template.HTML
}

func (h *Handler) whole(w http.ResponseWriter, name string, code int, f *frame) {
	var b bytes.Buffer
	if err := h.pages[name].ExecuteTemplate(&b, "base.html", f); err != nil {
		http.Error(w, "draw the page: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.WriteHeader(code)
	_, _ = w.Write(b.Bytes())
}

// fail shows an error as a page.
func (h *Handler) fail(w http.ResponseWriter, err error) {
	code := h.status(err)
	v := &view{Title: http.StatusText(code), Still: code != http.StatusServiceUnavailable, Data: struct {
		Code int
		Text string
	}{code, err.Error()}}
	var main bytes.Buffer
	if err := h.pages["error"].ExecuteTemplate(&main, "main", v); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	h.whole(w, "error", code, &frame{view: v, Main: template.HTML(main.String())}) //nolint:gosec // our own template escaped it
}

// token tells of which state a page was, for whoever is about to change it.
func (h *Handler) token(w http.ResponseWriter, r *http.Request) {
	token := ""
	if err := h.look(r, func(_ time.Duration, x *answer.World) error { token = x.Token(); return nil }); err != nil {
		http.Error(w, err.Error(), h.status(err))
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprintln(w, token)
}

// types of the embedded files, by ending.
var types = map[string]string{"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}

func (h *Handler) file(w http.ResponseWriter, r *http.Request) {
	path := "static/" + r.PathValue("file")
	tag, ok := h.static[path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Cache-Control", "no-cache") // asked for again, answered by its tag
	w.Header().Set("ETag", tag)
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	b, _ := files.ReadFile(path)
	w.Header().Set("Content-Type", types[path[strings.LastIndexByte(path, '.')+1:]])
	_, _ = w.Write(b)
}

func etag(b []byte) string {
	sum := sha256.Sum256(b)
	return `"` + hex.EncodeToString(sum[:8]) + `"`
}
