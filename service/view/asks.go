package view

import (
	"cmp"
	"slices"
	"sort"
	"time"

	"github.com/fencepost/fencepost/lock"
)

// maxAsksCounted bounds the entries of one lock that a renewal of its holder counts.
const maxAsksCounted = 100

// asks are the waiting entries that ask their holders to finish, in the order of their numbers.
// An entry of a set is in the list of each of its locks.
type asks map[lock.Ref][]*lock.Entry

func (a asks) add(e *lock.Entry) {
	for _, c := range e.Claims {
		ref := lock.Ref{Tenant: e.Tenant, Name: c.Name}
		a[ref] = append(a[ref], e)
	}
}

// forget drops an entry that holds or is gone.
func (a asks) forget(e *lock.Entry) {
	if e.AskWithin == nil {
		return
	}
	for _, c := range e.Claims {
		ref := lock.Ref{Tenant: e.Tenant, Name: c.Name}
		all := a[ref]
		i, found := slices.BinarySearchFunc(all, e.Number, func(e *lock.Entry, number uint64) int {
			return cmp.Compare(e.Number, number)
		})
		switch {
		case !found:
		case len(all) == 1:
			delete(a, ref)
		case i == 0: // most leave from the front
			all[0] = nil
			a[ref] = all[1:]
		default:
			a[ref] = slices.Delete(all, i, i+1)
		}
	}
}

// asked emits the event of an entry that waits and asks its holders to finish.
func (v *View) asked(e *lock.Entry, now time.Time) {
	if ask, ok := e.Asks(); ok {
		v.asks.add(e)
		what := lock.EventOfAsk(e, ask, v.Queues.table.Member(e.ID).WaitsFor())
		v.happened(&what, 0, now)
	}
}

// relistAsks rebuilds the lists of a table that was built from the entries.
func (v *View) relistAsks(entries []*lock.Entry) {
	v.asks = asks{}
	for _, e := range entries {
		if there, holds := v.Queues.table.Entry(e.ID); there == nil || holds {
			continue
		}
		if _, ok := e.Asks(); ok {
			v.asks.add(e)
		}
	}
}

// Asked is what the waiting entries ask of a holder.
type Asked struct {
	Since   time.Time // when the first of them joined
	By      string    // its holder
	Waiting int       // how many ask, at most 100 of each lock
	Wished  time.Time // the earliest requested instant
}

// AskedOf returns what the waiters of e's locks ask of it, or nil. A stale view may show e itself
// as waiting.
func (v *View) AskedOf(e *lock.Entry) *Asked {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if len(v.asks) == 0 {
		return nil
	}
	waits := map[lock.ID]*lock.Entry{}
	for _, c := range e.Claims {
		v.askAt(lock.Ref{Tenant: e.Tenant, Name: c.Name}, waits)
	}
	delete(waits, e.ID)
	return askedBy(waits)
}

// AskedAt returns what a lock's waiters ask of its holders, or nil.
func (v *View) AskedAt(r lock.Ref) *Asked {
	v.mu.RLock()
	defer v.mu.RUnlock()
	waits := map[lock.ID]*lock.Entry{}
	v.askAt(r, waits)
	return askedBy(waits)
}

// askAt adds the lock's waiters that ask its holders to finish.
func (v *View) askAt(r lock.Ref, waits map[lock.ID]*lock.Entry) {
	all := v.asks[r]
	first := sort.Search(len(all), func(i int) bool { return v.waitsFor(all[i], r.Name) })
	for _, e := range all[first:min(len(all), first+maxAsksCounted)] {
		waits[e.ID] = e
	}
}

func askedBy(waits map[lock.ID]*lock.Entry) *Asked {
	var asked *Asked
	var first *lock.Entry
	for _, e := range waits {
		ask, _ := e.Asks()
		if asked == nil {
			asked = &Asked{Wished: ask.Wished()}
		}
		if ask.Wished().Before(asked.Wished) {
			asked.Wished = ask.Wished()
		}
		if first == nil || e.Number < first.Number || e.Number == first.Number && e.ID < first.ID {
			first = e
		}
	}
	if asked != nil {
		asked.Since, asked.By, asked.Waiting = first.EnqueuedAt, first.Holder, len(waits)
	}
	return asked
}

// waitsFor reports whether an entry is behind the front of a lock's queue. Entries in front come
// before all others in number.
func (v *View) waitsFor(e *lock.Entry, name string) bool {
	slots := v.Queues.table.Member(e.ID).Slots()
	for i := range slots {
		if slots[i].Claim().Name == name {
			return !slots[i].InFront()
		}
	}
	return false
}
