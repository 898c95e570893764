package service_test

import (
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/board"
	"github.com/fencepost/fencepost/test/bubble"
)

// TestListsSayWhatIsClosed: of several closures the one that lasts longest, of each tenant its own,
// until they have ended.
func TestListsSayWhatIsClosed(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		a := newSharedStore(t).closer(t)
		c := a.console()
		a.hold(want("orders:1", 0))
		a.hold(want("stock", 0))
		short, long := a.closes(closing("orders:*", time.Minute)), a.closes(closing("*:1", time.Hour))
		closed := func(want *lock.Entry) {
			t.Helper()
			after(board.Pace)
			page, err := c.Locks(board.Query{Sort: board.ByName, Limit: 10})
			if err != nil || len(page.Rows) != 2 {
				t.Fatalf("%+v, %v", page, err)
			}
			got := page.Rows[0].Closing
			if page.Rows[1].Closing != nil || (got == nil) != (want == nil) || got != nil && got != want.Closing {
				t.Errorf("closed by %+v and %+v, want %+v and nothing", got, page.Rows[1].Closing, want)
			}
		}
		closed(long.Entry)
		a.opens(long.Entry.ID)
		closed(short.Entry)
		a.opens(short.Entry.ID)
		closed(nil)
	})
}

// TestLongestClosureIsToBlame: who waits at a lock that several closures close waits for the one that lasts longest.
func TestLongestClosureIsToBlame(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		a := newSharedStore(t).closer(t)
		c := a.console()
		a.hold(lasting(want("orders:1", 0)))
		a.line(lasting(want("orders:1", time.Hour)))
		first, long, last := a.closes(closing("orders:*", time.Minute)), a.closes(closing("*:1", time.Hour)), a.closes(closing("*", 2*time.Minute))
		blamed := func(want lock.ID) {
			t.Helper()
			after(board.Pace)
			b, err := c.Blocking(board.Sight{}, 10)
			if err != nil || len(b.Trees) != 1 || b.Trees[0].Closed == nil {
				t.Fatalf("%+v, %v", b, err)
			}
			if got := b.Trees[0].Closed; got.ID != want {
				t.Errorf("%s until %v is to blame, want %s", got.ID, got.Closing.Until, want)
			}
		}
		blamed(long.Entry.ID)
		a.opens(long.Entry.ID)
		blamed(last.Entry.ID)
		a.opens(last.Entry.ID)
		blamed(first.Entry.ID)
	})
}
