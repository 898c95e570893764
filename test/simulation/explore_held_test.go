package simulation

import (
	"slices"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store/memory"
)

// held is something that waits for something else to happen first.
type held struct {
	locks   []string // for a write to one of these
	id      lock.ID  // or of the record
	readOf  []string // for a read of one of these
	late    *message // for so many further requests about its entry
	after   int
	answer  *wire // an answer, for the next news at the replica
	news    *wire // news, for the next answer
	do      func()
	done    bool
	patient bool // it is no matter that it waits to the end
}

func (x *explorer) hold(h *held, most time.Duration) {
	x.held = append(x.held, h)
	x.w.schedule(most, func() {
		if !h.done {
			h.done = true
			x.vain = x.vain || !h.patient
			h.do()
		}
	})
}

// wake has all that waits for this go on.
func (x *explorer) wake(goes func(*held) bool) {
	if x == nil {
		return
	}
	x.held = slices.DeleteFunc(x.held, func(h *held) bool {
		if !h.done && goes(h) {
			h.done = true
			x.w.schedule(0, h.do)
		}
		return h.done
	})
}

// happened takes a write of the store.
func (x *explorer) happened(r memory.Run) {
	if x == nil || len(x.held) == 0 {
		return
	}
	var locks []string
	for _, c := range r.Changes {
		id := c.Left
		switch {
		case c.Joined != nil:
			locks = append(locks, names(c.Joined.Claims)...)
			continue
		case c.Narrowed != nil:
			id = c.Narrowed.ID
		}
		locks = append(locks, names(x.w.truth.last(id).wanted)...)
	}
	x.wake(func(h *held) bool { return overlap(h.locks, locks) })
}

func overlap(some, others []string) bool {
	return slices.ContainsFunc(some, func(name string) bool { return slices.Contains(others, name) })
}

// changed takes a change of a record, on which a join may depend if it is that of closures.
func (x *explorer) changed(id string) {
	x.wake(func(h *held) bool { return h.id == lock.ID(id) || id == closuresKey && h.locks != nil })
}

// served takes that the store has carried out a request.
func (x *explorer) served(m *message) {
	if x == nil {
		return
	}
	if !writes(m) {
		read := x.locksOf(m)
		x.wake(func(h *held) bool { return overlap(h.readOf, read) })
	}
	x.wake(func(h *held) bool {
		if h.late == nil || h.late == m || h.late.id != m.id || !h.late.unheard.Load() {
			return false
		}
		h.after--
		return h.after == 0
	})
}

// writes reports whether a request changes what others read, other than the end of a lease.
func writes(m *message) bool {
	return shares(m) || m.op == memory.Revoke || m.op == memory.Commit
}

// heard takes that a replica has an answer, and told that it has news.
func (x *explorer) heard(l *wire) { x.wake(func(h *held) bool { return h.news == l }) }
func (x *explorer) told(l *wire)  { x.wake(func(h *held) bool { return h.answer == l }) }

// keeps reports whether it keeps an answer back, to bring it later.
func (x *explorer) keeps(m *message, answer func()) bool {
	if x == nil || !m.slow {
		return false
	}
	x.hold(&held{answer: m.wire, do: answer}, m.left())
	return true
}
