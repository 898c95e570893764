package service_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/audit"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/closures"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/memory"
	"github.com/fencepost/fencepost/test/bubble"
)

// closing closes all locks of acme, or none, or has not been read yet.
type closing struct {
	unread atomic.Bool
	closed atomic.Pointer[lock.Closure]
	reread error
}

func (c *closing) Closed(string, []lock.Claim) (*lock.Closure, uint64) { return c.closed.Load(), 0 }

func (c *closing) Reread(context.Context, string, uint64) error { return c.reread }

func (c *closing) Read() bool { return !c.unread.Load() }

// TestClosedLockTakesNoNewEntry: whether the request waits or not. Holders and waiters are not
// affected, and a request with the key of one of them goes on with it.
func TestClosedLockTakesNoNewEntry(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := &closing{}
		r := newSharedStore(t).replica(t, func(cfg *service.Config) { cfg.Closures = c })
		held := r.hold(want("a", 0))
		waits := r.start(keyed("a", time.Minute, "k"))
		synctest.Wait()
		c.closed.Store(
			&lock.Closure{Tenant: "acme", Until: time.Now().Add(time.Hour), Reason: "the stock is counted"},
		)
		for _, wait := range []time.Duration{0, time.Minute} {
			for _, name := range []string{"a", "free"} {
				e := r.start(want(name, wait)).fails(lock.Closed)
				if e.Closure == nil || e.Closure.Reason != "the stock is counted" ||
					e.RetryAfter != 30*time.Second {
					t.Errorf("refused with %+v", e)
				}
			}
		}
		again := r.start(keyed("a", time.Minute, "k"))
		synctest.Wait()
		r.release(held)
		first, second := waits.holdsLater(), again.holdsLater()
		if first.Entry.ID != second.Entry.ID {
			t.Errorf("a repeated request has %s, the first %s", second.Entry.ID, first.Entry.ID)
		}
		c.closed.Store(nil)
		r.hold(want("free", 0))
	})
}

// TestUnreadClosuresRefuseNewEntries: a replica that cannot know yet whether a lock is closed
// does not let an entry join.
func TestUnreadClosuresRefuseNewEntries(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := &closing{}
		c.unread.Store(true)
		r := newSharedStore(t).replica(t, func(cfg *service.Config) { cfg.Closures = c })
		if _, err := r.Acquire(t.Context(), want("a", 0)); !errors.Is(err, lock.StoreUnavailable) {
			t.Errorf("Acquire = %v", err)
		}
	})
}

// standingStill are the records of a replica that reads no lists and hears of no change after it
// has begun, but reads what it asks for.
type standingStill struct {
	store.RecordStore
	lists *memory.Client
}

func (r standingStill) List(ctx context.Context, q store.RecordQuery) (store.RecordPage, error) {
	return r.lists.Records().List(ctx, q)
}

func (r standingStill) Watch(ctx context.Context, kind string, changed func()) {
	r.lists.Records().Watch(ctx, kind, changed)
}

// closable starts a replica with a book of closures, which stands still from then on if it is late.
func (s *sharedStore) closable(late bool) (*replica, *closures.Book) {
	s.t.Helper()
	c, cable := newClient(s), memory.NewCable()
	lists := s.Connect(cable)
	s.t.Cleanup(lists.Close)
	book := closures.New(closures.Config{Records: standingStill{c.inner.Records(), lists}})
	ctx, stop := context.WithCancel(s.t.Context())
	var running sync.WaitGroup
	running.Go(func() { book.Run(ctx) })
	s.t.Cleanup(running.Wait)
	s.t.Cleanup(stop)
	synctest.Wait()
	if late {
		cable.Cut(memory.Broken)
	}
	return s.replicaWith(s.t, c, func(cfg *service.Config) { cfg.Closures = book }), book
}

func closeRequest(locks string) closures.CloseRequest {
	return closures.CloseRequest{
		Tenant: "acme", Locks: locks, Until: time.Now().Add(time.Hour), Reason: "the stock is counted",
		By: audit.Who{Subject: "ops", Tenant: "acme"},
	}
}

