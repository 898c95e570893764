package spec

import (
	"cmp"
	"slices"
)

// A Property is a promise. Its text is the error when a step breaks it.
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
	slices.SortFunc(live, func(a, b Entry) int { return cmp.Compare(a.Number, b.Number) })
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
	e := step.Entry
	switch {
	case step.Name == Joins && (was.find(e.ID, 0) >= 0 || slices.Contains(was.Used, e.ID)):
		return Property("one entry for a key: it joins once")
	case step.Name == Joins && step.Marked:
		return Property("what a replica has learned stays true: the join had not happened")
	case step.Name == Removes && was.Holds(e):
		return Property("nothing removes what another replica may have granted")
	case step.Name == Renews && !was.has(e):
		return Property("410 is final: a renewal succeeded after the end")
	}
	return nil
}

// grows reports whether the fence of the last grant is in order with those of other entries.
func grows(told []Grant, g Grant, store Picture) bool {
	return !slices.ContainsFunc(told, func(o Grant) bool {
		before, after := o, g
		if cmp.Or(cmp.Compare(g.Copy, o.Copy), cmp.Compare(g.Number, o.Number)) < 0 {
			before, after = g, o
		}
		conflict := slices.ContainsFunc(after.Claims, func(c Claim) bool {
			with, in := before.claim(c.Lock)
			return in && o.ID != g.ID && !c.tolerates([]Claim{with})
		})
		live := g.Copy == o.Copy && g.Copy == store.Copy && store.has(g.Entry)
		return conflict && (live || after.ID == g.ID) != (g.Fence > o.Fence)
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
