package view

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// closures are those in force, by the view. Each replica derives the same from the feed: a closure
// begins at the number of its entry, and ends at that of the entry's removal.
type closures struct {
	byID    map[lock.ID]*closure
	rolls   map[lock.ID]*lock.Entry // entries of rolls, by their own ids
	changed chan struct{}           // holds a value after something changed
}

// closure is a closure that stands.
type closure struct {
	*lock.Closure
	seen     time.Time // when this replica learned of it
	recorded bool      // its roll is in the store
}

// Closing is a closure as the view knows it.
type Closing struct {
	Entry    *lock.Entry
	Tenant   string
	Roll     *lock.Roll // nil if it is not known
	Recorded bool       // the roll is in the store
	Seen     time.Time  // when this replica learned of the closure
}

func newClosures() closures {
	return closures{byID: map[lock.ID]*closure{}, rolls: map[lock.ID]*lock.Entry{}, changed: make(chan struct{}, 1)}
}

func (c *closures) wake() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// closeFirst begins the closures of the write whose changes come first: whatever else it
// did came after them.
func (v *View) closeFirst(changes []store.Change, now time.Time) {
	for _, c := range changes {
		if c.Number != changes[0].Number {
			return
		}
		if c.Joined != nil && c.Joined.Closing != nil {
			v.close(c.Joined, now)
		}
	}
}

// close begins a closure. Who holds now goes on; the table says who that is.
func (v *View) close(e *lock.Entry, now time.Time) {
	if v.closures.byID[e.ID] != nil {
		return
	}
	s := &closure{Closure: lock.NewClosure(e, v.table.Call(e, v.contended(e))), seen: now}
	v.table.Close(s.Closure)
	v.closures.byID[e.ID] = s
	v.touchClosed(s)
	v.closures.wake()
}

// contended yields the locks of the closure's tenant for which somebody waits.
func (v *View) contended(e *lock.Entry) iter.Seq[string] {
	tenant := lock.NewClosure(e, nil).Tenant()
	return func(yield func(string) bool) {
		v.accounts.after(tenant, contended, e.Closing.Locks.Prefix(), "", yield)
	}
}

// rolled notes that a roll is in the store. Who listed after the closure began learns by it
// who holds.
func (v *View) rolled(e *lock.Entry, now time.Time) {
	v.closures.rolls[e.ID] = e
	v.closures.wake()
	s := v.closures.byID[e.Roll.Of]
	if s == nil {
		return
	}
	s.recorded = true
	found := v.table.Settle(s.Closure, e.Roll)
	v.countGrants(s, found, now)
	for _, g := range found { // they held before, which was told then
		v.since[g.ID], v.waited[g.ID] = now, v.WaitedFor(g)
		if v.Refusal() != nil {
			v.doubtful[g.ID] = struct{}{}
		}
		v.forgetAsk(g)
		v.notify(g.ID)
	}
	v.detect(nil, now)
}

// lifted notes that the entry of a closure, or of a roll, left; ok is false if it is neither.
func (v *View) lifted(id lock.ID, now time.Time) (ok bool) {
	if _, ok = v.closures.rolls[id]; ok {
		delete(v.closures.rolls, id)
		return true
	}
	s := v.closures.byID[id]
	if s == nil {
		return false
	}
	delete(v.closures.byID, id)
	v.touchClosed(s)
	granted := v.table.Open(s.Closure)
	v.countGrants(s, granted, now)
	v.tellGrants(granted, s.Entry, now)
	v.detect(nil, now)
	v.closures.wake()
	return true
}

// countGrants keeps the tenant's account right when entries come to hold because of a closure.
func (v *View) countGrants(s *closure, granted []*lock.Entry, now time.Time) {
	if len(granted) == 0 {
		return
	}
	a := v.accounts.of(s.Tenant())
	a.granted(granted)
	v.pulse.level(a, now)
	v.reindex(a, now, granted...)
}

// touchClosed has operators' lists show locks anew that were closed or opened.
func (v *View) touchClosed(*closure) {
	if v.touched.wanted {
		v.touched.any()
	}
}

// relistClosures has a new table know the closures of a list. What an earlier table knew of who
// held is so still; of the others a roll tells, or will.
func (v *View) relistClosures(entries []*lock.Entry, now time.Time) {
	before := v.closures.byID
	v.closures.byID, v.closures.rolls = map[lock.ID]*closure{}, map[lock.ID]*lock.Entry{}
	for _, e := range entries {
		if e.Roll != nil {
			v.closures.rolls[e.ID] = e
		}
	}
	for _, c := range lock.ClosuresIn(entries) {
		s := &closure{Closure: c, seen: now, recorded: c.Settled()}
		if known := before[c.Entry.ID]; known != nil {
			if s.seen = known.seen; !c.Settled() {
				s.Closure = lock.NewClosure(c.Entry, known.Roll())
			}
		}
		v.table.Close(s.Closure)
		v.closures.byID[c.Entry.ID] = s
	}
	v.closures.wake()
}

// ClosuresChanged returns a channel that is sent to when a closure or a roll came or went.
func (v *View) ClosuresChanged() <-chan struct{} { return v.closures.changed }

// Closures returns the closures that stand, in the order in which they began. tenant "" is all.
func (v *View) Closures(tenant string) []Closing {
	v.mu.RLock()
	defer v.mu.RUnlock()
	all := []Closing{}
	for _, s := range v.closures.byID {
		if tenant == "" || tenant == s.Tenant() {
			all = append(all, Closing{s.Entry, s.Tenant(), s.Roll(), s.recorded, s.seen})
		}
	}
	slices.SortFunc(all, func(a, b Closing) int { return compareEntries(a.Entry, b.Entry) })
	return all
}

// LeftRolls returns the entries of rolls whose closures are not there, in order.
func (v *View) LeftRolls() (left []*lock.Entry) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	for _, e := range v.closures.rolls {
		if v.closures.byID[e.Roll.Of] == nil {
			left = append(left, e)
		}
	}
	slices.SortFunc(left, compareEntries)
	return left
}

// FitsRoll reports whether it could be told who held, if the locks of a closure were closed now.
func (v *View) FitsRoll(e *lock.Entry) bool {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.table.Call(e, v.contended(e)) != nil
}

// ClosedFor returns the closure that keeps whoever asks for the claims now from holding, nil
// if there is none.
func (v *View) ClosedFor(tenant string, claims []lock.Claim) *lock.Closing {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return closingOf(v.table.ClosedFor(tenant, claims))
}

// Closings returns what the closures of a tenant's locks say, for who has many locks to compare
// with them: that is not done under the lock for which grants wait.
func (v *View) Closings(tenant string) []*lock.Closing {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.table.Closings(tenant)
}

func closingOf(c *lock.Closure) *lock.Closing {
	if c == nil {
		return nil
	}
	return c.Entry.Closing
}

func compareEntries(a, b *lock.Entry) int {
	return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.ID, b.ID))
}
