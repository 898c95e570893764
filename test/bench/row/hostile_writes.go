package row

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/test/bench/load"
	"github.com/fencepost/fencepost/test/bench/side"
)

// writeMix is how one token within the default quotas makes as many writes as it can.
type writeMix struct {
	name      string
	zookeeper bool // the mix also runs on ZooKeeper
	prepare   func(context.Context, *attack) error
	begin     func(ctx context.Context, m *mixRun) error // starts the load, in m.tasks
}

// mixRun is one round of a mix.
type mixRun struct {
	*bench
	*attack
	replica *replica
	cs      *closers
	tasks   sync.WaitGroup
}

const (
	// setsAtOnce clients make sets, and pairsAtOnce clients acquire and release. closedPerSecond
	// waiting requests are closed at once, by closers.
	setsAtOnce, pairsAtOnce    = 64, 2000
	closedPerSecond, hangingUp = 1000, 64

	// With the default -entries and -waiters there are so many positions in queues, which are made
	// of sets, and then so many requests that wait.
	mostPositions, mostWaits = 184_000, 14_000
)

func writeMixes() []writeMix {
	return []writeMix{
		{name: "64 clients with sets of 32", begin: makeSets},
		{name: "2 000 connections acquire and release", zookeeper: true, begin: makePairs},
		{name: "waiting requests closed at once", zookeeper: true, prepare: holdOne, begin: closeAtOnce},
		{name: "14 000 waits after 184 000 positions", prepare: holdOne, begin: waitAtOnce},
	}
}

// runWriteMixes compares another tenant's acquires next to each mix with those that it makes alone.
// A request of that tenant that fails, or is refused, fails the row.
func (b *bench) runWriteMixes(ctx context.Context) ([]Outcome, error) {
	if err := allowClients(mostWaits); err != nil {
		return nil, err
	}
	var outcomes []Outcome
	var errs []error
	for _, m := range writeMixes() {
		for _, s := range b.mixStores(m) {
			if name := m.name + s.suffix; b.wants(name) {
				o, err := s.compare(ctx, m, name)
				if err != nil {
					b.logf("%s failed: %v", name, err)
					errs = append(errs, fmt.Errorf("%s: %w", name, err))
					continue
				}
				outcomes = append(outcomes, o)
			}
		}
	}
	return outcomes, errors.Join(errs...)
}

// mixStore is a store next to which mixes run.
type mixStore struct {
	*bench
	suffix string
	serve  func(context.Context, *closers) (*served, error)
}

func (b *bench) mixStores(m writeMix) []mixStore {
	etcd := func(ctx context.Context, cs *closers) (*served, error) {
		return b.serve(ctx, embedded, cs)
	}
	stores := []mixStore{{b, "", etcd}}
	if m.zookeeper {
		warm := *b
		warm.Warmup = max(warm.Warmup, javaWarmup)
		stores = append(stores, mixStore{&warm, " (ZooKeeper)", b.serveOnZooKeeper})
	}
	return stores
}

func (s mixStore) compare(ctx context.Context, m writeMix, name string) (Outcome, error) {
	const most, acquires = 5, 50 * time.Millisecond
	var pairs []load.Pair
	for round := range s.Rounds {
		next, err := s.besideLoadOn(ctx, round, s.serve, s.starts(m))
		if err != nil {
			return Outcome{}, err
		}
		alone, err := s.besideLoadOn(ctx, round, s.serve, startsNothing)
		if err != nil {
			return Outcome{}, err
		}
		pair := load.Pair{Ours: p99.of(next.victim, usage{}), Theirs: p99.of(alone.victim, usage{})}
		s.logf("%s, round %d: %s/s; p99 %s, longest %s, alone %s", name, round+1, number(next.rate),
			p99.text(pair.Ours), millis(next.victim.Acquire.Percentile(100)), p99.text(pair.Theirs))
		pairs = append(pairs, pair)
	}
	o := Outcome{ID: "S17", What: "p99 of an acquire next to another tenant: " + name}
	sum := o.compared(pairs, p99.text, atMost(most))
	o.Bar += " or " + millis(acquires)
	o.Met = verdict(sum.Ratio <= most || seconds(sum.Ours) <= acquires)
	return o, nil
}

