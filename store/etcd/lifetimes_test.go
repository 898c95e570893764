package etcd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/test/bubble"
)

// removals is an expirer whose removals are counted, and answered by err, once that is closed which they wait for.
type removals struct {
	*expirer
	mu      sync.Mutex
	removed []*lock.Entry
	err     error
	wait    chan struct{}
}

// withRemovals has what is over be removed until the test ends.
func withRemovals(t *testing.T) *removals {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &removals{wait: make(chan struct{})}
	close(r.wait)
	r.expirer = &expirer{times: newLifetimes(), ctx: ctx, room: make(chan struct{}, maxExpiring), remove: r.remove}
	over := make(chan struct{})
	go func() {
		defer close(over)
		r.times.expireAll(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-over
		r.close()
	})
	return r
}

func (r *removals) remove(_ context.Context, e *lock.Entry, why lock.Reason, _ ...*lock.Entry) error {
	if why != lock.Expired {
		return errors.New("it has another reason")
	}
	r.mu.Lock()
	r.removed = append(r.removed, e)
	r.mu.Unlock()
	<-r.wait
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// answer has removals answered by err from now on.
func (r *removals) answer(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
}

// known is of how many entries is known how long they last, and how many of them are waited for.
func (x *lifetimes) known() (all, waited int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.byLease), x.order.Len() + x.due.Len()
}

// lasts is an entry with a TTL of 2 s.
func lasts(number uint64, lease int64) *lock.Entry {
	return &lock.Entry{Tenant: "acme", TTL: 2 * time.Second, Number: number, Handle: lease}
}

// of has an entry be another tenant's.
func of(tenant string, e *lock.Entry) *lock.Entry {
	e.Tenant = tenant
	return e
}

// starts has an entry last that was written in no time.
func (r *removals) starts(e *lock.Entry) { r.watch(e, time.Now()) }

// mustRenew is a renewal that succeeds.
func (x *lifetimes) mustRenew(t *testing.T, lease int64) {
	t.Helper()
	renewed, ok := x.renewing(lease)
	if !ok {
		t.Fatal("a lease cannot be renewed")
	}
	renewed(nil)
}

// expires waits until so many entries were removed.
func (r *removals) expires(t *testing.T, after time.Duration, want int) {
	t.Helper()
	<-time.After(after)
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.removed) != want {
		t.Fatalf("%d entries were removed, want %d", len(r.removed), want)
	}
}

func TestEntriesEndWithTheirLifetimes(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := withRemovals(t)
		r.starts(lasts(7, 1))
		r.expires(t, 2*time.Second-time.Millisecond, 0)
		r.expires(t, expiryTick+time.Millisecond, 1)
		if all, waited := r.times.known(); all != 0 || waited != 0 {
			t.Error("an entry that was removed is not forgotten")
		}
	})
}

func TestRenewedEntriesLast(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := withRemovals(t)
		r.starts(lasts(7, 1))
		<-time.After(1500 * time.Millisecond)
		r.times.mustRenew(t, 1)
		if left, known := r.left(lasts(7, 1)); !known || left != 2*time.Second {
			t.Errorf("it lasts for %v more (%v), want 2 s", left, known)
		}
		r.expires(t, 2*time.Second-time.Millisecond, 0)
		r.expires(t, expiryTick+time.Millisecond, 1)
	})
}

// TestRenewalUnderWay: one that was sent in time may be executed any moment, and its answer says that the holder goes on.
func TestRenewalUnderWay(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want int
	}{"that succeeds": {nil, 0}, "that fails": {errLeaseGone, 1}} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				r := withRemovals(t)
				r.starts(lasts(7, 1))
				renewed, _ := r.times.renewing(1)
				r.expires(t, 3*time.Second, 0)
				renewed(c.err)
				r.expires(t, time.Second, c.want)
			})
		})
	}
}

// TestNoRenewalOfWhatIsRemoved: it would be answered that it lasts.
func TestNoRenewalOfWhatIsRemoved(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := withRemovals(t)
		r.wait = make(chan struct{})
		r.starts(lasts(7, 1))
		r.expires(t, 3*time.Second, 1)
		r.starts(lasts(7, 1)) // by a renewal that comes late
		if _, ok := r.times.renewing(1); ok {
			t.Error("an entry that is being removed can be renewed")
		}
		r.answer(errors.New("the store does not answer"))
		close(r.wait)
		r.expires(t, expiryPause/2, 1)
		if _, ok := r.times.renewing(1); ok {
			t.Error("an entry whose removal may yet happen can be renewed")
		}
		r.answer(nil)
		r.expires(t, expiryPause, 2)
	})
}

