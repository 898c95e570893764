package batch

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

// budget is well below the time for which a request is held open.
const budget = 15 * time.Second

// MostPending is for how long a write with a time by which it is due may be pending, by
// default.
const MostPending = budget * 3 / 2

// longest is how long a write with a time by which it is due may be pending in all,
// beside a budget: what is known of the pace when it comes is not exact.
func (b Backlog) longest() time.Duration { return b.Budget * 3 / 2 }

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
		b.Budget = budget
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
		RetryAfter: min(max(time.Second, wait), 10*time.Second),
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

	// So many batches that could not be shared were written from began to latest, in a
	// burst: it goes at another pace than what was before it. They are counted, and not
	// how long each took, because a store that stands still for a moment makes all that
	// are under way take long.
	samples       int
	began, latest time.Time
}

// settled is how long a burst has to last until its pace tells something: while thousands
// arrive, the processors are busy with that. Before it nobody is refused for the pace. Of
// plenty samples the older half counts less.
const (
	settled = 2 * time.Second
	plenty  = 2048
	stale   = 2 * time.Second
)

// sample is a batch that was written.
type sample struct {
	at       time.Time
	took     time.Duration
	parallel int  // how many were under way
	worked   bool // how soon one failed says nothing of how soon the store writes
	chained  bool // there were writes that could not share it
}

// saw notes a batch.
func (p *pace) saw(s sample, most int) {
	if !s.worked && s.took < slow {
		return
	}
	each := s.took / time.Duration(s.parallel)
	p.between = smooth(p.between, each)
	if s.chained {
		p.count(s)
	}
	if s.took < slow {
		p.window = min(p.window+1, float64(most))
	} else {
		p.window = max(p.window*0.9, min(fewest, float64(most)))
	}
}

func (p *pace) count(s sample) {
	if s.at.Sub(p.latest) > stale {
		p.samples, p.began = 0, s.at.Add(-s.took)
	}
	p.samples, p.latest = p.samples+1, s.at
	if lasted := s.at.Sub(p.began); p.samples >= plenty && lasted >= 2*settled {
		p.samples, p.began = p.samples/2, s.at.Add(-lasted/2)
	}
}

func smooth(of, next time.Duration) time.Duration {
	if of == 0 {
		return next
	}
	return of + (next-of)/16
}

// chained returns how long it takes until so many writes of a key are written.
func (p *pace) chained(writes int, now time.Time) time.Duration {
	lasted := p.latest.Sub(p.began)
	if lasted < settled || now.Sub(p.latest) > stale {
		return 0
	}
	return time.Duration(writes) * (lasted / time.Duration(p.samples))
}

// pendingState is what pending knows of a write.
type pendingState[P, O any] struct {
	links  []link[P, O]
	behind int           // in how many chains others are before it
	ready  *list.Element // in its tenant's share
	held   *list.Element // in pending.held, while nothing urgent takes it along
	due    time.Time
	in     bool // pending
}

// share is what a tenant has pending.
type share struct {
	size  Size
	ready *list.List // of writes that are the first of all their chains, in order
	ops   int        // of these
	bytes int
	turn  *list.Element // in pending.turns, if any is ready
}

// link is a write's place in the chain of one key.
type link[P, O any] struct {
	key        string
	write      *Write[P, O]
	prev, next *link[P, O]
}

// chain is the writes that have a key in common, in the order of their arrival.
type chain[P, O any] struct {
	first, last *link[P, O]
	size        Size // with what is reserved
}

// pending is the writes that are not sent yet. Its owner locks it.
type pending[P, O any] struct {
	limits  Limits
	chains  map[string]*chain[P, O]
	tenants map[string]*share
	all     Size
	turns   *list.List // of the shares of which something is ready, the next one first
	ops     int        // of what is ready
	bytes   int
	held    *list.List // of patient writes, in order
	urgent  int        // ready and not held back
	blocked int        // not ready
	armed   bool       // somebody looks after held
}

func newPending[P, O any](limits Limits) *pending[P, O] {
	return &pending[P, O]{
		limits: limits, chains: map[string]*chain[P, O]{}, tenants: map[string]*share{}, turns: list.New(), held: list.New(),
	}
}

