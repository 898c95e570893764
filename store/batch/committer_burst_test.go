package batch_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store/batch"
)

// TestOverload: what could not be written in time is refused at once, and honestly.
func TestOverload(t *testing.T) {
	small := func(b batch.Backlog) batch.Limits {
		l := limits
		if l.Pending = b; b.Budget == 0 {
			l.Pending.Budget = time.Hour
		}
		return l
	}
	big := join(0, "hot")
	big.Bytes = 500
	stranger := join(0, "cold")
	stranger.Tenant = "other"
	for name, c := range map[string]struct {
		bound      batch.Backlog
		over, fits *write
	}{
		"writes of a key":     {batch.Backlog{PerKey: batch.Size{Writes: 5, Bytes: 1000}}, join(0, "hot"), join(0, "cold")},
		"bytes of a key":      {batch.Backlog{PerKey: batch.Size{Writes: 50, Bytes: 400}}, big, join(0, "hot")},
		"writes of a tenant":  {batch.Backlog{PerTenant: batch.Size{Writes: 5, Bytes: 1000}}, join(0, "cold"), stranger},
		"bytes of a tenant":   {batch.Backlog{PerTenant: batch.Size{Writes: 50, Bytes: 400}}, big, join(0, "cold")},
		"writes in all":       {batch.Backlog{InAll: batch.Size{Writes: 5, Bytes: 1000}}, stranger, nil},
		"bytes in all":        {batch.Backlog{InAll: batch.Size{Writes: 50, Bytes: 400}}, big, stranger},
		"more than in budget": {batch.Backlog{Budget: 300 * time.Millisecond}, join(0, "hot"), join(0, "cold")},
	} {
		t.Run(name, func(t *testing.T) {
			withCommitter(t, small(c.bound), func(t *testing.T, committer *committer, f *fakeStore) {
				handIn(t, committer, join(-1, "measure")).Wait() // 10 ms / 2 from batch to batch
				n := 13                                          // 8 in flight and 5 pending
				if c.bound.Budget > 0 {
					n = 3000
				}
				var writes []*write
				for i := range n {
					w := join(i, "hot")
					w.Must = c.bound.Budget > 0
					writes = append(writes, w)
				}
				all := handIn(t, committer, writes...)
				if c.bound.Budget > 0 {
					<-time.After(2100 * time.Millisecond) // 1 680 are written, and the rest takes 1.6 s
				}
				began := time.Now()
				_, err := committer.Do(t.Context(), c.over)
				var e *lock.Error
				if !errors.As(err, &e) || e.Code != lock.Overloaded || e.OutcomeUnknown || e.RetryAfter < time.Second || time.Since(began) != 0 {
					t.Errorf("the write over the bound: %v (%+v) after %v", err, e, time.Since(began))
				}
				must := join(1000, "hot")
				must.Must, must.Bytes = true, c.over.Bytes
				late := []*write{must}
				if c.fits != nil {
					late = []*write{c.fits, must}
				}
				handIn(t, committer, late...).Wait()
				all.Wait()
				if left := committer.Pending(); left != (batch.Size{}) {
					t.Errorf("pending at the end: %+v", left)
				}
			})
		})
	}
}

// handInAtOnce has n writes of one lock, due after 4 s, handed in, and returns how each
// ended and when.
func handInAtOnce(c *committer, n int) (errs []error, took []time.Duration) {
	errs, took = make([]error, n), make([]time.Duration, n)
	var all sync.WaitGroup
	for i := range n {
		w := join(i, "hot")
		w.Due = time.Now().Add(4 * time.Second)
		all.Go(func() {
			began := time.Now()
			_, errs[i] = c.Do(context.Background(), w)
			took[i] = time.Since(began)
		})
	}
	all.Wait()
	return errs, took
}

// TestBurstOutlastsACall: what came with many others is written although its time is
// over, for as long as others are, and is told that it was too much if that takes too
// long.
func TestBurstOutlastsACall(t *testing.T) {
	l := limits
	l.Pending.Budget = 8 * time.Second
	withCommitter(t, l, func(t *testing.T, c *committer, f *fakeStore) {
		f.took = 200 * time.Millisecond // 8 at once: 25 ms for each
		errs, took := handInAtOnce(c, 1000)
		written := 0
		for i, err := range errs {
			switch {
			case err == nil && took[i] < 15*time.Second:
				written++
			case !errors.Is(err, lock.Overloaded) || took[i] > 13*time.Second:
				t.Errorf("after %v: %v", took[i], err)
			}
		}
		if written < 400 {
			t.Errorf("%d were written, want those for which there were 12 s", written)
		}
	})
}

// TestStoreFallsSilent: who is pending is told of a store that is lost when his time is
// over, or soon after if others were written until then.
func TestStoreFallsSilent(t *testing.T) {
	for _, after := range []time.Duration{time.Second, 6 * time.Second} {
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			withCommitter(t, limits, func(t *testing.T, c *committer, f *fakeStore) {
				f.took = 200 * time.Millisecond
				silent := time.AfterFunc(after, func() {
					f.mu.Lock()
					defer f.mu.Unlock()
					f.took = time.Minute
				})
				defer silent.Stop()
				errs, took := handInAtOnce(c, 1000)
				latest := max(4*time.Second, after+3*time.Second)
				pending := 0
				for i, err := range errs {
					switch {
					case errors.Is(err, batch.ErrNotSent):
						pending++
					case err != nil && !errors.Is(err, batch.ErrUnknown):
						t.Errorf("after %v: %v", took[i], err)
					}
					if took[i] > latest {
						t.Errorf("after %v: %v; the store was lost after %v", took[i], err, after)
					}
				}
				if pending < 700 {
					t.Errorf("%d of those pending were told, want most", pending)
				}
			})
		})
	}
}

