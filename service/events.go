package service

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/order"
)

const (
	maxEvents  = 4096                  // that wait to be handed on
	eventDelay = 10 * time.Millisecond // for which they are gathered
)

// eventKind is what happened.
type eventKind int

// The kinds of events, with the fields of [event] that each has.
const (
	entryEnded       eventKind = iota // reason, held, lasted
	deadlockFound                     // waits; the entry is the one that is refused
	ordersContradict                  // ring, silenced; the entry is the one that brought it to light
	feedOutOfOrder                    // err; the entry is passed over
)

// event is something that the view saw happen.
type event struct {
	kind   eventKind
	number uint64    // the store's, up to which the view was told with it
	at     time.Time // when this replica saw it
	entry  *lock.Entry

	reason   lock.Reason
	held     bool
	lasted   time.Duration // of the hold
	waits    int           // in the cycle
	ring     *order.Contradiction
	silenced uint64 // how many rings of the tenant were not told since the last line
	err      error
}

// events hands what happened in the view on to log and metrics, from a goroutine of
// its own: no reader of the log, however slow, can stop a grant. While it cannot
// hand on, it keeps the first maxEvents and counts the rest. What has to be counted
// exactly is counted at once, in totals.
type events struct {
	metrics Metrics
	log     *slog.Logger

	ready   chan struct{} // holds a value after the queue ceased to be empty
	closing chan struct{}
	closed  sync.Once
	done    chan struct{}

	dropped atomic.Uint64
	totals  struct{ expired, contradicted atomic.Uint64 }

	mu      sync.Mutex
	pending []event
}

// newEvents starts the goroutine, which runs until close.
func newEvents(m Metrics, log *slog.Logger) *events {
	e := &events{
		metrics: m, log: log,
		ready: make(chan struct{}, 1), closing: make(chan struct{}), done: make(chan struct{}),
	}
	go e.run()
	return e
}

// add takes an event; it never waits.
func (e *events) add(what event) {
	e.mu.Lock()
	full, first := len(e.pending) >= maxEvents, len(e.pending) == 0
	if !full {
		e.pending = append(e.pending, what)
	}
	e.mu.Unlock()
	switch {
	case full:
		e.dropped.Add(1)
	case first:
		select {
		case e.ready <- struct{}{}:
		default:
		}
	}
}

// close hands on what is left and waits for that. Calling it again is safe.
func (e *events) close() {
	e.closed.Do(func() { close(e.closing) })
	<-e.done
}

func (e *events) run() {
	defer close(e.done)
	var spare []event
	told := uint64(0)
	for open := true; open; {
		open = e.gather()
		e.mu.Lock()
		batch := e.pending
		e.pending = spare[:0]
		e.mu.Unlock()
		for _, what := range batch {
			e.tell(what)
		}
		clear(batch) // of entries that are gone
		spare = batch
		if n := e.dropped.Load(); n > told {
			e.log.Warn("events could not be told in time; they are missing from the log and from the hold times", "dropped", n-told)
			told = n
		}
	}
}

// gather waits for a first event, and then for those that follow it closely. It
// returns false when there will be no more.
func (e *events) gather() bool {
	select {
	case <-e.ready:
	case <-e.closing:
		return false
	}
	t := time.NewTimer(eventDelay)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-e.closing:
		return false
	}
}

func (e *events) tell(what event) {
	entry := what.entry
	switch what.kind {
	case entryEnded:
		if what.held && what.reason != lock.Withdrawn {
			e.metrics.Held(context.Background(), string(what.reason), what.lasted)
		}
		if what.reason == lock.Expired {
			e.line(what, slog.LevelInfo, "an entry expired", slog.String("lock", entry.Name()),
				slog.String("entry", string(entry.ID)), slog.String("holder", entry.Holder), slog.Bool("held", what.held))
		}
	case deadlockFound:
		e.line(what, slog.LevelInfo, "a deadlock was found; the last who came is refused", slog.String("lock", entry.Name()),
			slog.String("holder", entry.Holder), slog.Int("cycle_length", what.waits))
	case ordersContradict:
		attrs := []slog.Attr{slog.String("ring", what.ring.String())}
		if what.silenced > 0 {
			attrs = append(attrs, slog.Uint64("silenced", what.silenced))
		}
		e.line(what, slog.LevelWarn, "locks are taken in orders that contradict each other; a deadlock is possible", attrs...)
	case feedOutOfOrder:
		e.line(what, slog.LevelError, "the feed is out of order; the entry is passed over",
			slog.String("entry", string(entry.ID)), slog.Any("error", what.err))
	}
}

// line logs an event with the time at which it happened.
func (e *events) line(what event, level slog.Level, text string, more ...slog.Attr) {
	ctx := context.Background()
	if !e.log.Enabled(ctx, level) {
		return
	}
	r := slog.NewRecord(what.at, level, text, 0)
	r.AddAttrs(slog.String("tenant", what.entry.Tenant), slog.Uint64("number", what.number))
	r.AddAttrs(more...)
	_ = e.log.Handler().Handle(ctx, r) // as slog.Logger does: there is nobody to tell
}
