package main

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
)

// gram is how much of a secret in a row is a leak.
const gram = 16

// secrets are texts that nothing may show, nor any piece of them of a gram's length.
type secrets struct {
	mu    sync.Mutex
	grams map[string]string // what each is a piece of
	words map[string]string // secrets that are no random characters, as a whole
}

func newSecrets() *secrets {
	return &secrets{grams: map[string]string{}, words: map[string]string{}}
}

// add takes a secret of random characters. The header of a JWT is none, and a prefix neither.
func (s *secrets) add(name, text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if parts := strings.Split(text, "."); len(parts) == 3 {
		text = parts[1] + "." + parts[2]
	}
	text = strings.TrimPrefix(strings.TrimPrefix(text, "fp1_"), "whsec_")
	for at := 0; at+gram <= len(text); at++ {
		s.grams[text[at:at+gram]] = name
	}
	return text
}

func (s *secrets) addWords(name, text string) { s.words[text] = name }

// find returns the names of the secrets that a text shows.
func (s *secrets) find(text string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := map[string]bool{}
	for at := 0; at+gram <= len(text); at++ {
		if name, ok := s.grams[text[at:at+gram]]; ok {
			found[name] = true
		}
	}
	for word, name := range s.words {
		if strings.Contains(text, word) {
			found[name] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// answer is all that came back for a request, so far.
type answer struct {
	mu     sync.Mutex
	method string
	path   string
	status int
	text   bytes.Buffer
}

func (a *answer) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.text.Write(p)
}

func (a *answer) String() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.text.String()
}

// answers records what a server answers, headers and bodies, while they are read.
type answers struct {
	http.RoundTripper
	host string // of the server; others' answers are their own business

	mu  sync.Mutex
	all []*answer
}

func (r *answers) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := r.RoundTripper.RoundTrip(req)
	if err != nil || req.URL.Host != r.host {
		return resp, err
	}
	a := &answer{method: req.Method, path: req.URL.Path, status: resp.StatusCode}
	if err := resp.Header.Write(a); err != nil {
		return nil, err
	}
	r.mu.Lock()
	r.all = append(r.all, a)
	r.mu.Unlock()
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.TeeReader(resp.Body, a), resp.Body}
	return resp, nil
}

func (r *answers) list() []*answer {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all)
}

// covered fails for each operation of the document that was not answered with success.
func (r *answers) covered(t *testing.T, document map[string]any) {
	t.Helper()
	done := map[string]bool{}
	for _, a := range r.list() {
		if a.status < http.StatusBadRequest {
			done[a.method+" "+template(document, a.path)] = true
		}
	}
	paths, _ := document["paths"].(map[string]any)
	for path, operations := range paths {
		if path == "/dashboard/assets/{file}" {
			continue // there are none where the dashboard is not built
		}
		methods, _ := operations.(map[string]any)
		for method := range methods {
			if what := strings.ToUpper(method) + " " + path; !done[what] {
				t.Errorf("%s was not done: what was searched?", what)
			}
		}
	}
}

// template is the document's path for that of a request.
func template(document map[string]any, path string) string {
	paths, _ := document["paths"].(map[string]any)
	if _, ok := paths[path]; ok {
		return path
	}
	parts := strings.Split(path, "/")
	for candidate := range paths {
		if slices.EqualFunc(strings.Split(candidate, "/"), parts, func(c, p string) bool {
			return c == p || strings.HasPrefix(c, "{") && p != ""
		}) {
			return candidate
		}
	}
	return ""
}

// TestSecretsCanBeFound: what the search would miss, the long run would too.
func TestSecretsCanBeFound(t *testing.T) {
	s := newSecrets()
	s.add("a token", "fp1_abcdefghijklmnopqrstuvwxyz")
	s.add("a JWT", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4eHh4eHh4eHh4eCJ9.c2lnbmF0dXJlc2lnbmF0dXJl")
	s.addWords("words", "the client's secret")
	for text, want := range map[string]int{
		"": 0, "abcdefghijklmno": 0, "of it: cdefghijklmnopqr!": 1, "c2lnbmF0dXJlc2lnbmF0": 1,
		"eyJhbGciOiJIUzI1NiJ9": 0,
		"that client's secret": 0, "the client's secret": 1,
		"fp1_abcdefghijklmnopqrstuvwxyz eyJzdWIiOiJ4eHh4eHh4": 2,
	} {
		if found := s.find(text); len(found) != want {
			t.Errorf("in %q there is %v, want %d", text, found, want)
		}
	}
}
