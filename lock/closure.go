package lock

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Bounds of closures.
const (
	// MaxClosing is the longest time for which locks are closed at once. It leaves a day
	// of the lease of its entry for clocks that differ.
	MaxClosing = MaxTTL - 24*time.Hour

	// MaxClosures is how many closures of one tenant may stand at a time.
	MaxClosures = 100

	// MaxRoll is how long a [Roll] may be, in bytes, about: some hundred queues.
	MaxRoll = 32 << 10
)

// closuresPrefix begins the names of the locks of [OwnTenant] whose queues have closures.
const closuresPrefix = "closures:"

// ClosuresOf returns the lock in whose queue the closures of a tenant stand.
func ClosuresOf(tenant string) Ref { return Ref{OwnTenant, closuresPrefix + tenant} }

// Closing is what an entry says that stands for a closure: from its number on, for as long
// as it is there, of the locks that it names nobody comes to hold who did not hold then.
type Closing struct {
	Locks  Pattern   // of its tenant
	Until  time.Time // when it is to end
	Reason string    // in the operator's words
	By     string    // the subject of his bearer token
}

// Seats say who held a lock when it was closed: the entries up to a number, but for some. Numbers
// are told by how much less they are than the closure's own, since an operator's fence floor
// changes all of them alike.
type Seats struct {
	Last uint64   // of the newest holder; 0 if nobody held
	But  []uint64 // of entries before that which did not hold
}

// Roll is what an entry says that tells who held when a closure began: for each of its locks
// for which anybody waited then. Of the others, all held who were there.
type Roll struct {
	Of    ID // the closure
	Seats map[string]Seats
}

// Closure is a [Closing] in force.
type Closure struct {
	Entry *Entry // for as long as it is there, so is the closure
	roll  *Roll  // nil: not known
}

// NewClosure returns the closure that an entry stands for. roll is nil if it is not known.
func NewClosure(e *Entry, roll *Roll) *Closure { return &Closure{e, roll} }

// Tenant is whose locks are closed.
func (c *Closure) Tenant() string { return strings.TrimPrefix(c.Entry.Name(), closuresPrefix) }

// Closes reports whether the lock is one of those that are closed.
func (c *Closure) Closes(r Ref) bool {
	return r.Tenant == c.Tenant() && c.Entry.Closing.Locks.Match(r.Name)
}

// Settled reports whether it is known who held when the closure began.
func (c *Closure) Settled() bool { return c.roll != nil }

// Roll returns who held when the closure began, nil if that is not known.
func (c *Closure) Roll() *Roll { return c.roll }

// Bars reports whether an entry must not come to hold: it asks for a closed lock
// and did not hold when that was closed. certain is false if it may have held then. It is a
// function of the entry, the closure and its roll alone.
func (c *Closure) Bars(e *Entry) (bars, certain bool) {
	for _, claim := range e.Claims {
		if !c.Closes(Ref{e.Tenant, claim.Name}) {
			continue
		}
		switch {
		case e.Number >= c.Entry.Number:
			return true, true
		case c.roll == nil:
			bars = true
		case !c.roll.seats(claim.Name, c.Entry.Number-e.Number):
			return true, true
		}
	}
	return bars, !bars
}

// seats reports whether an entry in the lock's queue held, that came so much before the closure.
func (r *Roll) seats(name string, before uint64) bool {
	s, listed := r.Seats[name]
	return !listed || s.Last != 0 && before >= s.Last && !slices.Contains(s.But, before)
}

// Call returns the roll of a closure that begins now, from the queues of its locks for which
// somebody waits. It is nil if it would name too many, or if of one it is not known whether he
// holds ([Table.InDoubt]).
func (t *Table) Call(e *Entry, names func(yield func(string) bool)) *Roll {
	c := NewClosure(e, nil)
	roll, size := &Roll{Of: e.ID, Seats: map[string]Seats{}}, 0
	doubtful := t.doubtful(c.Tenant())
	for name := range names {
		ref := Ref{c.Tenant(), name}
		q := t.queues[ref]
		if !c.Closes(ref) || q == nil || q.size == q.holders {
			continue
		}
		if doubtful[q] {
			return nil
		}
		seats := q.seats(e.Number)
		roll.Seats[name] = seats
		if size += seats.size(name); size > MaxRoll {
			return nil
		}
	}
	return roll
}

// doubtful returns the queues of a tenant's entries of which it is not known whether they hold.
func (t *Table) doubtful(tenant string) map[*Queue]bool {
	if t.settled(tenant) {
		return nil
	}
	queues := map[*Queue]bool{}
	for id, m := range t.shut[tenant] {
		if !t.InDoubt(id) {
			continue
		}
		for i := range m.slots {
			queues[m.slots[i].queue] = true
		}
	}
	return queues
}

// size is about how many bytes it takes to write the seats.
func (s Seats) size(name string) int { return len(name) + 32 + 16*len(s.But) }

// seats returns who holds. If there are too many exceptions, not all are told.
func (q *Queue) seats(at uint64) Seats {
	newest := q.NewestHolder("")
	if newest == 0 {
		return Seats{}
	}
	seats := Seats{Last: at - newest}
	for s := q.head; s != nil && s.member.entry.Number < newest && seats.size("") <= MaxRoll; s = s.next {
		if !s.member.Holds() {
			seats.But = append(seats.But, at-s.member.entry.Number)
		}
	}
	return seats
}

// Check returns what says that nobody can have written this.
func (c *Closing) Check() error {
	switch {
	case c.Locks.String() == "":
		return errors.New("a closure of no locks")
	case c.Until.IsZero():
		return errors.New("a closure without an end")
	}
	if wrong := CheckExplanation(c.Reason); wrong != "" {
		return fmt.Errorf("a reason that %s", wrong)
	}
	return nil
}

// Check returns what says that nobody can have written this.
func (r *Roll) Check() error {
	size := 0
	for name, s := range r.Seats {
		size += s.size(name)
	}
	if !ValidName(string(r.Of)) || size > MaxRoll {
		return errors.New("a roll that is of no closure, or too long")
	}
	return nil
}

// Rules reports whether the entry is part of a closure, and no acquisition.
func (e *Entry) Rules() bool { return e.Closing != nil || e.Roll != nil }

// ClosuresIn returns the closures that stand in a queue of [ClosuresOf].
func ClosuresIn(queue []*Entry) []*Closure {
	rolls := map[ID]*Roll{}
	for _, e := range queue {
		if e.Roll != nil {
			rolls[e.Roll.Of] = e.Roll
		}
	}
	var all []*Closure
	for _, e := range queue {
		if e.Closing != nil {
			all = append(all, NewClosure(e, rolls[e.ID]))
		}
	}
	return all
}

// ErrClosed returns a [Closed] error that says until when and why.
func ErrClosed(c *Closing) *Error {
	return &Error{Code: Closed, Detail: "an operator has closed the lock: nobody new is granted before the time in until", Closing: c}
}
