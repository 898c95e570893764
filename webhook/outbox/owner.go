package outbox

import (
	"context"
	"errors"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/events"
)

// owner does a shard's work while it has the shard. All of its state belongs to one
// goroutine, run; attempts and calls of the store are made by others, which bring it what
// came of them.
type owner struct {
	*shard
	fence   uint64 // of its lock
	stamped uint64 // its last write
	began   time.Time
	lease   *lease

	ctx     context.Context //nolint:containedctx // of all that it does: ends when it has lost the shard
	lose    context.CancelFunc
	brought chan func()   // what others bring
	gone    chan struct{} // closed when nobody takes it any more

	stream  *service.EventStream
	from    lock.EventID     // where it began
	room    []*events.Record // for what is read of it
	atOnce  chan struct{}    // closed: there may be more now
	cursor  cursor
	window  window
	targets targets
	due     dueQueue // deliveries that wait for their next attempt
	writes  writes
	asked   requests
	parking parking
	match   matching
	paces   paces
	bill    bill
	turns   turns
	doubts  map[lock.ID]doubt
	late    []*delivery     // taken over without an attempt yet
	tidied  bool            // of what is known of subscriptions that are gone
	told    <-chan struct{} // closed when there may be other subscriptions

	backlogAt time.Time // when it was told what is pending
}

func newOwner(s *shard, fence uint64) *owner {
	w := &owner{shard: s, fence: fence, began: time.Now(), lease: &lease{}, brought: make(chan func(), 64), gone: make(chan struct{})}
	w.room, w.atOnce = make([]*events.Record, 64), make(chan struct{})
	close(w.atOnce)
	w.doubts = map[lock.ID]doubt{}
	w.paces, w.bill, w.turns = paces{}, bill{}, newTurns()
	w.targets.all = map[string]*target{}
	w.targets.byTenant = map[string][]*target{}
	w.targets.callbacks = map[string]*target{}
	w.targets.load = map[string]load{}
	w.writes.owner = w
	return w
}

// run works until ctx ends, or the shard turns out to be another replica's.
func (w *owner) run(ctx context.Context) {
	w.ctx, w.lose = context.WithCancel(ctx)
	defer w.leaveTurns()
	defer w.charge()
	defer w.writes.all.Wait()
	defer close(w.gone)
	defer w.lose()
	w.owes.Store(&Backlog{looked: w.began}) // who cannot begin is stuck since then
	defer w.owes.Store(nil)
	for !w.begin() {
		if !pause(w.ctx, retryPause) {
			return
		}
	}
	defer func() { w.stream.Close() }()
	defer w.asked.watch(w)()
	beat := time.NewTicker(tick)
	defer beat.Stop()
	for w.ctx.Err() == nil {
		w.step(w.read(), beat.C)
	}
	w.finish()
}

// begin takes over what the owner before has left.
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
	if err := errors.Join(w.claim(), w.loadStates(), w.loadOwed()); err != nil {
		w.Logger.Debug("what a shard has to send could not be read, and is tried again", "shard", w.name, "error", err)
		return false
	}
	w.forgetRows()
	stream, err := w.Locks.Events(w.ctx, service.EventsRequest{Of: lock.OwnTenant, After: w.cursor.after()})
	if err != nil {
		return false
	}
	w.stream = stream
	if !w.cursor.known {
		w.beginFirst()
	}
	w.window.last, w.from = stream.At(), stream.At()
	w.startLate(w.window.last)
	w.take(all, changed)
	return true
}

// beginFirst begins with a shard that nobody has had: where what this replica knows begins.
// What was before is no gap. Subscriptions catch up by themselves.
func (w *owner) beginFirst() {
	_, _, _ = w.stream.Next(nil)
	it := &item{id: w.stream.At(), read: time.Now()}
	if w.callBackHeld(it.id, it, anyEntry); it.open > 0 {
		w.window.add(it)
	}
}

// read takes what happened next, and returns what is closed when there may be more; nil if none
// is to be read for now.
func (w *owner) read() (more <-chan struct{}) {
	if w.window.len() >= maxWindow || !w.lease.holds() {
		return nil // until some of that is delivered or kept, or the shard is this one's for sure
	}
	given, missed, more := w.stream.Next(w.room)
	defer clear(w.room) // what is kept elsewhere need not be kept here
	if missed != nil {
		w.missed(missed)
	}
	for _, r := range given {
		w.tell(&r.Event)
	}
	if len(given) == 0 && missed == nil {
		w.window.reached(w.stream.At())
		w.startLate(w.window.last)
		return more
	}
	return w.atOnce
}

// step does what there is to do beside, or waits until more is closed.
func (w *owner) step(more <-chan struct{}, beat <-chan time.Time) {
	timer, stop := w.due.timer()
	defer stop()
	turn, leave := w.turns.timer()
	defer leave()
	select {
	case <-w.ctx.Done():
	case f := <-w.brought:
		f()
		w.takeBrought()
	case <-w.told:
		all, _, changed := w.Subscriptions.Current()
		w.take(all, changed)
	case <-timer:
		w.attemptDue()
	case <-turn:
		w.takeTurns(time.Now())
	case <-beat:
		w.beat()
	case <-more:
	}
}

// takeBrought takes what else was brought meanwhile.
func (w *owner) takeBrought() {
	for range cap(w.brought) {
		select {
		case f := <-w.brought:
			f()
		default:
			return
		}
	}
}

// bring has the owner do something. It is for other goroutines, and does nothing once the
// owner is gone.
func (w *owner) bring(f func()) {
	select {
	case w.brought <- f:
	case <-w.gone:
	}
}

func (w *owner) isGone() bool {
	select {
	case <-w.gone:
		return true
	default:
		return false
	}
}

// beat does what is due now and then.
func (w *owner) beat() {
	now := time.Now()
	w.ease(now)
	w.tellPassed()
	w.flushMissed()
	w.lookAtDoubts()
	w.keepLate(now)
	w.keeping.forget(now)
	w.writeCursor(now)
	if w.lease.holds() {
		w.writeStates(now)
	}
	w.lookAtRequests(now)
	w.sweep()
	w.tellBacklog(now)
	w.charge()
}

// finish tells what has happened by now, and leaves the rest to the next owner. What is
// being sent or written may end before, or it is done again.
func (w *owner) finish() {
	over := time.After(finishTime)
	for quiet := time.After(quietTime); !w.cursor.lost; {
		select {
		case f := <-w.brought:
			f()
			continue
		case <-w.read():
			quiet = time.After(quietTime)
			continue
		case <-quiet:
			if w.writes.running > 0 || w.window.settled() != w.window.last {
				quiet = time.After(tick)
				continue
			}
			w.writeLast()
		case <-over:
			if w.writes.running == 0 {
				w.writeLast()
			}
		}
		return
	}
}
