package zookeeper

import (
	"cmp"
	"slices"

	"github.com/fencepost/fencepost/lock"
)

// index holds entries by key, and each lock's entries in order, so that reading a queue does not
// scan all others.
type index struct {
	byKey  map[key]*lock.Entry
	queues map[lock.Ref][]*lock.Entry
}

func newIndex() index {
	return index{map[key]*lock.Entry{}, map[lock.Ref][]*lock.Entry{}}
}

// add adds an entry, or replaces one with the same key.
func (x *index) add(e *lock.Entry) {
	x.remove(keyOf(e))
	x.byKey[keyOf(e)] = e
	for _, c := range e.Claims {
		ref := lock.Ref{Tenant: e.Tenant, Name: c.Name}
		queue := x.queues[ref]
		at := len(queue) // newer entries come last, unless a list brings older ones
		for at > 0 && queue[at-1].Number > e.Number {
			at--
		}
		x.queues[ref] = slices.Insert(queue, at, e)
	}
}

func (x *index) remove(k key) {
	e := x.byKey[k]
	if e == nil {
		return
	}
	delete(x.byKey, k)
	for _, c := range e.Claims {
		x.leave(lock.Ref{Tenant: e.Tenant, Name: c.Name}, e)
	}
}

// leave removes an entry from one queue.
func (x *index) leave(ref lock.Ref, e *lock.Entry) {
	queue := x.queues[ref]
	at, _ := slices.BinarySearchFunc(queue, e.Number, func(e *lock.Entry, n uint64) int {
		return cmp.Compare(e.Number, n)
	})
	for at < len(queue) && queue[at] != e {
		at++
	}
	switch {
	case at == len(queue):
	case len(queue) == 1:
		delete(x.queues, ref)
	case at == 0: // the usual case: nothing moves, and growing the queue copies the rest
		queue[0] = nil
		x.queues[ref] = queue[1:]
	default:
		x.queues[ref] = slices.Delete(queue, at, at+1)
	}
}

// queue returns a copy of a lock's entries in order.
func (x *index) queue(ref lock.Ref) []*lock.Entry { return slices.Clone(x.queues[ref]) }
