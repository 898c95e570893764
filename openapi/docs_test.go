package openapi_test

import (
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/openapi"
)

func get(t *testing.T, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	openapi.Docs().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", path, nil))
	return w
}

// parts are the files that the page names in its HTML.
func parts(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, m := range regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllStringSubmatch(
		get(t, "/docs/").Body.String(), -1,
	) {
		names = append(names, m[1])
	}
	if len(names) < 4 {
		t.Fatalf("the page loads %q, which cannot be all", names)
	}
	return names
}

func TestDocsServesWhatThePageLoads(t *testing.T) {
	types := map[string]string{
		"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "png": "image/png",
	}
	for _, name := range parts(t) {
		w := get(t, "/docs/"+name)
		_, suffix, _ := strings.Cut(name[strings.LastIndex(name, "."):], ".")
		if got := w.Header().Get(
			"Content-Type",
		); w.Code != 200 || w.Body.Len() == 0 || got != types[suffix] {
			t.Errorf("%s: %d, %d bytes of %q", name, w.Code, w.Body.Len(), got)
		}
	}
}

func TestDocsWorksBehindAPrefix(t *testing.T) {
	for _, path := range []string{
		"/docs/", "/locks-api/docs/", "/docs/start.js", "/locks-api/docs/start.js",
	} {
		if w := get(t, path); w.Code != 200 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

// The policy is what keeps the page from other hosts; the files must be fit for it.
func TestDocsStaysAtHome(t *testing.T) {
	for _, path := range append(parts(t), "") {
		h := get(t, "/docs/"+path).Header()
		policy := h.Get("Content-Security-Policy")
		if !strings.HasPrefix(policy, "default-src 'none'; ") || strings.Contains(policy, "unsafe") ||
			strings.Contains(policy, "http") {
			t.Errorf("%q: the policy is %q", path, policy)
		}
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%q: headers %v", path, h)
		}
	}
	page := get(t, "/docs/").Body.String()
	if found := regexp.MustCompile(
		`(?i)//|<style|\son\w+=|style=|<script>`,
	).FindString(page); found != "" {
		t.Errorf("the page has %q: another host, or something inline that the policy forbids", found)
	}
	start := get(t, "/docs/start.js").Body.String()
	if strings.Contains(start, "http") || !strings.Contains(start, "validatorUrl: null") ||
		!strings.Contains(start, `"../openapi.json"`) {
		t.Errorf("the page starts with %s", start)
	}
}

func TestDocsHasNothingElse(t *testing.T) {
	for _, path := range []string{
		"/docs/index.html.map", "/docs/swagger-initializer.js", "/docs/swagger-ui.css.map",
		"/docs/index.css", "/docs/x/start.js", "/docs/../docs.go", "/start.js", "/", "/docs",
	} {
		if w := get(t, path); w.Code != 404 {
			t.Errorf("%s: %d, want 404", path, w.Code)
		}
	}
}
