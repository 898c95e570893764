package faults_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/fencepost/fencepost/test/faults/drive"
	"github.com/fencepost/fencepost/test/faults/history"
)

// toldOfOutage is how soon a client must hear that the store cannot be asked.
const toldOfOutage = 5 * time.Second

// TestQuorumLost kills two of three members under running replicas. Every request gets an error
// in time, no request gets a grant, and once a majority is back the locks continue by themselves,
// with their holders.
func TestQuorumLost(t *testing.T) {
	s := newStand(t, 5*time.Minute)
	const ttl = time.Minute // longer than the outage, however slow the machine is
	holds := s.holdEach("held", ttl)
	s.must(s.cluster.Member(0).Kill())
	s.must(s.cluster.Member(1).Kill())
	var slowest longest
	s.each(func(c *drive.Client) { s.cannot(c, holds[c.Number], &slowest) })
	t.Logf("slowest word of the outage: %v", &slowest)
	s.bringBack(0, 1)
	start := s.history.Now()
	s.each(func(c *drive.Client) { s.goesOn(c, holds[c.Number]) })
	t.Logf(
		"all locks went on %v after the majority was back",
		(s.history.Now() - start).Round(time.Millisecond),
	)
	s.judge()
}

// holdEach has each client hold a lock of its own.
func (s *stand) holdEach(name string, ttl time.Duration) []*drive.Hold {
	s.t.Helper()
	holds := make([]*drive.Hold, clients)
	s.each(func(c *drive.Client) {
		holds[c.Number], _ = c.Acquire(
			s.ctx, drive.Request{Lock: fmt.Sprint(name, ":", c.Number), TTL: ttl, Replica: c.Number},
		)
	})
	for i, h := range holds {
		if h == nil {
			s.t.Fatalf("%s:%d: want a grant", name, i)
		}
	}
	return holds
}

// cannot checks that each kind of request is answered with 503 in time.
func (s *stand) cannot(c *drive.Client, h *drive.Hold, slowest *longest) {
	s.t.Helper()
	r := drive.Request{
		Lock: fmt.Sprint("new:", c.Number), TTL: 10 * time.Second, Wait: time.Minute, Replica: c.Number,
	}
	for what, ask := range map[string]func() drive.Answer{
		"acquire": func() drive.Answer {
			a := c.Post(s.ctx, c.Number, r)
			c.Record(history.Acquire, drive.HoldOf(r, a), a)
			return a
		},
		"renew": func() drive.Answer {
			a := c.Put(s.ctx, c.Number, h)
			c.Record(history.Renew, h, a)
			return a
		},
	} {
		a := ask()
		slowest.add(a.Return - a.Call)
		if a.Status != http.StatusServiceUnavailable || a.Problem.Code != "store_unavailable" ||
			a.Header.Get("Retry-After") == "" {
			s.t.Errorf(
				"%s of client %d without a majority: %v, want 503 store_unavailable with Retry-After", what,
				c.Number, a,
			)
		}
		if took := a.Return - a.Call; took > within(toldOfOutage) {
			s.t.Errorf(
				"%s of client %d was told after %v, want at most %v", what, c.Number, took,
				within(toldOfOutage),
			)
		}
	}
}

// bringBack starts members that need each other to serve.
func (s *stand) bringBack(members ...int) {
	s.t.Helper()
	back := make(chan error, len(members))
	for _, m := range members {
		go func() { back <- s.cluster.Member(m).Restart(s.ctx) }()
	}
	for range members {
		s.must(<-back)
	}
}

// goesOn checks that the holder still holds and that its lock can be passed on.
func (s *stand) goesOn(c *drive.Client, h *drive.Hold) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, within(15*time.Second))
	defer cancel()
	for c.Renew(ctx, c.Number, h) != history.OK {
		if ctx.Err() != nil {
			s.t.Errorf("held:%d cannot be renewed after the outage", c.Number)
			return
		}
		pause(ctx, 50*time.Millisecond)
	}
	if outcome := c.Release(ctx, c.Number, 3, h); outcome != history.OK {
		s.t.Errorf("held:%d: release is %s", c.Number, outcome)
	}
	next, outcome := c.Acquire(ctx, drive.Request{
		Lock: h.Lock, TTL: h.TTL, Wait: 5 * time.Second, Replica: c.Number + 1,
		Key: fmt.Sprint("after-", c.Number), Attempts: 3,
	})
	if next == nil {
		s.t.Errorf("%s after the outage: acquire is %s", h.Lock, outcome)
		return
	}
	c.Release(ctx, c.Number, 3, next)
}
