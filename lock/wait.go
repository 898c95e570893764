package lock

// Wait is one step of a cycle: somebody waits for a lock, and somebody is in the
// way.
type Wait struct {
	Waiter *Entry
	Lock   string

	// Blocker holds the lock, or stands before Waiter in its queue if Holds is
	// false.
	Blocker *Entry
	Holds   bool
}
