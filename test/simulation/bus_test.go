package simulation

import (
	"cmp"
	"container/heap"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/memory"
)

// event is something that is going to happen.
type event struct {
	at time.Duration // since the beginning; no two are alike
	do func()
}

// agenda is what is going to happen, the first first.
type agenda []event

func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return a[i].at < a[j].at }
func (a agenda) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)        { *a = append(*a, x.(event)) }
func (a *agenda) Pop() any {
	old := *a
	e := old[len(old)-1]
	*a = old[:len(old)-1]
	return e
}

// schedule has something happen in a while, at an instant of its own.
func (w *world) schedule(in time.Duration, do func()) {
	at := w.now() + max(in, 1)
	for w.taken[at] {
		at++
	}
	w.taken[at] = true
	heap.Push(&w.agenda, event{at, do})
}

// arrival is something that a goroutine of the bubble hands to the one that decides.
type arrival struct {
	replica int
	life    int // of the replica
	kind    string
	caller  int // the client's call it is part of, -1 if of none
	id      lock.ID
	number  uint64
	handle  func()
}

// compare asks for the caller late: of several that share a question to the store, which
// one asks it is a matter of who ran first.
func (a arrival) compare(b arrival) int {
	return cmp.Or(
		cmp.Compare(a.replica, b.replica), cmp.Compare(a.life, b.life), cmp.Compare(a.kind, b.kind),
		cmp.Compare(a.id, b.id), cmp.Compare(a.caller, b.caller), cmp.Compare(a.number, b.number),
	)
}

// inbox holds what has arrived since the last quiet moment.
type inbox struct {
	mu      sync.Mutex
	all     []arrival
	arrived chan struct{}
}

func (in *inbox) add(a arrival) {
	in.mu.Lock()
	in.all = append(in.all, a)
	in.mu.Unlock()
	select {
	case in.arrived <- struct{}{}:
	default:
	}
}

// take returns what has arrived in an order that does not depend on who ran first.
func (in *inbox) take() []arrival {
	in.mu.Lock()
	defer in.mu.Unlock()
	taken := in.all
	in.all = nil
	slices.SortStableFunc(taken, arrival.compare)
	return taken
}

type callerKey struct{}

func callerOf(ctx context.Context) int {
	if n, ok := ctx.Value(callerKey{}).(int); ok {
		return n
	}
	return -1
}

// wire is a replica's way to the store, in one life of the replica.
type wire struct {
	w    *world
	r    *replica
	life int           // of the replica
	dead chan struct{} // closed when the replica crashes

	mu       sync.Mutex
	cut      context.CancelCauseFunc // ends the feed that is running
	cutUntil time.Time

	looks time.Time // when a revocation may look again

	// For decisions about the store's numbers:
	heard    uint64        // the greatest that has arrived here
	numbered int           // which [world.numbered] the view has
	since    time.Duration // from when on
	shown    time.Duration // when an answer proved that the store went back, 0 if none did
	spoke    bool          // it said so to the store

	sent map[ordered]lock.EventID // the last event that no replica had tried to send before
}

// Call implements [memory.Wire].
func (l *wire) Call(ctx context.Context, op memory.Operation, id lock.ID, do func() error) error {
	if op == memory.Look {
		_ = store.Pause(ctx, l.paused(false)) // then the look fails
	}
	answer := make(chan error, 1)
	m := &message{wire: l, op: op, id: id, do: do, answer: answer, caller: callerOf(ctx)}
	m.part, _ = ctx.Value(writeKey{}).(*write)
	m.asked, _ = ctx.Value(removalKey{}).(bool)
	select {
	case <-l.dead:
		return memory.ErrUnsent
	default:
	}
	l.w.inbox.add(arrival{l.r.n, l.life, string(op), m.caller, id, 0, func() { l.w.send(m) }})
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
	case <-l.dead:
	}
	m.unheard.Store(true)
	if op == memory.Revoke {
		l.paused(true)
	}
	return memory.ErrUnknown
}

// paused has a revocation look again 20 ms after an attempt that failed: it pauses at random until
// then, which would make each replay another history.
func (l *wire) paused(failed bool) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if failed {
		l.looks = time.Now().Add(20 * time.Millisecond)
	}
	return time.Until(l.looks)
}

