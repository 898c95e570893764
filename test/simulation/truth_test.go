package simulation

import (
	"slices"
	"sync"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store/memory"
)

// truth is what really happened in the store: worked out step by step, by brute
// force, from its history. What replicas answer is held against it.
type truth struct {
	w      *world
	steps  steps
	lives  map[lock.ID][]*life // of each id, one after the other
	queues map[string]*queue   // of each lock
	calls  map[int]*call
	writer map[lock.ID]*call // the first call that wrote the id
	told   []lock.ID         // ids whose tokens were sent

	number    uint64 // of the present write
	greatest  uint64 // number that any entry ever had
	fences    map[string]map[lock.Mode]uint64
	greatests map[string]uint64 // the same, of each lock
	writing   writings          // the store's present write; nil without a request
}

// writings are the requests of one transaction, by the entries that they are about.
type writings map[lock.ID]*writing

// writing is a request that the store carries out.
type writing struct {
	replica int
	sent    time.Duration
	heard   uint64 // what the replica knew when it asked
	before  uint64 // the store's number
	trusted bool
	request *message
}

// life is an entry from when it was written to when it was removed.
type life struct {
	entry  *lock.Entry
	wanted []lock.Claim // before it left queues
	joined time.Duration
	held   time.Duration // when it came to hold, never if it did not
	ended  time.Duration // never if it is still there
	reason lock.Reason

	by *write // the call that wrote it, or nil

	heldBy, endedBy uint64 // the numbers of the writes that made it hold and end

	ghost    bool          // it came back with a copy of the store, or got another number
	undone   bool          // what came of it is not so any more, since a restore
	told     bool          // a client learnt that it holds
	called   bool          // and by its callback
	sureTill time.Duration // until when a client was promised that it cannot expire
}

// never is later than everything.
const never = time.Duration(1<<63 - 1)

// there reports whether the entry was there at an instant, after what happened in it.
func (l *life) there(at time.Duration) bool { return l.joined <= at && at < l.ended }

// queue is what a lock's queue was, from one change to the next.
type queue struct {
	states []state
}

type state struct {
	from    time.Duration
	entries []*lock.Entry
}

func newTruth(w *world) *truth {
	return &truth{
		w: w, lives: map[lock.ID][]*life{}, queues: map[string]*queue{}, calls: map[int]*call{},
		writer: map[lock.ID]*call{}, fences: map[string]map[lock.Mode]uint64{},
		greatests: map[string]uint64{},
	}
}

// steps are those of the history that were not looked at yet. Leases end in
// goroutines of their own.
type steps struct {
	mu  sync.Mutex
	all []memory.Run
}

// add takes a step of the store's history.
func (s *steps) add(r memory.Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, r)
}

func (s *steps) take() []memory.Run {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.all
	s.all = nil
	return taken
}

// catchUp takes over what has happened in the store.
func (t *truth) catchUp() {
	for _, r := range t.steps.take() {
		t.w.explorer.happened(r)
		at := r.At.Sub(t.w.began)
		t.number = r.Number
		t.w.judge.happened(r)
		for _, c := range r.Changes {
			switch {
			case c.Joined != nil:
				t.join(c.Joined, at)
			case c.Narrowed != nil:
				t.narrow(c.Narrowed, at)
			default:
				t.leave(c.Left, c.Reason, at)
			}
		}
	}
}

func (t *truth) join(e *lock.Entry, now time.Duration) {
	if l := t.last(e.ID); l != nil && l.ended == never {
		t.w.problem("%s was written twice", e.ID)
	}
	t.checkNumber(e)
	t.w.operator.checkAdmitted(e)
	l := &life{entry: e, wanted: e.Claims, joined: now, held: never, ended: never}
	t.lives[e.ID] = append(t.lives[e.ID], l)
	t.checkLate(l)
	t.attribute(l)
	t.enqueue(e, now)
	t.promote(e.Claims, now)
}

func (t *truth) enqueue(e *lock.Entry, now time.Duration) {
	for _, c := range e.Claims {
		q := t.queues[c.Name]
		if q == nil {
			q = &queue{states: []state{{}}}
			t.queues[c.Name] = q
		}
		q.states = append(q.states, state{now, append(slices.Clone(q.now()), e)})
	}
}

func (t *truth) leave(id lock.ID, why lock.Reason, now time.Duration) {
	l := t.last(id)
	l.ended, l.endedBy, l.reason = now, t.number, why
	if why == lock.Expired {
		t.w.note("expired", id)
	}
	for _, c := range l.entry.Claims {
		q := t.queues[c.Name]
		rest := slices.DeleteFunc(slices.Clone(q.now()), func(e *lock.Entry) bool { return e.ID == id })
		q.states = append(q.states, state{now, rest})
	}
	t.promote(l.entry.Claims, now)
	t.checkEnd(l)
	t.checkAttended(l)
	t.checkKept(l)
	t.checkTakenBack(l)
	t.checkSuperseded(l)
}

