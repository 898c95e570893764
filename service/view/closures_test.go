package view_test

import (
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/locktest"
	"github.com/fencepost/fencepost/service/view"
	"github.com/fencepost/fencepost/store"
)

// TestWhatElseTheWriteOfAClosureDid comes after it, wherever the feed tells it: a replica that
// follows and one that lists say the same.
func TestWhatElseTheWriteOfAClosureDid(t *testing.T) {
	e := func(n, number uint64, locks ...string) *lock.Entry {
		one := locktest.Entry(view.NumberedID(n), number, locks...)
		one.EnqueuedAt = time.Now()
		return one
	}
	holder, waiter, goes, next := e(1, 1, "x"), e(2, 2, "x"), e(3, 3, "y"), e(4, 4, "y")
	newcomer, closing := e(5, 5, "z"), locktest.Closing(view.NumberedID(6), 5, "t", "*")
	followed := empty()
	followed.Reset(store.Snapshot{Number: 4, Entries: []*lock.Entry{holder, waiter, goes, next}})
	followed.Apply(5, []store.Change{
		{Number: 5, Joined: newcomer}, {Number: 5, Left: goes.ID, Reason: lock.Released}, {Number: 5, Joined: closing},
	})
	all := followed.Closures("t")
	if len(all) != 1 || all[0].Roll == nil {
		t.Fatalf("closures: %+v", all)
	}
	roll := e(7, 6, lock.ClosuresOf("t").Name)
	roll.Tenant, roll.Roll = lock.OwnTenant, all[0].Roll
	listed := empty()
	listed.Reset(store.Snapshot{Number: 5, Entries: []*lock.Entry{holder, waiter, next, newcomer, closing}})
	if st := listed.Status(holder.ID, 1); st.State != view.Waiting || !st.InDoubt {
		t.Errorf("without the roll the holder is %+v", st)
	}
	for _, v := range []*view.View{followed, listed} {
		v.Apply(6, []store.Change{{Number: 6, Joined: roll}})
		for _, one := range []*lock.Entry{holder, waiter, next, newcomer} {
			want := view.Waiting
			if one == holder {
				want = view.Held
			}
			if st := v.Status(one.ID, one.Number); st.State != want || st.InDoubt {
				t.Errorf("listed %t: entry %d is %+v", v == listed, one.Number, st)
			}
		}
		v.Apply(7, []store.Change{{Number: 7, Left: closing.ID, Reason: lock.Expired}})
		for _, one := range []*lock.Entry{holder, next, newcomer} {
			if st := v.Status(one.ID, one.Number); st.State != view.Held {
				t.Errorf("listed %t: opened, entry %d is %+v", v == listed, one.Number, st)
			}
		}
		if left := v.LeftRolls(); len(left) != 1 {
			t.Errorf("left: %v", left)
		}
	}
}

// TestClosuresCountAsNoLocks: what a tenant holds is counted right when a roll, or the end of a
// closure, lets its entries hold.
func TestClosuresCountAsNoLocks(t *testing.T) {
	holder, waiter := locktest.Entry(view.NumberedID(1), 1, "x"), locktest.Entry(view.NumberedID(2), 3, "y")
	closing := locktest.Closing(view.NumberedID(3), 2, "t", "*")
	roll := locktest.Entry(view.NumberedID(4), 4, lock.ClosuresOf("t").Name)
	roll.Tenant, roll.Roll = lock.OwnTenant, &lock.Roll{Of: closing.ID}
	v := empty()
	v.Reset(store.Snapshot{Number: 3, Entries: []*lock.Entry{holder, waiter, closing}})
	for want, change := range []store.Change{{}, {Number: 4, Joined: roll}, {Number: 5, Left: closing.ID, Reason: lock.Expired}} {
		if change.Number > 0 {
			v.Apply(change.Number, []store.Change{change})
		}
		if sums := v.Sums("t"); sums.Holding != want || sums.Held != want {
			t.Errorf("at %d it holds %+v, want %d", 3+want, sums, want)
		}
	}
}
