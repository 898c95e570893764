package faults_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/test/faults/drive"
	"github.com/fencepost/fencepost/test/faults/history"
)

const (
	fencedLocks = 8
	fencedTTL   = 2 * time.Second
	fencedEvery = 5 * time.Second

	// pooling is how many clients take members of a pool.
	pooling = 300
)

// TestF1FencedResource changes registers outside of the store under locks: each client reads, takes
// its time and writes what it read plus one. Some stand still in between for longer than their
// lease and write all the same, as a process does that was stopped, while the store and the
// replicas are stopped and killed. A register that checks fences loses no update; one beside it,
// which is used by the same clients at the same moments and checks nothing, must lose some, or
// nothing was tried.
func TestF1FencedResource(t *testing.T) {
	rounds, length := count(1, 5), time.Duration(count(12, 120))*time.Second
	if rounds == 1 {
		fencedRound(t, length, false)
		return
	}
	for round := range rounds {
		t.Run(fmt.Sprint("round ", round+1), func(t *testing.T) { fencedRound(t, length, false) })
	}
}

// TestF1FencedPool is TestF1FencedResource where the registers are the members of a pool: each of
// 300 clients takes any of them, and changes the one that it got.
func TestF1FencedPool(t *testing.T) {
	fencedRound(t, time.Duration(count(12, 120))*time.Second, true)
}

func fencedRound(t *testing.T, length time.Duration, pool bool) {
	s := &fencing{stand: newStand(t, length+seenWithin+3*time.Minute), pool: pool}
	if pool {
		s.more(pooling)
	}
	for i := range s.pairs {
		s.pairs[i] = [2]*updated{{checks: true}, {}}
	}
	nemesis := &drive.Nemesis{
		Cluster: s.cluster, Replicas: s.replicas, Every: fencedEvery, Stops: true,
	}
	least := counts{writes: 3 * int(length.Seconds()), late: int(length.Seconds()) / 6, lost: 1}
	enough := func() bool {
		unchecked, k := s.tally(1), nemesis.Killed()
		return unchecked.atLeast(least) && k.Stopped >= 1 && k.Leaders >= 1
	}
	ctx, stop := s.until(length, enough)
	defer stop()
	broken := make(chan error, 1)
	go func() { broken <- nemesis.Run(ctx) }()
	s.each(func(c *drive.Client) {
		for i := 0; ctx.Err() == nil; i++ {
			s.update(ctx, c, fmt.Sprintf("fenced-%d-%d", c.Number, i))
		}
	})
	s.must(<-broken)
	t.Logf("with the fence checked: %v; not checked: %v; %v", s.tally(0), s.tally(1), nemesis.Killed())
	if !enough() {
		t.Errorf(
			"want %v at least where nothing is checked, and a stop and a killed leader, for the run to count",
			least,
		)
	}
	if lost := s.tally(0).lost; lost != 0 {
		t.Errorf("%d updates were lost although fences were checked", lost)
	}
	if _, err := s.settled(); err != nil {
		t.Fatal(err)
	}
	for _, odd := range s.odd.Found() {
		t.Error(odd)
	}
	s.readLogs()
}

// fencing is the test's load, and two registers for each lock: that checks fences, and that does
// not.
type fencing struct {
	*stand
	pool  bool // clients take any of the locks instead of a certain one
	pairs [fencedLocks][2]*updated
}

// updated is a register that is read, changed and written.
type updated struct {
	checks bool

	mu     sync.Mutex
	newest int64 // the greatest fence seen
	value  int
	counts
}

// counts counts the accepted writes, those that came after a newer holder was seen, and the lost
// updates.
type counts struct{ writes, late, lost int }

func (t counts) String() string {
	return fmt.Sprintf("%d writes taken, %d late ones, %d updates lost", t.writes, t.late, t.lost)
}

func (t counts) atLeast(least counts) bool {
	return t.writes >= least.writes && t.late >= least.late && t.lost >= least.lost
}

func (u *updated) read(fence int64) (value int, ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	ok = !u.checks || fence >= u.newest
	u.newest = max(u.newest, fence)
	return u.value, ok
}

func (u *updated) write(fence int64, value int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if fence < u.newest {
		u.late++
		if u.checks {
			return
		}
	}
	u.value, u.writes = value, u.writes+1
	u.newest = max(u.newest, fence)
}

// tally adds up the registers that check (0) or those that do not (1).
func (s *fencing) tally(which int) (all counts) {
	for _, pair := range s.pairs {
		u := pair[which]
		u.mu.Lock()
		all.writes, all.late, all.lost = all.writes+u.writes, all.late+u.late, all.lost+u.writes-u.value
		u.mu.Unlock()
	}
	return all
}

// update is one acquisition with a change of both registers, which take it or do not.
func (s *fencing) update(ctx context.Context, c *drive.Client, key string) {
	i, replica := rand.IntN(fencedLocks), rand.IntN(2)
	r := drive.Request{
		Lock: fmt.Sprint("fenced:", i), TTL: fencedTTL, Wait: 3 * time.Second, Key: key, Replica: replica,
		Attempts: 6,
	}
	var h *drive.Hold
	if s.pool {
		h, i = s.anyOf(c, r)
	} else {
		h, _ = c.Acquire(s.ctx, r)
	}
	if h == nil {
		pause(ctx, 20*time.Millisecond)
		return
	}
	pair := s.pairs[i]
	checked, taken := pair[0].read(h.Fence)
	unchecked, _ := pair[1].read(h.Fence)
	switch dice := rand.IntN(20); {
	case dice == 0: // was stopped for longer than its lease
		pause(s.ctx, fencedTTL+rand.N(fencedTTL))
	case dice < 4:
		s.keep(c, h, rand.N(fencedTTL), 0, 1)
	default:
		pause(s.ctx, rand.N(50*time.Millisecond))
	}
	if taken {
		pair[0].write(h.Fence, checked+1)
	}
	pair[1].write(h.Fence, unchecked+1)
	if outcome := c.Release(s.ctx, replica, 3, h); outcome == history.Unknown {
		pause(ctx, 20*time.Millisecond)
	}
}
