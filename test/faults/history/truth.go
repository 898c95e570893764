package history

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// Change is one event in the store's own history of entries.
type Change struct {
	Lock, Entry string
	Revision    int64
	Joined      bool          // else it left
	Rewritten   bool          // the entry had been written before
	Reason      string        // why it left, if the store has a reason
	Claim                     // that it joined with
	At          time.Duration // when it was observed, which is after it happened
}

// Life is one entry from its one write to its removal.
type Life struct {
	Lock, Entry string
	Joined      int64 // revision: its place and fence
	Left        int64 // revision; 0 if it is still there
	LeftAt      time.Duration
	Reason      string
	Claim
}

// Claim is what an entry asks of a lock.
type Claim struct {
	Mode           string
	Limit, Permits int // of a semaphore; 0 permits are 1
}

func (l Life) String() string {
	s := fmt.Sprintf("lock %s entry %s (joined at revision %d", l.Lock, l.Entry, l.Joined)
	if l.Left != 0 {
		s += fmt.Sprintf(", left at %d, seen %v, reason %q", l.Left, l.LeftAt, l.Reason)
	}
	return s + ")"
}

// The ways in which the store's history, or an answer held against it, is wrong.
var (
	ErrRewritten    = errors.New("an entry was written twice")
	ErrSharedTurn   = errors.New("two entries of a lock have one revision")
	ErrNeverHead    = errors.New("granted, though it was never the first in its queue")
	ErrNoEntry      = errors.New("answered for an entry that the store never had")
	ErrGrantedTwice = errors.New("one entry was granted with two fences")
	ErrWrongFence   = errors.New("the fence is not the entry's revision")
	ErrAfterEnd     = errors.New("answered 200 though the entry's removal was already known")
	ErrTooSoon      = errors.New("the entry ended before its lease, and nobody released it")
	ErrOverlap      = errors.New("two clients could believe at one moment that they hold the lock")
	ErrOrphan       = errors.New("the entry was never removed")
)

// Truth is the store's history of all locks.
type Truth struct {
	lives  map[[2]string][]*Life // by lock and entry; more than one if it came back
	queues map[string][]*Life    // by lock, in the order of the places
}

// NewTruth puts changes, given in the store's order, together to lives.
func NewTruth(changes []Change) (*Truth, error) {
	t := &Truth{lives: map[[2]string][]*Life{}, queues: map[string][]*Life{}}
	var errs []error
	for _, c := range changes {
		errs = append(errs, t.add(c))
	}
	return t, errors.Join(errs...)
}

func (t *Truth) add(c Change) error {
	id := [2]string{c.Lock, c.Entry}
	lives := t.lives[id]
	present := len(lives) > 0 && lives[len(lives)-1].Left == 0
	switch {
	case !c.Joined && !present:
		return fmt.Errorf(
			"lock %s entry %s left at revision %d: %w", c.Lock, c.Entry, c.Revision, ErrNoEntry,
		)
	case !c.Joined:
		l := lives[len(lives)-1]
		l.Left, l.LeftAt, l.Reason = c.Revision, c.At, c.Reason
		return nil
	case present || c.Rewritten:
		return fmt.Errorf(
			"lock %s entry %s at revision %d: %w", c.Lock, c.Entry, c.Revision, ErrRewritten,
		)
	}
	l := &Life{Lock: c.Lock, Entry: c.Entry, Joined: c.Revision, Claim: c.Claim}
	queue := t.queues[c.Lock]
	t.lives[id], t.queues[c.Lock] = append(lives, l), append(queue, l)
	if len(queue) > 0 && queue[len(queue)-1].Joined >= c.Revision {
		return fmt.Errorf("%v and %v: %w", queue[len(queue)-1], l, ErrSharedTurn)
	}
	return nil
}

// Entries returns the lives of a lock's entries in the order of their places.
func (t *Truth) Entries(lock string) []Life {
	var out []Life
	for _, l := range t.queues[lock] {
		out = append(out, *l)
	}
	return out
}

// Check compares the answers to clients with the store's history. Operations of locks that the
// history does not cover are errors.
func (t *Truth) Check(ops []Op) error {
	var errs []error
	for _, one := range byLock(ops) {
		heads := t.heads(one[0].Lock)
		for entry, told := range byEntry(one) {
			errs = append(errs, t.checkEntry(t.lives[[2]string{one[0].Lock, entry}], heads, told))
		}
		errs = append(errs, overlaps(one))
	}
	return errors.Join(errs...)
}

// Orphans fails for every entry that is still there.
func (t *Truth) Orphans() error {
	var errs []error
	for _, queue := range t.queues {
		for _, l := range queue {
			if l.Left == 0 {
				errs = append(errs, fmt.Errorf("%v: %w", l, ErrOrphan))
			}
		}
	}
	return errors.Join(errs...)
}

// Held reports whether an entry of the lock held at some revision, whatever the
// modes: whether, just before it left, all who were still there before it
// tolerated it and each other.
func (t *Truth) Held(lock, entry string, revision int64) bool {
	var before []*Life
	for _, l := range t.queues[lock] {
		if l.Entry != entry || l.Joined != revision {
			before = append(before, l)
			continue
		}
		here := []*Life{}
		for _, b := range before {
			if b.Left == 0 || l.Left != 0 && b.Left > l.Left {
				here = append(here, b)
			}
		}
		return together(append(here, l))
	}
	return false
}