func startsNothing(context.Context, *replica, *closers) (func() counted, error) {
	return func() counted { return counted{} }, nil
}

// starts prepares a mix and begins it.
func (s mixStore) starts(
	m writeMix,
) func(context.Context, *replica, *closers) (func() counted, error) {
	return func(ctx context.Context, r *replica, cs *closers) (func() counted, error) {
		a, err := newAttack(r, cs)
		if err != nil {
			return nil, err
		}
		run := &mixRun{bench: s.bench, attack: a, replica: r, cs: cs}
		ctx, cancel := context.WithCancel(ctx)
		cs.add(func() error {
			cancel()
			run.tasks.Wait()
			return nil
		})
		if m.prepare != nil {
			if err := m.prepare(ctx, a); err != nil {
				return nil, err
			}
		}
		if err := m.begin(ctx, run); err != nil {
			return nil, err
		}
		return func() counted { return counted{a.sent.Load(), a.refused.Load()} }, nil
	}
}

// makeSets makes sets and leaves them, up to the quotas of the tenant.
func makeSets(ctx context.Context, m *mixRun) error {
	for i := range setsAtOnce {
		m.tasks.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				wideSet(ctx, m.attack, i, n)
			}
		})
	}
	return nil
}

// makePairs acquires and releases on connections of their own.
func makePairs(ctx context.Context, m *mixRun) error {
	f, err := clientsOf(m.replica, "hostile", m.cs)
	if err != nil {
		return err
	}
	for i, w := range f.Workers(pairsAtOnce) {
		m.tasks.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				if _, err := w.Acquire(ctx, fmt.Sprintf("h:%d:%d", i, n%namesPerWorker)); err == nil {
					_ = w.Release(ctx) // a client that is cut off at the end gets no answer
					m.sent.Add(2)
				}
			}
		})
	}
	return nil
}

// closeAtOnce sends requests that would wait for a held lock, and closes their connections.
func closeAtOnce(ctx context.Context, m *mixRun) error {
	const body = `{"wait_seconds":40}`
	pace := rate.NewLimiter(closedPerSecond, hangingUp)
	for range hangingUp {
		m.tasks.Go(func() {
			for pace.Wait(ctx) == nil {
				conn, err := m.dial(ctx, "POST /locks/held HTTP/1.1\r\n")
				if err != nil {
					continue
				}
				_, _ = fmt.Fprintf(conn, "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
					len(body), body)
				_ = conn.Close()
				m.sent.Add(1)
			}
		})
	}
	return nil
}

// waitAtOnce fills queues with sets, and then sends requests that wait for one lock, when the
// warm-up ends.
func waitAtOnce(ctx context.Context, m *mixRun) error {
	if err := m.fillWithSets(ctx, min(mostPositions, 2*m.Entries)/lock.MaxSetSize); err != nil {
		return err
	}
	f, err := clientsOf(m.replica, "hostile", m.cs)
	if err != nil {
		return err
	}
	f.WaitSeconds = queueSeconds
	crowd := f.Workers(min(mostWaits, 2*m.Waiters))
	if err := side.Connect(ctx, crowd); err != nil {
		return err
	}
	begin := time.After(m.Warmup)
	m.tasks.Go(func() {
		select {
		case <-begin:
		case <-ctx.Done():
			return
		}
		for _, w := range crowd {
			m.tasks.Go(func() {
				_, _ = w.Acquire(ctx, "held")
				m.sent.Add(1)
			})
		}
	})
	return nil
}

// fillWithSets makes so many sets.
func (m *mixRun) fillWithSets(ctx context.Context, sets int) error {
	var all sync.WaitGroup
	for i := range setsAtOnce {
		all.Go(func() {
			for n := i; n < sets && ctx.Err() == nil; n += setsAtOnce {
				wideSet(ctx, m.attack, i, n)
			}
		})
	}
	all.Wait()
	if made := m.made.Load(); made < int64(sets) {
		return fmt.Errorf("%d of %d sets could be made", made, sets)
	}
	return ctx.Err()
}
