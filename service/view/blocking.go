package view

import (
	"slices"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/blocking"
)

const (
	MaxBlockedPerLock = 1000 // entries read behind the front of one queue
	placesChunk       = 1000 // entries read in one go, between which grants continue
	maxOfHolder       = 2000 // entries read of one holder
	maxOthers         = 32   // holders read of one semaphore
)

// Blocking reads which entry blocks others at each lock, and the blocked entries, up to most in
// all. more reports that it did not read all. It leaves out locks without waiters.
func (v *Lists) Blocking(refs []lock.Ref, most int) (queues []blocking.Queue, more bool) {
	for len(refs) > 0 && most > 0 {
		n, read, cut := v.blocked(refs, &queues, most)
		refs, most, more = refs[n:], most-read, more || cut
	}
	return queues, more || len(refs) > 0
}

// blocked reads some of the queues. It returns how many locks and how many entries it read.
func (v *Lists) blocked(
	refs []lock.Ref,
	queues *[]blocking.Queue,
	most int,
) (n, read int, cut bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	for ; n < len(refs) && read < min(most, placesChunk); n++ {
		one := v.blockedAt(refs[n], min(most-read, MaxBlockedPerLock))
		if one == nil {
			read++ // the lookup takes as long
			continue
		}
		cut = cut || one.Further > 0
		read += len(one.Behind)
		*queues = append(*queues, *one)
	}
	return n, read, cut
}

// blockedAt returns nil if no entry blocks another.
func (v *Lists) blockedAt(r lock.Ref, most int) *blocking.Queue {
	q := v.queues.table.Queue(r)
	if q == nil || q.Waiting() == 0 {
		return nil
	}
	head := q.Head().Member()
	out := &blocking.Queue{
		Ref: r, Head: head.Entry(), Holds: head.Holds(), Since: head.Entry().EnqueuedAt,
		Front: q.Len() - q.Waiting(), Oldest: q.Behind().Member().Entry().EnqueuedAt,
	}
	if out.Holds {
		out.Since = v.queues.since[head.Entry().ID]
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

// otherHolders returns the holders of a semaphore after the first.
func (v *Lists) otherHolders(q *lock.Queue) (others []blocking.Holder) {
	for s := q.Head().Next(); s != nil && s.InFront() && len(others) < maxOthers; s = s.Next() {
		if m := s.Member(); m.Holds() {
			others = append(others, blocking.Holder{Entry: m.Entry(), Since: v.queues.since[m.Entry().ID]})
		}
	}
	return others
}

// EntryPlaces is an entry with its positions, for display.
type EntryPlaces struct {
	Entry *lock.Entry
	Holds bool
	Since time.Time // start of the hold
	At    []PlaceAt
}

// PlaceAt is an entry's position at one of its locks.
type PlaceAt struct {
	Claim    lock.Claim
	InFront  bool // it holds the lock, or keeps it while it waits for another of its locks
	Position int  // otherwise its position behind the front
}

// OfHolder lists what a holder holds and waits for.
type OfHolder struct {
	Entries  []EntryPlaces
	Holding  int  // of the first 2000, listed or not
	Waiting  int  // the same
	More     bool // there are more than listed
	Revision uint64
}

// OfHolder returns the entries of a holder by its tenant and name, the oldest first: first the
// entries whose requests name it, then others. may reports which names the caller may see, and
// may be slow; nil is all. OfHolder leaves out entries without a visible lock, and lists at most
// most.
func (v *Lists) OfHolder(who lock.Ref, may func(string) bool, most int) (out OfHolder) {
	var all []EntryPlaces
	all, out.More, out.Revision = v.entriesOf(who)
	for _, one := range all {
		one.At = slices.DeleteFunc(
			one.At, func(p PlaceAt) bool { return may != nil && !may(p.Claim.Name) },
		)
		switch {
		case len(one.At) == 0:
			continue
		case len(out.Entries) == most:
			out.More = true
		default:
			out.Entries = append(out.Entries, one)
		}
		if one.Holds {
			out.Holding++
		} else {
			out.Waiting++
		}
	}
	return out
}

// entriesOf returns the first 2000 entries of a holder, and whether there are more.
func (v *Lists) entriesOf(who lock.Ref) (all []EntryPlaces, more bool, number uint64) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	for e, holds := range v.queues.table.EntriesOf(who) {
		if len(all) == maxOfHolder {
			return all, true, v.queues.progress.number
		}
		since := v.queues.since[e.ID]
		all = append(all, EntryPlaces{Entry: e, Holds: holds, Since: since, At: v.placesOf(e)})
	}
	return all, false, v.queues.progress.number
}

// Places returns where an entry stands, nil if the view does not have it.
func (v *Lists) Places(id lock.ID) []PlaceAt {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if e, _ := v.queues.table.Entry(id); e != nil {
		return v.placesOf(e)
	}
	return nil
}

func (v *Lists) placesOf(e *lock.Entry) []PlaceAt {
	slots := v.queues.table.Member(e.ID).Slots()
	at := make([]PlaceAt, len(slots))
	for i := range slots {
		at[i] = PlaceAt{Claim: slots[i].Claim(), InFront: slots[i].InFront()}
		if !at[i].InFront {
			at[i].Position = slots[i].Position()
		}
	}
	return at
}
