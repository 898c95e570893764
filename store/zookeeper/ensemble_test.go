package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store/zookeeper"
	"github.com/fencepost/fencepost/test/rig"
)

// rounds is how often each fault happens: once for every change, and as often as
// is published with FAULTS=full.
func rounds() int {
	if os.Getenv("FAULTS") == "full" {
		return 5
	}
	return 1
}

// ordeal is an ensemble of three with two stores, the first behind proxies, and entries that are
// renewed all the time.
type ordeal struct {
	t       *testing.T
	z       *rig.ZooKeeper
	proxies []*rig.Proxy
	stores  []*zookeeper.Store
	mirrors []*mirror

	mu      sync.Mutex
	newest  map[string]uint64 // the greatest number that was given on a lock
	unclear map[lock.ID]bool  // ids that may have been written, or still may
	cycles  atomic.Int64
	errors  atomic.Int64
}

// TestEnsemble lets clients work and holders renew while servers are stopped and killed and
// connections cut. Every write has one effect or none, numbers never go back, and a holder that
// renews is never removed.
func TestEnsemble(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	o := &ordeal{
		t: t, z: startZooKeeper(t, rig.ZooKeeperConfig{Servers: 3}), newest: map[string]uint64{},
		unclear: map[lock.ID]bool{},
	}
	var through []string
	for i := range o.z.Size() {
		p := startProxy(t, o.z.Server(i))
		o.proxies, through = append(o.proxies, p), append(through, p.Address())
	}
	for _, servers := range [][]string{through, o.z.Endpoints()} {
		s := open(t, zookeeper.Config{Servers: servers})
		o.stores, o.mirrors = append(o.stores, s), append(o.mirrors, follow(t, s))
	}
	working, rest := context.WithCancel(ctx)
	var all sync.WaitGroup
	for i := range 3 {
		s, short := o.stores[i%2], draft(fmt.Sprint("renewed-", i))
		short.TTL = renewedTTL
		renewed := []*lock.Entry{enqueue(t, s, draft(fmt.Sprint("held-", i))), enqueue(t, s, short)}
		all.Go(func() { o.renew(working, s, renewed) })
	}
	for i := range 8 {
		all.Go(func() { o.work(working, i) })
	}
	for range rounds() {
		for _, f := range o.faults() {
			o.suffer(ctx, f)
		}
	}
	rest()
	all.Wait()
	o.settled()
	t.Logf("%d cycles, %d calls that failed", o.cycles.Load(), o.errors.Load())
}

type fault struct {
	name string
	do   func(ctx context.Context) error
}

func (o *ordeal) faults() []fault {
	return []fault{
		{"connections cut after a request was sent", func(context.Context) error {
			for range 20 {
				for _, p := range o.proxies {
					p.CutRequests(1)
				}
				o.cyclesPass(5)
			}
			return nil
		}},
		{"answers dropped", func(context.Context) error {
			for range 20 {
				for _, p := range o.proxies {
					p.DropAnswers(1)
				}
				o.cyclesPass(5)
			}
			return nil
		}},
		{"a follower stopped", func(ctx context.Context) error { return o.stopFor(ctx, 1) }},
		{"the leader stopped", func(ctx context.Context) error { return o.stopFor(ctx, 0) }},
		{"the leader killed", func(ctx context.Context) error {
			leader, err := o.z.Leader(ctx)
			if err != nil {
				return err
			}
			return errors.Join(
				o.z.Server(leader).Kill(), o.after(ctx, 4*time.Second), o.z.Server(leader).Restart(ctx),
			)
		}},
		{"the majority killed", func(ctx context.Context) error {
			err := errors.Join(o.z.Server(0).Kill(), o.z.Server(1).Kill())
			start := time.Now()
			if _, failed := o.stores[1].Newest(ctx); failed == nil {
				err = errors.Join(err, errors.New("a minority answers"))
			}
			if took := time.Since(start); took > 15*time.Second {
				err = errors.Join(err, fmt.Errorf("it took %v to say that there is no majority", took))
			}
			return errors.Join(err, o.z.Server(0).Start(), o.z.Server(1).Restart(ctx))
		}},
		{"all killed and restarted", func(ctx context.Context) error {
			var errs []error
			for i := range o.z.Size() {
				errs = append(errs, o.z.Server(i).Kill())
			}
			errs = append(errs, o.after(ctx, 5*time.Second))
			for i := range o.z.Size() {
				errs = append(errs, o.z.Server(i).Start())
			}
			return errors.Join(errs...)
		}},
	}
}

