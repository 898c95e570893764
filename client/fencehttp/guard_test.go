package fencehttp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/fencepost/fencepost/client/fencehttp"
)

// guardCase is explained in clients/vectors/http/README.md.
type guardCase struct {
	Name            string
	Optional, Fails bool
	Resource        string
	Requests        []struct {
		Send             string
		Fence            []string
		Status           int
		Handler          *uint64
		Code             string
		Presented, Known uint64
	}
}

// TestCases: the guard does what clients/vectors/http says, like those of other languages.
func TestCases(t *testing.T) {
	text, err := os.ReadFile("../../clients/vectors/http/fence.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []guardCase
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 8 {
		t.Errorf("there are %d cases", len(cases))
	}
	for _, c := range cases {
		t.Run(c.Name, c.play)
	}
}

func (c guardCase) play(t *testing.T) {
	var refused []fencehttp.Stale
	ran := 0
	guard := fencehttp.Guard{
		Store: &fencehttp.Memory{}, Optional: c.Optional,
		OnStale: func(_ *http.Request, s fencehttp.Stale) { refused = append(refused, s) },
	}
	if c.Resource == "account" {
		guard.Resource = account
	}
	if c.Fails {
		guard.Store = failing{}
	}
	server := httptest.NewServer(guard.Wrap(
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ran++
			fence, _ := fencehttp.Fence(r.Context())
			fmt.Fprint(w, fence)
		}),
	))
	defer server.Close()
	for _, want := range c.Requests {
		refused, ran = nil, 0
		method, path, _ := strings.Cut(want.Send, " ")
		got := send(t, method, server.URL+path, want.Fence)
		at := fmt.Sprintf("%s with %q", want.Send, want.Fence)
		if got.status != want.Status && (!c.Fails || got.status < want.Status) {
			t.Fatalf("%s: status %d", at, got.status)
		}
		if handled := want.Status == http.StatusOK; handled != (ran == 1) {
			t.Errorf("%s: the handler ran %d times", at, ran)
		}
		if want.Handler != nil && got.body != strconv.FormatUint(*want.Handler, 10) {
			t.Errorf("%s: the handler has the fence %s", at, got.body)
		}
		if want.Code != "" {
			got.isProblem(t, at, want.Status, want.Code, want.Presented, want.Known)
		}
		if len(refused) != min(int(want.Known), 1) {
			t.Errorf("%s: the guard reports %v", at, refused)
		}
		for _, s := range refused {
			if s.Presented != want.Presented || s.Known != want.Known || s.Resource == "" {
				t.Errorf("%s: the guard reports %v", at, s)
			}
		}
	}
}

// TestDefaultResourceHasOneSpelling: an old fence does not reach the handler by another spelling of
// the path. Handlers of subtrees see them, and routers that clean paths.
func TestDefaultResourceHasOneSpelling(t *testing.T) {
	handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if fence, _ := fencehttp.Fence(r.Context()); fence != 34 {
			t.Errorf("%s has the fence %d", r.RequestURI, fence)
		}
	})
	mux := http.NewServeMux()
	mux.Handle("/accounts/", handler)
	for name, routed := range map[string]http.Handler{"mux": mux, "cleaning": handler} {
		guard := fencehttp.Guard{Store: &fencehttp.Memory{}}.Wrap(routed)
		for i, target := range []string{
			"/accounts/7", "/accounts/7", "/accounts/7/", "/accounts/%37", "http://a/accounts/7",
			"http://b/accounts/7/", "//accounts/7", "/accounts//7", "/accounts/./7", "/x/../accounts/7",
			"/accounts/7?a=b", "/accounts/%37%2F",
		} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPut, target, nil)
			if strings.HasPrefix(target, "//") { // NewRequest reads a host
				r = httptest.NewRequestWithContext(t.Context(), http.MethodPut, "/", nil)
				r.URL.Path, r.RequestURI = target, target
			}
			r.Header.Set(fencehttp.Header, map[bool]string{true: "34", false: "33"}[i == 0])
			w := httptest.NewRecorder()
			guard.ServeHTTP(w, r)
			if i > 0 && w.Code != http.StatusConflict {
				t.Errorf("%s, %s: status %d", name, target, w.Code)
			}
		}
	}
}

func account(r *http.Request) string {
	rest, ok := strings.CutPrefix(r.URL.Path, "/accounts/")
	if !ok {
		return ""
	}
	id, _, _ := strings.Cut(rest, "/")
	return "account:" + id
}

type failing struct{}

func (failing) Raise(context.Context, string, uint64) (uint64, error) {
	return 0, errors.New("the store does not answer")
}

type answer struct {
	status      int
	contentType string
	body        string
}

func send(t *testing.T, method, url string, fences []string) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header[fencehttp.Header] = fences
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header.Get("Content-Type"), string(body)}
}

func (a answer) isProblem(
	t *testing.T, at string, status int, code string, presented, known uint64,
) {
	t.Helper()
	var p struct {
		Status    int
		Code      string
		Presented uint64 `json:"fence_presented"`
		Known     uint64 `json:"fence_known"`
	}
	if err := json.Unmarshal([]byte(a.body), &p); err != nil {
		t.Fatalf("%s: %v in %s", at, err, a.body)
	}
	if a.contentType != "application/problem+json" || p.Status != status || p.Code != code ||
		p.Presented != presented || p.Known != known {
		t.Errorf("%s: %s %s", at, a.contentType, a.body)
	}
}

// TestMemoryIsAtomic: of many fences that are raised at once, the greatest remains.
func TestMemoryIsAtomic(t *testing.T) {
	var store fencehttp.Memory
	var all sync.WaitGroup
	for fence := range uint64(1000) {
		all.Go(func() { _, _ = store.Raise(t.Context(), "r", fence) })
	}
	all.Wait()
	if known, _ := store.Raise(t.Context(), "r", 1); known != 999 {
		t.Errorf("the greatest fence is %d", known)
	}
}
