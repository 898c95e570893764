package ceiling_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/test/rig"
)

const (
	secret    = "a secret for bearer tokens, of more than 32 bytes"
	megabytes = 64
	workers   = 16
	most      = 15_000 // acquires, some three times as many as there is memory for
)

type server struct {
	*rig.Replica
	t      *testing.T
	bearer string
	client *http.Client
}

type answer struct {
	status int
	header http.Header
	fields struct {
		Token, Code        string
		MayHaveTakenEffect *bool `json:"may_have_taken_effect"`
	}
	text []byte
}

func (s *server) call(method, path, token, body string) answer {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.URL()+path, strings.NewReader(body))
	if err != nil {
		s.t.Error(err)
		return answer{}
	}
	req.Header.Set("Authorization", "Bearer "+s.bearer)
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Lock-Token", token)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		s.t.Error(err)
		return answer{}
	}
	defer resp.Body.Close()
	a := answer{status: resp.StatusCode, header: resp.Header}
	if a.text, err = io.ReadAll(resp.Body); err != nil {
		s.t.Error(err)
	}
	_ = json.Unmarshal(a.text, &a.fields) // metrics are none
	return a
}

// anonymous is how much memory the server has that is of no file, in bytes.
func (s *server) anonymous() int {
	s.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.PID()))
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "RssAnon:" {
			n, err := strconv.Atoi(fields[1])
			if err != nil {
				s.t.Fatal(err)
			}
			return n << 10
		}
	}
	s.t.Fatal("nobody says how much memory the server has")
	return 0
}

// fill has locks taken until one is refused with 503, and returns that answer and the tokens.
func (s *server) fill() (refused answer, tokens map[string]string) {
	s.t.Helper()
	body := fmt.Sprintf(`{"ttl_seconds":600,"metadata":{"k":%q}}`, strings.Repeat("v", 2000))
	var mu sync.Mutex
	var running sync.WaitGroup
	tokens, taken := map[string]string{}, 0
	next := func() (string, bool) {
		mu.Lock()
		defer mu.Unlock()
		taken++
		return fmt.Sprintf("fill:%d", taken), refused.status == 0 && taken < most
	}
	for range workers {
		running.Go(func() {
			for name, more := next(); more; name, more = next() {
				a := s.call(http.MethodPost, "/locks/"+name, "", body)
				mu.Lock()
				if a.status == http.StatusCreated {
					tokens[name] = a.fields.Token
				} else {
					refused = a
				}
				mu.Unlock()
			}
		})
	}
	running.Wait()
	return refused, tokens
}

// releaseAll releases what fill took, while there is no memory for anything new.
func (s *server) releaseAll(tokens map[string]string) {
	s.t.Helper()
	names := make(chan string)
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for name := range names {
				if a := s.call(http.MethodDelete, "/locks/"+name, tokens[name], ""); a.status != http.StatusNoContent {
					s.t.Errorf("a release is answered %d %s", a.status, a.text)
				}
			}
		})
	}
	for name := range tokens {
		names <- name
	}
	close(names)
	running.Wait()
}

// TestFull: a server that has no memory for new work says so at once, stays below what it may
// use, goes on with what is held, and takes new work when there is room again.
func TestFull(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	dir := t.TempDir()
	api, err := rig.BuildAPI(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	r, err := rig.StartReplica(ctx, rig.ReplicaConfig{
		Binary: api, DataDir: filepath.Join(dir, "data"), Secret: secret, Args: []string{"--memory-mb", strconv.Itoa(megabytes)},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}()
	s := &server{Replica: r, t: t, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: workers}}}
	defer s.client.CloseIdleConnections()
	if s.bearer, err = r.Token("acme", "locks:read locks:write", "filler"); err != nil {
		t.Fatal(err)
	}
	held := s.call(http.MethodPost, "/locks/held", "", `{"ttl_seconds":600}`)
	refused, tokens := s.fill()
	f := refused.fields
	if refused.status != http.StatusServiceUnavailable || f.Code != "memory_full" || refused.header.Get("Retry-After") == "" || f.MayHaveTakenEffect == nil || *f.MayHaveTakenEffect {
		t.Fatalf("after %d locks: %d %s", len(tokens), refused.status, refused.text)
	}
	if n := s.anonymous(); n > megabytes<<20 {
		t.Errorf("with %d locks it has %d MiB, and may have %d", len(tokens), n>>20, megabytes)
	}
	if a := s.call(http.MethodPut, "/locks/held/renew", held.fields.Token, ""); a.status != http.StatusOK {
		t.Errorf("a renewal is answered %d %s", a.status, a.text)
	}
	if a := s.call(http.MethodGet, "/metrics", "", ""); !strings.Contains(string(a.text), "fencepost_memory_full 1") {
		t.Error("the metrics do not say so")
	}
	s.releaseAll(tokens)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for a := (answer{}); a.status != http.StatusCreated; <-tick.C {
		if a = s.call(http.MethodPost, "/locks/after", "", ""); ctx.Err() != nil {
			t.Fatalf("after all were released: %d %s", a.status, a.text)
		}
	}
	t.Logf("%d locks were taken", len(tokens))
}
