package etcd

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/test/bubble"
)

// slow has one entry be removed at a time, each of which takes a while, and returns by tenant when the last was gone.
func (r *removals) slow(each time.Duration) (at map[string]time.Time) {
	at = map[string]time.Time{}
	r.room = make(chan struct{}, 1)
	r.expirer.remove = func(_ context.Context, e *lock.Entry, _ lock.Reason, _ ...*lock.Entry) error {
		<-time.After(each)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.removed = append(r.removed, e)
		at[e.Tenant] = time.Now()
		return nil
	}
	return at
}

// TestNobodyWaitsBehindMany: a tenant has more entries over than the store removes in time, and others' do not wait for that,
// whether theirs are over before the turns of those come, while these are awaited, or after.
func TestNobodyWaitsBehindMany(t *testing.T) {
	for _, later := range []time.Duration{0, 300 * time.Millisecond, 3 * time.Second} {
		t.Run(fmt.Sprint(later), func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				r := withRemovals(t)
				const n = 1000
				at := r.slow(10 * time.Millisecond)
				for i := range uint64(n) {
					r.starts(lasts(i, int64(i)))
				}
				<-time.After(later)
				r.starts(of("other", lasts(n, n)))
				over := time.Now().Add(2 * time.Second)
				<-time.After(4*time.Second + n*11*time.Millisecond)
				synctest.Wait()
				if late := at["other"].Sub(over); late < 0 || late > 100*time.Millisecond {
					t.Errorf("another's is removed %v after it is over", late)
				}
				r.expires(t, time.Second, n+1)
			})
		})
	}
}

// TestManyWaitInOrder: who is over longest is removed first of its tenant.
func TestManyWaitInOrder(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := withRemovals(t)
		r.slow(10 * time.Millisecond)
		for i := range uint64(200) {
			r.starts(lasts(i, int64(i)))
			<-time.After(time.Millisecond)
		}
		r.expires(t, 5*time.Second, 200)
		if !slices.IsSortedFunc(r.removed, func(a, b *lock.Entry) int { return int(a.Number) - int(b.Number) }) {
			t.Error("they are removed in another order")
		}
	})
}

// TestLooksAtOneAfterTheOther: renewals of all tenants wait while an entry is looked at, and not for all that are over.
func TestLooksAtOneAfterTheOther(t *testing.T) {
	x, began := newLifetimes(), time.Now()
	of := &expirer{times: x}
	const n = 100
	for i := range uint64(n) {
		x.begin(lasts(i, int64(i)), of, began, began)
	}
	steps := 0
	for done := false; !done; steps++ {
		_, _, done = x.step(began.Add(time.Minute))
	}
	if steps < n {
		t.Errorf("%d are looked at in %d steps", n, steps)
	}
	of.ends.Done()
}

// TestChangesWhileItIsDue: what happens to an entry while others are removed before it counts as before its turn.
func TestChangesWhileItIsDue(t *testing.T) {
	for name, c := range map[string]struct {
		change      func(*lifetimes, *expirer)
		soon, later uint64 // which is removed at once and after three seconds, the due one or the next under its lease
	}{
		"nothing":                      {func(*lifetimes, *expirer) {}, 3, 0},
		"renewed":                      {func(x *lifetimes, _ *expirer) { x.renewed(3, nil) }, 0, 3},
		"released":                     {func(x *lifetimes, _ *expirer) { x.forget(3) }, 0, 0},
		"its lease carries another":    {func(x *lifetimes, of *expirer) { x.begin(lasts(9, 3), of, time.Now(), time.Now()) }, 0, 9},
		"its renewal fails":            {func(x *lifetimes, _ *expirer) { x.renewed(3, errLeaseGone) }, 3, 0},
		"its renewal takes long":       {func(x *lifetimes, _ *expirer) { x.renewing(3) }, 0, 0},
		"its store is closed":          {func(x *lifetimes, of *expirer) { x.leave(of) }, 0, 0},
		"its store is closed, of some": {func(x *lifetimes, of *expirer) { x.enter(&expirer{}); x.leave(of) }, 3, 0},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				x, of, now := newLifetimes(), &expirer{}, time.Now()
				for i := range uint64(3) {
					x.begin(lasts(1+i, int64(1+i)), of, now, now.Add(-2*time.Second+time.Duration(i)))
				}
				if a, b, c := x.number(now.Add(time.Microsecond)), x.number(now.Add(10*turnsApart)), x.due.Len(); a != 1 || b != 2 || c != 1 {
					t.Fatalf("%d and %d are removed, and %d due", a, b, c)
				}
				c.change(x, of)
				soon := x.number(now.Add(time.Second))
				if later := x.number(now.Add(3 * time.Second)); soon != c.soon || later != c.later {
					t.Errorf("at once %d is removed, and %d later, want %d and %d", soon, later, c.soon, c.later)
				}
			})
		})
	}
}

// number is that of the next one that is over; 0 if there is none.
func (x *lifetimes) number(now time.Time) uint64 {
	l, _ := x.next(now)
	if l == nil {
		return 0
	}
	return l.entry.Number
}

// renewed is a renewal with that answer.
func (x *lifetimes) renewed(lease int64, err error) {
	if renewed, ok := x.renewing(lease); ok {
		renewed(err)
	}
}

// TestClosedWhileItIsDue: what could not be removed, and is due again when its store is closed, is left alone.
func TestClosedWhileItIsDue(t *testing.T) {
	x, now := newLifetimes(), time.Now()
	of := &expirer{times: x}
	for i := range uint64(2) {
		x.begin(lasts(1+i, int64(1+i)), of, now, now.Add(time.Duration(i)))
	}
	now = now.Add(time.Minute)
	first, _ := x.next(now)
	second, _ := x.next(now.Add(turnsApart))
	x.again(first, now)
	x.again(second, now.Add(1))
	if n := x.number(now.Add(turnsApart)); n != 1 || x.due.Len() != 1 {
		t.Fatalf("%d is removed again, and %d are due", n, x.due.Len())
	}
	x.leave(of)
	x.again(first, now)
	if n := x.number(now.Add(time.Minute)); n != 0 {
		t.Errorf("entry %d of a closed store is to be removed", n)
	}
	for lease := range int64(2) {
		if _, ok := x.renewing(1 + lease); ok {
			t.Error("an entry whose removal may yet happen can be renewed")
		}
	}
}

// TestTurnIsKept: an entry whose renewal is under way at its turn, and fails, does not wait for as long again.
func TestTurnIsKept(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		x, of, now := newLifetimes(), &expirer{}, time.Now()
		over := func(number uint64) {
			x.begin(lasts(number, int64(number)), of, now, now.Add(-2*time.Second+time.Duration(number)))
		}
		over(1)
		x.look(x.byLease[1], now.Add(time.Microsecond))
		renewed, _ := x.renewing(1)
		if n := x.number(now.Add(turnsApart)); n != 0 {
			t.Fatalf("%d is removed while it is renewed", n)
		}
		for i := range uint64(100) {
			over(2 + i)
		}
		renewed(errLeaseGone)
		at := now.Add(turnsApart + expiryTick)
		for n := x.number(at); n != 1; n = x.number(at) {
			if n == 0 {
				t.Fatal("it waits for another turn")
			}
		}
	})
}