// Listen implements [memory.Wire].
func (l *wire) Listen(ctx context.Context) (context.Context, context.CancelFunc) {
	for {
		select {
		case <-l.dead:
			<-ctx.Done()
		default:
		}
		l.mu.Lock()
		left := time.Until(l.cutUntil)
		if left <= 0 {
			listening, end := context.WithCancelCause(ctx)
			l.cut = end
			l.mu.Unlock()
			return listening, func() { end(nil) }
		}
		l.mu.Unlock()
		_ = store.Pause(ctx, left) // looked at next
		if ctx.Err() != nil {
			return ctx, func() {}
		}
	}
}

// Tell implements [memory.Wire].
func (l *wire) Tell(ctx context.Context, r memory.Run) error {
	news := &news{run: r, told: make(chan struct{})}
	l.w.inbox.add(arrival{l.r.n, l.life, "tell", -1, "", r.Number, func() { l.w.carryFeed(l, news) }})
	select {
	case <-news.told:
		return nil
	case <-ctx.Done():
		news.unheard.Store(true)
		return context.Cause(ctx)
	case <-l.dead:
		return memory.ErrUnsent
	}
}

func (l *wire) isDead() bool {
	select {
	case <-l.dead:
		return true
	default:
		return false
	}
}

// cutFeed ends the feed for a while.
func (l *wire) cutFeed(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cutUntil = time.Now().Add(d)
	if l.cut != nil {
		l.cut(memory.ErrUnknown)
	}
}

// message is a request on its way to the store, or its answer on the way back.
type message struct {
	wire   *wire
	op     memory.Operation
	id     lock.ID
	caller int
	do     func() error
	answer chan<- error
	part   *write // that it is part of, or nil
	asked  bool   // a service asks for it, and not the store itself
	full   bool   // the answer is that the store is full

	arrived  bool
	heardOf  bool // its answer gets back
	slow     bool // after the next news at the replica
	sent     time.Duration
	numbered int         // the world's when it was sent
	heard    uint64      // the sender's when it was sent
	unheard  atomic.Bool // no caller waits for the answer any more
}

// news is a step of the history on its way to a replica.
type news struct {
	run     memory.Run
	told    chan struct{}
	unheard atomic.Bool
}

// send gives a request its fate.
func (w *world) send(m *message) {
	if m.wire.isDead() {
		return // it crashed at the same instant
	}
	if m.op == memory.Put {
		w.truth.wroteFor(m.id, m.caller)
		w.judge.sends(m)
	}
	m.part.sends(m)
	w.note("send", m.wire.r.n, string(m.op), m.id)
	m.sent, m.numbered, m.heard = w.now(), w.numbered, m.wire.heard
	m.wire.spoke = m.wire.spoke || m.op == memory.Distrust
	write := shares(m) || m.op == memory.Revoke
	switch {
	case w.chance(w.Lost), m.mute():
		w.note("lost", m.wire.r.n, string(m.op), m.id)
	case write && w.chance(w.Late):
		w.note("stuck", m.wire.r.n, string(m.op), m.id)
		w.stuck = append(w.stuck, m)
		w.hangUpOn(m)
		w.schedule(w.late(), func() { w.carryOut(m, false) })
	default:
		w.schedule(w.latency(), func() { w.arrive(m) })
	}
}

// mute reports whether a request is a renewal of a shard's lock that gets lost.
func (m *message) mute() bool {
	r := m.wire.r
	return m.op == memory.Renew && r.w.now() < r.muteUntil &&
		r.w.truth.last(m.id).entry.Tenant == lock.OwnTenant
}

// arrive hands a request to the store, unless the replica stands still.
func (w *world) arrive(m *message) {
	if left := m.wire.r.stillUntil - w.now(); left > 0 {
		w.schedule(left+w.latency(), func() { w.arrive(m) })
		return
	}
	if w.explorer != nil {
		w.explorer.serve(m)
		return
	}
	w.carryOut(m, !w.chance(w.Unheard))
}

// carryOut has the store do what is asked. A write may wait for those that arrive next, to
// share their transaction.
func (w *world) carryOut(m *message, heard bool) {
	if m.arrived {
		return
	}
	if m.op == memory.Exclude {
		w.unstick(m.id)
	}
	w.join(m, heard)
	if shares(m) && w.percent(w.Joined) {
		w.schedule(w.between(1, 5*time.Millisecond), w.transact)
		return
	}
	w.transact()
	if m.op == memory.Find {
		w.unstick(m.id)
	}
}

