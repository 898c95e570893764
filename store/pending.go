package store

import (
	"container/list"
	"time"

	"github.com/fencepost/fencepost/lock"
)

// Backlog bounds the writes that wait to be sent, in number and in bytes.
type Backlog struct {
	PerKey, PerTenant, InAll Size

	// Budget is how long a write may have to wait, as far as that can be told from
	// the writes before it, until it is refused.
	Budget time.Duration
}

// Size of some writes.
type Size struct{ Writes, Bytes int }

func (s *Size) add(w, bytes int) { s.Writes, s.Bytes = s.Writes+w, s.Bytes+bytes }

// within reports whether one more of the given bytes stays in the bound.
func (s Size) within(bound Size, bytes int) bool {
	return s.Writes < bound.Writes && s.Bytes+bytes <= bound.Bytes
}

func (b Backlog) orDefault() Backlog {
	or := func(s *Size, writes, bytes int) {
		if *s == (Size{}) {
			*s = Size{writes, bytes}
		}
	}
	or(&b.PerKey, 1<<14, 16<<20)
	or(&b.PerTenant, 1<<15, 32<<20)
	or(&b.InAll, 1<<16, 128<<20)
	if b.Budget == 0 {
		b.Budget = 2 * time.Second
	}
	return b
}

// alwaysAdmitted is how many batches may be before a write whatever their pace was. A
// store that stood still for a moment so refuses nobody for it.
const alwaysAdmitted = 128

// overloaded says that more writes are pending than can be written in time.
func overloaded(wait time.Duration) *lock.Error {
	return &lock.Error{
		Code: lock.Overloaded, Detail: "more requests are waiting to be written than can be in time",
		RetryAfter: min(max(retryAfter, wait), 10*time.Second),
	}
}

// slow is how long a batch may take before more of them at once are of no use: the store
// is busy with those that it has, and the time of all would run out together.
const slow = 250 * time.Millisecond

// fewest batches are under way however slow the store is.
const fewest = 3

// pace is how fast batches are written.
type pace struct {
	between time.Duration // from one batch to the next under load
	window  float64       // how many batches may be under way, as far as the store lets us
}

// saw notes a batch that took so long beside others. How soon one failed says nothing of
// how soon the store writes.
func (p *pace) saw(took time.Duration, parallel int, worked bool, most int) {
	if !worked && took < slow {
		return
	}
	sample := took / time.Duration(parallel)
	if p.between == 0 {
		p.between = sample
	}
	p.between += (sample - p.between) / 16
	if took < slow {
		p.window = min(p.window+1, float64(most))
	} else {
		p.window = max(p.window*0.9, min(fewest, float64(most)))
	}
}

// pendingState is what pending knows of a write.
type pendingState[P, O any] struct {
	links  []link[P, O]
	behind int           // in how many chains others are before it
	ready  *list.Element // in pending.ready
	held   *list.Element // in pending.held, while nothing urgent takes it along
	due    time.Time
	in     bool // pending
}

// link is a write's place in the chain of one key.
type link[P, O any] struct {
	key        string
	write      *Write[P, O]
	chain      *chain[P, O]
	prev, next *link[P, O]
}

// chain is the writes that have a key in common, in the order of their arrival.
type chain[P, O any] struct {
	first, last *link[P, O]
	size        Size
}

// pending is the writes that are not sent yet. Its owner locks it.
type pending[P, O any] struct {
	limits  Limits
	chains  map[string]*chain[P, O]
	tenants map[string]*Size
	all     Size
	ready   *list.List // of writes that are the first of all their chains, in order
	ops     int        // of these
	bytes   int
	held    *list.List // of patient writes, in order
	urgent  int        // ready and not held back
	blocked int        // not ready
	armed   bool       // somebody looks after held
}

func newPending[P, O any](limits Limits) *pending[P, O] {
	return &pending[P, O]{
		limits: limits, chains: map[string]*chain[P, O]{}, tenants: map[string]*Size{}, ready: list.New(), held: list.New(),
	}
}

// refuse returns an error for a write that could not be written in time.
func (p *pending[P, O]) refuse(w *Write[P, O], pace *pace) error {
	if w.Must {
		return nil
	}
	b := p.limits.Pending
	fits := p.all.within(b.InAll, w.Bytes)
	if t := p.tenants[w.Tenant]; t != nil {
		fits = fits && t.within(b.PerTenant, w.Bytes)
	}
	before := max(p.ops/p.limits.Ops, p.bytes/p.limits.Bytes)
	for _, key := range w.Keys {
		if c := p.chains[key]; c != nil {
			fits = fits && c.size.within(b.PerKey, w.Bytes)
			before = max(before, c.size.Writes)
		}
	}
	wait := time.Duration(before) * pace.between
	if fits && (before < alwaysAdmitted || wait <= b.Budget) {
		return nil
	}
	return overloaded(wait.Round(time.Second))
}

// shed removes the newest of those that wait for a key of the batch if they cannot be
// written in time at the pace that is known by now. It leaves those some room that were
// just admitted.
func (p *pending[P, O]) shed(batch []*Write[P, O], pace *pace) (late []*Write[P, O], err error) {
	limit := p.limits.Pending.Budget * 3 / 2
	for _, sent := range batch {
		late = append(late, p.shedBehind(sent, pace, limit)...)
	}
	return late, overloaded(limit)
}

