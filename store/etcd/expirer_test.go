package etcd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/test/bubble"
)

// TestLeaseOfAnExpiredEntry: it carries the next one of its tenant, and etcd ends it for none of them. An entry whose lease
// is renewed over the connection lasts, before whoever had that done looks whether it is there.
func TestLeaseOfAnExpiredEntry(t *testing.T) {
	a, b, committed, lose := startTwo(t)
	lose()
	if _, _, err := a.Enqueue(t.Context(), reusable("first", false)); err != nil { // whose answer is lost
		t.Fatal(err)
	}
	<-committed
	short := func(id lock.ID) *lock.Entry {
		e := reusable(id, false)
		e.TTL = 2 * time.Second
		placed, _, err := a.Enqueue(t.Context(), e)
		if err != nil {
			t.Fatal(err)
		}
		return placed
	}
	renewed := short("renewed")
	soon(t, "an entry has the lease of one that ended before", func() bool { // which lapses if nothing runs for a second
		began := time.Now()
		dead := short(lock.ID(fmt.Sprint("dead-", began.UnixNano())))
		soon(t, "the entry that nobody renews is gone", func() bool {
			err := b.conn.renewer.renew(t.Context(), renewed.Handle, true)
			if err == nil {
				err = b.prove(t.Context(), renewed)
			}
			if err != nil {
				t.Fatalf("after %v: %v", time.Since(began), err)
			}
			return a.prove(t.Context(), dead) != nil
		})
		if took := time.Since(began); took < dead.TTL {
			t.Errorf("it lasted for %v", took)
		}
		return short(lock.ID(fmt.Sprint("next-", began.UnixNano()))).Handle == dead.Handle
	})
}

// TestReleasedLeaveNoLifetime: how long an entry lasts is known while it is there, and not for as long as its TTL.
func TestReleasedLeaveNoLifetime(t *testing.T) {
	a, _, committed, lose := startTwo(t)
	lose()
	e, _, err := a.Enqueue(t.Context(), reusable("first", false)) // whose answer is lost
	if err != nil {
		t.Fatal(err)
	}
	<-committed
	if left, err := a.Remaining(t.Context(), e); err != nil || left <= time.Hour-time.Minute || left > time.Hour {
		t.Errorf("it lasts for %v, %v", left, err)
	}
	if err := a.Remove(t.Context(), e, lock.Released); err != nil {
		t.Fatal(err)
	}
	if all, waited := a.conn.lifetimes.known(); all != 0 || waited != 0 {
		t.Errorf("%d are known, %d waited for", all, waited)
	}
}

// TestRevokedLeaveNoLifetime: nor where the lease is not used again.
func TestRevokedLeaveNoLifetime(t *testing.T) {
	a, b, _, lose := startTwo(t)
	lose()
	_, _, _ = a.Enqueue(t.Context(), reusable("first", false)) // whose answer is lost
	if err := a.Remove(t.Context(), a.mustFind(t, reusable("first", false)), lock.Released); err != nil {
		t.Fatal(err)
	}
	e, _, err := a.Enqueue(t.Context(), reusable("revoked", false))
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Remove(t.Context(), e, lock.Revoked); err != nil {
		t.Fatal(err)
	}
	if all, waited := a.conn.lifetimes.known(); all != 0 || waited != 0 {
		t.Errorf("%d are known, %d waited for", all, waited)
	}
}

// TestEndsWhatItFinds: what this process did not write, as what was there before a restart, it ends in time, from when it
// has learned of it.
func TestEndsWhatItFinds(t *testing.T) {
	for name, learns := range map[string]func(*testing.T, *Store, *lock.Entry){
		"in the list": func(t *testing.T, s *Store, e *lock.Entry) {
			feed := &ends{left: make(chan store.Change, 10)}
			s.tasks.Go(func() { s.Watch(s.closing, feed) })
			soon(t, "the feed is up", feed.isUp)
		},
		"in the list, where the feed begins before it": func(t *testing.T, s *Store, e *lock.Entry) {
			s.Resume(e.Number - 1)
			feed := &ends{left: make(chan store.Change, 10)}
			s.tasks.Go(func() { s.Watch(s.closing, feed) })
			soon(t, "the feed is up", feed.isUp)
		},
		"by a retry": func(t *testing.T, s *Store, e *lock.Entry) { s.mustJoin(t, e) },
		"by a renewal": func(t *testing.T, s *Store, e *lock.Entry) {
			if err := s.Renew(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, m := testStore(t, EmbeddedConfig{}, func(*Conn) {})
			e := reusable("first", true)
			e.TTL = MinTTL
			e = s.mustEnqueue(t, e)
			m.lifetimes.forget(e.Handle)
			began := time.Now()
			learns(t, s, e)
			soon(t, "it is gone", func() bool { return s.prove(t.Context(), e) != nil })
			if took := time.Since(began); took < e.TTL {
				t.Errorf("it lasted for %v", took)
			}
		})
	}
}

