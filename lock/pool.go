package lock

import "slices"

// PoolHome is where stores keep the value of an entry with [Entry.Any], because such an entry can
// leave each of its queues. It is no lock name.
const PoolHome = "~any"

// Home returns the name under which stores keep the entry's value: that of its first lock, or
// [PoolHome].
func (e *Entry) Home() string {
	if e.Any > 0 {
		return PoolHome
	}
	return e.Name()
}

// Choosing reports whether the entry still has more claims than it asks for. Such an entry does
// not hold, even at the front of all its queues: it holds after it left all but Any of them.
func (e *Entry) Choosing() bool { return e.Any > 0 && e.Any < len(e.Claims) }

// Choose makes e ask for any k of its claims. inOrder are the claims in the order of the request.
func (e *Entry) Choose(k int, inOrder []Claim) {
	if e.Any, e.Order = k, nil; !e.Choosing() {
		return
	}
	for _, c := range inOrder {
		if i := slices.Index(e.Claims, c); i >= 0 {
			e.Order = append(e.Order, i)
		}
	}
}

// LeaveOut removes the claims for which out returns true from a choosing entry that was not
// written. It returns false if it removes none, because too few would be left.
func (e *Entry) LeaveOut(out func(Claim) bool) bool {
	left := slices.DeleteFunc(slices.Clone(e.Claims), out)
	if !e.Choosing() || len(left) < e.Any || len(left) == len(e.Claims) {
		return false
	}
	inOrder := make([]Claim, 0, len(e.Order))
	for _, i := range e.Order {
		inOrder = append(inOrder, e.Claims[i])
	}
	e.Claims = left
	e.Choose(e.Any, inOrder)
	return true
}

// Choice returns the claims that a choosing entry keeps, in canonical order. It goes through the
// claims in the order of the request, and takes the first Any for which front returns true: the
// entry is at the front of that queue. ok is false if there are fewer.
func (e *Entry) Choice(front func(Claim) bool) (kept []Claim, ok bool) {
	for _, i := range e.Order {
		if len(kept) < e.Any && front(e.Claims[i]) {
			kept = append(kept, e.Claims[i])
		}
	}
	if len(kept) < e.Any {
		return nil, false
	}
	Canonical(kept)
	return kept, true
}

// Narrowed returns the entry as it is after it left all queues but those of kept: an ordinary set.
func (e *Entry) Narrowed(kept []Claim) *Entry {
	narrow := *e
	narrow.Claims, narrow.Order = slices.Clone(kept), nil
	return &narrow
}
