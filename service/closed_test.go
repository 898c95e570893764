package service_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/test/bubble"
)

// closing closes all locks of acme, or none, or has not been read yet.
type closing struct {
	unread atomic.Bool
	closed atomic.Pointer[lock.Closure]
}

func (c *closing) Closed(string, []lock.Claim) *lock.Closure { return c.closed.Load() }

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