// narrow has a choosing entry leave queues. In those that it keeps it is in the front.
func (t *truth) narrow(e *lock.Entry, now time.Duration) {
	l := t.last(e.ID)
	before := l.entry
	switch {
	case l.ended != never || !before.Choosing() || before.Number != e.Number:
		t.w.problem("%s at %d left queues, and was not choosing", e.ID, e.Number)
		return
	case len(e.Claims) != before.Any:
		t.w.problem("%s at %d keeps %v, and wants %d", e.ID, e.Number, e.Claims, before.Any)
	}
	l.entry = e
	for _, c := range before.Claims {
		q := t.queues[c.Name]
		rest := slices.Clone(q.now())
		at := lock.Place(rest, e.ID)
		if slices.Contains(e.Claims, c) {
			if rest[at] = e; !inFront(rest, e.ID, c) {
				t.w.problem("%s at %d keeps %s, where others are before it", e.ID, e.Number, c.Name)
			}
		} else {
			rest = slices.Delete(rest, at, at+1)
		}
		q.states = append(q.states, state{now, rest})
	}
	t.promote(before.Claims, now)
}

// promote records the holders after a change in the queues of the claims.
func (t *truth) promote(claims []lock.Claim, now time.Duration) {
	for _, c := range claims {
		for _, e := range t.queues[c.Name].now() {
			if l := t.last(e.ID); l.held == never && t.holds(e) {
				l.held, l.heldBy = now, t.number
				t.checkFence(l)
			}
		}
	}
}

// holds reports whether the entry is in the front of all its queues, and not choosing.
func (t *truth) holds(e *lock.Entry) bool {
	return !e.Choosing() && !slices.ContainsFunc(
		e.Claims, func(c lock.Claim) bool { return !inFront(t.queues[c.Name].now(), e.ID, c) },
	)
}

// inFront reports whether an entry holds in one queue, by the plain rules: up to it are only
// entries that can hold together, and at none of them do the permits exceed its own limit.
func inFront(queue []*lock.Entry, id lock.ID, mine lock.Claim) bool {
	permits, claims := 0, lock.ClaimsOn(queue[:lock.Place(queue, id)], mine.Name)
	for i, c := range append(claims, mine) {
		permits += c.Permits
		if i > 0 && !together(claims[0], c) || c.Mode == lock.Semaphore && permits > c.Limit {
			return false
		}
	}
	return true
}

// together reports whether two may hold one lock at one time.
func together(a, b lock.Claim) bool { return a.Mode == b.Mode && a.Mode != lock.Exclusive }

func (q *queue) now() []*lock.Entry { return q.states[len(q.states)-1].entries }

// between yields the states in which the queue was at any instant of the time.
func (q *queue) between(from, to time.Duration) []state {
	var some []state
	for i, s := range q.states {
		over := i+1 < len(q.states) && q.states[i+1].from < from
		if !over && s.from <= to {
			some = append(some, s)
		}
	}
	return some
}

func (t *truth) last(id lock.ID) *life {
	lives := t.lives[id]
	if len(lives) == 0 {
		return nil
	}
	return lives[len(lives)-1]
}

// at returns what the entry with the number is or was, the last time if it came back.
func (t *truth) at(id lock.ID, number uint64) *life {
	for _, l := range slices.Backward(t.lives[id]) {
		if l.entry.Number == number {
			return l
		}
	}
	return nil
}

// busy reports whether at any instant of the time an entry with the claims, other
// than that with the id, would not have held.
func (t *truth) busy(id lock.ID, claims []lock.Claim, from, to time.Duration) bool {
	return t.any(claims, from, to, func(c lock.Claim, others []*lock.Entry) bool {
		mine := &lock.Entry{ID: "mine", Claims: []lock.Claim{c}}
		return !inFront(append(slices.Clone(before(others, id)), mine), mine.ID, c)
	})
}

// full reports whether at any instant of the time fewer than some of the claims would have held,
// without locks that were ever closed.
func (t *truth) full(
	id lock.ID, claims []lock.Claim, some int, from, to time.Duration,
) bool {
	for _, at := range t.changes(from, to) {
		free, q := 0, t.queuesAt(at)
		for _, c := range claims {
			mine := &lock.Entry{ID: "mine", Claims: []lock.Claim{c}}
			others := append(slices.Clone(before(q.of[c.Name], id)), mine)
			if inFront(others, mine.ID, c) && !t.w.operator.everClosed(c) {
				free++
			}
		}
		if free < some {
			return true
		}
	}
	return false
}

// clashes reports whether at any instant of the time another entry disagreed.
func (t *truth) clashes(id lock.ID, claims []lock.Claim, from, to time.Duration) bool {
	return t.any(claims, from, to, func(c lock.Claim, others []*lock.Entry) bool {
		return slices.ContainsFunc(
			lock.ClaimsOn(before(others, id), c.Name), func(o lock.Claim) bool { return !o.Agrees(c) },
		)
	})
}

func (t *truth) any(
	claims []lock.Claim,
	from, to time.Duration,
	is func(lock.Claim, []*lock.Entry) bool,
) bool {
	for _, c := range claims {
		q := t.queues[c.Name]
		if q == nil {
			continue
		}
		for _, s := range q.between(from, to) {
			if is(c, s.entries) {
				return true
			}
		}
	}
	return false
}

// before returns the entries that stand before the one with the id, all if it is
// not among them.
func before(entries []*lock.Entry, id lock.ID) []*lock.Entry {
	if place := lock.Place(entries, id); place >= 0 {
		return entries[:place]
	}
	return entries
}

// wroteFor notes which call has the entry written.
func (t *truth) wroteFor(id lock.ID, caller int) {
	c := t.calls[caller]
	if c == nil {
		return
	}
	c.id, c.asked.id = id, id
	if t.writer[id] == nil {
		t.writer[id] = c
	}
}
