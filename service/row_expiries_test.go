package service_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/board"
	"github.com/fencepost/fencepost/service/view"
	"github.com/fencepost/fencepost/test/bubble"
)

// linesOf are lines of so many locks, each with a holder.
func linesOf(n int) []board.Line {
	lines := make([]board.Line, n)
	for i := range lines {
		e := &lock.Entry{ID: service.NumberedID(uint64(i)), Number: uint64(i + 1)}
		lines[i].Row = &view.Row{Holders: []view.Holder{{Entry: e}}}
	}
	return lines
}

// TestListsTellUntilWhen: a list does not wait for the store, and tells the next time; a renewal shows.
func TestListsTellUntilWhen(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		a := newSharedStore(t).replica(t)
		c := a.console()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); c.Run(ctx) }()
		g := a.hold(want("orders:1", 0))
		until := func() time.Time {
			page, err := c.Locks(board.Query{Sort: board.ByName, Limit: 10})
			if err != nil || len(page.Rows) != 1 {
				t.Fatalf("%d rows, error %v", len(page.Rows), err)
			}
			return page.Rows[0].ExpiresAt
		}
		if at := until(); !at.IsZero() {
			t.Errorf("known at once: %v", at)
		}
		began := time.Now()
		after(time.Second)
		if at := until(); at.Sub(began) > ttl || at.Sub(began) < ttl-time.Second {
			t.Errorf("until %v after %v", at, began)
		}
		after(3 * time.Second)
		a.renew(g)
		renewed := time.Now()
		until()
		after(3 * time.Second)
		if at := until(); at.Sub(renewed) < ttl-time.Second {
			t.Errorf("until %v after a renewal at %v", at, renewed)
		}
		cancel()
		<-done
	})
}

// TestRowsAskTheStoreAtAPace: however many rows are looked at how often, forty questions a second; and none
// for those that nobody sees any more.
func TestRowsAskTheStoreAtAPace(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		x, lines := service.NewRowExpiries(), linesOf(3000)
		var asked atomic.Int64
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			x.Run(ctx, func(context.Context, *lock.Entry) (time.Duration, error) {
				asked.Add(1)
				return time.Minute, nil
			})
		}()
		for range 40 {
			x.Mark(lines)
			after(250 * time.Millisecond)
		}
		if n := asked.Load(); n < 300 || n > 401 || x.Len() != 2000 {
			t.Errorf("asked %d times in ten seconds, %d rows are known", n, x.Len())
		}
		told := int64(0)
		x.Mark(lines)
		for _, l := range lines {
			if !l.ExpiresAt.IsZero() {
				told++
			}
		}
		if n := asked.Load(); told != n {
			t.Errorf("asked of %d rows, and told of %d", n, told)
		}
		after(10 * time.Second)
		before := asked.Load()
		after(time.Minute)
		if n := asked.Load() - before; n != 0 || x.Len() != 0 {
			t.Errorf("asked %d times of rows that nobody sees, %d are known", n, x.Len())
		}
		cancel()
		<-done
	})
}

// TestRowsOfOneTenant: where there are too many rows, those of the tenant who has most give way, and of these the ones
// that were shown longest ago; nobody's who has no more than others.
func TestRowsOfOneTenant(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		x, busy, calm := service.NewRowExpiries(), linesOf(2400), linesOf(3400)[2400:]
		for i := range busy {
			busy[i].Holders[0].Entry.Tenant = "busy"
		}
		for i := range calm {
			calm[i].Holders[0].Entry.Tenant = "calm"
		}
		known := func(busy, calm int) {
			t.Helper()
			if b, c := x.Of("busy"), x.Of("calm"); b != busy || c != calm || x.Len() != busy+calm {
				t.Errorf("%d and %d rows of %d are known, want %d and %d", b, c, x.Len(), busy, calm)
			}
		}
		x.Mark(busy[:2000])
		x.Mark(busy[:100])
		x.Mark(calm[:200])
		known(1800, 200)
		if !x.Knows(busy[0].Holders[0].Entry) || x.Knows(busy[100].Holders[0].Entry) {
			t.Error("it is not the rows that were shown longest ago that gave way")
		}
		x.Mark(busy)
		known(1800, 200)
		if x.Knows(busy[2399].Holders[0].Entry) {
			t.Error("of the tenant who has most a row gives way to another one of its own")
		}
		x.Mark(calm)
		known(1000, 1000)
		x.Mark(busy)
		known(1000, 1000)
		after(10 * time.Second)
		x.Due()
		known(0, 0)
		x.Mark(calm[:1])
		known(0, 1)
	})
}

// TestAnEndThatIsOverIsNotTold: the lease may have become longer.
func TestAnEndThatIsOverIsNotTold(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		x, lines := service.NewRowExpiries(), linesOf(1)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			x.Run(ctx, func(context.Context, *lock.Entry) (time.Duration, error) { return time.Second, nil })
		}()
		x.Mark(lines)
		after(500 * time.Millisecond)
		if x.Mark(lines); lines[0].ExpiresAt.IsZero() {
			t.Error("it is not told while it is to come")
		}
		cancel()
		<-done
		after(2 * time.Second)
		if x.Mark(lines); !lines[0].ExpiresAt.IsZero() {
			t.Errorf("it was over %v ago, and is told", time.Since(lines[0].ExpiresAt))
		}
	})
}

// BenchmarkRowExpiries is what the leases of rows cost where as many are known as may be, whatever the number of
// locks: for each page of a hundred rows that is made, and for each of the forty questions a second.
func BenchmarkRowExpiries(b *testing.B) {
	x, lines := service.NewRowExpiries(), linesOf(2000)
	x.Mark(lines)
	b.Run("page", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			x.Mark(lines[:100])
		}
	})
	b.Run("question", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			x.Due()
		}
	})
}
