package simulation

import (
	"context"
	"slices"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/store"
)

// closed is a closure as it really was: who held when it began is noted by name.
type closed struct {
	entry    *lock.Entry
	named    map[lock.ID]bool
	from, to time.Duration
}

// bars reports whether the entry asked at an instant for a closed lock, and is not one of those
// who held.
func (c *closed) bars(e *lock.Entry, at time.Duration) bool {
	return c.from <= at && at < c.to && c.closes(e.Claims) && !(c.named[e.ID] && e.Number < c.entry.Number)
}

func (c *closed) closes(claims []lock.Claim) bool {
	return slices.ContainsFunc(claims, func(claim lock.Claim) bool { return c.entry.Closing.Locks.Match(claim.Name) })
}

// rules takes over that a part of a closure was written.
func (t *truth) rules(e *lock.Entry, now time.Duration) {
	if e.Closing == nil {
		return
	}
	c := &closed{e, map[lock.ID]bool{}, now, never}
	for id := range t.lives {
		if l := t.last(id); l.held != never && l.ended == never {
			c.named[id] = true
		}
	}
	t.closures = append(t.closures, c)
}

// open takes over that an entry left that is no acquisition; ok is false if it is one.
func (t *truth) open(id lock.ID, now time.Duration) (ok bool) {
	if len(t.lives[id]) > 0 {
		return false
	}
	for _, c := range t.closures {
		if c.entry.ID == id && c.to == never {
			c.to = now
			t.promoteAll(now)
		}
	}
	return true
}

func (t *truth) promoteAll(now time.Duration) {
	for n := range t.w.Locks {
		name := t.w.lockName(n)
		if t.queues[name] != nil {
			t.promote([]lock.Claim{{Name: name}}, now)
		}
	}
}

// reclose takes over which closures there are after a restore, or when numbers changed.
func (t *truth) reclose(entries []*lock.Entry, now time.Duration) {
	for _, c := range t.closures {
		i := slices.IndexFunc(entries, func(e *lock.Entry) bool { return e.ID == c.entry.ID })
		switch {
		case i >= 0:
			c.entry, c.to = entries[i], never
		case c.to == never:
			c.to = now
		}
	}
}

// barred reports whether a closure kept the entry from holding at an instant.
func (t *truth) barred(e *lock.Entry, at time.Duration) bool {
	return slices.ContainsFunc(t.closures, func(c *closed) bool { return c.bars(e, at) })
}

// shut reports whether one of the locks was closed at any instant of the time.
func (t *truth) shut(claims []lock.Claim, from, to time.Duration) bool {
	return slices.ContainsFunc(t.closures, func(c *closed) bool { return c.closes(claims) && c.from <= to && from <= c.to })
}

// anyRecord takes every record. What operators do is on record elsewhere.
type anyRecord struct{}

func (anyRecord) Put(context.Context, store.RecordPut) (uint64, error) { return 1, nil }

// closeLocks has an operator close some locks, and perhaps open them before the time is over.
func (w *world) closeLocks() {
	r := w.someReplica()
	if r == nil || w.healed {
		return
	}
	locks := "lock-*"
	if n := w.pick(w.Locks + 1); n < w.Locks {
		locks = w.lockName(n)
	}
	req := service.CloseRequest{Tenant: "acme", Locks: locks, Until: r.wall().Add(w.between(time.Second, 25*time.Second)), Reason: "the stock is moved"}
	opens := time.Duration(0)
	if w.percent(50) {
		opens = w.between(time.Millisecond, 15*time.Second)
	}
	w.note("close", r.n, locks)
	svc, calls := r.svc, r.calls
	calls.Add(1)
	w.crew.do(func() {
		defer calls.Done()
		made, err := svc.CloseLocks(context.Background(), req)
		w.inbox.add(arrival{r.n, r.life, "closed", -1, "", 0, func() {
			if w.note("closed", r.n, err == nil); err == nil && opens > 0 {
				w.schedule(opens, func() { w.openLocks(made.Entry) })
			}
		}})
	})
}

// openLocks has an operator open what he closed, at any replica.
func (w *world) openLocks(e *lock.Entry) {
	r := w.someReplica()
	if r == nil || w.over {
		return
	}
	w.note("open", r.n, e.ID)
	client, calls := r.store, r.calls
	calls.Add(1)
	w.crew.do(func() {
		defer calls.Done()
		_ = client.Remove(context.Background(), e, lock.Released) // if not, its time will be over
	})
}