// TestEndsNothingOfThePast: a feed that begins in the past is told of entries that have gone since, and nothing is kept
// of these.
func TestEndsNothingOfThePast(t *testing.T) {
	s, m := testStore(t, EmbeddedConfig{}, func(*Conn) {})
	gone := s.mustEnqueue(t, reusable("gone", true))
	there := s.mustEnqueue(t, reusable("there", true))
	if err := s.Remove(t.Context(), gone, lock.Released); err != nil {
		t.Fatal(err)
	}
	m.lifetimes.forget(there.Handle)
	s.Resume(there.Number)
	feed := &ends{left: make(chan store.Change, 10)}
	s.tasks.Go(func() { s.Watch(s.closing, feed) })
	if c := <-feed.left; c.Left != gone.ID {
		t.Errorf("the feed tells of %+v", c)
	}
	if all, _ := m.lifetimes.known(); all != 1 {
		t.Errorf("%d entries are known, want the one that is there", all)
	}
}

// TestEndsWhatNobodyComesBackFor: the call that wrote an entry with a key never learned of that, and leaves it to who
// repeats it. Where nobody does it goes when its TTL is over, and not with its lease.
func TestEndsWhatNobodyComesBackFor(t *testing.T) {
	t.Parallel()
	s, late := startLate(t, 1)
	late.now = func() bool { return true }
	e := lateEntry()
	e.Request, e.TTL = "the parameters", MinTTL
	late.setBlind(true)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, _, err := s.Enqueue(ctx, e); !errors.Is(err, lock.StoreUnavailable) {
		t.Fatalf("Enqueue: %v", err)
	}
	late.setBlind(false)
	if s.mustFind(t, e) == nil {
		t.Fatal("it was not written")
	}
	within(t, localSlack/2, "it is gone", func() bool { found, err := s.find(t.Context(), e); return found == nil && usedUp(err) != nil })
}

// TestUnreadableKeepsItsPlace: until its lease ends, as nobody knows for how long its holder was promised it.
func TestUnreadableKeepsItsPlace(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := withRemovals(t)
		r.watchListed([]*lock.Entry{store.Damaged(store.Key{Tenant: "acme", Lock: "a", ID: "e"}, 7, 1)})
		r.expires(t, time.Hour, 0)
	})
}

// TestRemainingOfWhatIsListed: nobody is told that it lasts until its lease would end.
func TestRemainingOfWhatIsListed(t *testing.T) {
	s, m := testStore(t, EmbeddedConfig{}, func(*Conn) {})
	e := s.mustEnqueue(t, reusable("first", false))
	m.lifetimes.forget(e.Handle)
	const left = time.Minute
	m.lifetimes.begin(e, s.expirer, time.Time{}, time.Now().Add(left-e.TTL))
	if got, err := s.Remaining(t.Context(), e); err != nil || got > left || got < left/2 {
		t.Errorf("it lasts for %v, %v, want %v", got, err, left)
	}
}

// TestNotLeftToWhatDidNotOpen: a store that could not be opened has nothing removed, and is left nothing.
func TestNotLeftToWhatDidNotOpen(t *testing.T) {
	t.Parallel()
	s, m := testStore(t, EmbeddedConfig{}, func(*Conn) {})
	if _, err := Open(t.Context(), s.conn, Config{FenceFloor: 1 << 60}); err == nil {
		t.Fatal("a store is opened with an impossible floor")
	}
	m.lifetimes.mu.Lock()
	defer m.lifetimes.mu.Unlock()
	if open := m.lifetimes.open; len(open) != 1 || open[0] != s.expirer {
		t.Errorf("%d stores are open, want one", len(open))
	}
}

// TestListProlongsNothing: however often it is read.
func TestListProlongsNothing(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := withRemovals(t)
		r.starts(lasts(7, 1))
		for range 3 {
			<-time.After(500 * time.Millisecond)
			r.watchListed([]*lock.Entry{lasts(7, 1)})
		}
		r.expires(t, 500*time.Millisecond+expiryTick, 1)
	})
}

// TestCallThatLearnsLate: the list had its entry before, and its client has the whole TTL from the answer on.
func TestCallThatLearnsLate(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := withRemovals(t)
		r.watchListed([]*lock.Entry{lasts(7, 1)})
		if _, known := r.left(lasts(7, 1)); known {
			t.Error("it is known how long the lease of what was listed lasts")
		}
		<-time.After(time.Second)
		if !r.watch(lasts(7, 1), time.Now()) {
			t.Error("it does not go on")
		}
		if left, known := r.left(lasts(7, 1)); !known || left != 2*time.Second {
			t.Errorf("it lasts for %v (%v), want 2 s", left, known)
		}
		r.expires(t, 2*time.Second-time.Millisecond, 0)
		r.expires(t, expiryTick+time.Millisecond, 1)
	})
}