// refuse returns an error for a write that could not be written in time.
func (p *pending[P, O]) refuse(w *Write[P, O], pace *pace, now time.Time) error {
	if w.Must {
		return nil
	}
	b := p.limits.Pending
	fits := p.all.within(b.InAll, w.Bytes)
	ops, bytes := w.Ops, w.Bytes
	if t := p.tenants[w.Tenant]; t != nil {
		fits = fits && t.size.within(b.PerTenant, w.Bytes)
		ops, bytes = ops+t.ops, bytes+t.bytes
	}
	// Of each other tenant no more comes before it than of its own.
	turns := p.turns.Len() + 1
	before := max(min(p.ops, ops*turns)/p.limits.Ops, min(p.bytes, bytes*turns)/p.limits.Bytes)
	wait, budget := time.Duration(before)*pace.between, b.Budget
	for _, key := range w.Keys {
		if c := p.chains[key]; c != nil {
			fits = fits && c.size.within(b.PerKey, w.Bytes)
			before, wait = max(before, c.size.Writes), max(wait, pace.chained(c.size.Writes, now))
		}
	}
	if w.Within > 0 {
		budget = min(budget, w.Within)
	}
	if fits && (before < alwaysAdmitted || wait <= budget) {
		return nil
	}
	return overloaded(wait.Round(time.Second))
}

// count adds writes to the account of a tenant, or takes them off.
func (p *pending[P, O]) count(tenant string, writes, bytes int) *share {
	p.all.add(writes, bytes)
	t := p.tenants[tenant]
	if t == nil {
		t = &share{ready: list.New()}
		p.tenants[tenant] = t
	}
	if t.size.add(writes, bytes); t.size.Writes == 0 {
		delete(p.tenants, tenant)
	}
	return t
}

// countKey adds writes to the account of a key, or takes them off.
func (p *pending[P, O]) countKey(key string, writes, bytes int) *chain[P, O] {
	c := p.chains[key]
	if c == nil {
		c = &chain[P, O]{}
		p.chains[key] = c
	}
	if c.size.add(writes, bytes); c.size.Writes == 0 {
		delete(p.chains, key)
	}
	return c
}

// reserve counts a write that is going to be added, until its place is given back.
func (p *pending[P, O]) reserve(w *Write[P, O], writes, bytes int) {
	p.count(w.Tenant, writes, bytes)
	for _, key := range w.Keys {
		p.countKey(key, writes, bytes)
	}
}

// add puts a write at the end of the chains of its keys.
func (p *pending[P, O]) add(w *Write[P, O], now time.Time) {
	s := &w.pending
	s.in = true
	s.links = make([]link[P, O], 0, len(w.Keys)) // never grows: links point at each other
	for _, key := range w.Keys {
		p.append(w, key)
	}
	p.count(w.Tenant, 1, w.Bytes)
	if w.Lingers {
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
	if c := p.chains[key]; c != nil && c.last != nil && c.last.write == w {
		return // it names the key twice
	}
	c, s := p.countKey(key, 1, w.Bytes), &w.pending
	s.links = append(s.links, link[P, O]{key: key, write: w, prev: c.last})
	l := &s.links[len(s.links)-1]
	if c.last == nil {
		c.first = l
	} else {
		c.last.next = l
		s.behind++
	}
	c.last = l
}

func (p *pending[P, O]) makeReady(w *Write[P, O]) {
	t := p.tenants[w.Tenant]
	w.pending.ready = t.ready.PushBack(w)
	p.countReady(t, w.Ops, w.Bytes)
	if w.pending.held == nil {
		p.urgent++
	}
}

// countReady adds to what is ready of a tenant, or takes off, and sees to its turn.
func (p *pending[P, O]) countReady(t *share, ops, bytes int) {
	t.ops, t.bytes = t.ops+ops, t.bytes+bytes
	p.ops, p.bytes = p.ops+ops, p.bytes+bytes
	switch any := t.ready.Len() > 0; {
	case any && t.turn == nil:
		t.turn = p.turns.PushBack(t)
	case !any:
		p.turns.Remove(t.turn)
		t.turn = nil
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
	if s.held != nil {
		p.held.Remove(s.held)
	}
	t := p.count(w.Tenant, -1, -w.Bytes)
	if s.ready != nil {
		t.ready.Remove(s.ready)
		p.countReady(t, -w.Ops, -w.Bytes)
	}
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
	c := p.countKey(l.key, -1, -l.write.Bytes)
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

// take removes the writes of the next batch. Tenants take turns, so that one who has
// thousands does not make the others wait for them; those of one go in the order in
// which they became ready. What becomes ready by that has a key in common with one of
// them, so it is for the batch after it.
func (p *pending[P, O]) take() (batch []*Write[P, O]) {
	var freed []*Write[P, O]
	ops, bytes := 0, 0
	for e := p.turns.Front(); e != nil; e = p.turns.Front() {
		t := e.Value.(*share)
		w := t.ready.Front().Value.(*Write[P, O])
		ops, bytes = ops+w.Ops, bytes+w.Bytes
		if len(batch) > 0 && (ops > p.limits.Ops || bytes > p.limits.Bytes) {
			break
		}
		p.turns.MoveToBack(e)
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
	for p.turns.Len() > 0 {
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