// together reports whether these may hold beside each other.
func together(lives []*Life) bool {
	taken := max(1, lives[0].Permits)
	for _, l := range lives[1:] {
		taken += max(1, l.Permits)
		if l.Mode != lives[0].Mode || l.Mode != "shared" && l.Mode != "semaphore" ||
			l.Mode == "semaphore" && taken > l.Limit {
			return false
		}
	}
	return true
}

// heads returns the lives of a lock's entries that were first in the queue at
// some revision.
func (t *Truth) heads(lock string) map[*Life]bool {
	heads := map[*Life]bool{}
	var free int64 // when all before had left
	for _, l := range t.queues[lock] {
		left := l.Left
		if left == 0 {
			left = math.MaxInt64
		}
		if left > free {
			heads[l] = true
		}
		free = max(free, left)
	}
	return heads
}

func byEntry(ops []Op) map[string][]Op {
	groups := map[string][]Op{}
	for _, op := range ops {
		if op.Entry != "" {
			groups[op.Entry] = append(groups[op.Entry], op)
		}
	}
	return groups
}

// checkEntry compares the answers about one entry with its life. An entry may come back after its
// end (a write whose answer was lost is repeated, a duplicate of a request is late), but it is
// granted at most once.
func (t *Truth) checkEntry(lives []*Life, heads map[*Life]bool, told []Op) error {
	if len(lives) == 0 {
		return fmt.Errorf("%v: %w", told[0], ErrNoEntry)
	}
	l, err := lifeOf(lives, told)
	errs := []error{err}
	for _, op := range told {
		if err := l.contradicts(op, heads[l]); err != nil {
			errs = append(errs, fmt.Errorf("%v; %v: %w", l, op, err))
		}
	}
	if end, granted := promise(told); granted && l.Left != 0 && l.LeftAt < end &&
		l.LeftAt < giveUp(told) {
		errs = append(errs, fmt.Errorf("%v, but was promised until %v: %w", l, end, ErrTooSoon))
	}
	return errors.Join(errs...)
}

// lifeOf returns the life of an entry that the first grant was about: the newest
// one if there is no grant, or none that fits.
func lifeOf(lives []*Life, told []Op) (*Life, error) {
	var grant *Op
	var err error
	for i, op := range told {
		switch {
		case op.Kind != Acquire || op.Outcome != OK:
		case grant == nil:
			grant = &told[i]
		case op.Fence != grant.Fence:
			err = fmt.Errorf("%v; %v: %w", grant, op, ErrGrantedTwice)
		}
	}
	for _, l := range lives {
		if grant != nil && l.Joined == grant.Fence {
			return l, err
		}
	}
	return lives[len(lives)-1], err
}

// contradicts returns how an answer disagrees with the entry's life, or nil.
func (l *Life) contradicts(op Op, head bool) error {
	switch {
	case op.Outcome != OK:
		return nil
	case op.Kind == Acquire && op.Fence != l.Joined:
		return ErrWrongFence
	case op.Kind == Acquire && !head:
		return ErrNeverHead
	case op.Kind == Renew && l.Left != 0 && op.Call >= l.LeftAt:
		return ErrAfterEnd
	}
	return nil
}

// promise returns until when the acknowledged operations of one entry let its
// client count on it: a TTL from the call of the last of them, or for longer if
// an answer said so.
func promise(told []Op) (end time.Duration, granted bool) {
	for _, op := range told {
		if op.Outcome != OK || op.Kind != Acquire && op.Kind != Renew {
			continue
		}
		granted = granted || op.Kind == Acquire
		end = max(end, op.Call+op.TTL, op.Until)
	}
	return end, granted
}

// giveUp returns when the client, or the test, first tried to end the entry.
func giveUp(told []Op) time.Duration {
	at := time.Duration(math.MaxInt64)
	for _, op := range told {
		if op.Kind == Release || op.Kind == Remove {
			at = min(at, op.Call)
		}
	}
	return at
}

// hold is a span in which a client that keeps to the rules works under the lock.
type hold struct {
	from, to time.Duration
	entry    string
}

// overlaps looks for two holds of one lock at one moment.
func overlaps(ops []Op) error {
	var holds []hold
	for entry, told := range byEntry(ops) {
		if h, ok := holdOf(entry, told); ok {
			holds = append(holds, h)
		}
	}
	slices.SortFunc(holds, func(a, b hold) int { return cmp.Compare(a.from, b.from) })
	var errs []error
	for i := 1; i < len(holds); i++ {
		if a, b := holds[i-1], holds[i]; b.from < a.to {
			errs = append(errs, fmt.Errorf("lock %s: entry %s until %v, entry %s from %v: %w",
				ops[0].Lock, a.entry, a.to, b.entry, b.from, ErrOverlap))
		}
	}
	return errors.Join(errs...)
}

// holdOf is empty for a grant that came so late that its client could not count
// on it without renewing, and did not renew.
func holdOf(entry string, told []Op) (hold, bool) {
	h := hold{entry: entry, from: time.Duration(math.MaxInt64)}
	for _, op := range told {
		if op.Kind == Acquire && op.Outcome == OK {
			h.from = min(h.from, op.Return)
		}
	}
	end, granted := promise(told)
	h.to = min(end, giveUp(told))
	return h, granted && h.from < h.to
}
