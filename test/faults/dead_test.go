package faults_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/test/faults/drive"
	"github.com/fencepost/fencepost/test/faults/history"
)

const (
	deadTTL   = 4 * time.Second
	deadKills = 3
)

// TestF8DeadHolder has holders die and then kills the leader of the store three
// times, each time shortly before a lease could end. A leader that is new may give
// every lease its whole TTL again, but no more than that.
func TestF8DeadHolder(t *testing.T) {
	rounds := count(1, 10)
	s := newStand(t, 20*time.Minute)
	var slowest longest
	for round := range rounds {
		s.outlive(round, &slowest)
	}
	t.Logf("slowest grant after the death of a holder: %v", &slowest)
	s.enough(clients*rounds, "holders that died")
	s.judge()
}

// outlive waits for all locks to pass from the dead to those who wait.
func (s *stand) outlive(round int, slowest *longest) {
	s.t.Helper()
	died := make([]time.Duration, clients)
	s.each(func(c *drive.Client) {
		lock := fmt.Sprint("dead:", c.Number)
		if h, outcome := c.Acquire(
			s.ctx, drive.Request{Lock: lock, TTL: deadTTL, Replica: c.Number},
		); h == nil {
			s.t.Errorf("%s: acquire is %s, want a grant", lock, outcome)
		}
		died[c.Number] = c.Now()
	})
	granted := make([]time.Duration, clients)
	var waiters sync.WaitGroup
	for _, c := range s.clients {
		waiters.Go(func() { granted[c.Number] = s.inheritFromDead(c, round) })
	}
	var elections time.Duration
	for range deadKills {
		elections += s.depose()
	}
	waiters.Wait()
	limit := deadTTL + deadKills*deadTTL + elections + within(2*time.Second)
	for i := range clients {
		took := granted[i] - died[i]
		slowest.add(took)
		if took > limit {
			s.t.Errorf(
				"dead:%d was granted %v after its holder died, want at most %v, of which the elections took %v",
				i, took, limit, elections,
			)
		}
	}
	s.t.Logf(
		"round %d: %d elections in %v, so at most %v", round+1, deadKills,
		elections.Round(time.Millisecond), limit.Round(time.Millisecond),
	)
}

// inheritFromDead waits for the lock, through every outage, and returns when it
// was granted.
func (s *stand) inheritFromDead(c *drive.Client, round int) time.Duration {
	s.t.Helper()
	waiter := c.With(c.URLs...)
	defer waiter.Close()
	h, outcome := waiter.Acquire(s.ctx, drive.Request{
		Lock: fmt.Sprint("dead:", c.Number), TTL: 20 * time.Second, Wait: time.Minute,
		Key: fmt.Sprintf("dead-%d-%d", c.Number, round), Replica: c.Number + 1, Attempts: 100,
	})
	at := c.Now()
	if h == nil {
		s.t.Errorf("dead:%d: waiting for the lock is %s", c.Number, outcome)
		return at
	}
	if outcome := waiter.Release(s.ctx, c.Number, 20, h); outcome != history.OK {
		s.t.Errorf("dead:%d: release is %s", c.Number, outcome)
	}
	return at
}

// depose kills the leader when most of a TTL has passed, starts it again, and
// returns how long there was none.
func (s *stand) depose() (election time.Duration) {
	s.t.Helper()
	pause(s.ctx, deadTTL*7/10)
	leader, err := s.cluster.Leader(s.ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	at := s.history.Now()
	s.must(s.cluster.Member(leader).Kill())
	next, err := s.cluster.Leader(s.ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	election = s.history.Now() - at
	if next == leader {
		s.t.Errorf("member %d leads on although it was killed", leader)
	}
	s.must(s.cluster.Member(leader).Restart(s.ctx))
	return election
}
