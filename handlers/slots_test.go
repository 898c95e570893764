package handlers_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/handlers"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/test/bubble"
)

// slotted is a router whose store needs takes for each acquire. It tells what ran, in order.
type slotted struct {
	stub
	http.Handler
	takes time.Duration
	all   sync.WaitGroup

	mu  sync.Mutex
	ran []string // tenants and operations
}

func newSlotted(takes time.Duration) *slotted {
	s := &slotted{takes: takes}
	s.err = lock.ErrHeld()
	h := shared.handlers(s)
	h.Verifier = knownTenants{}
	s.Handler = handlers.New(h)
	return s
}

// knownTenants takes the name of a tenant for its token.
type knownTenants struct{ verdicts }

func (knownTenants) Known(raw string) *auth.Principal {
	return &auth.Principal{Tenant: raw, Subject: "x", Scopes: []auth.Scope{auth.LocksWrite}}
}

func (s *slotted) note(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ran = append(s.ran, what)
}

func (s *slotted) Acquire(_ context.Context, r service.AcquireRequest) (*service.Grant, error) {
	s.note(r.Tenant + " acquires")
	<-time.After(s.takes)
	return s.answer()
}

func (s *slotted) Release(_ context.Context, r service.TokenRequest) error {
	s.note(r.Tenant + " releases")
	return nil
}

func (s *slotted) Renew(_ context.Context, r service.TokenRequest) (*service.Grant, error) {
	s.note(r.Tenant + " renews")
	return nil, lock.LostBecause(lock.Unknown)
}

// runs returns what has run since the first so many, and their number.
func (s *slotted) runs(since int) (what []string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.ran[since:]), len(s.ran) - since
}

// ask sends a request of a tenant. It returns 0 if the request's client has left.
func (s *slotted) ask(
	ctx context.Context, tenant, method, path string, body io.Reader,
) (status int) {
	r := httptest.NewRequestWithContext(ctx, method, path, body)
	r.Header.Set("Authorization", "Bearer "+tenant)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Lock-Token", someToken)
	out := httptest.NewRecorder()
	defer func() {
		if p := recover(); p != nil && p != any(http.ErrAbortHandler) {
			panic(p)
		}
	}()
	s.ServeHTTP(out, r)
	return out.Code
}

func (s *slotted) acquire(tenant string) int {
	return s.ask(context.Background(), tenant, http.MethodPost, "/locks/a", http.NoBody)
}

// flood has a tenant acquire n times at once, and returns when all wait or run.
func (s *slotted) flood(tenant string, n int) {
	for range n {
		s.all.Go(func() { s.acquire(tenant) })
	}
	synctest.Wait()
}

func slots() int { return handlers.SlotsOfProcessor * runtime.GOMAXPROCS(0) }

// TestRequestsThatChangeEntriesTakeSlots: so many run at once. The acquire of another tenant and a
// release of the same one come next, and a renewal at once.
func TestRequestsThatChangeEntriesTakeSlots(t *testing.T) {
	const takes = handlers.SlotTime / 5
	for _, c := range []struct {
		tenant, method, path, runs string
		waits                      time.Duration
	}{
		{"other", http.MethodPost, "/locks/a", "other acquires", takes},
		{"other", http.MethodDelete, "/locks/a", "other releases", takes},
		{"busy", http.MethodDelete, "/locks/a", "busy releases", takes},
		{"busy", http.MethodPut, "/locks/a/renew", "busy renews", 0},
	} {
		t.Run(c.runs, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				s := newSlotted(takes)
				s.flood("busy", 4*slots())
				if _, n := s.runs(0); n != slots() {
					t.Fatalf("%d run at once, want %d", n, slots())
				}
				s.all.Go(func() { s.ask(context.Background(), c.tenant, c.method, c.path, http.NoBody) })
				synctest.Wait()
				<-time.After(c.waits)
				synctest.Wait()
				next, n := s.runs(slots())
				if n > slots()+1 || !slices.Contains(next, c.runs) {
					t.Errorf("%d run next, and not: %s", n, c.runs)
				}
				s.all.Wait()
				if _, n := s.runs(0); n != 4*slots()+1 {
					t.Errorf("%d have run", n)
				}
			})
		})
	}
}

