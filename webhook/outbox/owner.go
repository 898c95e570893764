package outbox

import (
	"context"
	"errors"
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
	out     *dispatch
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
		out: newDispatch(s, fence), buffer: make([]*events.Record, 64), again: make(chan struct{}),
		doing: map[store.RecordKey]bool{}, early: map[store.RecordKey]time.Time{},
	}
	close(w.again)
	return w
}

// run works until ctx ends, or the shard turns out to be another replica's.
func (w *owner) run(ctx context.Context) {
	w.out.ctx, w.out.lose = context.WithCancel(ctx)
	defer w.out.ledger.all.Wait()
	defer w.out.ledger.end()
	defer w.out.lose()
	w.out.owes.Store(&Backlog{looked: w.out.began}) // an owner that cannot begin is stuck since then
	defer w.out.owes.Store(nil)
	for !w.begin() {
		if store.Pause(w.out.ctx, retryPause) != nil {
			return
		}
	}
	defer func() { w.stream.Close() }()
	asked, stop := store.RecordChanges(w.out.ctx, w.out.Records, requestKind(w.out.name))
	defer stop()
	beat := time.NewTicker(tick)
	defer beat.Stop()
	for w.out.ctx.Err() == nil {
		w.step(w.read(), beat.C, asked)
	}
	w.finishAll()
}

// begin takes over from the owner before.
func (w *owner) begin() bool {
	if !w.out.lease.holds() {
		return false
	}
	all, ok, changed := w.out.Subscriptions.Current()
	if !ok {
		select {
		case <-changed:
		case <-w.out.ctx.Done():
		}
		return false
	}
	w.out.targets, w.out.due, w.out.late, w.out.unread = newTargets(), heap.Heap[*delivery]{}, nil, nil
	unreadable, err := w.out.cursor.claim(w.out.ctx, w.out.ledger)
	if unreadable != nil {
		w.out.Logger.Error("the cursor of a shard cannot be read; all until now is missed",
			"shard", w.out.name, "error", unreadable)
	}
	if err = errors.Join(err, w.out.loadStates(), w.out.loadPending()); err == nil {
		q := service.EventsRequest{Of: lock.OwnTenant, After: &w.out.cursor.at}
		w.stream, err = w.out.Locks.Events(w.out.ctx, q)
	}
	if err != nil {
		w.out.Logger.Debug("a shard could not be read, and is tried again",
			"shard", w.out.name, "error", err)
		return false
	}
	if !w.hasSeen() {
		w.stream.Close()
		return false
	}
	w.beginAt(w.stream)
	w.take(all, changed)
	if !w.out.cursor.known {
		w.resumeTaken()
	}
	return true
}

// beginAt begins where the stream does. For a shard that no replica had, that is the start of what
// this replica knows: nothing before it is missed, and entries that hold are called back.
func (w *owner) beginAt(stream *service.EventStream) {
	if !w.out.cursor.known {
		_, _, _ = stream.Next(nil)
	}
	w.out.cursor.reached(stream.At())
	it := &item{id: w.out.cursor.last, read: time.Now()}
	if !w.out.cursor.known || len(w.out.unread) > 0 {
		w.callHeld(w.out.cursor.last, it)
	}
	for _, d := range w.out.unread { // of entries that have ended
		if d.target.pending[d.key.ID] == d {
			w.out.finish(d)
		}
	}
	w.out.unread = nil
	for _, t := range w.out.targets.all {
		if t.Behind != "" {
			w.resumeCalls(t)
		}
	}
	w.out.cursor.wait(it)
	w.out.startLate()
}

// read takes the next events, and returns a channel that is closed when there may be more; nil if
// none is read for now.
func (w *owner) read() (more <-chan struct{}) {
	if len(w.out.cursor.items) >= maxWindow || !w.out.lease.holds() {
		return nil
	}
	given, missed, more := w.stream.Next(w.buffer)
	defer clear(w.buffer)
	if missed != nil {
		w.missed(missed)
	}
	for _, r := range given {
		w.deliver(&r.Event)
	}
	if len(given) == 0 && missed == nil {
		w.out.cursor.reached(w.stream.At())
		w.out.startLate()
		return more
	}
	w.out.cursor.passed = true
	return w.again
}

// step does one thing, or waits until more is closed.
func (w *owner) step(more <-chan struct{}, beat <-chan time.Time, asked <-chan struct{}) {
	for now := time.Now(); w.out.due.Len() > 0 && !w.out.due.First().due.After(now); {
		w.out.attempt(w.out.due.Pop())
	}
	var due <-chan time.Time
	if w.out.due.Len() > 0 {
		timer := time.NewTimer(time.Until(w.out.due.First().due))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-w.out.ctx.Done():
	case f := <-w.out.ledger.brought:
		f()
	case <-w.changed:
		all, _, changed := w.out.Subscriptions.Current()
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
	w.out.flushMissed(now)
	w.keepLate(now)
	w.keepLateCalls(now)
	w.out.cursor.write(w.out.ledger, now)
	w.out.writeStates(now, statesAtOnce, statePause)
	w.look(now)
	if now.Sub(w.out.began) > orphanTime {
		w.dropOrphans()
	}
	w.count(now)
}

// keepLate writes the deliveries whose first attempt takes long, or that are too many to wait for.
func (w *owner) keepLate(now time.Time) {
	for i, it := range w.out.cursor.items {
		if now.Sub(it.read) < keepAfter && i >= len(w.out.cursor.items)-maxWindow/2 {
			return
		}
		w.out.keepAll(it)
	}
}

// finishAll sends what has happened by now, and leaves the rest to the next owner. What is not
// written by then is sent again.
func (w *owner) finishAll() {
	over := time.After(finishTime)
	for quiet := time.After(quietTime); !w.out.isLost; {
		select {
		case f := <-w.out.ledger.brought:
			f()
			continue
		case <-w.read():
			quiet = time.After(quietTime)
			continue
		case <-quiet:
			if !w.out.ledger.idle() || w.out.cursor.settled() != w.out.cursor.last {
				quiet = time.After(tick)
				continue
			}
		case <-over:
		}
		break
	}
	if !w.out.isLost {
		w.out.cursor.tried, w.out.cursor.passed = time.Time{}, true
		w.out.cursor.write(w.out.ledger, time.Now())
		w.out.writeStates(time.Now(), writesAtOnce, 0)
	}
}

// count publishes the backlog, now and then: it looks at all deliveries.
func (w *owner) count(now time.Time) {
	if now.Sub(w.counted) < idlePause {
		return
	}
	w.counted = now
	b := &Backlog{looked: now, Behind: w.out.cursor.behind(now)}
	for _, t := range w.out.targets.all {
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
	w.out.owes.Store(b)
}
