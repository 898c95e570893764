package spec

import "slices"

// A Property is a promise. Its text is told when a step breaks it.
type Property string

func (p Property) Error() string { return string(p) }

// Check returns the property that the step from s to t breaks, or nil.
func Check(s State, step Step, t State) error {
	was, is := s.Store(), t.Store()
	var live []Entry
	for _, g := range t.Told {
		if g.Copy == is.Copy && is.has(g.Entry) {
			live = append(live, g.Entry)
		}
	}
	for _, e := range live {
		if blocked(e, live) {
			return Property("one holder: " + e.ID + " and another entry were granted the lock")
		}
	}
	for _, r := range t.Replicas {
		for _, e := range r.View.Queue {
			if r.Ready && r.View.Copy == is.Copy && r.View.Holds(e) && is.has(e) && !is.Holds(e) {
				return Property("once head, always head: a view grants " + e.ID + ", the store does not")
			}
		}
	}
	if len(t.Told) > len(s.Told) && !grows(s.Told, t.Told[len(s.Told)], is) {
		return Property("fences grow from each grant to the next that conflicts")
	}
	for _, e := range was.Queue {
		if e.ID != step.Entry.ID && !is.has(e) && step.Name != Restores {
			return Property("an end is of its own entry: " + e.ID + " is gone")
		}
	}
	switch {
	case step.Name == Joins && (was.find(step.Entry.ID, 0) >= 0 || slices.Contains(was.Used, step.Entry.ID)):
		return Property("one entry for a key: it joins once")
	case step.Name == Joins && step.Marked:
		return Property("what a replica has learned stays true: the join had not happened")
	case step.Name == Removes && was.Holds(step.Entry):
		return Property("nothing removes what another replica may have granted")
	case step.Name == Renews && !was.has(step.Entry):
		return Property("410 is final: a renewal succeeded after the end")
	}
	return nil
}

// grows reports whether the fence of a grant, told last, is in order with those of other entries.
func grows(told []Grant, g Grant, store Picture) bool {
	return !slices.ContainsFunc(told, func(o Grant) bool {
		conflict := slices.ContainsFunc(g.Claims, func(c Claim) bool {
			with, in := o.claim(c.Lock)
			return in && o.ID != g.ID && !c.tolerates([]Claim{with})
		})
		later := g.Copy > o.Copy || g.Copy == o.Copy &&
			(g.Number >= o.Number || g.Copy == store.Copy && store.has(g.Entry))
		return conflict && later != (g.Fence > o.Fence)
	})
}

// Stuck returns the entry that waits although no fair step is left: each waiter is granted or ends
// in the end. With Rank it is a proof: faults are finite, and each fair step lowers the rank.
func Stuck(t State) error {
	for _, e := range t.Store().Queue {
		if !t.told(e) {
			return Property("a waiter is granted or ends in the end: " + e.ID + " waits forever")
		}
	}
	return nil
}

// Rank is what fair steps still have to do, each counted above all that it may bring about.
func Rank(t State) int {
	rank := 1000 * len(t.Late)
	if !t.Store().Trusted {
		rank += 50
	}
	for _, e := range t.Store().Queue {
		rank += 20 + 20*e.Any
		if !t.told(e) {
			rank += 20
		}
	}
	for _, r := range t.Replicas {
		if !r.Ready || r.View.Copy != t.Store().Copy {
			rank += 200
		}
		rank += int(t.Store().Number - r.View.Number)
	}
	return rank
}

// told reports whether a client was told, in this copy of the store, that its entry is granted.
func (s State) told(e Entry) bool {
	return slices.ContainsFunc(s.Told, func(g Grant) bool {
		return g.ID == e.ID && g.Number == e.Number && g.Copy == s.Store().Copy
	})
}
