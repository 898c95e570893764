package faults_test

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost/fencepost/test/faults/drive"
	"github.com/fencepost/fencepost/test/faults/history"
)

const (
	shortTTL = 3 * time.Second // hardly longer than an election
	longTTL  = 20 * time.Second
)

// renewed is the load of holders that renew at a third of their TTL, and what became
// of them.
type renewed struct {
	*stand
	stopped       atomic.Bool  // the leader is
	woke          atomic.Int64 // when it last went on, on the clock of the history
	during, after atomic.Int64 // renewals answered 200 while it was stopped, and otherwise
	// renewals with shortTTL answered 200 after the holder's own deadline, and 410
	late, lost atomic.Int64
	ended      atomic.Int64 // of the lost ones those that etcd's old leader ended
	endedAfter longest      // its waking
	slowest    longest      // time from one answered renewal with longTTL to the next
}

// TestF7StoppedLeader freezes the store's leader for longer than an election and most
// leases, and wakes it. A holder whose renewals were all answered in time is not lost, but
// to etcd's old leader, by whose clock its lease is over. One that was answered too late is
// told so, or goes on. None with a TTL that is longer than the stop is lost.
func TestF7StoppedLeader(t *testing.T) {
	rounds, length := count(1, 5), time.Duration(count(7, 10))*time.Second
	s := &renewed{stand: newStand(t, 20*time.Minute)}
	ctx, end := context.WithCancel(s.ctx)
	defer end()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.each(func(c *drive.Client) { s.hold(ctx, c) })
	}()
	s.sees(&s.after, clients/2, 0)
	for n := 0; n < rounds && s.ctx.Err() == nil; {
		if s.freezeLeader(length) {
			n++
		}
		s.sees(&s.after, 2*clients, shortTTL+time.Second) // for what the old leader does
	}
	end()
	<-done
	t.Logf(
		"%d leaders stopped for %v; renewals answered meanwhile: %d, with all members: %d", rounds,
		length, s.during.Load(), s.after.Load(),
	)
	t.Logf(
		"of %d holders with a TTL of %v %d were answered after their deadline, %d told that they lost it, and %d of these ended by the old leader though they had been renewed, within %v of its waking; longest time between renewals of those with %v: %v",
		clients/2*rounds,
		shortTTL,
		s.late.Load(),
		s.lost.Load(),
		s.ended.Load(),
		&s.endedAfter,
		longTTL,
		&s.slowest,
	)
	s.judge()
}

// sees returns when so many more were counted, and so much time has passed.
func (s *renewed) sees(counter *atomic.Int64, more int64, length time.Duration) {
	s.t.Helper()
	want := counter.Load() + more
	ctx, stop := s.until(length, func() bool { return counter.Load() >= want })
	defer stop()
	<-ctx.Done()
	if counter.Load() < want {
		s.t.Errorf("%d renewals too few for the run to count", want-counter.Load())
	}
}

// freezeLeader stops the leader for so long, and until holders were answered without it. It
// is false if another one led, as after an election that was not seen to end.
func (s *renewed) freezeLeader(length time.Duration) (led bool) {
	s.t.Helper()
	leader := s.leader()
	at := s.history.Now()
	s.must(s.cluster.Member(leader).Stop())
	s.stopped.Store(true)
	for s.leader() == leader { // it answers until the signal has come to all its threads
		pause(s.ctx, 20*time.Millisecond)
	}
	election := s.history.Now() - at
	if led = election > 500*time.Millisecond; led {
		s.t.Logf("there was another leader after %v", election.Round(time.Millisecond))
		s.sees(&s.during, clients, length-election)
	}
	s.stopped.Store(false)
	s.woke.Store(int64(s.history.Now()))
	s.must(s.cluster.Member(leader).Continue())
	return led
}

