package lock

import "time"

// Follower is told what happens in a store. Its methods are called from one
// goroutine at a time and do not block.
type Follower interface {
	// Reset replaces everything that is known.
	Reset(Snapshot)
	// Apply tells the changes of one or several consecutive numbers, in order,
	// the last of which is upTo. No changes means that nothing happened up to it.
	Apply(upTo uint64, changes []Change)
	// Lost says that the feed is interrupted. A Reset follows when it is back.
	Lost(err error)
}

// Snapshot is everything in a store at one number.
type Snapshot struct {
	Number  uint64
	Entries []*Entry // in the order of their numbers
	Ended   []Ended  // remembered ends, oldest first
}

// Ended remembers why an entry went away.
type Ended struct {
	ID     ID
	Reason Reason
	At     time.Time
}

// Change is one entry that came or went.
type Change struct {
	Joined *Entry // nil if an entry went
	Left   ID
	Reason Reason // why it went; [Expired] if nobody said why
}
