package view

import (
	"time"

	"github.com/fencepost/fencepost/lock"
)

// Bounds of those who ask others to finish, at each replica that is asked: they bound memory and
// what a renewal costs. See [View.LetAsk].
const (
	MaxAsksPerLock   = 100
	MaxAsksPerTenant = 10_000
)

// asks are what entries that wait ask of those who hold. It is a function of the entries
// and notices that are there, so every replica knows the same.
type asks struct {
	of     map[lock.ID]lock.Ask
	byLock map[lock.Ref]map[lock.ID]struct{} // who asks, in each of his queues
}

func newAsks() asks {
	return asks{of: map[lock.ID]lock.Ask{}, byLock: map[lock.Ref]map[lock.ID]struct{}{}}
}

// Asked is what a holder is asked.
type Asked struct {
	Since   time.Time // the first of those who ask now
	By      string    // who that is
	Waiting int       // how many ask
	Wished  time.Time // the earliest instant by which one of them hopes for it
}

// noticed tells what a notice says.
func (v *View) noticed(n *lock.Notice, now time.Time) {
	if n.Of == "" {
		if what, ok := lock.EventOfNotice(n); ok {
			v.happened(what, now)
		}
		return
	}
	if ask, ok := n.Ask(); ok {
		if e, holds := v.table.Entry(n.Of); e != nil && !holds {
			v.asked(e, ask, now)
		}
	}
}

// asked notes what an entry that waits asks, if it did not ask before.
func (v *View) asked(e *lock.Entry, ask lock.Ask, now time.Time) {
	if v.keepAsk(e, ask) {
		v.happened(lock.EventOfAsk(e, ask, v.table.Member(e.ID).WaitsFor()), now)
	}
}

func (v *View) keepAsk(e *lock.Entry, ask lock.Ask) bool {
	v.asking.drop(e.ID)
	if _, known := v.asks.of[e.ID]; known {
		return false
	}
	v.asks.of[e.ID] = ask
	v.accounts.of(e.Tenant).asks++
	for _, c := range e.Claims {
		ref := lock.Ref{Tenant: e.Tenant, Name: c.Name}
		if v.asks.byLock[ref] == nil {
			v.asks.byLock[ref] = map[lock.ID]struct{}{}
		}
		v.asks.byLock[ref][e.ID] = struct{}{}
	}
	return true
}

// forgetAsk is for an entry that holds or is gone.
func (v *View) forgetAsk(e *lock.Entry) {
	v.asking.drop(e.ID)
	if _, known := v.asks.of[e.ID]; !known {
		return
	}
	delete(v.asks.of, e.ID)
	v.accounts.of(e.Tenant).asks--
	for _, c := range e.Claims {
		ref := lock.Ref{Tenant: e.Tenant, Name: c.Name}
		if delete(v.asks.byLock[ref], e.ID); len(v.asks.byLock[ref]) == 0 {
			delete(v.asks.byLock, ref)
		}
	}
}

// relistAsks is for a table that was built anew: of an entry that asked when it joined and
// again later the first counts.
func (v *View) relistAsks(notices []*lock.Notice) {
	v.asks = newAsks()
	for e, holds := range v.table.Entries() {
		if holds {
			v.asking.drop(e.ID)
		}
		if ask, ok := e.Asks(); ok && !holds {
			v.keepAsk(e, ask)
		}
	}
	for _, n := range notices {
		ask, ok := n.Ask()
		if e, holds := v.table.Entry(n.Of); ok && e != nil && !holds {
			v.keepAsk(e, ask)
		}
	}
}

// Asks reports whether the entry waits and asks those who hold to finish.
func (v *View) Asks(id lock.ID) bool {
	v.mu.RLock()
	defer v.mu.RUnlock()
	_, ok := v.asks.of[id]
	return ok
}

// AskedOf returns what those ask of an entry that holds who wait for one of its locks; nil
// if nobody does. That e itself waits is what a late view shows. It costs as much as there
// are such, of which [View.LetAsk] bounds how many there are.
func (v *View) AskedOf(e *lock.Entry) *Asked {
	v.mu.RLock()
	defer v.mu.RUnlock()
	var asked *Asked
	var first *lock.Entry
	seen := map[lock.ID]struct{}{}
	for _, c := range e.Claims {
		for id := range v.asks.byLock[lock.Ref{Tenant: e.Tenant, Name: c.Name}] {
			m := v.table.Member(id)
			if _, known := seen[id]; known || id == e.ID || m == nil || !waitsFor(m, c.Name) {
				continue
			}
			seen[id] = struct{}{}
			ask := v.asks.of[id]
			if asked == nil {
				asked, first = &Asked{Since: ask.Since, Wished: ask.Wished()}, m.Entry()
			}
			asked.Waiting++
			if ask.Wished().Before(asked.Wished) {
				asked.Wished = ask.Wished()
			}
			if d := ask.Since.Compare(asked.Since); d < 0 || d == 0 && m.Entry().Number < first.Number {
				asked.Since, first = ask.Since, m.Entry()
			}
		}
	}
	if asked != nil {
		asked.By = first.Holder
	}
	return asked
}

// waitsFor reports whether an entry is not in front in one of its queues.
func waitsFor(m *lock.Member, name string) bool {
	slots := m.Slots()
	for i := range slots {
		if slots[i].Claim().Name == name {
			return !slots[i].InFront()
		}
	}
	return false
}