func (s *renewed) leader() int {
	s.t.Helper()
	leader, err := s.cluster.Leader(s.ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	return leader
}

// hold has a client hold its lock, and acquire it again when it was lost, until ctx ends.
func (s *renewed) hold(ctx context.Context, c *drive.Client) {
	r := drive.Request{Lock: fmt.Sprint("renewed:", c.Number), TTL: shortTTL, Replica: c.Number}
	if c.Number%2 == 1 {
		r.TTL = longTTL
	}
	for n := 0; ctx.Err() == nil; n++ {
		r.Key = fmt.Sprintf("renewed-%d-%d", c.Number, n)
		r.Attempts = 1000
		h, outcome := c.Acquire(ctx, r)
		if h == nil {
			if ctx.Err() == nil {
				s.t.Errorf("%s: acquire is %s, want a grant", r.Lock, outcome)
			}
			return
		}
		if s.keep(ctx, c, h) {
			c.Release(s.ctx, c.Number, 20, h)
		}
	}
}

// keep renews at a third of the TTL, and soon again at the other replica when there was no
// answer. It returns false when the lock is lost.
func (s *renewed) keep(ctx context.Context, c *drive.Client, h *drive.Hold) (held bool) {
	s.t.Helper()
	basis := h.Until - h.TTL
	next := h.TTL / 3
	for replica := c.Number; ; replica++ {
		if pause(ctx, next); ctx.Err() != nil {
			return true
		}
		try, cancel := context.WithTimeout(s.ctx, h.TTL/3)
		a := c.Put(try, replica, h)
		cancel()
		c.Record(history.Renew, h, a)
		next = 100 * time.Millisecond
		switch a.Status {
		case http.StatusOK:
			s.answered(h, a, basis)
			basis, next = a.Call, h.TTL/3
		case http.StatusGone:
			s.gone(c, h, a, basis)
			return false
		}
	}
}

func (s *renewed) answered(h *drive.Hold, a drive.Answer, basis time.Duration) {
	s.t.Helper()
	if s.stopped.Load() {
		s.during.Add(1)
	} else {
		s.after.Add(1)
	}
	inTime := a.Return <= basis+h.TTL
	switch {
	case h.TTL == longTTL && !inTime:
		s.t.Errorf("%s: renewed only %v after the renewal before", h.Lock, a.Return-basis)
	case h.TTL == longTTL:
		s.slowest.add(a.Return - basis)
	case !inTime:
		s.late.Add(1)
	}
}

func (s *renewed) gone(c *drive.Client, h *drive.Hold, a drive.Answer, basis time.Duration) {
	s.t.Helper()
	s.lost.Add(1)
	until := basis + h.TTL
	if h.TTL == shortTTL && s.endedByOldLeader(c, h, until) {
		s.ended.Add(1)
		return
	}
	if h.TTL == longTTL || a.Return < until {
		s.t.Errorf(
			"%s with a TTL of %v: %v, %v after an answered renewal", h.Lock, h.TTL, a, a.Return-basis,
		)
	}
}

// oldLeaderFor is for how long a leader that was woken may go on as one.
const oldLeaderFor = 2 * time.Second

// endedByOldLeader reports whether etcd ended a lease early when its old leader woke. That leader
// takes leases for expired that were renewed while it was stopped. It checks whether it still
// leads only if its own clock has not ticked for a while, which it has as soon as it runs, and
// the new leader executes its request (etcd #15247, #16822). No client of etcd can prevent that.
// The lease is removed from the history as an external removal, and published.
func (s *renewed) endedByOldLeader(c *drive.Client, h *drive.Hold, until time.Duration) bool {
	s.t.Helper()
	if onZooKeeper() {
		return false
	}
	woke := time.Duration(s.woke.Load())
	left, err := s.store.AwaitLeft(s.ctx, h.ID)
	s.must(err)
	if woke == 0 || left >= until || left < woke || left > woke+within(oldLeaderFor) {
		return false
	}
	s.endedAfter.add(left - woke)
	s.history.Add(history.Op{
		Client: c.Number, Lock: h.Lock, Kind: history.Remove, Entry: h.ID, Call: woke, Return: left,
		Outcome: history.OK,
	})
	return true
}
