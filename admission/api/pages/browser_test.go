package pages

import (
	"net/http/httptest"
	"testing"

	"sluice.dev/sluice/admission/api/pages/browser"
)

// pictures are the pages of which pictures are kept.
var pictures = []struct{ name, path string }{
	{"overview", "/ui/"},
	{"queues", "/ui/queues?resource=nvidia.com%2Fgpu"},
	{"queue", "/ui/queue?name=vision&resource=nvidia.com%2Fgpu"},
	{"gangs", "/ui/jobs"},
	{"gang", "/ui/job?name=speech%2Falign"},
	{"running", "/ui/job?name=serving%2Frank"},
	{"map", "/ui/map"},
	{"drift", "/ui/drift"},
	{"what-if", "/ui/what-if?queue=vision&weight=0"},
}

// Every page, on every screen: nothing is wider than the screen, and the console has
// nothing to say.
func TestPagesInChromium(t *testing.T) {
	b := browser.Open(t)
	s := httptest.NewServer(serve(fleetAt(t, afternoon), history(t)))
	defer s.Close()
	for _, screen := range browser.Screens {
		b.Show(screen)
		for _, p := range pictures {
			b.Visit(s.URL + p.path)
			wide := browser.Eval[int64](b, "document.documentElement.scrollWidth")
			if wide > screen.Width {
				t.Errorf("%s is %d pixels wide on %s", p.path, wide, screen.Name)
			}
			t.Log(b.Picture(p.name + "-" + screen.Name))
			for _, c := range b.Complaints() {
				t.Errorf("%s on %s: %s", p.path, screen.Name, c)
			}
		}
	}
}
