package faults_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost/fencepost/test/faults/drive"
	"github.com/fencepost/fencepost/test/faults/history"
)

const (
	// goneBeyond is how long beyond its TTL an entry may last, where 10 000 expire together.
	goneBeyond = 25 * time.Second
	// slowerBy is how much slower acquires of other locks may become meanwhile, by their p99: on etcd,
	// how many times as much slower as writes to etcd itself, which misses that by far.
	slowerBy = 3
	// togetherIn is within which time leases end that end together.
	togetherIn = 2 * time.Second
	// seenBefore is for how long other acquires are seen before that, at least.
	seenBefore = 2 * time.Second
	// probes acquire other locks, half of them at each replica.
	probes = 4
)

// expiring is an entry that no client renews.
type expiring struct {
	id  string
	end time.Duration // of its lease, if it counts from the answer
}

// TestF9ExpireTogether lets the leases of thousands of entries end in one moment. All are gone
// soon, and others go on acquiring meanwhile.
func TestF9ExpireTogether(t *testing.T) {
	size := count(300, 10_000)
	enough := size * 98 / 100
	s := newStand(t, 10*time.Minute, "--log-level", "warn")
	alone := 1.0
	if full() {
		alone = s.alone(size)
	}
	load, cancel := context.WithCancel(s.ctx)
	p := &probe{}
	var probing sync.WaitGroup
	stop := func() {
		cancel()
		probing.Wait()
	}
	defer stop()
	for _, c := range s.clients[:probes] {
		c := c.With(c.URLs...)
		t.Cleanup(c.Close)
		probing.Go(func() { s.probe(load, c, p) })
	}
	// A slow machine needs a longer time until the common end.
	var entries []expiring
	var last time.Duration
	for plan := time.Duration(count(8, 60)) * time.Second; ; plan *= 2 {
		p.phase.Store(phaseFilling)
		entries, last = s.fill(size, plan)
		left := last - togetherIn - s.history.Now()
		if len(entries) >= enough && together(entries) && left >= seenBefore || plan > seenWithin {
			break
		}
	}
	if len(entries) < enough || !together(entries) {
		t.Fatalf(
			"%d of %d leases, in one moment: %v; the run does not count", len(entries), size,
			together(entries),
		)
	}
	p.phase.Store(phaseBefore)
	pause(s.ctx, last-togetherIn-s.history.Now())
	p.phase.Store(phaseExpiring)
	s.gone(entries)
	stop()
	s.slower(p, alone)
	s.judge()
}

// fill has all clients acquire locks whose leases end a while from now: the later one is acquired,
// the shorter its TTL. It returns when the last lease ends, too. An acquire that a slow store does
// not answer in time is left out: the check is about how leases end.
func (s *stand) fill(size int, plan time.Duration) (entries []expiring, last time.Duration) {
	s.t.Helper()
	start, end := s.history.Now(), s.history.Now()+plan
	var mu sync.Mutex
	var next atomic.Int64
	s.each(func(c *drive.Client) {
		for i := next.Add(1); i <= int64(size) && s.ctx.Err() == nil; i = next.Add(1) {
			ttl := max(2*time.Second, (end - s.history.Now()).Round(time.Second))
			h, outcome := c.Acquire(
				s.ctx,
				drive.Request{Lock: fmt.Sprintf("together:%d:%d", start, i), TTL: ttl, Replica: c.Number},
			)
			if h == nil {
				if outcome != history.Unknown {
					s.t.Errorf("entry %d: acquire is %s", i, outcome)
				}
				continue
			}
			mu.Lock()
			entries = append(entries, expiring{h.ID, s.history.Now() + ttl})
			last = max(last, s.history.Now()+ttl)
			mu.Unlock()
		}
	})
	s.t.Logf(
		"%d entries in %v, %v before they end", len(entries),
		(s.history.Now() - start).Round(time.Millisecond),
		(last - s.history.Now()).Round(time.Millisecond),
	)
	return entries, last
}

// together reports whether the leases end in one moment.
func together(entries []expiring) bool {
	if len(entries) == 0 {
		return false
	}
	by := func(a, b expiring) int { return int(a.end - b.end) }
	return slices.MaxFunc(entries, by).end-slices.MinFunc(entries, by).end <= togetherIn
}

// gone waits until all have left the store, and checks that none took too long.
func (s *stand) gone(entries []expiring) {
	s.t.Helper()
	var first, last, latest time.Duration
	for i, e := range entries {
		at, err := s.store.AwaitLeft(s.ctx, e.id)
		if err != nil {
			s.t.Fatal(err)
		}
		if i == 0 || at < first {
			first = at
		}
		last, latest = max(last, at), max(latest, at-e.end)
	}
	s.t.Logf(
		"%d entries expired within %v, at most %v after their leases", len(entries),
		(last - first).Round(time.Millisecond), latest.Round(time.Millisecond),
	)
	if limit := within(goneBeyond); latest > limit {
		s.t.Errorf("want at most %v after", limit)
	}
}

// The phases of a probe.
const (
	phaseFilling = iota // there is load beside
	phaseBefore         // they are held
	phaseExpiring
	phases
)

// probe has what acquires of other locks took.
type probe struct {
	phase atomic.Int32
	mu    sync.Mutex
	took  [phases][]time.Duration
}

// probe acquires and releases a lock of its own, one after the other.
func (s *stand) probe(ctx context.Context, c *drive.Client, p *probe) {
	for i := 0; ctx.Err() == nil; i++ {
		phase, start := p.phase.Load(), s.history.Now()
		h, outcome := c.Acquire(s.ctx, drive.Request{
			Lock: fmt.Sprint("other:", c.Number), TTL: time.Minute, Replica: c.Number,
			Key: fmt.Sprint(
				"other-", c.Number, "-", i,
			), Attempts: 10, // a store that is slow may be said not to answer
		})
		if h == nil {
			s.t.Errorf("a lock that nobody holds: acquire is %s", outcome)
			return
		}
		p.add(phase, s.history.Now()-start)
		if outcome := c.Release(s.ctx, c.Number, 10, h); outcome != history.OK {
			s.t.Errorf("release is %s", outcome)
			return
		}
		pause(ctx, 5*time.Millisecond)
	}
}

func (p *probe) add(phase int32, took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.took[phase] = append(p.took[phase], took)
}

// p99 is of the acquires that began in a phase.
func (p *probe) p99(phase int32) (took time.Duration, of int) {
	all := slices.Sorted(slices.Values(p.took[phase]))
	if len(all) == 0 {
		return 0, 0
	}
	return all[len(all)*99/100], len(all)
}

// slower compares the acquires while leases ended with those before, and with what the store alone
// makes of that.
func (s *stand) slower(p *probe, alone float64) {
	s.t.Helper()
	before, n := p.p99(phaseBefore)
	during, m := p.p99(phaseExpiring)
	s.t.Logf(
		"p99 of other acquires: %v of %d before, %v of %d meanwhile", before.Round(10*time.Microsecond),
		n, during.Round(10*time.Microsecond), m,
	)
	if least := count(20, 200); n < least || m < least {
		s.t.Errorf("want at least %d of each for the run to count", least)
	}
	if limit := slowerBy * alone; full() && float64(during) > limit*float64(before) {
		s.t.Errorf("want at most %.1f times as long", limit)
	}
}
