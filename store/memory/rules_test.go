package memory_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/memory"
	"github.com/fencepost/fencepost/test/bubble"
)

// late is a wire on which requests of one operation get stuck until let go.
type late struct {
	*memory.Cable
	mu    sync.Mutex
	hold  memory.Operation
	stuck []func() error
}

func (l *late) Call(ctx context.Context, op memory.Operation, id lock.ID, do func() error) error {
	l.mu.Lock()
	held := op == l.hold
	if held {
		l.stuck = append(l.stuck, do)
	}
	l.mu.Unlock()
	if !held {
		return l.Cable.Call(ctx, op, id, do)
	}
	<-ctx.Done()
	return memory.ErrUnknown
}

func (l *late) holding(op memory.Operation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hold = op
}

// letGo delivers what got stuck.
func (l *late) letGo() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, do := range l.stuck {
		_ = do() // nobody waits for its answer
	}
	l.stuck = nil
}

func connect(t *testing.T, s *memory.Server, w memory.Wire) store.Store {
	c := s.Connect(w)
	t.Cleanup(c.Close)
	return c
}

func serve(t *testing.T) *memory.Server {
	s := memory.NewServer(memory.Config{Number: 100})
	t.Cleanup(s.Close)
	return s
}

func draft(id lock.ID, key string) *lock.Entry {
	return &lock.Entry{
		ID: id, Tenant: "acme", Holder: "worker-1", TTL: time.Hour, EnqueuedAt: time.Now(), Request: key,
		Claims: []lock.Claim{{Name: "orders:1", Mode: lock.Exclusive}},
	}
}

// TestUsedUpKey: a key is used once, whatever ended its entry, until that is
// forgotten. A withdrawal does not count.
func TestUsedUpKey(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := serve(t)
		a, b := connect(t, s, nil), connect(t, s, nil)
		for _, why := range []lock.Reason{lock.Withdrawn, lock.Released} {
			e, written, err := a.Enqueue(t.Context(), draft("id", "key"))
			if err != nil || !written {
				t.Fatalf("%v, written: %t", err, written)
			}
			if err := b.Remove(t.Context(), e, why); err != nil {
				t.Fatal(err)
			}
		}
		_, _, err := b.Enqueue(t.Context(), draft("id", "key"))
		var ended *lock.Error
		if !errors.As(err, &ended) || ended.Code != lock.Lost || ended.Reason != lock.Released {
			t.Errorf("a used-up key: %v", err)
		}
		<-time.After(12 * time.Minute)
		if _, _, err := b.Enqueue(t.Context(), draft("id", "key")); err != nil {
			t.Errorf("a key whose end is forgotten: %v", err)
		}
	})
}

// TestLateAttempt: a write that got stuck is repeated. When it arrives in the end,
// long after the entry of the repetition was released, it writes nothing.
func TestLateAttempt(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := serve(t)
		w := &late{Cable: memory.NewCable(), hold: memory.Put}
		c := connect(t, s, w)
		time.AfterFunc(time.Second, func() { w.holding("") })
		e, written, err := c.Enqueue(t.Context(), draft("id", ""))
		if err != nil || !written {
			t.Fatalf("%v, written: %t", err, written)
		}
		w.letGo()
		if n := len(s.Entries()); n != 1 {
			t.Fatalf("%d entries", n)
		}
		if err := c.Remove(t.Context(), e, lock.Withdrawn); err != nil {
			t.Fatal(err)
		}
		w.letGo()
		if n := len(s.Entries()); n != 0 {
			t.Errorf("%d entries after a late write", n)
		}
	})
}

// TestAttemptAfterTheEnd: a write that arrives when the entry of its repetition is gone
// already, but before it could be excluded, is taken back.
func TestAttemptAfterTheEnd(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := serve(t)
		w := &late{Cable: memory.NewCable(), hold: memory.Put}
		c := connect(t, s, w)
		time.AfterFunc(time.Second, func() { w.holding(memory.Exclude) })
		e, _, err := c.Enqueue(t.Context(), draft("id", ""))
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // until the exclusion is stuck too
		if err := c.Remove(t.Context(), e, lock.Withdrawn); err != nil {
			t.Fatal(err)
		}
		w.letGo()
		<-time.After(3 * time.Second)
		if n := len(s.Entries()); n != 0 {
			t.Errorf("%d entries after a late write", n)
		}
	})
}

// TestGivenUp: a call that was given up leaves nothing behind that could still be
// written, and takes back what was, unless a client can come back for it: then the contract
// allows both.
func TestGivenUp(t *testing.T) {
	for _, key := range []string{"", "key"} {
		bubble.Test(t, func(t *testing.T) {
			s := serve(t)
			w := &late{Cable: memory.NewCable(), hold: memory.Put}
			c := connect(t, s, w)
			began := time.Now()
			_, _, err := c.Enqueue(t.Context(), draft("id", key))
			var given *lock.Error
			if !errors.As(err, &given) || given.Code != lock.StoreUnavailable || !given.OutcomeUnknown {
				t.Errorf("given up: %v", err)
			}
			if took := time.Since(began); took != 4*time.Second {
				t.Errorf("given up after %v", took)
			}
			synctest.Wait()
			w.letGo()
			if n := len(s.Entries()); n != len(key)/3 {
				t.Errorf("%d entries of a call that was given up, with the key %q", n, key)
			}
			w.Cut(memory.Deaf)
			w.holding("")
			_, _, err = c.Enqueue(t.Context(), draft("id-2", key))
			if !errors.As(err, &given) || !given.OutcomeUnknown {
				t.Errorf("given up: %v", err)
			}
			w.Cut("")
			<-time.After(2 * time.Second)
			if n := len(s.Entries()); n != 2*len(key)/3 {
				t.Errorf("%d entries of calls that were given up, with the key %q", n, key)
			}
		})
	}
}

