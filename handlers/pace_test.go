package handlers_test

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/handlers"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/test/bubble"
)

// paced is a router whose clients all come at once.
type paced struct {
	http.Handler
	all sync.WaitGroup

	from string // the address of the client; "" is any

	mu     sync.Mutex
	status map[int]int // how many answers have it
}

func newPaced() *paced {
	h := shared.handlers(&stub{})
	h.Verifier = verdicts{}
	return &paced{Handler: handlers.New(h), status: map[int]int{}}
}

// ask sends a request with the bearer token, or without any.
func (p *paced) ask(ctx context.Context, path, bearer string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, path, http.NoBody)
	if bearer != "" {
		r.Header.Set("Authorization", "Bearer "+bearer)
	}
	r.RemoteAddr = cmp.Or(p.from, r.RemoteAddr)
	out := httptest.NewRecorder()
	p.ServeHTTP(out, r)
	return out
}

// begin has n requests come at once, and returns when all that can have been answered.
func (p *paced) begin(n int, path, bearer string) {
	for range n {
		p.all.Go(func() {
			status := p.ask(context.Background(), path, bearer).Code
			p.mu.Lock()
			defer p.mu.Unlock()
			p.status[status]++
		})
	}
	synctest.Wait()
}

// atOnce is how many requests without authentication begin at once.
func atOnce() int { return handlers.PacedAtOnce * runtime.GOMAXPROCS(0) }

// TestRequestsWithoutAuthenticationArePaced: whatever they ask for, few begin at once, and the next
// ones after a pause. Requests of tokens that are known run meanwhile.
func TestRequestsWithoutAuthenticationArePaced(t *testing.T) {
	for _, c := range []struct {
		path, bearer string
		status       int
	}{
		{"/healthz", "", http.StatusOK},
		{"/nowhere", "", http.StatusNotFound},
		{"/locks", "", http.StatusUnauthorized},
		{"/locks", "bad", http.StatusUnauthorized},
		{"/locks", "new", http.StatusForbidden}, // it becomes known by that
	} {
		t.Run(c.path+" "+c.bearer, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				p := newPaced()
				const pauses = 10
				began, most := time.Now(), atOnce()
				p.begin(most*pauses, c.path, c.bearer)
				if n := p.status[c.status]; n != most {
					t.Errorf("%d run at once, want %d", n, most)
				}
				if a := p.ask(t.Context(), "/locks", "known"); a.Code != http.StatusOK {
					t.Errorf("a known token is answered %d", a.Code)
				}
				if d := time.Since(began); d != 0 {
					t.Errorf("a known token waits for %s", d)
				}
				p.all.Wait()
				if d := time.Since(began); d != (pauses-1)*handlers.PacePause {
					t.Errorf("all have run after %s", d)
				}
				if n := p.status[c.status]; n != most*pauses {
					t.Errorf("%v are answered", p.status)
				}
			})
		})
	}
}

// TestPaceAlternatesBetweenAddresses: a probe of one address comes after one request of each other.
func TestPaceAlternatesBetweenAddresses(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := newPaced()
		p.begin(100*atOnce(), "/healthz", "")
		began := time.Now()
		r := httptest.NewRequest(http.MethodGet, "/healthz", http.NoBody)
		r.RemoteAddr = "[2001:db8::1]:80"
		p.ServeHTTP(httptest.NewRecorder(), r)
		if d := time.Since(began); d != handlers.PacePause {
			t.Errorf("it waits for %s", d)
		}
		p.all.Wait()
	})
}

// TestPaceHasABound: more requests of one address than may wait, and heads that take too much
// memory, are rejected at once, and their connections end.
func TestPaceHasABound(t *testing.T) {
	for name, head := range map[string]int{"of requests": 0, "of bytes": 16 << 10} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				p := newPaced()
				began, most := time.Now(), handlers.MaxPacedOfAddress
				if head > 0 {
					most = handlers.MaxHeadsOfAddress / (head + 1)
				}
				path := "/" + strings.Repeat("x", head)
				p.begin(atOnce()+most+10, path, "")
				if n := p.status[http.StatusTooManyRequests]; n != 10 {
					t.Errorf("%d are rejected", n)
				}
				a := p.ask(t.Context(), path, "")
				if a.Code != http.StatusTooManyRequests || a.Header().Get("Connection") != "close" {
					t.Errorf("%d %v", a.Code, a.Header())
				}
				if d := time.Since(began); d != 0 {
					t.Errorf("the rejection took %s", d)
				}
				p.all.Wait()
				if a := p.ask(t.Context(), path, ""); a.Code != http.StatusNotFound {
					t.Errorf("afterwards %d", a.Code)
				}
			})
		})
	}
}

