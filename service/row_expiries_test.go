package service_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/lists"
	"github.com/fencepost/fencepost/service/view"
	"github.com/fencepost/fencepost/test/bubble"
)

// linesOf are lines of so many locks, each with a holder.
func linesOf(n int) []lists.Line {
	lines := make([]lists.Line, n)
	for i := range lines {
		e := &lock.Entry{ID: service.NumberedID(uint64(i)), Number: uint64(i + 1)}
		lines[i].Row = &view.Row{Holders: []view.Holder{{Entry: e}}}
	}
	return lines
}

// marked counts the lines that have an end.
func marked(lines []lists.Line) (n int) {
	for i := range lines {
		if !lines[i].ExpiresAt.IsZero() {
			n++
		}
		lines[i].ExpiresAt = time.Time{}
	}
	return n
}

// TestListShowsTheEndOfALease: a row has the end of its first holder's lease, and a renewal shows.
func TestListShowsTheEndOfALease(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		a := newSharedStore(t).replica(t)
		c := a.console()
		g := a.hold(want("orders:1", 0))
		began := time.Now()
		until := func() time.Time {
			page, err := c.Locks(t.Context(), lists.Query{Sort: lists.ByName, Limit: 10})
			if err != nil || len(page.Rows) != 1 {
				t.Fatalf("%d rows, error %v", len(page.Rows), err)
			}
			return page.Rows[0].ExpiresAt
		}
		if at := until(); at.Sub(began) > ttl || at.Sub(began) < ttl-time.Second {
			t.Errorf("until %v after %v", at, began)
		}
		after(3 * time.Second)
		a.renew(g)
		if at := until(); time.Until(at) < ttl-time.Second {
			t.Errorf("until %v after a renewal at %v", at, time.Now())
		}
	})
}

// TestPagesAskTheStoreSeldom: a page asks for 40 rows, those without an answer first, and all
// pages together for 100 rows a second.
func TestPagesAskTheStoreSeldom(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		x, lines := service.NewRowExpiries(), linesOf(100)
		var asked atomic.Int64
		answer := func(context.Context, *lock.Entry) (time.Duration, error) {
			asked.Add(1)
			return time.Minute, nil
		}
		for i, want := range []int64{40, 80, 120, 160} {
			x.Mark(lines, answer)
			if n, ends := asked.Load(), int64(marked(lines)); n != want || ends != min(want, 100) {
				t.Errorf("page %d: asked %d times, %d rows have an end, want %d", i, n, ends, want)
			}
			after(time.Second)
		}
		for range 20 {
			x.Mark(linesOf(2000), answer)
		}
		if n := asked.Load(); n > 260 {
			t.Errorf("asked %d times by pages of one second", n-160)
		}
	})
}

// TestSlowStoreHoldsUpNoPage: a page waits 50 ms for the store, and has the ends of before.
func TestSlowStoreHoldsUpNoPage(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		x, lines := service.NewRowExpiries(), linesOf(20)
		x.Mark(
			lines, func(context.Context, *lock.Entry) (time.Duration, error) { return time.Minute, nil },
		)
		marked(lines)
		after(5 * time.Second)
		began := time.Now()
		x.Mark(lines, func(ctx context.Context, _ *lock.Entry) (time.Duration, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		})
		if took := time.Since(began); took > 50*time.Millisecond {
			t.Errorf("the page took %v", took)
		}
		if n := marked(lines); n != 20 {
			t.Errorf("%d rows have an end, want those of before", n)
		}
	})
}

// TestEndInThePastIsNotShown: the lease may have been renewed.
func TestEndInThePastIsNotShown(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		x, lines := service.NewRowExpiries(), linesOf(1)
		x.Mark(
			lines, func(context.Context, *lock.Entry) (time.Duration, error) { return time.Second, nil },
		)
		if marked(lines) != 1 {
			t.Error("an end that is to come is not shown")
		}
		after(1500 * time.Millisecond)
		x.Mark(
			lines,
			func(context.Context, *lock.Entry) (time.Duration, error) { return 0, errors.New("away") },
		)
		if marked(lines) != 0 {
			t.Error("an end in the past is shown")
		}
	})
}

// TestEndStaysTheSame: answers of a store that counts seconds differ, though no lease was renewed.
func TestEndStaysTheSame(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		x, lines := service.NewRowExpiries(), linesOf(1)
		began := time.Now()
		answer := func(context.Context, *lock.Entry) (time.Duration, error) {
			return (time.Minute - time.Since(began)).Truncate(time.Second), nil
		}
		x.Mark(lines, answer)
		first := lines[0].ExpiresAt
		for range 5 {
			after(2300 * time.Millisecond)
			x.Mark(lines, answer)
			if at := lines[0].ExpiresAt; !at.Equal(first) {
				t.Errorf("the end was %v, and is %v", first, at)
			}
		}
	})
}
