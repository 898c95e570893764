package handlers_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/handlers"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/telemetry"
	"github.com/fencepost/fencepost/test/bubble"
	"github.com/fencepost/fencepost/test/poll"
)

// requests reads the histogram of requests: the number of waiting requests, and of the others
// not.
func requests(t *testing.T, exposition http.Handler) (slow, all map[bool]int) {
	t.Helper()
	w := httptest.NewRecorder()
	exposition.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	slow, all = map[bool]int{}, map[bool]int{}
	for lines := bufio.NewScanner(w.Body); lines.Scan(); {
		line := lines.Text()
		wait, count := strings.Contains(line, `wait="true"`), 0
		if _, err := fmt.Sscan(line[strings.LastIndexByte(line, ' ')+1:], &count); err != nil {
			continue
		}
		switch {
		case strings.HasPrefix(line, "fencepost_http_request_duration_seconds_count{"):
			slow[wait] += count
			all[wait] += count
		case strings.HasPrefix(line, "fencepost_http_request_duration_seconds_bucket{") &&
			strings.Contains(line, `le="1"`):
			slow[wait] -= count
		}
	}
	return slow, all
}

// TestWaitsAreNotSlow: requests that wait for a lock, for a grant, or for what happens, put nothing
// into the figures that say how fast the server is.
func TestWaitsAreNotSlow(t *testing.T) {
	t.Parallel()
	tel, err := telemetry.Setup(t.Context(), telemetry.Config{LogWriter: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tel.Shutdown(context.Background()) })
	h := shared.handlers(shared.main.service)
	h.Console, h.Metrics = shared.main.console, tel.Metrics()
	server := httptest.NewServer(handlers.New(h))
	r := &replica{server: server, url: server.URL, transport: &http.Transport{}}
	t.Cleanup(r.close)
	c := newTenant(t)
	c.acquire("a")
	waits := c.post("/locks/a", body(`{"wait_seconds":60,"async":true}`)).waiting(http.StatusAccepted)
	set := c.post("/locksets", body(`{"locks":[{"name":"a"}],"wait_seconds":60,"async":true}`)).
		known(http.StatusAccepted)
	const long = 1500 * time.Millisecond
	var asking sync.WaitGroup
	for _, ask := range []func(){
		func() { c.at(r).post("/locks/a", body(`{"wait_seconds":1.5}`)) },
		func() { c.at(r).post("/locksets", body(`{"locks":[{"name":"a"}],"wait_seconds":1.5}`)) },
		func() { c.at(r).get(entryPath(waits)+"?wait_seconds=1.5", lockToken(waits.Token)) },
		func() { c.at(r).get("/locksets/"+set.ID+"?wait_seconds=1.5", lockToken(set.Token)) },
		func() { c.stay(r, "/events", auth.LocksRead, long) },
		func() { c.stay(r, "/admin/events", auth.TenantAdmin, long) },
	} {
		asking.Go(ask)
	}
	asking.Wait()
	var slow, all map[bool]int
	poll.Until(t, "all are counted", func() bool {
		slow, all = requests(t, tel.MetricsHandler())
		return all[true]+all[false] == 6
	})
	if slow[false] != 0 || all[true] != 6 ||
		slow[true] == 0 { // a store that does not answer ends a wait early
		t.Errorf("slow are %v of %v", slow, all)
	}
}

// stay reads a stream for a while.
func (c *client) stay(r *replica, path string, scope auth.Scope, d time.Duration) {
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	as := c.as(func(cl *auth.Claims) { cl.Scopes = []auth.Scope{scope} })
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url+path, http.NoBody)
	if err != nil {
		c.t.Error(err)
		return
	}
	req.Header.Set("Authorization", "Bearer "+as.bearer)
	resp, err := r.transport.RoundTrip(req)
	if err != nil {
		c.t.Error(err)
		return
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		c.t.Errorf("%s is answered %d", path, resp.StatusCode)
	}
	time.AfterFunc(d, cancel)
	_, _ = io.Copy(io.Discard, resp.Body) // until it is cut
}

// trickle is a body that comes slowly.
type trickle struct {
	text *strings.Reader
	over time.Duration
}

func (b *trickle) Read(p []byte) (int, error) {
	<-time.After(b.over / 2)
	return b.text.Read(p)
}

// took notes how long requests are said to have taken.
type took struct {
	handlers.RequestMetrics
	all []time.Duration
}

func (*took) RequestStarted()                      {}
func (*took) QuotaRefused(context.Context, string) {}
func (m *took) RequestDone(_ context.Context, _, _ string, _ int, _ bool, d time.Duration) {
	m.all = append(m.all, d)
}

// TestSlowBodyIsNotSlow: how long a client takes to send its body says nothing of how fast the
// server is.
func TestSlowBodyIsNotSlow(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		m := &took{}
		h := shared.handlers(&stub{err: &lock.Error{Code: lock.StoreUnavailable, Detail: "away"}})
		h.Metrics, h.Verifier = m, verdicts{}
		r := httptest.NewRequest("POST", "/locks/a", &trickle{strings.NewReader(`{}`), 8 * time.Second})
		r.ContentLength = 2
		r.Header.Set("Authorization", "Bearer acme")
		r.Header.Set("Content-Type", "application/json")
		began := time.Now()
		handlers.New(h).ServeHTTP(httptest.NewRecorder(), r)
		if whole := time.Since(began); whole < 8*time.Second || len(m.all) != 1 ||
			slices.Max(m.all) > time.Second {
			t.Errorf("after %v it is said to have taken %v", whole, m.all)
		}
	})
}
