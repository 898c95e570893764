package batch

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"
)

// Write is one call's part of a batch. P is the adapter's part, O the outcome that it reports for
// each write. A write is passed to [Committer.Do] once.
type Write[P, O any] struct {
	Tenant string // the tenant whose pending writes are bounded together

	// Keys are keys that no two writes of one batch may share. They are the queues that the write
	// joins, because two entries would get one number, and the store keys that it touches. Writes
	// that share a key are sent in the order of their arrival.
	Keys []string

	Ops, Bytes int // its size

	// Lingers means that the write may be sent a little later.
	Lingers bool

	// Due is when Do stops waiting for the outcome; zero is the end of its ctx. If the write is
	// still pending then and other writes proceed, Do waits up to [MostPending] longer, because a
	// long queue is no sign of a lost store.
	Due time.Time

	// Gone, if it is not nil, is closed when the client is gone. Do then withdraws the write if it
	// is pending; otherwise it still waits for the outcome.
	Gone <-chan struct{}

	// Must exempts the write from rejection: removals, and repetitions of a write that may have run.
	Must bool

	Payload P

	// OutcomeUnknown means that a write that the send function returned may have run. The send
	// function sets it.
	OutcomeUnknown bool

	request   trace.SpanContext
	out       O
	err       error
	done      chan struct{}
	abandoned atomic.Bool
	retried   bool // returned by the send function
	arrived   time.Time
	taken     time.Time // into a batch
	waited    time.Duration
	state     state[P, O]
}

// ErrNotSent means that a write did not run and will not.
var ErrNotSent = errors.New("the request ended before its write was sent")

// ErrUnknown means that a write is in flight and its caller has stopped waiting. [Write.Late]
// returns the outcome.
var ErrUnknown = errors.New("the request ended before the outcome of its write was known")

// Settle sets the outcome of a write. The send function calls it once for each write that it does
// not return. err is the adapter's own.
func (w *Write[P, O]) Settle(out O, err error) {
	w.out, w.err = out, err
	close(w.done)
}

// Abandoned reports whether the caller stopped waiting. It may have repeated the write elsewhere
// since, and removed the result, so the write must not be sent again.
func (w *Write[P, O]) Abandoned() bool { return w.abandoned.Load() }

// Waited returns how long the write was pending while others were written, once [Committer.Do]
// has returned and it was sent.
func (w *Write[P, O]) Waited() time.Duration { return w.waited }

// Late waits for the outcome of a write for which [Committer.Do] returned [ErrUnknown]. It can
// also return [ErrNotSent].
func (w *Write[P, O]) Late(ctx context.Context) (O, error) {
	select {
	case <-w.done:
		return w.out, w.err
	case <-ctx.Done():
		var none O
		return none, errors.Join(ErrUnknown, ctx.Err())
	}
}

func (w *Write[P, O]) gone() bool {
	select {
	case <-w.Gone:
		return true
	default:
		return false
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
