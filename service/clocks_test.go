package service_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/lists"
	"github.com/fencepost/fencepost/test/bubble"
)

// ahead has the wall clock of a replica be wrong by so much.
func ahead(d time.Duration) func(*service.Config) {
	return func(c *service.Config) { c.Now = func() time.Time { return time.Now().Add(d) } }
}

// TestListsTellUntilWhenByTheReplicasClock: like all instants in an answer, the ends of leases in
// lists are by the clock by which the answer says what time it is, also after that was set.
func TestListsTellUntilWhenByTheReplicasClock(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		wrong := time.Hour
		a := newSharedStore(t).replica(
			t, func(c *service.Config) { c.Now = func() time.Time { return time.Now().Add(wrong) } },
		)
		c := a.console()
		a.hold(want("orders:1", 0))
		ends := time.Now().Add(ttl)
		told := func() time.Time {
			t.Helper()
			page, err := c.Locks(t.Context(), lists.Query{Sort: lists.ByName, Limit: 10})
			if err != nil || len(page.Rows) != 1 {
				t.Fatalf("%d rows, error %v", len(page.Rows), err)
			}
			return page.Rows[0].ExpiresAt
		}
		for _, wrong = range []time.Duration{time.Hour, -time.Hour, 0} {
			at := told()
			if by := at.Sub(ends.Add(wrong)); by.Abs() > time.Second {
				t.Errorf("by a clock that is wrong by %v, the end of the lease is told wrong by %v", wrong, by)
			}
		}
	})
}

// TestSlackAfterTheClockWasSetBack: renewals are measured again soon, and not when the clock is
// where it was.
func TestSlackAfterTheClockWasSetBack(t *testing.T) {
	now := time.Now()
	x := service.SlackSamples{}
	if !x.Take(now) || x.Take(now) {
		t.Error("not one of two is measured")
	}
	if !x.Take(now.Add(-time.Hour)) {
		t.Error("none is measured after the clock was set back")
	}
	x.Rest(now)
	if x.Take(now.Add(9 * time.Second)) {
		t.Error("one is measured while the store is in trouble")
	}
	if !x.Take(now.Add(10 * time.Second)) {
		t.Error("none is measured after that")
	}
}

// TestHandedOverByAnotherClock: how long a grant took, and how long it was held, is never less than
// nothing, whatever the clock of the replica showed that wrote the entry.
func TestHandedOverByAnotherClock(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s, d := newSharedStore(t), &diary{}
		a := s.replica(t, ahead(time.Hour))
		g := a.hold(want("orders:1", 0))
		p := a.line(keyed("orders:1", time.Minute, "k"))
		c := newClient(s)
		c.setFeed(lost)
		b := s.replicaWith(t, c, func(c *service.Config) { c.Metrics = d })
		resumed := b.line(keyed("orders:1", time.Minute, "k"))
		after(3 * time.Second)
		c.on(func(_ context.Context, do func() error) error {
			c.setFeed(running)
			pause(context.Background(), time.Second)
			return do()
		}, refresh)
		a.release(g)
		p.holds()
		after(3 * time.Second)
		a.release(resumed.holds())
		b.Close()
		d.mu.Lock()
		defer d.mu.Unlock()
		if !slices.ContainsFunc(
			d.notes, func(note string) bool { return strings.HasPrefix(note, "held ") },
		) {
			t.Errorf("no hold in %q", d.notes)
		}
		for _, note := range d.notes {
			if strings.Contains(note, " -") {
				t.Error(note)
			}
		}
	})
}

// TestGoneThoughItsKeyIsInUseAgain: an entry has ended, also if another one has its id.
func TestGoneThoughItsKeyIsInUseAgain(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := newSharedStore(t).replica(t, func(*service.Config) {})
		req := want("orders:1", 0)
		req.IdempotencyKey = "k"
		first := r.hold(req)
		if synctest.Wait(); r.Gone(first.Entry.ID, first.Entry.Number) {
			t.Error("what holds is gone")
		}
		r.release(first)
		after(12 * time.Minute)
		second := r.hold(req)
		synctest.Wait()
		if second.Entry.ID != first.Entry.ID {
			t.Fatal("another id")
		}
		if r.Gone(second.Entry.ID, second.Entry.Number) {
			t.Error("what holds is gone")
		}
		if !r.Gone(first.Entry.ID, first.Entry.Number) {
			t.Error("what was released is not gone")
		}
	})
}
