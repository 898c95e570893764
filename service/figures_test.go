package service_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/figures"
	"github.com/fencepost/fencepost/test/bubble"
)

// use holds the lock ten times, the i-th time for i units.
func (r *replica) use(name string, unit time.Duration) (last *service.Grant) {
	r.t.Helper()
	for i := range 10 {
		last = r.hold(lasting(want(name, 0)))
		after(time.Duration(i+1) * unit)
		r.release(last)
	}
	return last
}

func TestFigures(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		r.use("orders:1", time.Second)
		g := r.hold(want("orders:1", 0))
		p := r.line(want("orders:1", time.Hour))
		after(ttl) // g expires
		last := p.holds()
		v := r.see("orders:1")
		expected := figures.Lock{
			Acquisitions: 12, Expirations: 1, Newest: last.Entry.Number,
			Wait: figures.Percentiles{P99: ttl, Samples: 12},
			Hold: figures.Percentiles{P50: 6 * time.Second, P90: 10 * time.Second, P99: ttl, Samples: 11},
		}
		if diff := cmp.Diff(
			expected, v.Figures,
		); diff != "" || v.Newest != last.Entry.Number || last.Entry.Number <= g.Entry.Number {
			t.Errorf("newest %d (-want +got):\n%s", v.Newest, diff)
		}
		r.release(last)
		if v := r.see("orders:1"); v.Newest != last.Entry.Number || v.Advised != 2*ttl {
			t.Errorf("when it is free again: newest %d, advised %v", v.Newest, v.Advised)
		}
		if v := r.see("orders:2"); v.Figures != (figures.Lock{}) || v.Advised != 0 {
			t.Errorf("a lock that nobody used: %+v", v)
		}
	})
}

// TestHalfOfTwo: of two holds the lesser is the half.
func TestHalfOfTwo(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		for _, length := range []time.Duration{time.Second, 2 * time.Second} {
			g := r.hold(lasting(want("orders:1", 0)))
			after(length)
			r.release(g)
		}
		if p := r.see(
			"orders:1",
		).Figures.Hold; p.P50 != time.Second || p.P90 != 2*time.Second || p.Samples != 2 {
			t.Errorf("%+v", p)
		}
	})
}

// TestFiguresForgetOldSamples: percentiles are of the latest 128.
func TestFiguresForgetOldSamples(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := newSharedStore(t).replica(t)
		r.use("orders:1", time.Minute)
		for range 128 {
			g := r.hold(want("orders:1", 0))
			after(time.Second)
			r.release(g)
		}
		if f := r.see("orders:1").Figures; f.Acquisitions != 138 || f.Hold.P99 != time.Second {
			t.Errorf("%+v", f)
		}
	})
}

// TestFiguresOfManyLocks: they are kept for the 20 000 that were used last.
func TestFiguresOfManyLocks(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		once := func(name string) {
			if err := s.end(s.occupy(t, name), lock.Released); err != nil {
				t.Fatal(err)
			}
		}
		once("first")
		once("second")
		for i := range 20_000 - 2 {
			once(fmt.Sprint("orders:", i))
		}
		once("first") // now it is not the one to be forgotten
		once("one too many")
		synctest.Wait()
		for name, n := range map[string]uint64{
			"first": 2, "second": 0, "orders:0": 1, "one too many": 1,
		} {
			if f := r.see(name).Figures; f.Acquisitions != n {
				t.Errorf("%s: %+v", name, f)
			}
		}
	})
}

// TestFiguresOfOtherTenants: a tenant with very many locks does not make those of
// others be forgotten, and leaves room for them when they come.
func TestFiguresOfOtherTenants(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		once := func(tenant, name string) {
			e, _, err := s.insert(&lock.Entry{
				ID: lock.ID(tenant + name), Tenant: tenant, TTL: time.Hour, EnqueuedAt: time.Now(),
				Claims: []lock.Claim{{Name: name, Mode: lock.Exclusive}},
			})
			if err != nil || s.end(e, lock.Released) != nil {
				t.Fatal("the test does not do what it should")
			}
		}
		known := func(tenant string, first, last int) (n int) {
			for i := first; i < last; i++ {
				v, err := r.Lock(
					t.Context(), lock.Ref{Tenant: tenant, Name: fmt.Sprint("orders:", i)}, false, nil,
				)
				if err != nil {
					t.Fatal(err)
				}
				if v.Figures.Acquisitions == 1 && v.Newest > 0 {
					n++
				}
			}
			return n
		}
		for i := range 500 {
			once("quiet", fmt.Sprint("orders:", i))
		}
		for i := range 25_000 {
			once("loud", fmt.Sprint("orders:", i))
		}
		for i := range 5_000 {
			once("late", fmt.Sprint("orders:", i))
		}
		synctest.Wait()
		if n := known("quiet", 0, 500); n != 500 {
			t.Errorf("figures of %d locks of the quiet tenant are known, want 500", n)
		}
		if n := known("late", 0, 5_000); n != 5_000 {
			t.Errorf("figures of %d locks of the late tenant are known, want 5000", n)
		}
		if n := known("loud", 25_000-14_500, 25_000); n != 14_500 ||
			known("loud", 0, 25_000-14_500) != 0 {
			t.Errorf("of the newest 14500 locks of the loud tenant %d are known, want just these", n)
		}
	})
}

