package etcd

import (
	"slices"
	"sync"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/heap"
	"github.com/fencepost/fencepost/store"
)

// lifetimes are until when the entries last that this process has written, renewed or found when it began, where etcd is
// in this process: every renewal is a call of [member.renew], so nobody can have renewed one that is over here. All
// stores on a connection share it.
type lifetimes struct {
	mu      sync.Mutex
	byLease map[int64]*lifetime
	order   heap.Heap[*lifetime] // those that are neither due nor being removed
	turns   turns
	due     store.Turns[*lifetime] // whose turn has come, and some that went meanwhile
	open    []*expirer             // of the stores that are not closed
}

func newLifetimes() *lifetimes {
	return &lifetimes{byLease: map[int64]*lifetime{}, turns: turns{last: map[string]time.Time{}}}
}

// lifetime is of one entry. All that changes is guarded by the lifetimes' lock.
type lifetime struct {
	heap.Place
	look time.Time // when it is to be looked at

	entry    *lock.Entry
	of       *expirer
	until    time.Time // by when the answer came: no holder was promised more
	lasts    time.Time // for so long it does at least, by when its lease was granted or the renewal sent; zero if unknown
	renewing int       // calls that may yet put that off
	hasTurn  bool      // look is its turn to be removed
	over     bool      // it is being removed, and cannot be renewed any more
}

// Before implements heap.Element.
func (l *lifetime) Before(other *lifetime) bool { return l.look.Before(other.look) }

// begin has an entry last for its TTL from now on, unless a later one under its lease is known. Its lease has lasted
// since some time, which is zero if that is not known. It reports whether the entry goes on: it does not if it is being removed.
func (x *lifetimes) begin(e *lock.Entry, of *expirer, since, now time.Time) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	until, lasts := now.Add(e.TTL), time.Time{}
	if !since.IsZero() {
		lasts = since.Add(e.TTL)
	}
	was := x.byLease[e.Handle]
	switch {
	case was != nil && was.entry.Number == e.Number && was.over:
		return false
	case was != nil && was.entry.Number == e.Number && since.IsZero():
		return true // it is no news
	case was != nil && was.entry.Number == e.Number:
		was.until, was.lasts = later(was.until, until), later(was.lasts, lasts)
		return true
	case was != nil && was.entry.Number > e.Number || of.gone:
		return true
	}
	x.drop(was)
	l := &lifetime{entry: e, of: of, until: until, lasts: lasts}
	l.look = l.until
	x.byLease[e.Handle] = l
	x.order.Push(l)
	return true
}

// renewing says that a lease is about to be renewed: renewed is to be called with what came of it. It is not ok where
// the entry under it is being removed.
func (x *lifetimes) renewing(lease int64) (renewed func(error), ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	l := x.byLease[lease]
	if l == nil {
		return func(error) {}, true
	}
	if l.over {
		return nil, false
	}
	l.renewing++
	sent := time.Now()
	return func(err error) {
		x.mu.Lock()
		defer x.mu.Unlock()
		if l.renewing--; err == nil {
			l.until, l.lasts = time.Now().Add(l.entry.TTL), later(l.lasts, sent.Add(l.entry.TTL))
		}
	}, true
}

// next returns one that is over, and cannot be renewed from now on, and who is to remove it; nil if there is none.
func (x *lifetimes) next(now time.Time) (*lifetime, *expirer) {
	for {
		if l, of, done := x.step(now); done {
			return l, of
		}
	}
}

// step looks at one entry for next, which is done when that is the one to remove, or if there is none. A hundred thousand
// may be over at once, and renewals are not to wait until all have been looked at.
func (x *lifetimes) step(now time.Time) (_ *lifetime, _ *expirer, done bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.order.Len() > 0 && !x.order.First().look.After(now) {
		x.look(x.order.First(), now)
		return nil, nil, false
	}
	l, ok := x.due.Next()
	switch {
	case !ok:
		return nil, nil, true
	case x.byLease[l.entry.Handle] != l || l.of.gone: // it is gone, or its store is closed
		return nil, nil, false
	case l.renewing > 0 || l.until.After(now): // while it was due
		x.order.Push(l)
		return nil, nil, false
	}
	l.over = true
	l.of.ends.Add(1)
	return l, l.of, true
}

// look decides what becomes of an entry that is to be looked at.
func (x *lifetimes) look(l *lifetime, now time.Time) {
	switch {
	case l.renewing > 0:
		l.look = now.Add(expiryTick)
	case l.until.After(now):
		l.look, l.hasTurn = l.until, false
	case !l.hasTurn:
		l.look, l.hasTurn = x.turns.next(l.entry.Tenant, now), true
	default:
		x.order.Remove(l)
		x.due.Add(l.entry.Tenant, l)
		return
	}
	x.order.Fix(l)
}

// again has one be looked at again that is over and could not be removed.
func (x *lifetimes) again(l *lifetime, at time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	l.look = at
	x.order.Push(l)
}

// left returns how long an entry lasts at least, if that is known. If not, it is how long it lasts at most: its lease
// may end before.
func (x *lifetimes) left(e *lock.Entry, now time.Time) (left time.Duration, known bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	l := x.byLease[e.Handle]
	switch {
	case l == nil || l.entry.Number != e.Number:
		return e.TTL, false
	case l.lasts.IsZero():
		return max(0, l.until.Sub(now)), false
	}
	return max(0, l.lasts.Sub(now)), true
}

// forget forgets a lease that carries nothing any more.
func (x *lifetimes) forget(lease int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.drop(x.byLease[lease])
}

// forgetEntry forgets one entry that is gone; its lease may carry another one.
func (x *lifetimes) forgetEntry(l *lifetime) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.byLease[l.entry.Handle] == l {
		x.drop(l)
	}
}

// leave hands all entries of a store over to another one that is open, and takes none of it from then on. Without one it
// forgets them; then what is being removed stays, until it is, or for good where that failed: it may be removed yet, and
// nobody is to be told that it goes on.
func (x *lifetimes) leave(of *expirer) {
	x.mu.Lock()
	defer x.mu.Unlock()
	of.gone = true
	x.open = slices.DeleteFunc(x.open, func(o *expirer) bool { return o == of })
	heir := x.heir(of)
	for _, l := range x.byLease {
		switch {
		case l.of != of:
		case heir != nil:
			l.of = heir
		case !l.over:
			x.drop(l)
		}
	}
}

// heir returns another open one for the entries of the same store.
func (x *lifetimes) heir(of *expirer) *expirer {
	i := slices.IndexFunc(x.open, func(o *expirer) bool { return o.prefix == of.prefix })
	if i < 0 {
		return nil
	}
	return x.open[i]
}

// enter takes entries of a store from now on.
func (x *lifetimes) enter(of *expirer) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.open = append(x.open, of)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (x *lifetimes) drop(l *lifetime) {
	if l == nil {
		return
	}
	delete(x.byLease, l.entry.Handle)
	if l.Queued() {
		x.order.Remove(l)
	}
}