// TestTenantsTakeTurns: whoever has thousands to write does not make others wait for them.
func TestTenantsTakeTurns(t *testing.T) {
	l := limits
	l.InFlight, l.Ops = 1, 2
	withCommitter(t, l, func(t *testing.T, c *committer, f *fakeStore) {
		var many []*write
		for i := range 50 {
			many = append(many, join(i, fmt.Sprint("lock", i)))
		}
		all := handIn(t, c, many...)
		other, third := join(100, "lock"), join(101, "lock of a third")
		other.Tenant, third.Tenant = "other", "third"
		handIn(t, c, other, third).Wait()
		if got, want := fmt.Sprint(f.payloads()[:3]), "[[0] [1 100] [101 2]]"; got != want {
			t.Errorf("the first batches are %s, want %s", got, want)
		}
		all.Wait()
	})
}

// TestOthersAreNoReasonToRefuse: what one tenant has pending is not before all of what
// another writes.
func TestOthersAreNoReasonToRefuse(t *testing.T) {
	l := limits
	l.InFlight, l.Ops, l.Pending.Budget = 1, 1, time.Second
	withCommitter(t, l, func(t *testing.T, c *committer, f *fakeStore) {
		handIn(t, c, join(-1, "measure")).Wait()
		var many []*write
		for i := range 1000 {
			w := join(i, fmt.Sprint("lock", i))
			w.Must = true
			many = append(many, w)
		}
		all := handIn(t, c, many...)
		other := join(2000, "lock")
		other.Tenant = "other"
		handIn(t, c, other).Wait()
		if _, err := c.Do(t.Context(), join(2001, "lock")); !errors.Is(err, lock.Overloaded) {
			t.Errorf("one more of the tenant who has thousands pending: %v", err)
		}
		all.Wait()
	})
}

// TestPaceIsTheBurstsOwn: however slow the large batches before it were, those who come
// first in a burst are not refused for it.
func TestPaceIsTheBurstsOwn(t *testing.T) {
	withCommitter(t, limits, func(t *testing.T, c *committer, f *fakeStore) {
		f.took = 200 * time.Millisecond
		for range 2 {
			errs, _ := handInAtOnce(c, 150) // a burst that is over, of 25 ms for each
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			<-time.After(3 * time.Second)
		}
		f.took = time.Millisecond
		errs, _ := handInAtOnce(c, 2000)
		if err := errors.Join(errs...); err != nil {
			t.Errorf("a burst that the store writes in a moment: %v", err)
		}
		<-time.After(3 * time.Second)
		f.took = 200 * time.Millisecond // a store that is slow at first
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				errs, _ := handInAtOnce(c, 700)
				if err := errors.Join(errs...); err != nil {
					t.Errorf("a burst that begins slowly: %v", err)
				}
			})
			<-time.After(300 * time.Millisecond)
			f.mu.Lock()
			f.took = 100 * time.Microsecond
			f.mu.Unlock()
		}
		all.Wait()
	})
}

// TestStoreThatStandsStill: because the store stood still for a moment, which all that were
// under way had to wait for, nobody is refused who can be written in time.
func TestStoreThatStandsStill(t *testing.T) {
	l := limits
	l.Most, l.Pending.Budget = 64, 4*time.Second
	withCommitter(t, l, func(t *testing.T, c *committer, f *fakeStore) {
		takes := func(d time.Duration) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.took = d
		}
		var all sync.WaitGroup
		burst := func(n int) {
			all.Go(func() {
				errs, _ := handInAtOnce(c, n)
				if err := errors.Join(errs...); err != nil {
					t.Errorf("of %d: %v", n, err)
				}
			})
		}
		takes(40 * time.Millisecond)
		burst(6000)
		<-time.After(2100 * time.Millisecond) // 3 300 are written
		takes(time.Second)
		<-time.After(40 * time.Millisecond)
		takes(40 * time.Millisecond)
		<-time.After(time.Second)
		burst(300)
		all.Wait()
	})
}

// TestReserve: a write that has to wait for something else first is refused when it comes,
// and counts like one that is pending until then.
func TestReserve(t *testing.T) {
	l := limits
	l.Pending.PerKey = batch.Size{Writes: 3, Bytes: 1000}
	withCommitter(t, l, func(t *testing.T, c *committer, f *fakeStore) {
		var releases []func()
		for i := range 3 {
			release, err := c.Reserve(join(i, "hot"))
			if err != nil {
				t.Fatal(err)
			}
			releases = append(releases, release)
		}
		if _, err := c.Reserve(join(4, "hot")); !errors.Is(err, lock.Overloaded) {
			t.Errorf("one more than there is room for: %v", err)
		}
		if _, err := c.Do(t.Context(), join(5, "hot")); !errors.Is(err, lock.Overloaded) {
			t.Errorf("one more that does not wait for anything: %v", err)
		}
		handIn(t, c, join(6, "cold")).Wait()
		releases[0]()
		handIn(t, c, join(7, "hot")).Wait()
		releases[1]()
		releases[2]()
	})
}
