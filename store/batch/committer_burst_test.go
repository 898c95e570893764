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

// TestOverBoundIsRejectedAtOnce: a write over a bound is rejected when it arrives, and never one
// that must be written.
func TestOverBoundIsRejectedAtOnce(t *testing.T) {
	big, other := join(0, "hot"), join(0, "cold")
	big.Bytes, other.Tenant = 500, "other"
	few, light := batch.Size{Writes: 5, Bytes: 1000}, batch.Size{Writes: 50, Bytes: 400}
	for name, c := range map[string]struct {
		bound      batch.Backlog
		over, fits *write
	}{
		"writes of a key":    {batch.Backlog{PerKey: few}, join(0, "hot"), join(0, "cold")},
		"bytes of a key":     {batch.Backlog{PerKey: light}, big, join(0, "hot")},
		"writes of a tenant": {batch.Backlog{PerTenant: few}, join(0, "cold"), other},
		"bytes of a tenant":  {batch.Backlog{PerTenant: light}, big, join(0, "cold")},
		"writes in all":      {batch.Backlog{InAll: few}, other, nil},
		"bytes in all":       {batch.Backlog{InAll: light}, big, other},
	} {
		t.Run(name, func(t *testing.T) {
			l := limits
			l.Pending = c.bound
			withCommitter(t, l, func(t *testing.T, committer *committer, _ *fakeStore) {
				var writes []*write
				for i := range 13 { // 8 in flight and 5 pending
					writes = append(writes, join(i, "hot"))
				}
				all := handIn(t, committer, writes...)
				began := time.Now()
				_, err := committer.Do(t.Context(), c.over)
				var e *lock.Error
				if !errors.As(err, &e) || e.Code != lock.Overloaded || e.OutcomeUnknown ||
					e.RetryAfter < time.Second || time.Since(began) != 0 {
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

// TestLongQueueIsNoLostStore: a write that is due stays pending while others are written, and is
// rejected as too many when that takes too long.
func TestLongQueueIsNoLostStore(t *testing.T) {
	withCommitter(t, limits, func(t *testing.T, c *committer, f *fakeStore) {
		f.took = 200 * time.Millisecond // 8 at once: 25 ms for each
		errs, took := handInAtOnce(c, 1500)
		longest := 4*time.Second + batch.MostPending
		written := 0
		for i, err := range errs {
			switch {
			case err == nil && took[i] < longest+2*time.Second:
				written++
			case !errors.Is(err, lock.Overloaded) || took[i] > longest+time.Second:
				t.Errorf("after %v: %v", took[i], err)
			}
		}
		if written < 1000 {
			t.Errorf("%d were written, want those for which there was time", written)
		}
	})
}

// TestLostStoreEndsPendingWrites: a pending write fails when it is due if the store is lost, or
// soon after if others were written until then.
func TestLostStoreEndsPendingWrites(t *testing.T) {
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

// TestReservedWriteCountsAsPending: a write that waits for something else first is rejected when it
// arrives, and counts as pending until then.
func TestReservedWriteCountsAsPending(t *testing.T) {
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