// TestRenewalOfWhatIsBeingRemoved: it began before the entry was known here, and is not answered that it goes on.
func TestRenewalOfWhatIsBeingRemoved(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := withRemovals(t)
		r.wait = make(chan struct{})
		r.watchListed([]*lock.Entry{lasts(7, 1)})
		r.expires(t, 2*time.Second+2*expiryTick, 1)
		if r.watch(lasts(7, 1), time.Now()) {
			t.Error("it goes on")
		}
		close(r.wait)
		r.expires(t, time.Second, 1)
	})
}

// TestRenewalThatFails: it is not under way any more.
func TestRenewalThatFails(t *testing.T) {
	s, m := testStore(t, EmbeddedConfig{}, func(*Conn) {})
	gone := lasts(7, 12345)
	s.expirer.watch(gone, time.Now())
	if err := m.renew(t.Context(), gone.Handle, true); !isLeaseNotFound(err) {
		t.Fatal(err)
	}
	if l, _ := m.lifetimes.next(time.Now().Add(time.Hour)); l == nil {
		t.Error("an entry whose renewal has failed does not end")
	} else {
		l.of.ends.Done()
	}
}

// lateRenewer has something happen between a renewal and its answer, once.
type lateRenewer struct {
	renewer
	then func()
}

func (r *lateRenewer) renew(ctx context.Context, lease int64, lives bool) error {
	err := r.renewer.renew(ctx, lease, lives)
	r.then()
	return err
}

// TestRenewalBesideRemoval: what began to be removed when its lease was just renewed is not answered to go on, although
// it is still there.
func TestRenewalBesideRemoval(t *testing.T) {
	t.Parallel()
	late := &lateRenewer{then: func() {}}
	s, m := testStore(t, EmbeddedConfig{}, func(c *Conn) {
		late.renewer = c.renewer
		c.renewer = late
	})
	e := s.mustEnqueue(t, reusable("first", false))
	m.lifetimes.forget(e.Handle)
	late.then = sync.OnceFunc(func() {
		m.lifetimes.begin(e, s.expirer, time.Time{}, time.Now().Add(-e.TTL))
		if l, of := m.lifetimes.next(time.Now()); l != nil { // or it is being removed already
			time.AfterFunc(100*time.Millisecond, func() { of.expire(l) })
		}
	})
	if err := s.Renew(t.Context(), e); !errors.Is(err, lock.Lost) {
		t.Errorf("the renewal is answered %v, want that the entry is lost", err)
	}
	if left := s.mustFind(t, e); left != nil {
		t.Errorf("it is told to be lost while it is there: %+v", left)
	}
}

// TestLastsSinceItIsAsked: the proof that an entry is there, which comes after its renewal, does not have it last longer.
func TestLastsSinceItIsAsked(t *testing.T) {
	t.Parallel()
	late := &lateRenewer{then: func() {}}
	s, m := testStore(t, EmbeddedConfig{}, func(c *Conn) {
		late.renewer = c.renewer
		c.renewer = late
	})
	e := s.mustEnqueue(t, reusable("first", false))
	if _, known := s.expirer.left(e); !known {
		t.Error("it is not known how long the lease of what was written lasts")
	}
	var renewed time.Time
	late.then = sync.OnceFunc(func() { renewed = time.Now() })
	if err := s.Renew(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	m.lifetimes.mu.Lock()
	defer m.lifetimes.mu.Unlock()
	if lasts := m.lifetimes.byLease[e.Handle].lasts; lasts.After(renewed.Add(e.TTL)) {
		t.Errorf("it lasts until %v after its lease", lasts.Sub(renewed.Add(e.TTL)))
	}
}

// TestClosingEndsRemovals: a store that is closed does not wait for an answer to what another one does as well.
func TestClosingEndsRemovals(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := withRemovals(t)
		other := r.another("")
		ctx, closing := context.WithCancel(t.Context())
		other.ctx = ctx
		other.expirer.remove = func(ctx context.Context, _ *lock.Entry, _ lock.Reason, _ ...*lock.Entry) error {
			select {
			case <-ctx.Done():
			case <-time.After(time.Minute):
			}
			return errors.New("the store does not answer")
		}
		other.starts(lasts(7, 1))
		<-time.After(2*time.Second + 2*expiryTick)
		closing()
		began := time.Now()
		other.close()
		if took := time.Since(began); took != 0 {
			t.Errorf("it is closed after %v", took)
		}
	})
}