// TestAdvisedTTL is twice what one hold in a hundred exceeds, within the bounds,
// as soon as there are ten to go by.
func TestAdvisedTTL(t *testing.T) {
	for unit, advised := range map[time.Duration]time.Duration{
		time.Millisecond:       minTTL,
		time.Second:            20 * time.Second,
		50 * time.Millisecond:  minTTL,          // twice half a second is less
		130 * time.Millisecond: 3 * time.Second, // twice 1.3 s, rounded up
		time.Hour / 10:         time.Hour,
	} {
		t.Run(unit.String(), func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				r := newSharedStore(t).replica(t)
				for range 9 {
					g := r.hold(want("few", 0))
					after(time.Second)
					r.release(g)
				}
				req := want("orders:1", 0)
				for i := range 10 {
					req.TTL = time.Hour
					g := r.hold(req)
					after(time.Duration(i+1) * (unit - unit/100))
					r.release(g)
				}
				if v := r.see("orders:1"); v.Advised != advised {
					t.Errorf("advised %v, want %v", v.Advised, advised)
				}
				if v := r.see("few"); v.Advised != 0 {
					t.Errorf("advised %v after nine holds", v.Advised)
				}
			})
		})
	}
}

// diary records the calls of the metrics.
type diary struct {
	mu    sync.Mutex
	notes []string
}

func (d *diary) note(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.notes = append(d.notes, fmt.Sprintf(format, args...))
}

// count returns how many notes are the same as one.
func (d *diary) count(one string) (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, note := range d.notes {
		if note == one {
			n++
		}
	}
	return n
}

func (d *diary) Waited(_ context.Context, outcome string, contended bool, w time.Duration) {
	d.note("waited %s %t %v", outcome, contended, w)
}

func (d *diary) Acquired(_ context.Context, outcome string, keys int) {
	if keys != 1 {
		d.note("acquired %s %d", outcome, keys)
	}
}

func (d *diary) HandedOver(_ context.Context, h time.Duration) { d.note("handed over %v", h) }

func (d *diary) Held(_ context.Context, mode, end string, h time.Duration) {
	d.note("held %s %s %v", mode, end, h)
}

func (d *diary) RenewedWith(_ context.Context, slack float64) { d.note("slack %.2f", slack) }

func (d *diary) Revoked(_ context.Context, actor string) { d.note("revoked by %s", actor) }

func (d *diary) Renewed(_ context.Context, outcome string) { d.note("renewed %s", outcome) }

func (d *diary) StaleWrite(context.Context, time.Duration) { d.note("stale write") }

func (d *diary) Deadlocked(context.Context) { d.note("deadlocked") }

// TestMetrics: every way in which a wait and a hold can end has its word.
func TestMetrics(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s, d := newSharedStore(t), &diary{}
		r := s.replica(t, func(c *service.Config) { c.Metrics = d })
		g := r.hold(want("orders:1", 0))
		r.start(want("orders:1", 0)).fails(lock.Held)
		r.line(want("orders:1", time.Second)).fails(lock.TimedOut)
		gone := r.line(want("orders:1", time.Minute))
		gone.cancel()
		<-gone.done
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := r.Acquire(ctx, want("orders:2", time.Minute)); err == nil {
			t.Error("granted to nobody")
		}
		p := r.line(want("orders:1", time.Minute))
		r.renew(g)
		after(time.Second)
		r.release(g)
		if _, err := r.Renew(t.Context(), by(g)); err == nil {
			t.Error("renewed")
		}
		p.holds()
		after(ttl)
		r.store.on(broken, enqueue)
		r.start(want("orders:1", time.Second)).fails(lock.StoreUnavailable)
		r.Close()
		d.mu.Lock()
		defer d.mu.Unlock()
		expected := []string{
			"waited granted false 0s", "waited refused true 0s", "waited timeout true 1s",
			"waited cancelled true 0s", "waited cancelled true 0s", "renewed ok", "slack 0.97",
			"handed over 0s", "held exclusive released 2s", "waited granted true 1s", "renewed lost",
			"held exclusive expired 30s", "waited error true 0s",
		}
		slices.Sort(expected)
		slices.Sort(d.notes)
		if diff := cmp.Diff(expected, d.notes); diff != "" {
			t.Errorf("metrics (-want +got):\n%s", diff)
		}
	})
}

