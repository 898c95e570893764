package outbox

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/heap"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/events"
	"github.com/fencepost/fencepost/store"
)

// owner does a shard's work while it has the shard: it follows the events, and has their deliveries
// made by its dispatch. Its state belongs to one goroutine, run; attempts and calls of the store
// run in others, which bring their outcomes.
type owner struct {
	*dispatch
	stream  *service.EventStream
	buffer  []*events.Record
	again   chan struct{}                 // closed: there may be more events at once
	lookAt  time.Time                     // for requests of tenants
	looking bool                          // they are being read
	doing   map[store.RecordKey]bool      // requests that are carried out
	early   map[store.RecordKey]time.Time // since when requests wait for an unknown subscription
	changed <-chan struct{}               // closed when subscriptions have changed
	counted time.Time                     // when the backlog was
}

func newOwner(s *shard, fence uint64) *owner {
	w := &owner{
		dispatch: newDispatch(s, fence), buffer: make([]*events.Record, 64),
		again: make(chan struct{}), doing: map[store.RecordKey]bool{},
		early: map[store.RecordKey]time.Time{},
	}
	close(w.again)
	return w
}

// run works until ctx ends, or the shard turns out to be another replica's.
func (w *owner) run(ctx context.Context) {
	w.ctx, w.lose = context.WithCancel(ctx)
	defer w.ledger.all.Wait()
	defer w.ledger.end()
	defer w.lose()
	w.owes.Store(&Backlog{looked: w.began}) // an owner that cannot begin is stuck since then
	defer w.owes.Store(nil)
	for !w.begin() {
		if store.Pause(w.ctx, retryPause) != nil {
			return
		}
	}
	defer func() { w.stream.Close() }()
	asked, stop := store.RecordChanges(w.ctx, w.Records, requestKind(w.name))
	defer stop()
	beat := time.NewTicker(tick)
	defer beat.Stop()
	for w.ctx.Err() == nil {
		w.step(w.read(), beat.C, asked)
	}
	w.finishAll()
}

// begin takes over from the owner before.
func (w *owner) begin() bool {
	if !w.lease.holds() {
		return false
	}
	all, ok, changed := w.Subscriptions.Current()
	if !ok {
		select {
		case <-changed:
		case <-w.ctx.Done():
		}
		return false
	}
	w.targets, w.due, w.late, w.unread = newTargets(), heap.Heap[*delivery]{}, nil, nil
	unreadable, err := w.cursor.claim(w.ctx, w.ledger)
	if unreadable != nil {
		w.Logger.Error("the cursor of a shard cannot be read; all until now is missed",
			"shard", w.name, "error", unreadable)
	}
	if err = errors.Join(err, w.loadStates(), w.loadPending()); err == nil {
		q := service.EventsRequest{Of: lock.OwnTenant, After: &w.cursor.at}
		w.stream, err = w.Locks.Events(w.ctx, q)
	}
	if err != nil {
		w.Logger.Debug("a shard could not be read, and is tried again", "shard", w.name, "error", err)
		return false
	}
	if !w.hasSeen() {
		w.stream.Close()
		return false
	}
	w.beginAt(w.stream)
	w.take(all, changed)
	return true
}

// beginAt begins where the stream does. For a shard that no replica had, that is the start of what
// this replica knows: nothing before it is missed, and entries that hold are called back.
func (w *owner) beginAt(stream *service.EventStream) {
	if !w.cursor.known {
		_, _, _ = stream.Next(nil)
	}
	w.cursor.reached(stream.At())
	it := &item{id: w.cursor.last, read: time.Now()}
	if !w.cursor.known || len(w.unread) > 0 {
		w.callHeld(w.cursor.last, it)
	}
	for _, d := range w.unread { // of entries that have ended
		if d.target.pending[d.key.ID] == d {
			w.finish(d)
		}
	}
	w.unread = nil
	for _, t := range w.targets.all {
		if t.Behind != "" {
			w.resumeCalls(t)
		}
	}
	w.cursor.wait(it)
	w.startLate()
}

// read takes the next events, and returns a channel that is closed when there may be more; nil if
// none is read for now.
func (w *owner) read() (more <-chan struct{}) {
	if len(w.cursor.items) >= maxWindow || !w.lease.holds() {
		return nil
	}
	given, missed, more := w.stream.Next(w.buffer)
	defer clear(w.buffer)
	if missed != nil {
		w.missed(missed)
	}
	for _, r := range given {
		w.tell(&r.Event)
	}
	if len(given) == 0 && missed == nil {
		w.cursor.reached(w.stream.At())
		w.startLate()
		return more
	}
	w.cursor.passed = true
	return w.again
}

