package store

import (
	"time"

	"github.com/fencepost/fencepost/lock"
)

// Watcher receives what happens in a store. Its methods are called from one goroutine at a time
// and do not block.
type Watcher interface {
	// Reset replaces the known entries. Its number is below an earlier one only if the store has
	// lost its past.
	Reset(Snapshot)
	// Recall reports ends from before the last Reset, a part at a time, some of them more than once.
	// What [Watcher.Apply] reported since has precedence over them; they have precedence over what
	// it reported before. complete marks the last part. Changes may come in between.
	Recall(ends []Ended, complete bool)
	// Apply reports the changes of one or several consecutive numbers, in order, up to upTo. No
	// changes means that nothing happened up to it.
	Apply(upTo uint64, changes []Change)
	// Lost reports that the feed is interrupted. A Reset follows when it is back.
	Lost(err error)
}

// Snapshot is all entries of a store at one number.
type Snapshot struct {
	Number  uint64
	Entries []*lock.Entry // in the order of their numbers

	// Newest is the store's newest number at the time of the read, if the feed begins in the past;
	// the view is stale until the feed reaches it. Otherwise it is Number, or less.
	Newest uint64
}

// Ended is a record of why an entry ended. Tenant is "" if it is unknown.
type Ended struct {
	ID     lock.ID
	Tenant string
	Reason lock.Reason
	At     time.Time
	Was    Past // the ended entry, as far as recorded
	Note   *lock.Note
}

// Change is one entry that joined, left, or left some of its queues. Every feed reports the changes
// of one write in the same order and together.
type Change struct {
	Number uint64 // of the write that caused it: for an entry that joined, its own
	Joined *lock.Entry

	// Narrowed is an entry that left all but these claims, with its own number; see
	// [lock.Entry.Narrowed].
	Narrowed *lock.Entry

	Left   lock.ID
	Reason lock.Reason // why it left; [lock.Expired] if no reason was recorded
	Note   *lock.Note  // an operator's note on it, or nil
}
