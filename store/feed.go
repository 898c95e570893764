package store

import (
	"time"

	"github.com/fencepost/fencepost/lock"
)

// Watcher is told what happens in a store. Its methods are called from one
// goroutine at a time and do not block.
type Watcher interface {
	// Reset replaces the entries that are known. Its number is below what was told before only where
	// the store has lost its past.
	Reset(Snapshot)
	// Recall tells ends that are remembered from before the last Reset, a part at a
	// time, some of them more than once; what [Watcher.Apply] told since counts more,
	// what it told before counts less. complete says that there are no more. Changes can be
	// told in between.
	Recall(ends []Ended, complete bool)
	// Apply tells the changes of one or several consecutive numbers, in order,
	// the last of which is upTo. No changes means that nothing happened up to it.
	Apply(upTo uint64, changes []Change)
	// Lost says that the feed is interrupted. A Reset follows when it is back.
	Lost(err error)
}

// Snapshot is all entries of a store at one number.
type Snapshot struct {
	Number  uint64
	Entries []*lock.Entry // in the order of their numbers

	// Newest is the store's newest number when this was read, where the feed begins in the past: it is
	// late until it has told everything up to there. Otherwise it is Number, or less.
	Newest uint64
}

// Ended remembers why an entry went away. Tenant is "" if that is not remembered.
type Ended struct {
	ID     lock.ID
	Tenant string
	Reason lock.Reason
	At     time.Time
	Was    Past // of what ended, as far as that is remembered
	Note   *lock.Note
}

// Change is one entry that came or went. Every feed tells the changes of one write in the same
// order, and none of them apart from the others.
type Change struct {
	Number uint64 // of the write that caused it: a joined entry's own
	Joined *lock.Entry
	Left   lock.ID
	Reason lock.Reason // why it went; [lock.Expired] if nobody said why
	Note   *lock.Note  // what an operator said of that, or nil
}
