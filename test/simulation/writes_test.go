package simulation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/memory"
)

// write is one call of a replica that writes an entry or a record. What it says in the end is held
// against what it has done.
type write struct {
	wire  *wire
	entry *lock.Entry // nil if it writes a record
	sent  []*message  // the attempts
	wrote int         // how many of them did
	ended time.Duration
	err   error
}

type writeKey struct{}

func newWrite(l *wire, e *lock.Entry) *write { return &write{wire: l, entry: e, ended: never} }

func (c *write) in(ctx context.Context) context.Context {
	return context.WithValue(ctx, writeKey{}, c)
}

func (c *write) String() string {
	what := "a record"
	if c.entry != nil {
		what = string(c.entry.ID)
	}
	return fmt.Sprintf("the write of %s by replica %d", what, c.wire.r.n)
}

// once reports whether no more than one attempt may write.
func (c *write) once() bool { return c.entry == nil || !c.entry.Resumable() }

// sends notes an attempt.
func (c *write) sends(m *message) {
	if c != nil && (m.op == memory.Put || m.op == memory.Commit) {
		c.sent = append(c.sent, m)
	}
}

// writes notes that an attempt has written. What a call has said to be impossible does not happen
// after it.
func (c *write) writes() {
	if c.wrote++; c.once() && c.wrote > 1 {
		c.wire.w.problem("%v was made twice", c)
	}
	if c.denied() {
		c.wire.w.problem("%v was made after it had been said that it never would: %v", c, c.err)
	}
}

// denied reports whether the call has said that nothing is or will be written.
func (c *write) denied() bool {
	var e *lock.Error
	return c.ended != never && errors.As(c.err, &e) && !e.OutcomeUnknown
}

// end takes what the call says in the end.
func (c *write) end(err error) {
	w := c.wire.w
	w.truth.catchUp()
	c.ended, c.err = w.now(), err
	var e *lock.Error
	switch {
	case c.denied() && c.stands():
		w.problem("%v was made, and it was said that it is not: %v", c, err)
	case errors.As(err, &e) && e.OutcomeUnknown && c.wrote == 0 && c.sure():
		w.problem("%v has an unknown outcome, and each attempt had its answer: %v", c, err)
	case err == nil && c.entry == nil && c.wrote == 0:
		w.problem("%v was not made, and it was said that it is", c)
	}
}

// stands reports whether something is there that the call has written.
func (c *write) stands() bool {
	if c.entry == nil {
		return c.wrote > 0
	}
	l := c.wire.w.truth.last(c.entry.ID)
	return l != nil && l.by == c && l.ended == never && !l.undone
}

// sure reports whether the answers to all attempts arrived, and were plain.
func (c *write) sure() bool {
	return !slices.ContainsFunc(c.sent, func(m *message) bool { return m.unheard.Load() || m.full })
}

// takesBack reports whether the call has failed, so that it takes back what it has written.
func (c *write) takesBack() bool { return c != nil && c.err != nil && !c.entry.Recoverable() }

// watched is the store as a service sees it.
type watched struct {
	*memory.Client
	wire *wire
}

// Enqueue implements [store.Store].
func (s watched) Enqueue(
	ctx context.Context, e *lock.Entry,
) (placed *lock.Entry, written bool, err error) {
	c := newWrite(s.wire, e)
	placed, written, err = s.Client.Enqueue(c.in(ctx), e)
	s.wire.arrive("written", string(e.ID), func() {
		if c.end(err); err == nil {
			s.wire.w.checkWritten(c, placed, written)
		}
	})
	return placed, written, err
}

type removalKey struct{}

// Remove implements [store.Store].
func (s watched) Remove(
	ctx context.Context, e *lock.Entry, why lock.Reason, while ...*lock.Entry,
) error {
	return s.Client.Remove(context.WithValue(ctx, removalKey{}, true), e, why, while...)
}

var _ store.Store = watched{}

// committed notes that a record was written.
func (w *world) committed(m *message) {
	if m.part != nil {
		m.part.writes()
	}
	w.explorer.changed(string(m.id))
	if m.id == theShard {
		w.checkCursor()
	}
}

// attribute finds out which call has written an entry.
func (t *truth) attribute(l *life) {
	if now := t.writing[l.entry.ID]; now != nil && now.request != nil && now.request.part != nil {
		l.by = now.request.part
		l.by.writes()
	}
}

// checkWritten: a call knows whether it has written the entry, or another one.
func (w *world) checkWritten(c *write, placed *lock.Entry, written bool) {
	l := w.truth.at(placed.ID, placed.Number)
	if l != nil && !l.ghost && written != (l.by == c) {
		w.problem("%v says %v of whether it wrote what stands at %d", c, written, placed.Number)
	}
}

// takenBackWithin is how long a replica needs to take back what a failed call has written.
const takenBackWithin = 8 * time.Second

// checkTakenBack: what a failed call has written is taken back if no client can come back for it,
// and only then.
func (t *truth) checkTakenBack(l *life) {
	if r := t.writing[l.entry.ID]; l.reason == lock.Withdrawn && l.entry.Resumable() && r != nil &&
		r.request != nil && !r.request.asked && r.request.part == nil {
		t.w.problem("%s was taken back, and its client can come back for it", l.entry.ID)
	}
	if l.reason != lock.Expired || l.undone || !l.by.takesBack() {
		return
	}
	c, r := l.by, l.by.wire.r
	late := l.ended > max(c.ended, l.joined)+takenBackWithin
	if late && r.life == c.wire.life && !r.down && r.stoodUntil < c.ended {
		t.w.problem("%v failed at %v, and was left to its lease: %v", c, c.ended, c.err)
	}
}
