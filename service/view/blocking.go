package view

import (
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/blocking"
)

const (
	// MaxBlockedPerLock is how many of those who stand behind others at a lock are looked at.
	MaxBlockedPerLock = 1000

	// placesChunk is after how many places in queues the view is let go for a moment.
	placesChunk = 1000

	// maxOfHolder is how many entries of a holder are looked at.
	maxOfHolder = 2000
)

// Blocking reads for each lock who is in the way of others there, and who they are, up to most
// in all; more says that not all was read. Locks at which nobody stands behind others are left out.
func (v *queues) Blocking(refs []lock.Ref, most int) (queues []blocking.Queue, more bool) {
	for len(refs) > 0 && most > 0 {
		n, read, cut := v.blocked(refs, &queues, most)
		refs, most, more = refs[n:], most-read, more || cut
	}
	return queues, more || len(refs) > 0
}

// blocked reads some of the queues. It returns of how many locks, and how many places.
func (v *queues) blocked(refs []lock.Ref, queues *[]blocking.Queue, most int) (n, read int, cut bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	for ; n < len(refs) && read < min(most, placesChunk); n++ {
		one := v.blockedAt(refs[n], min(most-read, MaxBlockedPerLock))
		if one == nil {
			read++ // looking it up takes as long
			continue
		}
		cut = cut || one.Further > 0
		read += len(one.Behind)
		*queues = append(*queues, *one)
	}
	return n, read, cut
}

// blockedAt returns nil if nobody is in anybody's way.
func (v *queues) blockedAt(r lock.Ref, most int) *blocking.Queue {
	q := v.table.Queue(r)
	if q == nil || q.Waiting() == 0 {
		return nil
	}
	head := q.Head().Member()
	out := &blocking.Queue{Ref: r, Head: head.Entry(), Holds: head.Holds(), Since: head.Entry().EnqueuedAt, Front: q.Len() - q.Waiting()}
	if out.Holds {
		out.Since = v.since[head.Entry().ID]
	}
	if q.Head().Claim().Mode == lock.Semaphore {
		out.Or = v.otherHolders(q)
	}
	out.Behind = make([]*lock.Entry, 0, min(most, q.Waiting()))
	for s := q.Behind(); s != nil && len(out.Behind) < most; s = s.Next() {
		out.Behind = append(out.Behind, s.Member().Entry())
	}
	out.Further = q.Waiting() - len(out.Behind)
	return out
}

// maxOthers is of how many holders of a semaphore one is looked for who waits for nothing.
const maxOthers = 32

// otherHolders returns who holds a semaphore besides the first.
func (v *queues) otherHolders(q *lock.Queue) (others []blocking.Holder) {
	for s := q.Head().Next(); s != nil && s.InFront() && len(others) < maxOthers; s = s.Next() {
		if m := s.Member(); m.Holds() {
			others = append(others, blocking.Holder{Entry: m.Entry(), Since: v.since[m.Entry().ID]})
		}
	}
	return others
}

// EntryPlaces is an entry with where it stands, for people to see.
type EntryPlaces struct {
	Entry *lock.Entry
	Holds bool
	Since time.Time // since when it holds
	At    []PlaceAt
}

// PlaceAt is where an entry stands at one of its locks.
type PlaceAt struct {
	Claim    lock.Claim
	InFront  bool // it holds the lock, or keeps it while it waits for another of its locks
	Position int  // otherwise, among those who stand behind others
}

// OfHolder is what a holder holds and waits for.
type OfHolder struct {
	Entries  []EntryPlaces
	Holding  int  // of the first 2000, whether listed or not
	Waiting  int  // and of those that do not hold
	More     bool // there are further ones than are listed
	Revision uint64
}

// OfHolder returns the entries of a holder by its tenant and name, those first that joined
// first: first of those whose requests name it, then of others. May says which names the caller
// may see, and may take its time; nil is all. Entries without any such lock are left out. At most so many are listed.
func (v *queues) OfHolder(who lock.Ref, may func(string) bool, most int) (out OfHolder) {
	if may != nil {
		may = v.askedBefore(who, may)
	}
	v.mu.RLock()
	defer v.mu.RUnlock()
	out.Revision = v.number
	looked := 0
	for e, holds := range v.table.EntriesOf(who) {
		if looked++; looked > maxOfHolder {
			out.More = true
			return out
		}
		switch one := (EntryPlaces{Entry: e, Holds: holds, Since: v.since[e.ID], At: v.placesOf(e, may)}); {
		case len(one.At) == 0:
			continue
		case len(out.Entries) == most:
			out.More = true
		default:
			out.Entries = append(out.Entries, one)
		}
		if holds {
			out.Holding++
		} else {
			out.Waiting++
		}
	}
	return out
}

// askedBefore is may for the names of a holder's entries, of each of which it was asked while the view was let go.
func (v *queues) askedBefore(who lock.Ref, may func(string) bool) func(string) bool {
	allowed := map[string]bool{}
	for _, name := range v.namesOf(who) {
		allowed[name] = may(name)
	}
	return func(name string) bool {
		ok, known := allowed[name]
		return ok || !known && may(name) // it came meanwhile
	}
}

// namesOf returns the names of the locks of a holder's entries that are looked at, each once.
func (v *queues) namesOf(who lock.Ref) (names []string) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	looked, known := 0, map[string]bool{}
	for e := range v.table.EntriesOf(who) {
		if looked == maxOfHolder {
			return names
		}
		looked++
		for _, c := range e.Claims {
			if !known[c.Name] {
				known[c.Name] = true
				names = append(names, c.Name)
			}
		}
	}
	return names
}

func (v *queues) placesOf(e *lock.Entry, may func(string) bool) (at []PlaceAt) {
	slots := v.table.Member(e.ID).Slots()
	for i := range slots {
		s := &slots[i]
		if may != nil && !may(s.Claim().Name) {
			continue
		}
		one := PlaceAt{Claim: s.Claim(), InFront: s.InFront()}
		if !one.InFront {
			one.Position = s.Position()
		}
		at = append(at, one)
	}
	return at
}