// join adds a request to those of the next transaction, if it can share that with them.
func (w *world) join(m *message, heard bool) {
	m.arrived, m.heardOf = true, heard
	w.fill(m)
	if !shares(m) ||
		slices.ContainsFunc(w.joining, func(other *message) bool { return other.id == m.id }) {
		w.transact() // in the order in which they came
	}
	w.joining = append(w.joining, m)
}

// shares reports whether a request may share a transaction.
func shares(m *message) bool {
	return m.op == memory.Put || m.op == memory.Remove || m.op == memory.Narrow
}

// transact carries out what is waiting as one transaction. A store that was restored
// meanwhile does not know of connections from before.
func (w *world) transact() {
	all := slices.DeleteFunc(w.joining, func(m *message) bool { return m.numbered < w.restored })
	w.joining = nil
	if len(all) == 0 {
		return
	}
	w.truth.catchUp()
	w.truth.writing = writings{}
	requests := make([]func() error, len(all))
	for i, m := range all {
		requests[i] = m.do
		w.truth.writing[m.id] = &writing{
			m.wire.r.n, m.sent, m.heard, w.server.Number(), w.server.Trusted(), m,
		}
	}
	var errs []error
	if shares(all[0]) {
		errs = w.server.Together(requests...)
	} else {
		errs = []error{requests[0]()}
	}
	w.truth.catchUp()
	w.truth.writing = nil
	number := w.server.Number()
	for i, m := range all {
		w.judge.done(m, errs[i])
		if m.op == memory.Commit && errs[i] == nil {
			w.committed(m)
		}
		w.note("done", m.wire.r.n, string(m.op), m.id, number, errs[i] == nil, m.heardOf)
		if m.heardOf {
			answer := func() { w.answer(m, number, errs[i]) }
			if !w.explorer.keeps(m, answer) {
				w.schedule(w.latency(), answer)
			}
		}
		w.explorer.served(m)
	}
}

// answer brings the answer back.
func (w *world) answer(m *message, number uint64, err error) {
	if m.numbered < w.restored {
		return
	}
	w.note("answer", m.wire.r.n, string(m.op), m.id)
	if !m.unheard.Load() {
		w.hear(m, number)
	}
	if m.full {
		err = errFull()
	}
	m.answer <- err
}

// hear notes what an answer tells a replica of the store's numbers.
func (w *world) hear(m *message, number uint64) {
	l := m.wire
	if number < m.heard && l.shown == 0 {
		l.shown = w.now()
	}
	l.heard = max(l.heard, number)
	w.explorer.heard(l)
	if m.op == memory.List && !w.missing && l.numbered != w.numbered && m.numbered == w.numbered {
		l.numbered, l.since = w.numbered, w.now()
	}
}

// carryFeed brings a step of the history to a replica.
func (w *world) carryFeed(l *wire, n *news) {
	if l.isDead() {
		return
	}
	in := w.latency()
	if lag := l.r.lagUntil - w.now(); lag > 0 {
		in += time.Duration(w.rand.Int64N(int64(lag)))
	}
	tell := func() {
		w.note("tell", l.r.n, n.run.Number)
		if !n.unheard.Load() {
			l.heard = max(l.heard, n.run.Number)
		}
		close(n.told)
		w.explorer.told(l)
	}
	if !w.explorer.delays(l, n, tell) {
		w.schedule(max(in, l.r.stillUntil-w.now()), tell)
	}
}

func (w *world) chance(ofThousand int) bool { return !w.healed && w.rand.IntN(1000) < ofThousand }

func (w *world) latency() time.Duration {
	d := time.Duration(w.rand.Int64N(int64(2 * w.Latency)))
	if w.chance(w.Slow) {
		d += time.Duration(w.rand.Int64N(int64(time.Second)))
	}
	return d
}

// late is when a write arrives that got stuck: after its caller has given up.
func (w *world) late() time.Duration {
	most := []time.Duration{2 * time.Second, 10 * time.Second, 2 * time.Minute}[w.rand.IntN(3)]
	return time.Duration(w.rand.Int64N(int64(most)))
}
