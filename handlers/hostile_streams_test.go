package handlers_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/handlers"
	"github.com/fencepost/fencepost/lock/quota"
)

// filtered follows with as many patterns as a query may have, each as dear as can be, but for the last one.
func filtered(last string) string {
	return "/events?locks=" + strings.Repeat(dear()+",", 7) + last
}

// TestPriceOfFilters: who follows by patterns of his own choice pays for having each event held against them, as
// for those of his token, and is told nothing while his tenant owes. Who follows without is told all the while.
func TestPriceOfFilters(t *testing.T) {
	t.Parallel()
	q := &creditor{priceMeter: priceMeter{Quotas: shared.quotas}}
	h := shared.handlers(shared.main.service)
	h.Quotas = q
	r := serve(nil, handlers.New(h))
	t.Cleanup(r.close)
	c := newTenant(t)
	const effort = 1 + (4+7*37+1)/8
	for range 4 { // each of 2 events of 32 locks
		made := c.acquireSet(locksOf(names(32)...))
		c.delete("/locksets/"+made.ID, lockToken(made.Token)).wantStatus(http.StatusNoContent)
	}
	plain := c.at(r).follow("/events", header("Last-Event-ID", "1-1"))
	plain.wait(8)
	if q.asked.Load() > 0 {
		t.Error("who follows without patterns is asked whether he owes")
	}
	q.price.Store(0)
	s := c.at(r).follow(filtered("n0*"), header("Last-Event-ID", "1-1"))
	eventually(t, "it is asked what is owed", func() bool { return q.asked.Load() >= 3 })
	if got := q.price.Load(); got != 1 || s.lastEvent() != "" {
		t.Errorf("who owes is told %q, for %d", s.lastEvent(), got)
	}
	q.paid.Store(true)
	s.wait(8)
	eventually(t, "it is paid for", func() bool { return q.price.Load() >= 1+8*32*(effort-1)/1000 })
	if got := q.price.Load(); got > 1+(8*32+1)*(effort-1)/1000 {
		t.Errorf("that costs %d", got)
	}
}

// lastEvent is the kind of the last event that was told.
func (s *stream) lastEvent() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.messages) == 0 {
		return ""
	}
	return s.messages[len(s.messages)-1].Event
}

// TestReplaysTakeTurns: of a tenant's streams one after the other is told what is past, or what is dear to find.
// What happens now the others are told meanwhile.
func TestReplaysTakeTurns(t *testing.T) {
	t.Parallel()
	router := handlers.New(shared.handlers(shared.main.service))
	r := serve(nil, router)
	t.Cleanup(r.close)
	c := newTenant(t)
	c.release(c.acquire("before"))
	c.at(r).follow("/events", header("Last-Event-ID", "1-1")).wait(2)
	done := router.KeepTelling(c.claims.Tenant)
	now := c.at(r).follow("/events")
	past := c.at(r).follow("/events", header("Last-Event-ID", "1-1"))
	dear := c.at(r).follow(filtered("now"))
	eventually(t, "both wait", func() bool { return router.Telling(c.claims.Tenant) == 3 })
	c.acquire("now")
	now.wait(1)
	if past.lastEvent() != "" || dear.lastEvent() != "" {
		t.Errorf("they are told %q and %q", past.lastEvent(), dear.lastEvent())
	}
	done()
	past.wait(3)
	dear.wait(1)
}

// TestStreamsBeginInTurn: of a tenant one after the other, and those of others meanwhile.
func TestStreamsBeginInTurn(t *testing.T) {
	t.Parallel()
	router := handlers.New(shared.handlers(shared.main.service))
	r := serve(nil, router)
	t.Cleanup(r.close)
	c := newTenant(t)
	done := router.KeepOpening(c.claims.Tenant)
	begun := make(chan *stream)
	go func() { begun <- c.at(r).follow("/events") }()
	eventually(t, "it waits", func() bool { return router.Opening(c.claims.Tenant) == 2 })
	newTenant(t).at(r).follow("/events").end()
	select {
	case <-begun:
		t.Error("it does not wait for the other one")
	default:
	}
	done()
	(<-begun).end()
	eventually(t, "nobody waits", func() bool { return router.Opening(c.claims.Tenant) == 0 })
}

// TestStreamThatTakesNothingBegins: a stream of a client that takes not even its first bytes keeps no other one of the
// tenant from beginning.
func TestStreamThatTakesNothingBegins(t *testing.T) {
	t.Parallel()
	r := secured(t, 100, handlers.New(shared.handlers(shared.main.service)))
	c := newTenant(t)
	stalls := r.another(t)
	stalls.transport.HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: 1}
	for range 10 { // each is dropped after 10 s
		req := must(http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+"/events", http.NoBody))
		req.Header.Set("Authorization", "Bearer "+c.bearer)
		go func() {
			if resp, err := stalls.transport.RoundTrip(req); err == nil {
				<-t.Context().Done() // the test is over
				_ = resp.Body.Close()
			}
		}()
	}
	eventually(t, "they are there", func() bool { return shared.main.service.Used(c.claims.Tenant)[quota.EventStreams] == 10 })
	begun := make(chan *stream)
	go func() { begun <- c.at(r).follow("/events") }()
	select {
	case s := <-begun:
		s.end()
	case <-time.After(5 * time.Second):
		t.Error("it does not begin")
		(<-begun).end()
	}
}