// after waits for a fault to last.
func (o *ordeal) after(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// cyclesPass waits for work to be done meanwhile, so that a fault hits something.
func (o *ordeal) cyclesPass(n int64) {
	from := o.cycles.Load()
	within(o.t, time.Minute, "work goes on", func() bool { return o.cycles.Load() >= from+n })
}

func (o *ordeal) stopFor(ctx context.Context, beside int) error {
	leader, err := o.z.Leader(ctx)
	if err != nil {
		return err
	}
	s := o.z.Server((leader + beside) % o.z.Size())
	return errors.Join(s.Stop(), o.after(ctx, 10*time.Second), s.Continue())
}

func (o *ordeal) suffer(ctx context.Context, f fault) {
	before := o.cycles.Load()
	if err := f.do(ctx); err != nil {
		o.t.Errorf("%s: %v", f.name, err)
	}
	start := time.Now()
	o.cyclesPass(100)
	o.t.Logf(
		"%s: %d cycles during and after it, 100 of these within %v of its end", f.name,
		o.cycles.Load()-before, time.Since(start).Round(time.Millisecond),
	)
}

// renewedTTL is shorter than the longest fault: a store that cannot be asked must
// not let leases run out.
const renewedTTL = 4 * time.Second

// renew keeps entries alive, trying again when the store cannot be asked.
func (o *ordeal) renew(ctx context.Context, s *zookeeper.Store, renewed []*lock.Entry) {
	tick := time.NewTicker(renewedTTL / 8)
	defer tick.Stop()
	for ctx.Err() == nil {
		for _, e := range renewed {
			if err := s.Renew(context.WithoutCancel(ctx), e); errors.Is(err, lock.Lost) {
				o.t.Errorf("an entry that was renewed all the time is lost: %v", err)
				return
			}
		}
		<-tick.C
	}
	for _, e := range renewed {
		o.finish(s, e)
	}
}

// work takes and gives back locks. What failed is repeated at the other store: under
// the same id if that may be repeated, or under another one.
func (o *ordeal) work(ctx context.Context, worker int) {
	for i := 0; ctx.Err() == nil; i++ {
		name := fmt.Sprint("lock-", i%3)
		o.mu.Lock()
		least := o.newest[name]
		o.mu.Unlock()
		s, placed := o.join(worker, i, name)
		o.mu.Lock()
		if placed.Number <= least {
			o.t.Errorf("%s: number %d after %d", name, placed.Number, least)
		}
		o.newest[name] = max(o.newest[name], placed.Number)
		o.mu.Unlock()
		o.finish(s, placed)
		o.cycles.Add(1)
	}
}

func (o *ordeal) join(worker, i int, name string) (*zookeeper.Store, *lock.Entry) {
	for try := 0; ; try++ {
		s, e := o.stores[(worker+i+try)%2], draft(name)
		e.TTL, e.ID = 10*time.Minute, lock.ID(fmt.Sprintf("W%dC%d", worker, i))
		if e.Request = "may be repeated"; worker%2 == 0 {
			e.Request, e.ID = "", lock.ID(fmt.Sprintf("%sT%d", e.ID, try))
		}
		placed, _, err := s.Enqueue(context.Background(), e)
		var typed *lock.Error
		switch {
		case err == nil:
			return s, placed
		case errors.As(err, &typed) && typed.OutcomeUnknown:
			o.mu.Lock()
			o.unclear[e.ID] = true
			o.mu.Unlock()
		}
		o.errors.Add(1)
	}
}

// finish removes an entry. The entry may be gone only after an attempt with an unknown outcome.
func (o *ordeal) finish(s *zookeeper.Store, e *lock.Entry) {
	unknown := false
	for {
		err := s.Remove(context.Background(), e, lock.Released)
		var typed *lock.Error
		switch {
		case err == nil:
			return
		case errors.Is(err, lock.Lost):
			if !unknown {
				o.t.Errorf("%s at %d is gone, though nobody removed it", e.ID, e.Number)
			}
			return
		case errors.As(err, &typed):
			unknown = unknown || typed.OutcomeUnknown
		}
		o.errors.Add(1)
	}
}

// settled checks that nothing is left over but what is unclear, which may stay until
// its lease is over, and that both feeds have the same.
func (o *ordeal) settled() {
	left := make([][]lock.ID, len(o.mirrors))
	for i, m := range o.mirrors {
		within(o.t, time.Minute, "the feed has caught up", func() bool {
			newest, err := o.stores[i].Newest(o.t.Context())
			if err != nil {
				return false
			}
			within(o.t, 10*time.Second, "the feed is current", func() bool {
				m.mu.Lock()
				defer m.mu.Unlock()
				return m.current && m.number >= newest
			})
			return true
		})
		m.mu.Lock()
		o.mu.Lock()
		for e := range m.table.Entries() {
			if left[i] = append(left[i], e.ID); !o.unclear[e.ID] {
				o.t.Errorf(
					"left over in feed %d: %s on %s at %d, written %v", i, e.ID, e.Name(), e.Number, e.EnqueuedAt,
				)
			}
		}
		o.mu.Unlock()
		m.mu.Unlock()
	}
	for i := range left {
		if slices.Sort(left[i]); !slices.Equal(left[i], left[0]) {
			o.t.Errorf("the feeds differ: %v", left)
		}
	}
	known := func(e *lock.Entry) bool { return slices.Contains(left[0], e.ID) }
	for _, name := range []string{"lock-0", "lock-1", "lock-2", "renewed-0"} {
		queue, _, err := o.stores[0].Queue(o.t.Context(), lock.Ref{Tenant: "acme", Name: name})
		if queue = slices.DeleteFunc(queue, known); err != nil || len(queue) > 0 {
			o.t.Errorf("%s: left over are %v, %v", name, queue, err)
		}
	}
}