// TestGoneMeanwhile: somebody else has removed what is over.
func TestGoneMeanwhile(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := withRemovals(t)
		r.answer(lock.Errorf(lock.Lost, "gone"))
		r.starts(lasts(7, 1))
		r.expires(t, 10*time.Second, 1)
		if all, _ := r.times.known(); all != 0 {
			t.Error("an entry that is gone is not forgotten")
		}
	})
}

// TestLeaseCarriesAnother: what becomes of the entry before says nothing of the one that has the lease now.
func TestLeaseCarriesAnother(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := withRemovals(t)
		r.wait = make(chan struct{})
		r.starts(lasts(7, 1))
		r.expires(t, 3*time.Second, 1)
		r.starts(lasts(8, 1))
		r.starts(lasts(7, 1)) // by a renewal that comes late
		r.times.mustRenew(t, 1)
		close(r.wait)
		r.expires(t, time.Second, 1)
		if left, known := r.left(lasts(8, 1)); !known || left != time.Second {
			t.Errorf("the later entry lasts for %v more (%v), want 1 s", left, known)
		}
		if _, known := r.left(lasts(7, 1)); known {
			t.Error("it is told how long the earlier one lasts")
		}
		r.expires(t, 2*time.Second, 2)
	})
}

// TestNotTriedAgainForAnother: what could not be removed is gone when its lease carries another entry, and is waited for
// no more.
func TestNotTriedAgainForAnother(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := withRemovals(t)
		r.wait = make(chan struct{})
		r.answer(errors.New("the store does not answer"))
		r.starts(lasts(7, 1))
		r.expires(t, 3*time.Second, 1)
		r.starts(lasts(8, 1))
		close(r.wait)
		r.expires(t, time.Second, 1)
		r.starts(lasts(9, 1)) // nor for what it carried meanwhile
		if all, waited := r.times.known(); all != 1 || waited != 1 {
			t.Errorf("%d entries are known, and %d waited for, want the latest one", all, waited)
		}
	})
}

// TestReleasedAreForgotten: nothing is kept of an entry until its lease would have ended.
func TestReleasedAreForgotten(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := withRemovals(t)
		for i := range 1000 {
			r.starts(lasts(uint64(i), int64(i)))
			r.times.forget(int64(i))
		}
		if all, waited := r.times.known(); all != 0 || waited != 0 {
			t.Errorf("%d entries are known, and %d waited for", all, waited)
		}
		r.expires(t, 3*time.Second, 0)
	})
}

// another is one more expirer of the same store, which counts its removals.
func (r *removals) another(prefix string) *removals {
	o := &removals{wait: r.wait}
	o.expirer = &expirer{times: r.times, prefix: prefix, ctx: r.ctx, room: make(chan struct{}, maxExpiring), remove: o.remove}
	r.times.enter(o.expirer)
	return o
}

// TestClosedStoreRemovesNothing: another one of the same entries does it then, and none of others.
func TestClosedStoreRemovesNothing(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := withRemovals(t)
		other, stranger := r.another(""), r.another("else")
		other.starts(lasts(7, 1))
		stranger.starts(lasts(8, 2))
		other.close()
		other.starts(lasts(9, 3))
		stranger.close()
		r.times.enter(r.expirer)
		r.expires(t, 3*time.Second, 0)
		if all, _ := r.times.known(); len(other.removed) != 0 || len(stranger.removed) != 0 || all != 0 {
			t.Errorf("%d and %d entries of closed stores were removed, %d are known", len(other.removed), len(stranger.removed), all)
		}
		third, fourth := r.another("else"), r.another("else")
		fourth.starts(lasts(8, 2))
		fourth.close()
		r.expires(t, 3*time.Second, 0)
		if all, _ := r.times.known(); len(third.removed) != 1 || len(fourth.removed) != 0 || all != 0 {
			t.Errorf("%d of those that a closed store has left were removed, %d by itself; %d are known", len(third.removed), len(fourth.removed), all)
		}
	})
}

// TestFailedRemovalIsLeft: another store tries again what one that is closed could not remove.
func TestFailedRemovalIsLeft(t *testing.T) {
	for name, wait := range map[string]time.Duration{"under way": 0, "to be tried again": expiryPause / 2} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				r := withRemovals(t)
				other := r.another("")
				r.times.enter(r.expirer)
				fails := make(chan struct{})
				other.wait = fails
				other.answer(errors.New("the store does not answer"))
				other.starts(lasts(7, 1))
				<-time.After(2*time.Second + 2*expiryTick)
				closed := make(chan struct{})
				if wait > 0 {
					close(fails)
					<-time.After(wait)
				}
				go func() { other.close(); close(closed) }()
				synctest.Wait()
				if wait == 0 {
					close(fails)
				}
				<-closed
				r.expires(t, 2*expiryPause, 1)
			})
		})
	}
}