// TestLeaseMetrics: a renewal after the end of the lease is late, and how much was left of others
// is measured, but not of each; sets, modes and operators have their figures.
func TestLeaseMetrics(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s, d := newSharedStore(t), &diary{}
		r := s.replica(t, func(c *service.Config) { c.Metrics = d })
		both := want("orders:2", 0)
		both.Set, both.Claims = true, append(
			both.Claims, lock.Claim{Name: "orders:3", Mode: lock.Exclusive},
		)
		r.hold(both)
		g := r.hold(want("orders:1", 0))
		after(ttl / 4)
		r.renew(g)
		r.renew(g)
		after(ttl)
		if _, err := r.Renew(t.Context(), by(g)); err == nil {
			t.Error("renewed")
		}
		r.store.on(broken, remaining)
		other := r.hold(want("orders:1", 0))
		r.renew(other)
		r.store.on(nil, remaining)
		after(time.Second)
		r.renew(other)
		after(ttl / 2)
		r.renew(other)
		r.revoke(revoking(other))
		r.Close()
		d.mu.Lock()
		defer d.mu.Unlock()
		expected := []string{
			"acquired granted 2", "waited granted false 0s", "held exclusive expired 30s",
			"waited granted false 0s", "slack 0.75", "renewed ok", "renewed ok",
			"held exclusive expired 37.5s", "renewed late", "waited granted false 0s", "renewed ok",
			"renewed ok", "slack 0.50", "renewed ok", "revoked by admin", "held exclusive revoked 16s",
		}
		slices.Sort(expected)
		slices.Sort(d.notes)
		if diff := cmp.Diff(expected, d.notes); diff != "" {
			t.Errorf("metrics (-want +got):\n%s", diff)
		}
	})
}

// TestSlackThoughAClientGoesAway: that a client goes away while a lease is measured says nothing of
// the store, and others are measured.
func TestSlackThoughAClientGoesAway(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s, d := newSharedStore(t), &diary{}
		r := s.replica(t, func(c *service.Config) { c.Metrics = d })
		g := r.hold(want("orders:1", 0))
		ctx, goesAway := context.WithCancel(t.Context())
		r.store.on(func(ctx context.Context, _ func() error) error {
			goesAway()
			<-ctx.Done()
			return ctx.Err()
		}, remaining)
		_, _ = r.Renew(ctx, by(g))
		r.store.on(nil, remaining)
		after(time.Second)
		r.renew(g)
		r.store.on(broken, remaining)
		after(time.Second)
		r.renew(g) // the store could not tell: the next is not measured
		r.store.on(nil, remaining)
		after(time.Second)
		r.renew(g)
		d.mu.Lock()
		defer d.mu.Unlock()
		if n := strings.Count(strings.Join(d.notes, "\n"), "slack"); n != 1 {
			t.Errorf("%d renewals are measured, want the second alone: %q", n, d.notes)
		}
	})
}

// TestDeepest: the longest queue is known at once, whatever leaves it and after a gap of the feed,
// and a waiter that expires is no holder.
func TestDeepest(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t, func(*service.Config) {})
		deepest := func(want int) {
			t.Helper()
			synctest.Wait()
			if got := r.Deepest(); got != want {
				t.Errorf("%d wait for the lock for which most do, want %d", got, want)
			}
		}
		deepest(0)
		a, b := r.hold(want("orders:1", 0)), r.hold(want("orders:2", 0))
		one := []*pending{
			r.line(want("orders:1", time.Hour)), r.line(want("orders:1", time.Hour)),
			r.line(want("orders:1", time.Hour)),
		}
		two := r.line(want("orders:2", time.Hour))
		deepest(3)
		one[1].cancel()
		<-one[1].done
		deepest(2)
		again := s.replica(t, func(*service.Config) {})
		synctest.Wait()
		if got := again.Deepest(); got != 2 {
			t.Errorf("a replica that has just listed says %d", got)
		}
		r.release(a)
		deepest(1)
		r.release(b)
		two.holds()
		deepest(1)
		one[2].cancel()
		<-one[2].done
		deepest(0)
	})
}
