package lock

// Wait is one step of a cycle: an entry that waits for a lock, and its blocker.
type Wait struct {
	Waiter *Entry
	Lock   string

	// Blocker holds the lock, or is before Waiter in its queue if Holds is false.
	Blocker *Entry
	Holds   bool
}
