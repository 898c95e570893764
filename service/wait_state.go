package service

// origin is how a request came to the entry on which it waits. It does not change, and what may
// be done with the entry follows from it and from the entry.
type origin int

const (
	// the request wrote it, so what a view shows of it is no older than the request
	wrote   origin = iota
	joined         // an earlier request with the same key wrote it, as the store said
	resumed        // an earlier request with the same key wrote it, as the view shows
	byToken        // the client has its token, and only waits on
)

// tries reports whether the entry is to leave its queue at once if it does not hold.
func (w *wait) tries() bool { return w.origin != byToken && w.entry.Tries() }

// comesBack reports whether the client can come back to the entry, by its token or a key.
func (w *wait) comesBack() bool { return w.origin == byToken || w.entry.Resumable() }

// seen is what has been seen of whether an entry holds, in the order in which it can be. An entry
// that the view shows to hold is granted at once, and so is one of which the store has shown it:
// there is no way back.
type seen int

const (
	nothing    seen = iota // neither the view nor the store has shown where it stands
	waits                  // it did not hold, as the view or the store showed
	holds                  // it holds, as the store itself showed, and nobody saw it wait
	cameToHold             // the same of one that waited before
)

// waited reports whether the entry was seen not to hold.
func (s seen) waited() bool { return s == waits || s == cameToHold }

// proven reports whether the store itself showed that the entry holds, whatever a view says.
func (s seen) proven() bool { return s == holds || s == cameToHold }

// inStore is what is known after the store itself showed whether the entry holds.
func (s seen) inStore(itHolds bool) seen {
	switch {
	case !itHolds:
		return waits
	case s.waited():
		return cameToHold
	}
	return holds
}

// turn is what was heard of the turn of an entry that waits.
type turn int

const (
	far   turn = iota
	soon       // the view announces it: the lease is to start again before
	ready      // the lease was started again for it, once and for all
)

// announced is what is known after the view was asked whether the turn comes soon.
func (t turn) announced(itIsSoon bool) turn {
	switch {
	case t == ready:
		return ready
	case itIsSoon:
		return soon
	}
	return far
}
