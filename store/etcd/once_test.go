package etcd

import (
	"context"
	"errors"
	"testing"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// beside opens another store, whose writes and reads are not late.
func (l *lateKV) beside(t *testing.T, s *Store) *Store {
	t.Helper()
	conn := *s.conn
	conn.kv = l.kvClient
	other, err := Open(t.Context(), &conn, Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := other.Close(); err != nil {
			t.Error(err)
		}
	})
	return other
}

// TestLateAttemptOfAKey: a try is abandoned with its write in flight, and repeated at another
// replica, which removes its entry because the lock is held. No replica would serve the late
// entry.
func TestLateAttemptOfAKey(t *testing.T) {
	s, late := startLate(t, 1_000_000)
	other := late.beside(t, s)
	e := lateEntry()
	e.Request = "the parameters"
	ctx, cancel := context.WithTimeout(t.Context(), givenUp)
	defer cancel()
	if _, _, err := s.Enqueue(ctx, e); !errors.Is(err, lock.StoreUnavailable) {
		t.Fatalf("Enqueue: %v", err)
	}
	for range 2 { // the second replaces the mark of the first
		again, written, err := other.Enqueue(t.Context(), e)
		if err != nil || !written {
			t.Fatalf("a retry: %+v, written %t, %v", again, written, err)
		}
		if err := other.Remove(t.Context(), again, lock.Withdrawn); err != nil {
			t.Fatal(err)
		}
		if late.deliver(t) == 0 {
			t.Fatal("no write is late")
		}
		if found := other.mustFind(t, e); found != nil {
			t.Errorf("a late write brought back what was withdrawn: %+v", found)
		}
	}
}

// TestWrittenOnce: a write commits, its answer is lost, and before the call finds the entry
// it is removed, or its lease ends. The same call does not write it a second time: its caller may
// write another entry.
func TestWrittenOnce(t *testing.T) {
	for why, end := range map[lock.Reason]func(context.Context, *Store, *lock.Entry) error{
		lock.Revoked: func(ctx context.Context, s *Store, e *lock.Entry) error {
			return s.Remove(ctx, e, lock.Revoked)
		},
		lock.Expired: func(ctx context.Context, s *Store, e *lock.Entry) error {
			return s.leases.revoke(ctx, e.Handle)
		},
	} {
		t.Run(string(why), func(t *testing.T) {
			s, late := startLate(t, 1)
			late.now = func() bool { return true }
			other, f := late.beside(t, s), newComings()
			other.tasks.Go(func() { other.Watch(other.closing, f) })
			<-f.up
			late.setBlind(true)
			done := make(chan error, 1)
			go func() {
				_, _, err := s.Enqueue(t.Context(), lateEntry())
				done <- err
			}()
			if err := end(t.Context(), other, (<-f.changes).Joined); err != nil {
				t.Error(err)
			}
			late.setBlind(false)
			if err := <-done; !takenBack(err) {
				t.Errorf("Enqueue of what was removed = %v, want that nothing of it is left", err)
			}
			if c := <-f.changes; c.Left != "late" || c.Reason != why {
				t.Errorf("the feed tells of %+v", c)
			}
			if found := other.mustFind(t, lateEntry()); found != nil {
				t.Errorf("it was written again: %+v", found)
			}
		})
	}
}

// takenBack reports whether nothing of a call is in the store, nor ever will be.
func takenBack(err error) bool {
	var le *lock.Error
	return errors.As(err, &le) && le.Code == lock.StoreUnavailable && !le.OutcomeUnknown &&
		errors.Is(err, store.ErrNotWritten)
}

// TestFreshEntryComesLate: the only write of a fresh id comes when the call looks for it. It has
// been shut out by then, while its lease still lives.
func TestFreshEntryComesLate(t *testing.T) {
	s, late := startLate(t, 1)
	came := 0
	late.beforeRead.Store(ptr(func() { came = late.deliver(t) }))
	if placed, _, err := s.Enqueue(t.Context(), lateEntry()); !takenBack(err) {
		t.Errorf("Enqueue: %+v, %v, want that nothing of it is left", placed, err)
	}
	if came != 1 {
		t.Error("no write is late")
	}
	if found := s.mustFind(t, lateEntry()); found != nil {
		t.Errorf("a late write brought it: %+v", found)
	}
}

// comings is a feed of entries that come and go.
type comings struct {
	up      chan struct{}
	changes chan store.Change
}

func newComings() *comings { return &comings{make(chan struct{}, 1), make(chan store.Change, 10)} }

func (f *comings) Reset(store.Snapshot)       { f.up <- struct{}{} }
func (f *comings) Recall([]store.Ended, bool) {}
func (f *comings) Lost(error)                 {}
func (f *comings) Apply(_ uint64, changes []store.Change) {
	for _, c := range changes {
		f.changes <- c
	}
}

// TestWithdrawnKeyIsShutOut: a call whose writes would replace the mark of a withdrawn entry is
// abandoned with them in flight. When the last of their leases ends, they were shut out. Otherwise
// a client that comes back could join the late entry.
func TestWithdrawnKeyIsShutOut(t *testing.T) {
	s, late := startLate(t, 1_000_000)
	other := late.beside(t, s)
	e := lateEntry()
	e.Request = "the parameters"
	first, _, err := other.Enqueue(t.Context(), e)
	if err == nil {
		err = other.Remove(t.Context(), first, lock.Withdrawn)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), givenUp)
	defer cancel()
	if _, _, err := s.Enqueue(ctx, e); !errors.Is(err, lock.StoreUnavailable) {
		t.Fatalf("Enqueue: %v", err)
	}
	for _, r := range late.let() {
		soon(t, "the lease of a late write is revoked", func() bool { return !s.lives(t, leaseOf(r)) })
	}
	late.deliver(t)
	if there := other.mustFind(t, e); there != nil {
		t.Errorf("a late write brought it back: %+v", there)
	}
}