// TestRestoreIsNoticed: an answer below one that was seen before it was asked for
// proves that the server went back. Nothing is granted until an operator raised
// the numbers.
func TestRestoreIsNoticed(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := serve(t)
		c, other := connect(t, s, nil), connect(t, s, nil)
		backup := s.Checkpoint()
		for _, id := range []lock.ID{"a", "b"} {
			if _, _, err := c.Enqueue(t.Context(), draft(id, "")); err != nil {
				t.Fatal(err)
			}
		}
		s.Restore(backup)
		if _, _, err := c.Enqueue(t.Context(), draft("c", "")); err == nil {
			t.Error("a number was handed out twice")
		}
		if s.Distrusted() != 102 {
			t.Errorf("distrusted since %d", s.Distrusted())
		}
		synctest.Wait()
		if _, _, err := other.Enqueue(t.Context(), draft("d", "")); err == nil {
			t.Error("another client writes on")
		}
		if err := s.Raise(1000); err != nil {
			t.Fatal(err)
		}
		e, _, err := c.Enqueue(t.Context(), draft("e", ""))
		if err != nil || e.Number <= 1000 {
			t.Errorf("%+v, %v", e, err)
		}
	})
}

// TestRestoreElsewhere: data in another cluster than it was written in is not granted
// from, though nobody knows of a later number, until an operator raised the numbers.
func TestRestoreElsewhere(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := serve(t)
		kept := draft("kept", "key")
		if _, _, err := connect(t, s, nil).Enqueue(t.Context(), kept); err != nil {
			t.Fatal(err)
		}
		s.RestoreElsewhere(s.Checkpoint())
		c := connect(t, s, nil)
		if _, _, err := c.Enqueue(t.Context(), draft("a", "")); err == nil || s.Trusted() {
			t.Error("a number was handed out")
		}
		if err := s.Raise(1000); err != nil {
			t.Fatal(err)
		}
		if e, _, err := c.Enqueue(t.Context(), draft("b", "")); err != nil || e.Number != 1102 {
			t.Errorf("%+v, %v", e, err)
		}
	})
}

// TestRestoreKeepsItsRecords: a key that was used up in the copy stays so for as long
// as its end is remembered, and no longer.
func TestRestoreKeepsItsRecords(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := serve(t)
		c := connect(t, s, nil)
		e, _, err := c.Enqueue(t.Context(), draft("id", "key"))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Remove(t.Context(), e, lock.Released); err != nil {
			t.Fatal(err)
		}
		<-time.After(6 * time.Minute)
		s.Restore(s.Checkpoint())
		if _, _, err := c.Enqueue(t.Context(), draft("id", "key")); !errors.Is(err, lock.Lost) {
			t.Errorf("a used-up key: %v", err)
		}
		<-time.After(6 * time.Minute)
		if _, _, err := c.Enqueue(t.Context(), draft("id", "key")); err != nil {
			t.Errorf("a key whose end is forgotten: %v", err)
		}
	})
}

// TestExpiryInOrder: of entries whose leases end in the same instant, that of the one that was
// written first ends first, in whatever order timers fire: a history is the same each time.
func TestExpiryInOrder(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := serve(t)
		c := connect(t, s, nil)
		w := &leaving{}
		watching, stop := context.WithCancel(t.Context())
		var feed sync.WaitGroup
		feed.Go(func() { c.Watch(watching, w) })
		const entries = 50
		for i := range entries {
			if _, _, err := c.Enqueue(t.Context(), draft(lock.ID(fmt.Sprintf("%03d", entries-i)), "")); err != nil {
				t.Fatal(err)
			}
		}
		<-time.After(2 * time.Hour)
		stop()
		feed.Wait()
		if len(w.left) != entries || !slices.IsSortedFunc(w.left, func(a, b lock.ID) int { return strings.Compare(string(b), string(a)) }) {
			t.Errorf("%d left, as %v", len(w.left), w.left)
		}
	})
}

// leaving notes which entries leave, in order.
type leaving struct {
	store.Watcher
	left []lock.ID
}

func (*leaving) Reset(store.Snapshot)       {}
func (*leaving) Recall([]store.Ended, bool) {}
func (*leaving) Lost(error)                 {}

func (l *leaving) Apply(_ uint64, changes []store.Change) {
	for _, c := range changes {
		if c.Left != "" {
			l.left = append(l.left, c.Left)
		}
	}
}