// TestSlotsAreFreeWhileWritesWait: writes that wait for the store, or for their lock, keep another
// tenant's from running for no longer than a slot lasts.
func TestSlotsAreFreeWhileWritesWait(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSlotted(time.Hour)
		s.flood("busy", 4*slots())
		began := time.Now()
		s.ask(t.Context(), "other", http.MethodDelete, "/locks/a", http.NoBody)
		if d := time.Since(began); d > handlers.SlotTime {
			t.Errorf("it waits for %s", d)
		}
		s.all.Wait() // a request that lost its slot would give another one back
		_, before := s.runs(0)
		s.flood("busy", 2*slots())
		if _, n := s.runs(before); n != slots() {
			t.Errorf("later %d run at once, want %d", n, slots())
		}
		s.all.Wait()
	})
}

// TestSlowBodiesTakeNoSlots: a client may send its body slowly.
func TestSlowBodiesTakeNoSlots(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSlotted(0)
		body, end := io.Pipe()
		for range slots() {
			s.all.Go(func() { s.ask(context.Background(), "busy", http.MethodPost, "/locks/a", body) })
		}
		synctest.Wait()
		began := time.Now()
		if s.acquire("other"); time.Since(began) != 0 {
			t.Errorf("it waits for %s", time.Since(began))
		}
		_ = end.Close()
		s.all.Wait()
	})
}

// TestPanicsFreeTheirSlots: and so do requests whose clients leave before they have one. A release
// runs all the same then.
func TestPanicsFreeTheirSlots(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSlotted(0)
		s.panic = "a bug"
		for range 2 * slots() {
			s.acquire("busy")
		}
		s.panic, s.takes = nil, handlers.SlotTime/5
		_, before := s.runs(0)
		s.flood("busy", 2*slots())
		if _, n := s.runs(before); n != slots() {
			t.Errorf("%d run at once, want %d", n, slots())
		}
		ctx, leave := context.WithCancel(t.Context())
		s.all.Go(func() { s.ask(ctx, "gone", http.MethodPost, "/locks/a", http.NoBody) })
		s.all.Go(func() { s.ask(ctx, "gone", http.MethodDelete, "/locks/a", http.NoBody) })
		synctest.Wait()
		leave()
		s.all.Wait()
		ran, n := s.runs(0)
		if slices.Contains(ran, "gone acquires") || !slices.Contains(ran, "gone releases") {
			t.Errorf("of those whose clients left: %v", ran)
		}
		s.flood("busy", 2*slots())
		if _, n := s.runs(n); n != slots() {
			t.Errorf("later %d run at once, want %d", n, slots())
		}
		s.all.Wait()
	})
}

// TestTooManyRequestsForTheSlots: over the bound of a tenant an acquire is rejected at once. One of
// another tenant waits, and a release is never rejected.
func TestTooManyRequestsForTheSlots(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSlotted(handlers.SlotTime / 5)
		s.flood("busy", slots()+handlers.MaxSlotWaitersOfTenant)
		began := time.Now()
		if status := s.acquire("busy"); status != http.StatusTooManyRequests || time.Since(began) != 0 {
			t.Errorf("one more is answered %d after %s", status, time.Since(began))
		}
		for _, tenant := range []string{"busy", "other"} {
			status := s.ask(t.Context(), tenant, http.MethodDelete, "/locks/a", http.NoBody)
			if status != http.StatusNoContent {
				t.Errorf("a release of %s is answered %d", tenant, status)
			}
		}
		if status := s.acquire("other"); status != http.StatusLocked {
			t.Errorf("another tenant is answered %d", status)
		}
		s.all.Wait()
	})
}