// step does one thing, or waits until more is closed.
func (w *owner) step(more <-chan struct{}, beat <-chan time.Time, asked <-chan struct{}) {
	for now := time.Now(); w.due.Len() > 0 && !w.due.First().due.After(now); {
		w.attempt(w.due.Pop())
	}
	var due <-chan time.Time
	if w.due.Len() > 0 {
		timer := time.NewTimer(time.Until(w.due.First().due))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-w.ctx.Done():
	case f := <-w.ledger.brought:
		f()
	case <-w.changed:
		all, _, changed := w.Subscriptions.Current()
		w.take(all, changed)
	case <-due: // in the next step
	case <-asked:
		w.lookAt = time.Time{}
		w.look(time.Now())
	case <-beat:
		w.beat(time.Now())
	case <-more:
	}
}

// beat does what is due now and then.
func (w *owner) beat(now time.Time) {
	w.catchUpCalls(now)
	w.flushMissed(now)
	w.keepLate(now)
	w.keepLateCalls(now)
	w.cursor.write(w.ledger, now)
	w.writeStates(now, statesAtOnce, statePause)
	w.look(now)
	if now.Sub(w.began) > orphanTime {
		w.dropOrphans()
	}
	w.count(now)
}

// keepLate writes the deliveries whose first attempt takes long, or that are too many to wait for.
func (w *owner) keepLate(now time.Time) {
	for i, it := range w.cursor.items {
		if now.Sub(it.read) < keepAfter && i >= len(w.cursor.items)-maxWindow/2 {
			return
		}
		w.keepAll(it)
	}
}

// finishAll sends what has happened by now, and leaves the rest to the next owner. What is not
// written by then is sent again.
func (w *owner) finishAll() {
	over := time.After(finishTime)
	for quiet := time.After(quietTime); !w.isLost; {
		select {
		case f := <-w.ledger.brought:
			f()
			continue
		case <-w.read():
			quiet = time.After(quietTime)
			continue
		case <-quiet:
			if !w.ledger.idle() || w.cursor.settled() != w.cursor.last {
				quiet = time.After(tick)
				continue
			}
		case <-over:
		}
		break
	}
	if !w.isLost {
		w.cursor.tried, w.cursor.passed = time.Time{}, true
		w.cursor.write(w.ledger, time.Now())
		w.writeStates(time.Now(), writesAtOnce, 0)
	}
}

// loadStates reads the states of all targets.
func (w *owner) loadStates() error {
	return w.ledger.each(w.ctx, stateKind(w.name), func(r store.Record) {
		s, err := readState(r)
		if err != nil {
			w.Logger.Error("the state of a webhook cannot be read",
				"tenant", r.Tenant, "webhook", r.ID, "error", err)
		}
		t := w.targets.of(r.Tenant, r.ID)
		t.state, t.stateCell = s, cell{key: r.RecordKey, version: r.Version}
	})
}

// writeStates writes some of the states that have changed, first those for which events wait, then
// the oldest.
func (w *owner) writeStates(now time.Time, most int, since time.Duration) {
	var due []*target
	for _, t := range w.targets.all {
		if t.advance(); len(t.unsaved) > 0 {
			t.written = time.Time{}
		}
		if t.dirty && !t.stateCell.busy && now.Sub(t.written) >= since {
			due = append(due, t)
		}
	}
	slices.SortFunc(due, func(a, b *target) int { return a.written.Compare(b.written) })
	for _, t := range due[:min(len(due), most)] {
		t.dirty, t.written = false, now
		t.stateCell.key = store.RecordKey{Kind: stateKind(w.name), Tenant: t.tenant, ID: t.id}
		saved, at := t.unsaved, position(t.Behind)
		t.unsaved, t.sent = nil, at
		w.ledger.save(&t.stateCell, t.encode(w.ledger.stamp), func() {
			t.stored = at
			for _, it := range saved {
				it.settle()
			}
			if t.gone {
				w.eraseState(t)
			}
		})
	}
}

// eraseState deletes the state of a subscription that was deleted.
func (w *owner) eraseState(t *target) {
	if t.dirty, t.gone = false, true; !t.stateCell.busy {
		w.ledger.erase(&t.stateCell, func() {})
	}
}

// count publishes the backlog, now and then: it looks at all deliveries.
func (w *owner) count(now time.Time) {
	if now.Sub(w.counted) < idlePause {
		return
	}
	w.counted = now
	b := &Backlog{looked: now, Behind: w.cursor.behind(now)}
	for _, t := range w.targets.all {
		if !t.sends() {
			continue
		}
		b.Deliveries += len(t.pending) + len(t.waiting)
		for _, d := range t.pending {
			if d.waits.Load() {
				b.Oldest = first(b.Oldest, d.due)
			}
		}
	}
	w.owes.Store(b)
}