// TestNoAddressesKeepAProbeFromWaiting: whatever some addresses send, a request of another one has
// its turn.
func TestNoAddressesKeepAProbeFromWaiting(t *testing.T) {
	for name, head := range map[string]int{"by number": 0, "by bytes": 16<<10 - 1} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				const addresses = 4
				p := newPaced()
				path := "/" + strings.Repeat("x", head)
				for i := range addresses {
					p.from = fmt.Sprintf("198.51.100.%d:80", i+1)
					p.begin(handlers.MaxPacedOfAddress>>min(1, head), path, "")
				}
				p.from = "192.0.2.9:80"
				began := time.Now()
				if a := p.ask(t.Context(), "/healthz", ""); a.Code != http.StatusOK {
					t.Errorf("a probe of another address is answered %d", a.Code)
				}
				turns := time.Duration(addresses/atOnce() + 1) // one address after another
				if d := time.Since(began); d != turns*handlers.PacePause {
					t.Errorf("it waits for %s", d)
				}
				p.all.Wait()
			})
		})
	}
}

// TestRequestsOverTheRateArePaced: those of a tenant, next to which another tenant's requests run.
func TestRequestsOverTheRateArePaced(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		h := shared.handlers(&stub{})
		h.Verifier = verdicts{}
		h.Quotas = &brokenQuotas{shared.quotas, func() error {
			return &lock.Error{Code: lock.RateLimited, Detail: "x"}
		}, true}
		p := &paced{Handler: handlers.New(h), status: map[int]int{}}
		began := time.Now()
		p.begin(3*atOnce(), "/locks", "known")
		if n := p.status[http.StatusTooManyRequests]; n != atOnce() {
			t.Errorf("%d are answered at once", n)
		}
		if a := p.ask(t.Context(), "/healthz", ""); a.Code != http.StatusOK {
			t.Errorf("a probe is answered %d", a.Code)
		}
		if d := time.Since(began); d != handlers.PacePause {
			t.Errorf("the probe waits for %s", d)
		}
		p.all.Wait()
	})
}

// one is a listener of one connection.
type one struct {
	net.Listener
	conn net.Conn
}

func (l one) Accept() (net.Conn, error) { return l.conn, nil }

// TestPaceAndConnectionsThatAreClosed: over HTTP/2 requests that wait end before their contexts,
// which is no fault of the server.
func TestPaceAndConnectionsThatAreClosed(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := newPaced()
		p.begin(2*atOnce(), "/healthz", "")
		here, there := net.Pipe()
		defer there.Close()
		conn, err := handlers.NewConnections(1).Listener(one{conn: here}).Accept()
		if err != nil {
			t.Fatal(err)
		}
		ctx := handlers.ConnContext(context.Background(), conn)
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/healthz", http.NoBody)
		r.ProtoMajor = 2
		out, ended := httptest.NewRecorder(), make(chan struct{})
		go func() {
			defer close(ended)
			defer func() { _ = recover() }() // closes the connection
			p.ServeHTTP(out, r)
		}()
		synctest.Wait()
		_ = conn.Close()
		<-ended
		if out.Code == http.StatusInternalServerError || out.Body.Len() > 0 {
			t.Errorf("it is answered %d %s", out.Code, out.Body)
		}
		p.all.Wait()
	})
}

// TestPaceAndClientsThatAreGone: over HTTP/1.1 a request ends with its client. Over HTTP/2, where a
// reset costs a client nothing, it waits for what it takes of the rate.
func TestPaceAndClientsThatAreGone(t *testing.T) {
	for major, waits := range map[int]bool{1: false, 2: true} {
		bubble.Test(t, func(t *testing.T) {
			p := newPaced()
			p.begin(2*atOnce(), "/healthz", "")
			ctx, cancel := context.WithCancel(t.Context())
			began, ended := time.Now(), make(chan struct{})
			go func() {
				defer close(ended)
				r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/healthz", http.NoBody)
				r.ProtoMajor = major
				defer func() { _ = recover() }() // closes the connection
				p.ServeHTTP(httptest.NewRecorder(), r)
			}()
			synctest.Wait()
			cancel()
			<-ended
			if waited := time.Since(began) > 0; waited != waits {
				t.Errorf("HTTP/%d: it waits: %t", major, waited)
			}
			p.all.Wait()
		})
	}
}
