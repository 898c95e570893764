package figures

import (
	"time"

	"github.com/fencepost/fencepost/lock"
)

const (
	// MaxPast is how many of the last events of a lock are kept, and maxPast of all locks.
	MaxPast = 50
	maxPast = 100_000 // some 25 MB
)

// Past is an event of a lock, as it is kept.
type Past struct {
	ID     lock.EventID
	Kind   lock.EventKind
	Entry  lock.ID
	Holder string
	Number uint64
	Held   bool        // it holds, or did until its end
	Reason lock.Reason // of an end
	Note   *lock.Note  // of an end that an operator caused
	At     time.Time
	Lasted time.Duration // how long it waited for its grant; of an end, how long it held
}

// pasts is a ring buffer of events.
type pasts struct {
	last []Past
	next int
}

// add returns how many more are kept now.
func (p *pasts) add(what *lock.Event) int {
	one := Past{
		ID: what.ID, Kind: what.Kind, Entry: what.Entry.ID, Holder: what.Entry.Holder,
		Number: what.Entry.Number, Held: what.Held, Reason: what.Reason, Note: what.Note,
		At: what.At, Lasted: what.Lasted,
	}
	if len(p.last) < MaxPast {
		p.last = append(p.last, one)
		return 1
	}
	p.last[p.next] = one
	p.next = (p.next + 1) % MaxPast
	return 0
}

// read returns the events, the newest first.
func (p *pasts) read() []Past {
	out, n := make([]Past, 0, len(p.last)), len(p.last)
	for i := range p.last {
		out = append(out, p.last[(p.next-1-i+2*n)%n])
	}
	return out
}