func (p *pending[P, O]) shedBehind(sent *Write[P, O], pace *pace, limit time.Duration) (late []*Write[P, O]) {
	for _, key := range sent.Keys {
		c := p.chains[key]
		for c != nil && c.last != nil && c.size.Writes > alwaysAdmitted && time.Duration(c.size.Writes)*pace.between > limit && !c.last.write.Must {
			w := c.last.write
			p.withdraw(w)
			late = append(late, w)
		}
	}
	return late
}

// add puts a write at the end of the chains of its keys.
func (p *pending[P, O]) add(w *Write[P, O], now time.Time) {
	s := &w.pending
	s.in = true
	s.links = make([]link[P, O], 0, len(w.Keys)) // never grows: links point at each other
	for _, key := range w.Keys {
		p.append(w, key)
	}
	t := p.tenants[w.Tenant]
	if t == nil {
		t = &Size{}
		p.tenants[w.Tenant] = t
	}
	t.add(1, w.Bytes)
	p.all.add(1, w.Bytes)
	if w.Patient {
		s.due = now.Add(p.limits.Linger)
		s.held = p.held.PushBack(w)
	}
	if s.behind == 0 {
		p.makeReady(w)
	} else {
		p.blocked++
	}
}

func (p *pending[P, O]) append(w *Write[P, O], key string) {
	c := p.chains[key]
	if c == nil {
		c = &chain[P, O]{}
		p.chains[key] = c
	}
	if c.last != nil && c.last.write == w {
		return // it names the key twice
	}
	s := &w.pending
	s.links = append(s.links, link[P, O]{key: key, write: w, chain: c, prev: c.last})
	l := &s.links[len(s.links)-1]
	if c.last == nil {
		c.first = l
	} else {
		c.last.next = l
		s.behind++
	}
	c.last = l
	c.size.add(1, w.Bytes)
}

func (p *pending[P, O]) makeReady(w *Write[P, O]) {
	w.pending.ready = p.ready.PushBack(w)
	p.ops, p.bytes = p.ops+w.Ops, p.bytes+w.Bytes
	if w.pending.held == nil {
		p.urgent++
	}
}

// remove takes a write out of everything, and returns the writes that nobody is before
// any more.
func (p *pending[P, O]) remove(w *Write[P, O]) (freed []*Write[P, O]) {
	s := &w.pending
	switch {
	case s.ready == nil:
		p.blocked--
	case s.held == nil:
		p.urgent--
	}
	if s.ready != nil {
		p.ready.Remove(s.ready)
		p.ops, p.bytes = p.ops-w.Ops, p.bytes-w.Bytes
	}
	if s.held != nil {
		p.held.Remove(s.held)
	}
	if t := p.tenants[w.Tenant]; t.Writes == 1 {
		delete(p.tenants, w.Tenant)
	} else {
		t.add(-1, -w.Bytes)
	}
	p.all.add(-1, -w.Bytes)
	for i := range s.links {
		if next := p.unlink(&s.links[i]); next != nil {
			freed = append(freed, next)
		}
	}
	w.pending = pendingState[P, O]{}
	return freed
}

// unlink takes a write out of one chain. It returns the next one if that is now ready.
func (p *pending[P, O]) unlink(l *link[P, O]) *Write[P, O] {
	c := l.chain
	c.size.add(-1, -l.write.Bytes)
	if l.next != nil {
		l.next.prev = l.prev
	} else {
		c.last = l.prev
	}
	if l.prev != nil {
		l.prev.next = l.next
		return nil
	}
	if c.first = l.next; c.first == nil {
		delete(p.chains, l.key)
		return nil
	}
	next := c.first.write
	if next.pending.behind--; next.pending.behind > 0 {
		return nil
	}
	return next
}

func (p *pending[P, O]) release(freed []*Write[P, O]) {
	for _, w := range freed {
		p.blocked--
		p.makeReady(w)
	}
}

// take removes the writes of the next batch, in the order in which they became ready.
// What becomes ready by that has a key in common with one of them, so it is for the
// batch after it.
func (p *pending[P, O]) take() (batch []*Write[P, O]) {
	var freed []*Write[P, O]
	ops, bytes := 0, 0
	for e := p.ready.Front(); e != nil; e = p.ready.Front() {
		w := e.Value.(*Write[P, O])
		ops, bytes = ops+w.Ops, bytes+w.Bytes
		if len(batch) > 0 && (ops > p.limits.Ops || bytes > p.limits.Bytes) {
			break
		}
		freed = append(freed, p.remove(w)...)
		batch = append(batch, w)
	}
	p.release(freed)
	return batch
}

// withdraw removes a write, and reports whether it was pending.
func (p *pending[P, O]) withdraw(w *Write[P, O]) bool {
	if !w.pending.in {
		return false
	}
	p.release(p.remove(w))
	return true
}

// drain removes all writes.
func (p *pending[P, O]) drain() (all []*Write[P, O]) {
	for p.ready.Len() > 0 {
		all = append(all, p.take()...)
	}
	return all
}

// nextDue returns when the first of the writes that are held back must go.
func (p *pending[P, O]) nextDue() (due time.Time, any bool) {
	if e := p.held.Front(); e != nil {
		return e.Value.(*Write[P, O]).pending.due, true
	}
	return time.Time{}, false
}

// hurry makes urgent what was held back until the time.
func (p *pending[P, O]) hurry(until time.Time) {
	for e := p.held.Front(); e != nil; e = p.held.Front() {
		s := &e.Value.(*Write[P, O]).pending
		if s.due.After(until) {
			return
		}
		p.held.Remove(e)
		if s.held = nil; s.ready != nil {
			p.urgent++
		}
	}
}