// TestWaitingForRoomIsLeft: so is what had not begun to be removed.
func TestWaitingForRoomIsLeft(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := withRemovals(t)
		other := r.another("")
		r.times.enter(r.expirer)
		ctx, closing := context.WithCancel(t.Context())
		other.ctx, other.wait, other.room = ctx, make(chan struct{}), make(chan struct{}, 1)
		other.starts(lasts(7, 1))
		other.starts(lasts(8, 2))
		<-time.After(2*time.Second + 2*expiryTick)
		closing()
		close(other.wait)
		other.close()
		r.expires(t, 2*expiryTick, 1)
	})
}

// TestManyAreRemovedAtOnce: and no more than share transactions well.
func TestManyAreRemovedAtOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := withRemovals(t)
		under, most := 0, 0
		add := func(n int) {
			r.mu.Lock()
			defer r.mu.Unlock()
			under += n
			most = max(most, under)
		}
		r.expirer.remove = func(context.Context, *lock.Entry, lock.Reason, ...*lock.Entry) error {
			add(1)
			defer add(-1)
			<-time.After(time.Millisecond)
			return nil
		}
		for i := range 10 * maxExpiring {
			r.starts(of(fmt.Sprint("tenant-", i), lasts(uint64(i), int64(i))))
		}
		<-time.After(2*time.Second + 2*expiryTick)
		if all, _ := r.times.known(); most != maxExpiring || all != 0 {
			t.Errorf("%d were removed at once, want %d; %d are left", most, maxExpiring, all)
		}
	})
}

// TestFailuresLeaveRoom: what could not be removed keeps nothing else from being removed.
func TestFailuresLeaveRoom(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := withRemovals(t)
		r.room = make(chan struct{}, 1)
		r.answer(errors.New("the store does not answer"))
		r.starts(lasts(7, 1))
		r.starts(lasts(8, 2))
		r.expires(t, 2*time.Second+5*expiryTick, 2)
		r.answer(nil)
		r.expires(t, 2*expiryPause, 4)
	})
}

// TestLastsWhileItsLeaseDoes: what took long to write, or to renew, has had part of its lease by the time that is
// answered, and nobody is told that it lasts longer.
func TestLastsWhileItsLeaseDoes(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := withRemovals(t)
		wants := func(want time.Duration) {
			t.Helper()
			if left, known := r.left(lasts(7, 1)); !known || left != want {
				t.Errorf("it lasts for %v more (%v), want %v", left, known, want)
			}
		}
		began := time.Now()
		<-time.After(time.Second)
		r.watch(lasts(7, 1), began)
		wants(time.Second)
		renewed, _ := r.times.renewing(1)
		<-time.After(time.Second / 2)
		renewed(nil)
		wants(3 * time.Second / 2)
		r.times.mustRenew(t, 1)
		wants(2 * time.Second)
	})
}

// TestNoRenewalWhileItsStoreCloses: its removal may happen yet, and another store on the connection does not say that
// the entry goes on.
func TestNoRenewalWhileItsStoreCloses(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := withRemovals(t)
		r.wait = make(chan struct{})
		r.starts(lasts(7, 1))
		r.expires(t, 3*time.Second, 1)
		closed := make(chan struct{})
		go func() { r.close(); close(closed) }()
		synctest.Wait()
		select {
		case <-closed:
			t.Error("it is closed while it removes an entry")
		default:
		}
		if _, ok := r.times.renewing(1); ok {
			t.Error("an entry that is being removed can be renewed")
		}
		r.answer(errors.New("the store does not answer"))
		close(r.wait)
		<-closed
		if _, ok := r.times.renewing(1); ok {
			t.Error("an entry whose removal may yet happen can be renewed")
		}
		r.expires(t, 2*expiryPause, 1)
	})
}

// TestClosedWhileItWaits: a removal that failed is not tried again when its store is closed.
func TestClosedWhileItWaits(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := withRemovals(t)
		r.answer(errors.New("the store does not answer"))
		r.starts(lasts(7, 1))
		r.expires(t, 2*time.Second+2*expiryTick, 1)
		r.close()
		r.expires(t, 2*expiryPause, 1)
		if _, ok := r.times.renewing(1); ok {
			t.Error("an entry whose removal may yet happen can be renewed")
		}
	})
}
