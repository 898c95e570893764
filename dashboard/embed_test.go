package dashboard_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/fencepost/fencepost/dashboard"
)

func pages(t *testing.T, files fstest.MapFS) *dashboard.Pages {
	t.Helper()
	p, err := dashboard.New(files)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func built() fstest.MapFS {
	return fstest.MapFS{
		"placeholder.txt":         {Data: []byte("x")},
		"index.html":              {Data: []byte("<!doctype html>page")},
		"assets/app-1a2B_-c3.js":  {Data: []byte(strings.Repeat("script ", 100))},
		"assets/theme.js":         {Data: []byte("theme")},
		"assets/app-12345678.css": {Data: []byte("css")},
		"assets/icon.svg":         {Data: []byte("<svg/>")},
	}
}

// get asks for the page, or with a name for a file of it.
func get(t *testing.T, p *dashboard.Pages, name, accept string) (*httptest.ResponseRecorder, bool) {
	t.Helper()
	w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(
		t.Context(), http.MethodGet, "/dashboard/", http.NoBody,
	)
	if accept != "" {
		r.Header.Set("Accept-Encoding", accept)
	}
	if name == "" {
		p.ServePage(w, r)
		return w, true
	}
	return w, p.ServeAsset(w, r, name)
}

func TestFiles(t *testing.T) {
	p := pages(t, built())
	const forEver, ask = "public, max-age=31536000, immutable", "no-cache"
	for name, want := range map[string]struct{ kind, lasts, text string }{
		"":                 {"text/html; charset=utf-8", ask, "<!doctype html>page"},
		"app-1a2B_-c3.js":  {"text/javascript; charset=utf-8", forEver, strings.Repeat("script ", 100)},
		"theme.js":         {"text/javascript; charset=utf-8", ask, "theme"},
		"app-12345678.css": {"text/css; charset=utf-8", forEver, "css"},
		"icon.svg":         {"image/svg+xml", ask, "<svg/>"},
	} {
		w, found := get(t, p, name, "")
		h := w.Header()
		if !found || w.Code != 200 || w.Body.String() != want.text ||
			h.Get("Content-Type") != want.kind || h.Get("Cache-Control") != want.lasts {
			t.Errorf("%q: %t, %d, %v, %.40q", name, found, w.Code, h, w.Body)
		}
	}
	for _, name := range []string{
		"none.js", "", "../index.html", "index.html", "placeholder.txt", "assets/theme.js",
	} {
		if _, found := get(t, p, "x"+name, ""); found {
			t.Errorf("there is a file %q", name)
		}
	}
}

// The policy is what keeps scripts of others out, should a name of theirs ever get into
// the page as HTML.
func TestPolicy(t *testing.T) {
	p := pages(t, built())
	for _, name := range []string{"", "theme.js"} {
		w, _ := get(t, p, name, "")
		const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
		h := w.Header()
		if h.Get("Content-Security-Policy") != policy || h.Get("X-Content-Type-Options") != "nosniff" ||
			h.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%q: %v", name, h)
		}
	}
}

func TestCompressed(t *testing.T) {
	p := pages(t, built())
	for accept, small := range map[string]bool{
		"": false, "gzip": true, "br, gzip": true, "gzip;q=0.5": true, "GZIP; q=1": true,
		"gzip;q=0": false, "gzip; q=0.0": false, "br": false, "x-gzip": false,
	} {
		w, _ := get(t, p, "app-1a2B_-c3.js", accept)
		var body io.Reader = w.Body
		if got := w.Header().Get("Content-Encoding") ==
			"gzip"; got != small || w.Header().Get("Vary") != "Accept-Encoding" {
			t.Errorf("%q: compressed is %t; %v", accept, got, w.Header())
			continue
		}
		if small {
			z, err := gzip.NewReader(w.Body)
			if err != nil {
				t.Fatal(err)
			}
			body = z
		}
		if text, err := io.ReadAll(body); err != nil || string(text) != strings.Repeat("script ", 100) {
			t.Errorf("%q: %q, %v", accept, text, err)
		}
	}
}

// A server without the dashboard starts, and says how to get it.
func TestNotBuilt(t *testing.T) {
	w, _ := get(t, pages(t, fstest.MapFS{"placeholder.txt": {}}), "", "")
	if w.Code != 200 || !strings.Contains(w.Body.String(), "make build") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if _, err := dashboard.Built(); err != nil {
		t.Error(err)
	}
}
