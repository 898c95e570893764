package faults_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/test/faults/drive"
	"github.com/fencepost/fencepost/test/faults/history"
)

const (
	killLocks = 10
	killTTL   = 2 * time.Second
	killEvery = 3 * time.Second
)

// leastGrants is for a second of the planned length, faults included. ZooKeeper needs longer for an
// election, and its processes for a start.
func leastGrants() int {
	if onZooKeeper() {
		return 8
	}
	return 15
}

// TestF2KillAnything runs 16 clients on 10 locks while members of the store, its
// leader and both replicas are killed with -9 in turn.
func TestF2KillAnything(t *testing.T) {
	rounds, length := count(1, 5), time.Duration(count(18, 120))*time.Second
	if rounds == 1 {
		killRound(t, length)
		return
	}
	for round := range rounds {
		t.Run(fmt.Sprint("round ", round+1), func(t *testing.T) { killRound(t, length) })
	}
}

func killRound(t *testing.T, length time.Duration) {
	s := newStand(t, length+seenWithin+5*time.Minute)
	nemesis := &drive.Nemesis{Cluster: s.cluster, Replicas: s.replicas, Every: killEvery}
	least := int(length.Seconds()) * leastGrants()
	ctx, stop := s.until(length, func() bool {
		return killedEnough(nemesis.Killed()) && history.Summarize(s.history.Ops()).Grants >= least
	})
	defer stop()
	broken := make(chan error, 1)
	go func() { broken <- nemesis.Run(ctx) }()
	s.each(func(c *drive.Client) {
		for ctx.Err() == nil {
			s.cycle(ctx, c)
		}
	})
	if err := <-broken; err != nil {
		t.Fatal(err)
	}
	load := history.Summarize(s.history.Ops())
	t.Logf("%v in %v", nemesis.Killed(), s.history.Now())
	if k := nemesis.Killed(); !killedEnough(k) {
		t.Errorf("%v: too few for the run to count", k)
	}
	if load.Grants < least {
		t.Errorf("%d grants, want at least %d for the run to count", load.Grants, least)
	}
	s.acquirable()
	s.judge()
}

func killedEnough(k drive.Killed) bool {
	return k.Leaders >= 1 && k.Replicas >= 2 && k.Members+k.Leaders >= 2
}

// cycle is one acquisition and what a client may do with it.
func (s *stand) cycle(ctx context.Context, c *drive.Client) {
	replica := rand.IntN(2)
	r := drive.Request{
		Lock: fmt.Sprint("orders:", rand.IntN(killLocks)), TTL: killTTL,
		Wait: []time.Duration{0, 300 * time.Millisecond, 3 * time.Second}[rand.IntN(3)], Replica: replica,
	}
	if rand.IntN(3) > 0 {
		r.Key, r.Attempts = fmt.Sprintf("%d-%d", c.Number, c.Now()), 6
	}
	h, _ := c.Acquire(s.ctx, r)
	pause(ctx, rand.N(15*time.Millisecond))
	if h == nil {
		return
	}
	switch dice := rand.IntN(1000); {
	case dice < 5: // dies
		return
	case dice < 10: // comes back after its lease
		pause(s.ctx, killTTL*3/2+rand.N(killTTL/2))
		c.Renew(s.ctx, replica, h)
	case dice < 20: // holds for longer than a lease
		s.keep(c, h, killTTL*3/2, 0, 1)
	case dice < 300:
		for range 1 + rand.IntN(4) {
			c.Renew(s.ctx, rand.IntN(2), h)
			pause(ctx, rand.N(20*time.Millisecond))
		}
	}
	c.Release(s.ctx, replica, 4, h)
	if rand.IntN(10) == 0 { // does not know that it is over
		c.Renew(s.ctx, rand.IntN(2), h)
	}
}

// keep renews at a third of the TTL, as clients should, at any of the replicas.
func (s *stand) keep(c *drive.Client, h *drive.Hold, length time.Duration, replicas ...int) {
	for end := c.Now() + length; c.Now() < end; {
		if c.Renew(s.ctx, replicas[rand.IntN(len(replicas))], h) == history.Lost {
			return
		}
		pause(s.ctx, min(h.TTL/3, end-c.Now()))
	}
}

// acquirable checks that each lock can be acquired soon after all repairs: within a TTL, another
// TTL and an election for a leader that changed, and 2 s.
func (s *stand) acquirable() {
	s.t.Helper()
	limit := within(2*killTTL + time.Second + 2*time.Second)
	var longest time.Duration
	for i := range killLocks {
		c, start := s.clients[i], s.history.Now()
		r := drive.Request{
			Lock: fmt.Sprint("orders:", i), TTL: killTTL, Wait: limit, Key: "last", Replica: i, Attempts: 3,
		}
		h, outcome := c.Acquire(s.ctx, r)
		if h == nil {
			s.t.Errorf("%s is %s %v after the faults", r.Lock, outcome, s.history.Now()-start)
			continue
		}
		longest = max(longest, s.history.Now()-start)
		c.Release(s.ctx, i, 3, h)
	}
	s.t.Logf("longest wait for a lock after the faults: %v", longest.Round(time.Millisecond))
}

// pause waits until ctx ends at most.
func pause(ctx context.Context, d time.Duration) { _ = store.Pause(ctx, d) }
