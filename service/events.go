package service

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/figures"
	"github.com/fencepost/fencepost/service/view"
)

// noted is one event, finding or contradiction for the log and the metrics.
type noted struct {
	event   lock.Event
	finding *view.Finding // nil if there is none
	orders  *figures.Contradiction
}

const (
	maxEvents  = 4096                  // that wait for the log
	eventDelay = 10 * time.Millisecond // for how long events are gathered
)

// dispatcher passes what happened in the view to the log and the metrics, in its own goroutine,
// so that a slow log cannot delay a grant. While the log is slow, it keeps the first maxEvents
// and counts the rest. The view itself counts what must be exact.
type dispatcher struct {
	metrics Metrics
	log     *slog.Logger

	ready   chan struct{} // holds a value after the queue became non-empty
	closing chan struct{}
	closed  sync.Once
	done    chan struct{}

	dropped atomic.Uint64

	mu      sync.Mutex
	pending []noted
}

// newDispatcher starts the goroutine, which runs until close.
func newDispatcher(m Metrics, log *slog.Logger) *dispatcher {
	e := &dispatcher{
		metrics: m, log: log,
		ready: make(chan struct{}, 1), closing: make(chan struct{}), done: make(chan struct{}),
	}
	go e.run()
	return e
}

// Add implements [view.Events]. It ignores events that are not ends.
func (e *dispatcher) Add(what lock.Event) {
	if what.Reason != "" {
		e.note(noted{event: what})
	}
}

// Find implements [view.Events].
func (e *dispatcher) Find(what view.Finding) {
	e.note(noted{finding: &what})
}

// contradicts takes a contradiction of orders of locks.
func (e *dispatcher) contradicts(what figures.Contradiction) {
	if !what.Quiet {
		e.note(noted{orders: &what})
	}
}

// note queues an event or finding; it never waits.
func (e *dispatcher) note(what noted) {
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

// close writes what is left and waits for that. Calling it again is safe.
func (e *dispatcher) close() {
	e.closed.Do(func() { close(e.closing) })
	<-e.done
}

func (e *dispatcher) run() {
	defer close(e.done)
	var spare []noted
	reported := uint64(0)
	for open := true; open; {
		open = e.gather()
		e.mu.Lock()
		batch := e.pending
		e.pending = spare[:0]
		e.mu.Unlock()
		for _, what := range batch {
			e.report(what)
		}
		clear(batch) // drops references to entries that are gone
		spare = batch
		if n := e.dropped.Load(); n > reported {
			e.log.Warn(
				"events came too fast; they are missing from the log and from the hold times",
				"dropped", n-reported,
			)
			reported = n
		}
	}
}

// gather waits for a first event, and then for those that follow it closely. It returns false
// after close.
func (e *dispatcher) gather() bool {
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

func (e *dispatcher) report(what noted) {
	switch {
	case what.finding != nil:
		e.reportFinding(what.finding)
	case what.orders != nil:
		e.reportOrders(what.orders)
	default:
		e.reportEvent(what.event)
	}
}

func (e *dispatcher) reportEvent(what lock.Event) {
	if what.Held && what.Reason != lock.Withdrawn {
		e.metrics.Held(
			context.Background(), string(what.Entry.Claims[0].Mode), string(what.Reason), what.Lasted,
		)
	}
	if entry := what.Entry; what.Kind == lock.EventExpired {
		e.line(about{what.At, entry, what.ID.Number}, slog.LevelInfo, "an entry expired", slog.String(
			"lock", entry.Name(),
		),
			slog.String("entry", string(entry.ID)), slog.String("holder", entry.Holder), slog.Bool(
				"held", what.Held,
			))
	}
}

func (e *dispatcher) reportFinding(what *view.Finding) {
	entry, of := what.Entry, about{what.At, what.Entry, what.Number}
	switch what.Kind {
	case view.DeadlockFound:
		e.line(of, slog.LevelInfo, "a deadlock was found; the last who came is refused", slog.String(
			"lock", entry.Name(),
		),
			slog.String("holder", entry.Holder), slog.Int("cycle_length", what.Waits))
	case view.FeedOutOfOrder:
		e.line(of, slog.LevelError, "the feed is out of order; the entry is passed over",
			slog.String("entry", string(entry.ID)), slog.Any("error", what.Err))
	}
}

func (e *dispatcher) reportOrders(what *figures.Contradiction) {
	attrs := []slog.Attr{slog.String("ring", what.String())}
	if what.Silenced > 0 {
		attrs = append(attrs, slog.Uint64("silenced", what.Silenced))
	}
	e.line(
		about{what.At, what.Entry, what.Number}, slog.LevelWarn,
		"locks are taken in orders that contradict each other; a deadlock is possible", attrs...,
	)
}

// about is the subject of a log line, and when the event happened.
type about struct {
	at     time.Time
	entry  *lock.Entry
	number uint64
}

// line logs an event with the time at which it happened.
func (e *dispatcher) line(what about, level slog.Level, text string, more ...slog.Attr) {
	ctx := context.Background()
	if !e.log.Enabled(ctx, level) {
		return
	}
	r := slog.NewRecord(what.at, level, text, 0)
	r.AddAttrs(slog.String("tenant", what.entry.Tenant), slog.Uint64("number", what.number))
	r.AddAttrs(more...)
	_ = e.log.Handler().Handle(ctx, r) // as slog.Logger does
}
