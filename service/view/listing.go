package view

import (
	"iter"
	"sync"
	"time"

	"github.com/fencepost/fencepost/lock"
)

const (
	MaxShownHolders = 100  // of one lock
	MaxShownWaiters = 1000 // of one lock

	maxListedHolders = 2000 // on one page

	// How many names, and how many holders, are read before the view's lock is released for a
	// moment.
	listChunk    = 250
	listedAtOnce = 200
)

// Holder is an entry that holds a lock.
type Holder struct {
	Entry     *lock.Entry
	Since     time.Time
	ExpiresAt time.Time // zero if unknown
}

// Waiter is an entry that waits for a lock.
type Waiter struct {
	Entry    *lock.Entry
	Position int // 1 is next
	Waited   time.Duration

	// PermitsBefore is how many permits the entries before it take of a semaphore; 0 at its front.
	PermitsBefore int
}

// Summary is a lock in a list.
type Summary struct {
	Name    string
	Holders []Holder // without ExpiresAt; at most 100
	Waiting int
	Newest  uint64 // the newest fence of the shown holders
}

// Page is a part of a list, in byte order of the names.
type Page struct {
	Locks    []Summary
	Next     string // the last name of the page if there is more, otherwise ""
	Revision uint64

	looked  int // names read, including those that the caller may not see
	holders int // on the page
}

// ListRequest asks for a page of the locks in use. A page has at most 2000 holders,
// even if that is fewer locks than Limit.
type ListRequest struct {
	Tenant string
	Prefix string
	State  string // "", "held" or "contended"
	Limit  int
	After  string            // the name after which the page starts
	May    func(string) bool // reports whether the caller may see a name; nil is all
}

// Queue is a lock's queue as the view has it.
type Queue struct {
	Holders  []Holder // the longest hold first, without ExpiresAt
	Waiters  []Waiter // in order
	Holding  int      // how many hold in all
	Waiting  int      // how many wait
	Newest   uint64   // the newest fence of the holders
	Revision uint64   // the number up to which the view is complete

	// With waiters, of a semaphore: the permits that its front has taken, and limits that its entries
	// have; see [lock.Queue.Limits].
	Taken   int
	Limits  []int
	Differs *lock.Entry
}

// Lists reads queues and pages of locks, for display.
type Lists struct {
	base
	queues *Queues
	turn   sync.Mutex // lists take turns at mu, so that a grant waits for one of them at most
}

// Queue reads a queue, without the entry that is leaving it, if any. Its cost depends on what it
// returns.
func (v *Lists) Queue(r lock.Ref, leaving lock.ID, maxHolders, maxWaiters int) Queue {
	v.mu.RLock()
	defer v.mu.RUnlock()
	out := Queue{Revision: v.queues.progress.number}
	q := v.queues.table.Queue(r)
	if q == nil {
		return out
	}
	out.Newest = q.NewestHolder(leaving)
	holding := q.Holders()
	out.Waiting = q.Len() - holding
	if e, holds := v.queues.table.Entry(leaving); holds {
		holding--
	} else if e != nil {
		out.Waiting--
	}
	out.Holding = holding
	for e := range without(leaving, q.Holding(), maxHolders) {
		out.Holders = append(out.Holders, Holder{Entry: e, Since: v.queues.since[e.ID]})
	}
	for e := range without(leaving, q.Waiters(), maxWaiters) {
		next := Waiter{Entry: e, Position: len(out.Waiters) + 1, Waited: v.queues.WaitedFor(e)}
		out.Waiters = append(out.Waiters, next)
	}
	if maxWaiters > 0 && q.Head().Claim().Mode == lock.Semaphore {
		out.addPermits(q)
	}
	return out
}

// addPermits adds how many permits are in use, and by which limits.
func (out *Queue) addPermits(q *lock.Queue) {
	out.Taken = q.Taken()
	out.Limits, out.Differs = q.Limits()
	before, s := out.Taken, q.Behind()
	for i := range out.Waiters {
		if s != nil && s.Member().Entry() == out.Waiters[i].Entry {
			out.Waiters[i].PermitsBefore = before
			before += s.Claim().Permits
			s = s.Next()
		}
	}
}

// Len returns how many entries a queue has.
func (v *Lists) Len(r lock.Ref) int {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if q := v.queues.table.Queue(r); q != nil {
		return q.Len()
	}
	return 0
}

// without yields at most most entries of all, without the one that is leaving.
func without(leaving lock.ID, all iter.Seq[*lock.Entry], most int) iter.Seq[*lock.Entry] {
	return func(yield func(*lock.Entry) bool) {
		for e := range all {
			if most == 0 {
				return
			}
			if e.ID == leaving {
				continue
			}
			if most--; !yield(e) {
				return
			}
		}
	}
}

// List adds locks to the page, from the first name after last. It reads a bounded number of
// names. It returns where to continue and whether there is more to do.
func (v *Lists) List(req ListRequest, last string, page *Page) (string, bool) {
	v.turn.Lock()
	defer v.turn.Unlock()
	v.mu.RLock()
	defer v.mu.RUnlock()
	page.Revision = v.queues.progress.number
	looked, before, more := page.looked, page.holders, false
	v.queues.accounts.after(req.Tenant, req.way(), req.Prefix, last, func(name string) bool {
		if page.looked-looked == listChunk || page.holders-before >= listedAtOnce {
			more = true
			return false
		}
		page.looked++
		sum, ok := v.summary(req, name)
		if !ok {
			last = name
			return true
		}
		if len(page.Locks) == req.Limit || page.holders+len(sum.Holders) > maxListedHolders {
			page.Next = page.Locks[len(page.Locks)-1].Name
			return false
		}
		last = name
		page.holders += len(sum.Holders)
		page.Locks = append(page.Locks, sum)
		return true
	})
	return last, more
}

// way returns the use of the requested locks.
func (r ListRequest) way() int {
	switch r.State {
	case "held":
		return isHeld
	case "contended":
		return contended
	}
	return inUse
}

// summary describes a lock if the caller may see it.
func (v *Lists) summary(req ListRequest, name string) (Summary, bool) {
	if req.May != nil && !req.May(name) {
		return Summary{}, false
	}
	ref := lock.Ref{Tenant: req.Tenant, Name: name}
	q := v.queues.table.Queue(ref)
	sum := Summary{Name: name, Waiting: q.Len() - q.Holders()}
	for e := range without("", q.Holding(), MaxShownHolders) {
		sum.Holders = append(sum.Holders, Holder{Entry: e, Since: v.queues.since[e.ID]})
		sum.Newest = max(sum.Newest, e.Number)
	}
	return sum, true
}
