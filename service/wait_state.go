package service

// origin is how a request came to its entry. It does not change. It determines what the request
// may do with the entry.
type origin int

const (
	// this request wrote it, so any view that shows it is no older than the request
	wrote   origin = iota
	joined         // an earlier request with the same key wrote it, as the store reported
	resumed        // the same, as the view shows
	byToken        // the client has its token and resumes the wait
)

// tries reports whether the entry must leave its queue at once if it does not hold.
func (w *wait) tries() bool { return w.origin != byToken && w.entry.Tries() }

// comesBack reports whether the client can come back to the entry, by its token or a key.
func (w *wait) comesBack() bool { return w.origin == byToken || w.entry.Resumable() }

// seen is what this request knows about whether its entry holds, in the order in which it can
// change. An entry that the view or the store has shown as a holder is granted at once, and never
// goes back.
type seen int

const (
	nothing    seen = iota // neither the view nor the store has shown its state
	waits                  // it waited, as the view or the store showed
	holds                  // it holds, as the store itself showed, and this request never saw it wait
	cameToHold             // the same, after it waited
)

// waited reports whether the entry was seen not to hold.
func (s seen) waited() bool { return s == waits || s == cameToHold }

// proven reports whether the store itself showed that the entry holds, whatever a view says.
func (s seen) proven() bool { return s == holds || s == cameToHold }

// inStore returns the state after the store itself showed whether the entry holds.
func (s seen) inStore(itHolds bool) seen {
	switch {
	case !itHolds:
		return waits
	case s.waited():
		return cameToHold
	}
	return holds
}

// turn is what a waiting request knows about its coming grant.
type turn int

const (
	far   turn = iota
	soon       // the view announces the grant: restart the lease first
	ready      // the lease was restarted for it, once
)

// announced returns the state after asking the view whether the grant is near.
func (t turn) announced(itIsSoon bool) turn {
	switch {
	case t == ready:
		return ready
	case itIsSoon:
		return soon
	}
	return far
}
