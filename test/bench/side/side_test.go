package side_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/test/bench/load"
	"github.com/fencepost/fencepost/test/bench/side"
	"github.com/fencepost/fencepost/test/rig"
)

// request is what the stand-in for the API server saw.
type request struct {
	Method, Path, Authorization, LockToken, Body string
}

func standIn(t *testing.T, answer func(w http.ResponseWriter, r *http.Request)) (*url.URL, *[]request) {
	var seen []request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		seen = append(seen, request{r.Method, r.URL.Path, r.Header.Get("Authorization"), r.Header.Get("Lock-Token"), string(body)})
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	base, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return base, &seen
}

func TestFencepostWorkerFollowsTheContract(t *testing.T) {
	grants := 0
	base, seen := standIn(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		grants++
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"id":"x","token":"token-%d","fence":%d}`, grants, 40+grants)
	})
	connections := side.NewConnections()
	defer connections.Close()
	f := side.Fencepost{Connections: connections, Bases: []*url.URL{base}, Bearers: []string{"jwt"}, WaitSeconds: 7}
	w := f.Workers(1)[0]
	for i := range 2 {
		fence, err := w.Acquire(t.Context(), "orders:1")
		if err != nil || fence != int64(41+i) {
			t.Fatalf("Acquire: fence %d, %v", fence, err)
		}
		if err := w.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	post := request{"POST", "/locks/orders:1", "Bearer jwt", "", `{"ttl_seconds":30,"wait_seconds":7}`}
	want := []request{
		post,
		{"DELETE", "/locks/orders:1", "Bearer jwt", "token-1", ""},
		post,
		{"DELETE", "/locks/orders:1", "Bearer jwt", "token-2", ""},
	}
	if diff := cmp.Diff(want, *seen); diff != "" {
		t.Error(diff)
	}
}

func TestSetWorkerFollowsTheContract(t *testing.T) {
	base, seen := standIn(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, `{"id":"x","token":"secret","locks":[{"name":"a:00","fence":41},{"name":"a:01","fence":41}]}`)
	})
	connections := side.NewConnections()
	defer connections.Close()
	f := side.Fencepost{Connections: connections, Bases: []*url.URL{base}, Bearers: []string{"jwt"}, Named: true}
	w := f.SetWorkers(1, 2)[0]
	if fence, err := w.Acquire(t.Context(), "a"); err != nil || fence != 41 {
		t.Fatalf("Acquire: fence %d, %v", fence, err)
	}
	if err := w.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []request{
		{"POST", "/locksets", "Bearer jwt", "", `{"locks":[{"name":"a:00"},{"name":"a:01"}],"ttl_seconds":30,"wait_seconds":0,"holder":"worker-0"}`},
		{"DELETE", "/locksets/x", "Bearer jwt", "secret", ""},
	}
	if diff := cmp.Diff(want, *seen); diff != "" {
		t.Error(diff)
	}
	if _, err := f.SetWorkers(1, 3)[0].Acquire(t.Context(), "a"); err == nil {
		t.Error("a set of two is taken for one of three")
	}
}

func TestAnswersOtherThanExpectedAreErrors(t *testing.T) {
	for status, quoted := range map[int]bool{http.StatusAccepted: false, http.StatusLocked: true} {
		base, _ := standIn(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			fmt.Fprint(w, `{"token":"the answer"}`)
		})
		connections := side.NewConnections()
		f := side.Fencepost{Connections: connections, Bases: []*url.URL{base}, Bearers: []string{"jwt"}}
		_, err := f.Workers(1)[0].Acquire(t.Context(), "a")
		connections.Close()
		if err == nil || !strings.Contains(err.Error(), fmt.Sprint(status)) {
			t.Errorf("%d: error %v does not name the status", status, err)
			continue
		}
		if strings.Contains(err.Error(), "the answer") != quoted {
			t.Errorf("%d: error %v; answers are quoted only when they are errors", status, err)
		}
	}
}

// TestRefusals: only an answer that says that the request had no effect is an honest one.
func TestRefusals(t *testing.T) {
	for body, refused := range map[string]bool{
		`{"code":"overloaded","may_have_taken_effect":false}`: true,
		`{"code":"overloaded","may_have_taken_effect":true}`:  false,
		`{"code":"overloaded"}`:                               false,
	} {
		base, _ := standIn(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/healthz" {
				return
			}
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(w, body) // the client would miss it
		})
		c := side.NewConnections()
		workers := side.Fencepost{Connections: c, Bases: []*url.URL{base}, Bearers: []string{"token"}}.Workers(1)
		if err := side.Connect(t.Context(), workers); err != nil {
			t.Fatal(err)
		}
		if _, err := workers[0].Acquire(t.Context(), "orders:1"); err == nil || errors.Is(err, load.ErrRefused) != refused {
			t.Errorf("%s: %v", body, err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestWorkersKeepOneConnectionEach(t *testing.T) {
	remotes := make(chan string, 100)
	base, _ := standIn(t, func(w http.ResponseWriter, r *http.Request) {
		remotes <- r.RemoteAddr
		w.WriteHeader(http.StatusNoContent)
	})
	connections := side.NewConnections()
	defer connections.Close()
	w := side.NewEmptyWorkers(connections, base, 1)[0]
	for range 10 {
		if _, err := w.Acquire(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		if err := w.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	close(remotes)
	distinct := map[string]bool{}
	for r := range remotes {
		distinct[r] = true
	}
	if len(distinct) != 1 {
		t.Errorf("20 requests over %d connections", len(distinct))
	}
}

// A worker that is told to stop while it waits hangs up, so that the server takes
// its entry back.
func TestCancelledWorkerHangsUp(t *testing.T) {
	asked, gone := make(chan struct{}, 1), make(chan struct{}, 1)
	base, _ := standIn(t, func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
		gone <- struct{}{}
	})
	connections := side.NewConnections()
	defer connections.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := side.NewEmptyWorkers(connections, base, 1)[0].Acquire(ctx, "a")
		ended <- err
	}()
	<-asked
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
	<-gone
}

func TestServeEmptyAnswersACycleAndEndsWithItsInput(t *testing.T) {
	address, out := io.Pipe()
	in, stop := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- side.ServeEmpty(out, in) }()
	line, err := bufio.NewReader(address).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	connections := side.NewConnections()
	w := side.NewEmptyWorkers(connections, &url.URL{Scheme: "http", Host: strings.TrimSpace(line)}, 1)[0]
	_, acquire := w.Acquire(t.Context(), "a")
	release := w.Release(t.Context())
	connections.Close()
	if err := errors.Join(acquire, release, stop.Close(), <-ended); err != nil {
		t.Error(err)
	}
}

// The peers are real: each of them takes and gives back locks on one etcd.
func TestPeersOnEtcd(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	dir := t.TempDir()
	binary, err := rig.BuildEtcd(ctx)
	if err != nil {
		t.Fatal(err)
	}
	etcd, err := rig.StartEtcd(ctx, rig.EtcdConfig{Dir: dir, Binary: binary})
	if err != nil {
		t.Fatal(err)
	}
	defer etcd.Close()
	client, err := etcd.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	sessions, err := side.NewSessions(client, 4)
	if err != nil {
		t.Fatal(err)
	}
	connections := side.NewConnections()
	defer connections.Close()
	base := &url.URL{Scheme: "http", Host: etcd.Endpoints()[0]}
	for name, workers := range map[string][]load.Worker{
		"mutex":  sessions.Workers(4),
		"v3lock": side.NewV3LockWorkers(connections, []*url.URL{base}, 4),
	} {
		r, err := load.Closed{
			Workers: workers, Duration: 300 * time.Millisecond, Record: true,
			Name: func(int, int) string { return "one" },
		}.Run(ctx)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := r.History.CheckExclusion(); err != nil || len(r.History) < 8 {
			t.Errorf("%s: %d grants, %v", name, len(r.History), err)
		}
	}
	put := side.NewPutWorkers(client, 1)[0]
	if fence, err := put.Acquire(ctx, "key"); err != nil || fence == 0 {
		t.Errorf("put: revision %d, %v", fence, err)
	}
	if err := sessions.Close(); err != nil {
		t.Error(err)
	}
	checkNothingLeft(t, base)
}

// checkNothingLeft finds no lease and no lock after all were given back.
func checkNothingLeft(t *testing.T, base *url.URL) {
	t.Helper()
	for path, list := range map[string]string{"/v3/lease/leases": "leases", "/v3/kv/range": "kvs"} {
		body := `{"key":"b25lLw==","range_end":"b25lMA=="}` // every key below "one/"
		if list == "leases" {
			body = "{}"
		}
		req, err := http.NewRequest(http.MethodPost, base.String()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		var answer map[string]any
		err = json.NewDecoder(resp.Body).Decode(&answer)
		if err := errors.Join(err, resp.Body.Close()); err != nil || answer["header"] == nil || answer[list] != nil {
			t.Errorf("%s: %v, error %v; want no %s", path, answer, err, list)
		}
	}
}

func TestClientOfEntriesThatWait(t *testing.T) {
	posted := 0
	base, seen := standIn(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodPost:
			posted++
			w.WriteHeader([]int{http.StatusCreated, http.StatusServiceUnavailable, http.StatusAccepted, http.StatusServiceUnavailable}[posted-1])
			fmt.Fprintf(w, `{"id":"entry-%d","token":"token-%d","fence":7,"may_have_taken_effect":%t}`, posted, posted, posted > 3)
		case http.MethodDelete:
			w.WriteHeader(http.StatusNoContent)
		}
	})
	connections := side.NewConnections()
	defer connections.Close()
	c := side.Fencepost{Connections: connections, Bases: []*url.URL{base}, Bearers: []string{"jwt"}}.Clients(1)[0]
	for i, of := range []int{1, 3} {
		ticket, now, refused, err := c.Ask(t.Context(), "orders:1", []byte("{}"))
		want := side.Ticket{ID: fmt.Sprintf("entry-%d", of), Name: "orders:1", Token: fmt.Sprintf("token-%d", of), Fence: 7}
		if diff := cmp.Diff(want, ticket); err != nil || now != (i == 0) || refused != i || diff != "" {
			t.Errorf("granted %t, refused %d times, %v %s", now, refused, err, diff)
		}
		if err := errors.Join(c.Renew(t.Context(), ticket), c.Release(t.Context(), ticket)); err != nil {
			t.Error(err)
		}
	}
	if _, _, _, err := c.Ask(t.Context(), "orders:1", nil); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("it may have had an effect: %v", err)
	}
	want := []request{
		{"POST", "/locks/orders:1", "Bearer jwt", "", "{}"},
		{"PUT", "/locks/orders:1/renew", "Bearer jwt", "token-1", ""},
		{"DELETE", "/locks/orders:1", "Bearer jwt", "token-1", ""},
		{"POST", "/locks/orders:1", "Bearer jwt", "", "{}"},
		{"POST", "/locks/orders:1", "Bearer jwt", "", "{}"},
		{"PUT", "/locks/orders:1/renew", "Bearer jwt", "token-3", ""},
		{"DELETE", "/locks/orders:1", "Bearer jwt", "token-3", ""},
		{"POST", "/locks/orders:1", "Bearer jwt", "", ""},
	}
	if diff := cmp.Diff(want, *seen); diff != "" {
		t.Error(diff)
	}
}

func TestStream(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	base, _ := standIn(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery != "types=a,b" || r.Header.Get("Authorization") != "Bearer jwt" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		fmt.Fprintf(w, "retry: 1000\nid: 1-0\n\n:\n\nid: 2-1\nevent: e\ndata: one\n\ndata: %s\n\n", long)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	connections := side.NewConnections()
	defer connections.Close()
	f := side.Fencepost{Connections: connections, Bases: []*url.URL{base}, Bearers: []string{"jwt"}}
	if _, err := f.Follow(t.Context(), 0, "/events"); err == nil || !strings.Contains(err.Error(), "400") {
		t.Errorf("a refusal: %v", err)
	}
	s, err := f.Follow(t.Context(), 0, "/events?types=a,b")
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	err = s.Read(func(data []byte) {
		if told = append(told, strings.TrimSpace(string(data))); len(told) == 2 {
			s.Close()
		}
	})
	if diff := cmp.Diff([]string{"one", long}, told); err == nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
}
