// Package browser drives a headless Chromium for tests of the pages: it opens them,
// presses what people press, collects what the console complains about, and keeps
// pictures as build output.
//
// It decides nothing about what is right on a page. A machine without Chromium makes a
// test say so and skip, but for CI, where its absence is a failure.
package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// programs are the names under which systems install it.
var programs = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}

// patience bounds how long the browser may take for one thing.
const patience = time.Minute

// Browser is one window.
type Browser struct {
	t   testing.TB
	ctx context.Context

	mu       sync.Mutex
	said     []string
	pictures string
}

// Open starts a window that is closed with the test.
func Open(t testing.TB) *Browser {
	t.Helper()
	program := ""
	for _, name := range programs {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		if os.Getenv("CI") != "" {
			t.Fatal("there is no chromium on this machine, and CI has to have it")
		}
		t.Skip("there is no chromium on this machine: apt-get install chromium (or another that is called so)")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.Flag("force-color-profile", "srgb"))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // it refuses to be root otherwise
	}
	allocator, stop := chromedp.NewExecAllocator(t.Context(), options...)
	ctx, closeWindow := chromedp.NewContext(allocator)
	b := &Browser{t: t, ctx: ctx, pictures: filepath.Join(root(t), "out", "pages")}
	t.Cleanup(func() { closeWindow(); stop() })
	if err := chromedp.Listen(ctx, b.listen); err != nil {
		t.Fatalf("start %s: %v", program, err)
	}
	for _, domain := range []cdp.Command[cdp.Empty, cdp.Empty]{log.Enable, runtime.Enable} {
		if _, err := chromedp.Call(ctx, domain, cdp.Empty{}); err != nil {
			t.Fatalf("listen to the console: %v", err)
		}
	}
	return b
}

func root(t testing.TB) string {
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("there is no go.mod above this test")
		}
		dir = filepath.Dir(dir)
	}
}

// listen notes what goes wrong in the page.
func (b *Browser) listen(event any) {
	text := ""
	switch e := event.(type) {
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			text = fmt.Sprintf("%s: %s (%s)", e.Entry.Level, e.Entry.Text, e.Entry.URL)
		}
	case *runtime.EventConsoleAPICalled:
		if kind := string(e.Type); kind == "error" || kind == "warning" || kind == "assert" {
			text = "console." + kind
			for _, a := range e.Args {
				text += " " + string(a.Value)
			}
		}
	case *runtime.EventExceptionThrown:
		text = "exception: " + e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
	}
	if text != "" {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.said = append(b.said, text)
	}
}

// Complaints are what the console said since they were last asked for.
func (b *Browser) Complaints() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := b.said
	b.said = nil
	return out
}

// Do runs steps, or fails the test.
func (b *Browser) Do(what string, steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatalf("%s: %v", what, err)
	}
}

// Screen is a size of the window in CSS pixels and a choice of colours.
type Screen struct {
	Name          string
	Width, Height int64
	Dark, Phone   bool
}

// Screens are those on which pages have to be good.
var Screens = []Screen{
	{Name: "wide", Width: 1440, Height: 900},
	{Name: "narrow", Width: 1024, Height: 768},
	{Name: "phone", Width: 390, Height: 844, Phone: true},
	{Name: "wide-dark", Width: 1440, Height: 900, Dark: true},
	{Name: "phone-dark", Width: 390, Height: 844, Dark: true, Phone: true},
}

// Show makes the window so.
func (b *Browser) Show(s Screen) {
	b.t.Helper()
	colours := "light"
	if s.Dark {
		colours = "dark"
	}
	b.Do("resize to "+s.Name, chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: s.Width, Height: s.Height, DeviceScaleFactor: 1, Mobile: s.Phone})
		if err != nil {
			return err
		}
		_, err = cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: colours}}})
		return err
	}))
}

// Visit opens an address and waits until its main part is there.
func (b *Browser) Visit(address string) {
	b.t.Helper()
	b.Do("open "+address, chromedp.Navigate(address), chromedp.WaitReady("main h1"))
}

// Eval is what an expression is in the page.
func Eval[T any](b *Browser, expression string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// Until waits for an expression to be true, in this page or in one that it leads to.
func (b *Browser) Until(expression string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	var last error
	for {
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
		if ok {
			return
		}
		if ctx.Err() != nil {
			shown, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string]("location.href + ' shows ' + document.body.innerText.slice(0, 2000)"))
			b.t.Fatalf("wait for %s: %v; %s", expression, last, shown)
		}
		last = err // while a page changes there is nothing to ask
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// In makes the window's failures those of a subtest, until that ends.
func (b *Browser) In(t testing.TB) {
	before := b.t
	b.t = t
	t.Cleanup(func() { b.t = before })
}

// tallest bounds the height of a picture.
const tallest = 2400

// Picture keeps the whole page as out/pages/NAME.png.
func (b *Browser) Picture(name string) string {
	b.t.Helper()
	var png []byte
	b.Do("picture of "+name, chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		layout, err := cdp.Call(ctx, t, page.GetLayoutMetrics, cdp.Empty{})
		if err != nil {
			return err
		}
		beyond, size := true, layout.CSSContentSize
		shot, err := cdp.Call(ctx, t, page.CaptureScreenshot, page.CaptureScreenshotParams{
			CaptureBeyondViewport: &beyond, Clip: &page.Viewport{Width: size.Width, Height: min(size.Height, tallest), Scale: 1},
		})
		png = shot.Data
		return err
	}))
	path := filepath.Join(b.pictures, name+".png")
	if err := os.MkdirAll(b.pictures, 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(path, png, 0o600); err != nil {
		b.t.Fatal(err)
	}
	return path
}
