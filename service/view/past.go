package view

import (
	"time"

	"github.com/fencepost/fencepost/lock"
)

const (
	// MaxPast is how many of the last events of a lock are kept, and maxPast of all locks.
	MaxPast = 50
	maxPast = 100_000 // some 25 MB
)

// Past is an event of a lock, as it is kept for those who look.
type Past struct {
	ID     lock.EventID
	Kind   lock.EventKind
	Entry  lock.ID // "" if it is of none
	Holder string
	Number uint64
	Held   bool        // it holds, or did until its end
	Reason lock.Reason // of an end
	Note   *lock.Note  // of an end that an operator brought about
	Stale  *lock.StaleWrite
	At     time.Time
	Lasted time.Duration // how long it waited for its grant; of an end, how long it held
}

// pasts is a ring of events.
type pasts struct {
	ring []Past
	next int
}

// add returns how many more are kept now.
func (p *pasts) add(one Past) int {
	if len(p.ring) < MaxPast {
		p.ring = append(p.ring, one)
		return 1
	}
	p.ring[p.next] = one
	p.next = (p.next + 1) % MaxPast
	return 0
}

// happened keeps an event with its locks. What belongs to no entry is kept only of locks that
// are known: anybody may say it.
func (f figures) happened(what lock.Event) {
	e := what.Entry
	for _, c := range e.Claims {
		r := lock.Ref{Tenant: e.Tenant, Name: c.Name}
		if e.ID == "" && f.byLock[r] == nil {
			continue
		}
		for *f.past >= maxPast {
			f.forget(f.shares.largest())
		}
		*f.past += f.of(r).past.add(Past{
			ID: what.ID, Kind: what.Kind, Entry: e.ID, Holder: e.Holder, Number: e.Number, Held: what.Held, Reason: what.Reason,
			Note: what.Note, Stale: what.Stale, At: what.At, Lasted: what.Lasted,
		})
		if what.Kind == lock.EventStaleWrite {
			f.of(r).staleWrites++
		}
	}
}

// History is what is kept of a lock, as one replica saw it since it started.
type History struct {
	Past        []Past // the newest first, at most 50
	StaleWrites uint64 // that resources reported
	Figures     Figures
	Revision    uint64
}

// History returns what is kept of a lock.
func (v *View) History(r lock.Ref) History {
	v.mu.RLock()
	defer v.mu.RUnlock()
	out := History{Figures: v.figures.read(r), Revision: v.number}
	el := v.figures.byLock[r]
	if el == nil {
		return out
	}
	u := el.Value.(*usage)
	out.StaleWrites = u.staleWrites
	out.Past = make([]Past, 0, len(u.past.ring))
	for i := range u.past.ring {
		at := (u.past.next - 1 - i + 2*len(u.past.ring)) % len(u.past.ring)
		out.Past = append(out.Past, u.past.ring[at])
	}
	return out
}
