package simulation

import (
	"time"

	"github.com/fencepost/fencepost/lock"
)

// checkNumber: an entry's number is above all that entries ever had, and no client writes while
// it is known that the past is missing. Numbers that an unnoticed restore has taken back can be
// issued again.
func (t *truth) checkNumber(e *lock.Entry) {
	by, newest := t.writing[e.ID], t.greatest
	for _, c := range e.Claims {
		n := t.greatests[c.Name]
		if n == e.Number {
			newest = max(newest, n+1) // entries of one lock never share a number
		}
		t.greatests[c.Name] = max(n, e.Number)
	}
	t.greatest = max(t.greatest, e.Number)
	switch {
	case by != nil && !by.trusted:
		t.w.problem(
			"%s was written at %d by replica %d, and nothing was to be", e.ID, e.Number, by.replica,
		)
	case e.Number >= newest:
	case !t.w.missing:
		t.w.problem("%s was written at %d, after %d was given", e.ID, e.Number, newest)
	case by != nil && by.heard > by.before:
		t.w.problem(
			"%s was written at %d by replica %d, which had heard of %d", e.ID, e.Number, by.replica,
			by.heard,
		)
	}
}

// checkFence: a new holder has a greater fence than all earlier holders that could not hold
// together with it. While a restore is unanswered, this does not apply to what came back and to
// repeated numbers.
func (t *truth) checkFence(l *life) {
	for _, c := range l.entry.Claims {
		of := t.fences[c.Name]
		if of == nil {
			of = map[lock.Mode]uint64{}
			t.fences[c.Name] = of
		}
		for mode, fence := range of {
			if fence >= l.entry.Number && !t.w.missing && !together(lock.Claim{Mode: mode}, c) {
				t.w.problem(
					"%s came to hold %s with the fence %d, after %d was granted", l.entry.ID, c.Name,
					l.entry.Number, fence,
				)
			}
		}
		of[c.Mode] = max(of[c.Mode], l.entry.Number)
	}
}

// checkExclusion: all existing entries that were reported to hold a lock may hold it together.
func (t *truth) checkExclusion(l *life) {
	if l.ended != never {
		return // the answer was long on its way
	}
	for _, c := range l.entry.Claims {
		permits := 0
		for _, e := range t.queues[c.Name].now() {
			other, of := t.last(e.ID), lock.ClaimsOn([]*lock.Entry{e}, c.Name)[0]
			if other != l && !other.told {
				continue
			}
			if other != l && !together(of, c) {
				t.w.problem("%s and %s both hold %s", e.ID, l.entry.ID, c.Name)
			}
			if permits += of.Permits; of.Mode == lock.Semaphore && permits > of.Limit {
				t.w.problem("%d permits of %s are held, a semaphore for %d", permits, c.Name, of.Limit)
			}
		}
	}
}

// wentBack takes over that the store is as it was when it was copied.
func (t *truth) wentBack(copied time.Duration, entries []*lock.Entry) {
	for _, lives := range t.lives {
		for _, l := range lives {
			l.undone = l.undone || l.joined > copied || l.ended != never && t.recorded(l) > copied
			if l.held > copied {
				l.held, l.told, l.sureTill = never, false, 0
			}
		}
	}
	t.replace(entries)
}

// renumbered takes over that entries have other numbers, which is all that became of
// them.
func (t *truth) renumbered(entries []*lock.Entry, number uint64) {
	for _, lives := range t.lives {
		for _, l := range lives {
			l.undone = l.undone || l.ended == never
		}
	}
	t.greatest = max(t.greatest, number)
	t.replace(entries)
}

// replace puts these entries in the place of all that are there.
func (t *truth) replace(entries []*lock.Entry) {
	now := t.w.now()
	for _, q := range t.queues {
		q.states = append(q.states, state{from: now})
	}
	there := map[lock.ID]uint64{}
	for _, e := range entries {
		there[e.ID] = e.Number
	}
	for id := range t.lives {
		if l := t.last(id); l.ended == never && there[id] != l.entry.Number {
			l.ended, l.reason, l.undone = now, lock.Unknown, true
		}
	}
	for _, e := range entries {
		if l := t.last(e.ID); l != nil && l.ended == never {
			l.entry = e // it may be choosing again
		} else {
			t.lives[e.ID] = append(t.lives[e.ID], &life{
				entry: e, wanted: e.Claims, joined: now, held: never, ended: never, ghost: true,
			})
		}
		t.enqueue(e, now)
	}
	for _, e := range entries {
		t.promote(e.Claims, now)
	}
}

// undone reports whether a restore has taken back anything that became of the id:
// what replicas and clients remember of it may differ from what the store does.
func (t *truth) undone(id lock.ID) bool {
	for _, l := range t.lives[id] {
		if l.undone {
			return true
		}
	}
	return false
}
