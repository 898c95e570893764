package batch

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"
)

// Write is one call's part of a batch. P is what the adapter makes the batch of, O the outcome
// that it reports for each write. A write is handed to [Committer.Do] once.
type Write[P, O any] struct {
	Tenant string // the pending writes of a tenant are bounded together

	// Keys are what no two writes of one batch may share: the queues that this one joins
	// (their entries would get one number), and the keys of the store that it touches.
	// Writes with a key in common are sent in the order of their arrival.
	Keys []string

	Ops, Bytes int // its size

	// Lingers says that sending the write a little later makes no difference.
	Lingers bool

	// Due is when Do stops waiting for the outcome; zero: when its ctx ends. If the write is
	// still pending then, and others are being written, Do goes on for up to [MostPending]:
	// a long queue is no sign of a lost store.
	Due time.Time

	// Must says that the write is never rejected because others are pending: removals, and
	// repetitions of a write that may have been executed.
	Must bool

	Payload P

	// OutcomeUnknown says that a write that the send function hands back may have been
	// executed. The send function sets it.
	OutcomeUnknown bool

	request   trace.SpanContext
	out       O
	err       error
	done      chan struct{}
	abandoned atomic.Bool
	retried   bool // handed back by the send function
	arrived   time.Time
	taken     time.Time // into a batch
	waited    time.Duration
	state     state[P, O]
}

// ErrNotSent says that a write was not executed and will not be.
var ErrNotSent = errors.New("the request ended before its write was sent")

// ErrUnknown says that a write is under way and that its caller stopped waiting for the outcome,
// which [Write.Late] returns.
var ErrUnknown = errors.New("the request ended before the outcome of its write was known")

// Settle sets the outcome of a write. The send function calls it once for each write that it does
// not hand back. err is the adapter's own.
func (w *Write[P, O]) Settle(out O, err error) {
	w.out, w.err = out, err
	close(w.done)
}

// Abandoned reports whether the caller stopped waiting. It may have repeated the write elsewhere
// since, and removed what it wrote, so the write must not be sent again.
func (w *Write[P, O]) Abandoned() bool { return w.abandoned.Load() }

// Waited returns for how long the write was pending while others were written, once
// [Committer.Do] has returned and it was sent.
func (w *Write[P, O]) Waited() time.Duration { return w.waited }

// Late waits for the outcome of a write for which [Committer.Do] returned [ErrUnknown]. It can
// return [ErrNotSent] too.
func (w *Write[P, O]) Late(ctx context.Context) (O, error) {
	select {
	case <-w.done:
		return w.out, w.err
	case <-ctx.Done():
		var none O
		return none, errors.Join(ErrUnknown, ctx.Err())
	}
}

func (w *Write[P, O]) settled() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// notSent settles a write that is not sent, or not sent again.
func (w *Write[P, O]) notSent() {
	var none O
	if w.OutcomeUnknown {
		w.Settle(none, ErrUnknown)
		return
	}
	w.Settle(none, ErrNotSent)
}
