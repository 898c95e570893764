package outbox

import (
	"context"
	"errors"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/events"
	"github.com/fencepost/fencepost/store"
)

// owner does a shard's work while it has the shard: it follows the events, and has their deliveries
// made by its dispatch. Its state belongs to one goroutine, run; attempts and calls of the store run
// in others, which bring their outcomes.
type owner struct {
	*dispatch
	stream   *service.EventStream
	room     []*events.Record
	requests requests
	told     <-chan struct{} // closed when subscriptions have changed
	looked   time.Time       // when the backlog was counted
}

func newOwner(s *shard, fence uint64) *owner {
	w := &owner{dispatch: newDispatch(s, fence), room: make([]*events.Record, 64)}
	w.requests = requests{owner: w, busy: map[store.RecordKey]bool{}}
	return w
}

// run works until ctx ends, or the shard turns out to be another replica's.
func (w *owner) run(ctx context.Context) {
	w.ctx, w.lose = context.WithCancel(ctx)
	defer w.ledger.all.Wait()
	defer close(w.gone)
	defer w.lose()
	w.owes.Store(&Backlog{looked: w.began}) // an owner that cannot begin is stuck since then
	defer w.owes.Store(nil)
	for !w.begin() {
		if !pause(w.ctx, retryPause) {
			return
		}
	}
	defer func() { w.stream.Close() }()
	changed, stop := store.RecordChanges(w.ctx, w.Records, requestKind(w.name))
	defer stop()
	beat := time.NewTicker(tick)
	defer beat.Stop()
	for w.ctx.Err() == nil {
		w.step(w.read(), beat.C, changed)
	}
	w.finish()
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
	unreadable, err := w.cursor.claim(w.ctx, w.ledger)
	if unreadable != nil {
		w.Logger.Error("the cursor of a shard cannot be read; all until now is missed", "shard", w.name, "error", unreadable)
	}
	if err = errors.Join(err, w.loadStates(), w.loadOwed()); err != nil {
		w.Logger.Debug("a shard could not be read, and is tried again", "shard", w.name, "error", err)
		return false
	}
	w.stream, err = w.Locks.Events(w.ctx, service.EventsRequest{Of: lock.OwnTenant, After: &w.cursor.at})
	if err != nil {
		return false
	}
	w.beginAt(w.stream)
	w.take(all, changed)
	return true
}

// beginAt begins where the stream does. For a shard that nobody had, that is the start of what this
// replica knows: nothing before it is missed, and entries that hold are called back.
func (w *owner) beginAt(stream *service.EventStream) {
	if !w.cursor.known {
		_, _, _ = stream.Next(nil)
	}
	w.cursor.reached(stream.At())
	it := &item{id: w.cursor.last, read: time.Now()}
	if !w.cursor.known || w.recall {
		w.callHeld(w.cursor.last, it)
	}
	if it.open > 0 {
		w.cursor.items = append(w.cursor.items, it)
	}
	w.startLate(w.cursor.last)
}

// read takes the next events, and returns a channel that is closed when there may be more; nil if
// none is read for now.
func (w *owner) read() (more <-chan struct{}) {
	if len(w.cursor.items) >= maxWindow || !w.lease.holds() {
		return nil
	}
	given, missed, more := w.stream.Next(w.room)
	defer clear(w.room)
	if missed != nil {
		w.missed(missed)
	}
	for _, r := range given {
		w.tell(&r.Event)
	}
	if len(given) == 0 && missed == nil {
		w.cursor.reached(w.stream.At())
		w.startLate(w.cursor.last)
		return more
	}
	return closed
}

// closed is for what may go on at once.
var closed = func() chan struct{} { //nolint:gochecknoglobals // never changes
	c := make(chan struct{})
	close(c)
	return c
}()

// step does one thing, or waits until more is closed.
func (w *owner) step(more <-chan struct{}, beat <-chan time.Time, asked <-chan struct{}) {
	var due <-chan time.Time
	if w.due.Len() > 0 {
		timer := time.NewTimer(time.Until(w.due.First().due))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-w.ctx.Done():
	case f := <-w.brought:
		f()
	case <-w.told:
		all, _, changed := w.Subscriptions.Current()
		w.take(all, changed)
	case <-due:
		for now := time.Now(); w.due.Len() > 0 && !w.due.First().due.After(now); {
			w.attempt(w.due.Pop())
		}
	case <-asked:
		w.requests.looked = time.Time{}
		w.requests.look(time.Now())
	case <-beat:
		w.beat(time.Now())
	case <-more:
	}
}

// beat does what is due now and then.
func (w *owner) beat(now time.Time) {
	w.flushMissed(now)
	w.keepLate(now)
	w.cursor.write(w.ledger, now)
	w.writeStates(now, statesAtOnce, statePause)
	w.requests.look(now)
	if now.Sub(w.began) > orphanTime {
		w.dropOrphans()
	}
	w.count(now)
}

// dropOrphans forgets subscriptions that were deleted while nobody owned the shard.
func (w *owner) dropOrphans() {
	for _, t := range w.targets.all {
		if t.id != Callbacks && t.sub == nil {
			w.forget(t)
		}
	}
}

// finish sends what has happened by now, and leaves the rest to the next owner.
func (w *owner) finish() {
	over := time.After(finishTime)
	for quiet := time.After(quietTime); !w.isLost; {
		select {
		case f := <-w.brought:
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
		w.writeLast()
		return
	}
}

// writeLast writes the cursor and some states. What is not written is sent once more.
func (w *owner) writeLast() {
	at := w.cursor.settled()
	if !w.cursor.busy && (!w.cursor.known || at != w.cursor.at) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), callTimeout)
		defer cancel()
		if err := w.cursor.put(ctx, w.ledger, at); err != nil {
			w.Logger.Debug("the cursor of a shard was not written", "shard", w.name, "error", err)
		}
	}
	w.writeStates(time.Now(), maxRecent, 0)
}

// forget drops a subscription that was deleted, with all that it is owed.
func (w *owner) forget(t *target) {
	t.now.Store(nil)
	for _, d := range t.pending {
		w.end(d)
	}
	if t.lost != nil {
		for _, it := range t.lost.items {
			it.settle()
		}
	}
	delete(w.targets.all, targetName(t.tenant, t.id))
	w.eraseState(t)
}

// count publishes the backlog, now and then: it looks at all deliveries.
func (w *owner) count(now time.Time) {
	if now.Sub(w.looked) < idlePause {
		return
	}
	w.looked = now
	b := &Backlog{looked: now, Behind: w.cursor.behind()}
	for _, t := range w.targets.all {
		if t.sends() {
			b.Deliveries += len(t.pending)
			b.Oldest = first(b.Oldest, t.dueSince(now))
		}
	}
	w.owes.Store(b)
}

// dueSince returns since when a delivery is due that is neither under way nor to be left alone.
func (t *target) dueSince(now time.Time) (since time.Time) {
	for _, d := range t.pending {
		due := d.progress.Due
		if !due.After(now) && !d.running && d.waitsFor == 0 && !t.quiet.of(t.poolName(d)).After(now) {
			since = first(since, due)
		}
	}
	return since
}