// TestClosureBindsAReplicaThatStoodStill: once a closure is answered, no entry joins, also at a
// replica that has not heard of it. Entries of other locks do, and those that are there go on.
func TestClosureBindsAReplicaThatStoodStill(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		_, a := s.closable(false)
		late := make([]*replica, 7) // each learns of the closure by its first request
		for i := range late {
			late[i], _ = s.closable(true)
		}
		r := late[6]
		held := r.hold(want("orders:1", 0))
		waits := r.line(keyed("orders:1", time.Minute, "k"))
		if _, err := a.Close(t.Context(), closeRequest("orders:*")); err != nil {
			t.Fatal(err)
		}
		async, set := want("orders:2", time.Minute), want("orders:3", 0)
		async.Async, set.Set = true, true
		set.Claims = append(set.Claims, lock.Claim{Name: "stock", Mode: lock.Exclusive})
		for i, req := range []service.AcquireRequest{
			want("orders:2", 0), want("orders:1", time.Minute), async, set,
			keyed("orders:2", time.Minute, "another"),
		} {
			late[i].start(req).fails(lock.Closed)
		}
		late[5].hold(want("stock", 0))
		again := r.start(keyed("orders:1", time.Minute, "k"))
		r.release(held)
		if first, second := waits.holdsLater(), again.holdsLater(); first.Entry.ID != second.Entry.ID {
			t.Errorf("a repeated request has %s, the first %s", second.Entry.ID, first.Entry.ID)
		}
	})
}

// TestClosureBindsWhatWaitsToBeWritten: an entry that was admitted before a closure and is written
// after it does not join.
func TestClosureBindsWhatWaitsToBeWritten(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		_, a := s.closable(false)
		r, _ := s.closable(false)
		r.closedMeanwhile(time.Second, a)
	})
}

// TestSlowWriteJoinsAfterAChangeOfClosures: a write that took long is repeated too, if only the
// closures have changed meanwhile.
func TestSlowWriteJoinsAfterAChangeOfClosures(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r, book := newSharedStore(t).closable(false)
		r.closedMeanwhile(3500*time.Millisecond, book)
	})
}

// closedMeanwhile has the locks of one of two requests closed while their entries are written. The
// other entry joins.
func (r *replica) closedMeanwhile(write time.Duration, book *closures.Book) {
	r.t.Helper()
	r.store.on(first(2, slow(write)), enqueue)
	closed, open := r.start(want("orders:1", time.Minute)), r.start(want("stock", time.Minute))
	synctest.Wait()
	if _, err := book.Close(r.t.Context(), closeRequest("orders:*")); err != nil {
		r.t.Fatal(err)
	}
	closed.fails(lock.Closed)
	open.holdsLater()
}

// TestEntriesJoinWhileOthersCloseAndOpen: an operator that closes and opens other locks of the
// tenant all the time delays them. The store takes nearly as long for a write as the operator.
func TestEntriesJoinWhileOthersCloseAndOpen(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r, book := s.closable(false)
		r.store.on(slow(19*time.Millisecond), enqueue)
		ctx, stop := context.WithCancel(t.Context())
		var churn sync.WaitGroup
		churn.Go(func() {
			var closed *lock.Closure
			for store.Pause(ctx, 20*time.Millisecond) == nil { // 50 changes a second
				var err error
				if closed == nil {
					closed, err = book.Close(t.Context(), closeRequest("orders:*"))
				} else {
					open := closures.OpenRequest{ID: closed.ID, May: func(string, string) bool { return true }}
					closed, err = nil, book.Open(t.Context(), open)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
		for i := range 50 {
			r.start(want(fmt.Sprint("stock:", i), 0)).holdsLater()
		}
		stop()
		churn.Wait()
	})
}

// TestUnknownOutcomeOutlivesAReadingThatFails: an earlier attempt may have written the entry, also
// if the closures that refused the last one cannot be read again.
func TestUnknownOutcomeOutlivesAReadingThatFails(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := &closing{reread: unavailable(false)}
		r := newSharedStore(t).replica(t, func(cfg *service.Config) { cfg.Closures = c })
		for _, unknown := range []bool{false, true} {
			r.store.on(func(context.Context, func() error) error {
				return store.Unavailable(store.ErrClosuresChanged, "put", unknown)
			}, enqueue)
			e := r.start(keyed("a", 0, "k")).fails(lock.StoreUnavailable)
			if e.OutcomeUnknown != unknown || errors.Is(&e, store.ErrClosuresChanged) {
				t.Errorf("the error is %+v, want that of the reading, with an unknown outcome %v", e, unknown)
			}
		}
	})
}
