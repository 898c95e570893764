package batch

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/fencepost/fencepost/lock"
)

// Write is one call's part of a batch. P is what the adapter makes the batch of, O what
// it tells of each write. A write is handed to [Committer.Do] once.
type Write[P, O any] struct {
	Tenant string // whose pending writes are counted together

	// Keys are what no two writes of one batch may share: the queues that this one
	// joins (their entries would get one number), and the keys of the store that it
	// touches. Writes with a key in common are sent in the order in which they came.
	Keys []string

	Ops, Bytes int // its size

	// Lingers says that it makes no difference if the write is sent a little later.
	Lingers bool

	// Within is how long the write may have to wait at most, as far as that can be told
	// when it comes; 0 leaves that to [Backlog].
	Within time.Duration

	// Due is when Do stops waiting for the outcome; zero: when its ctx ends. If the
	// write is still pending then, and others are being written, Do waits on: it is no
	// sign of a store that is lost that many have come at once.
	Due time.Time

	// Must says that the write is never refused because others are pending. It is for
	// removals, and for repeating what may have happened already.
	Must bool

	Payload P

	// OutcomeUnknown says of a write that is handed back that it may have been executed all the
	// same. The send function sets it.
	OutcomeUnknown bool

	request   trace.SpanContext // whose write it is, if somebody traces
	out       O
	err       error
	done      chan struct{}
	abandoned atomic.Bool
	retried   bool // handed back by the send function
	arrived   time.Time
	taken     time.Time // into a batch
	waited    time.Duration
	pending   pendingState[P, O]
}

// ErrNotSent says of a write that it was not executed and will not be.
var ErrNotSent = errors.New("the request ended before its write was sent")

// ErrUnknown says that a write is under way and that its caller did not wait for its
// outcome. [Write.Late] tells it.
var ErrUnknown = errors.New("the request ended before the outcome of its write was known")

// Settle tells the outcome of a write. The send function calls it once for each write
// that it does not hand back. err is the adapter's own.
func (w *Write[P, O]) Settle(out O, err error) {
	w.out, w.err = out, err
	close(w.done)
}

// Abandoned reports whether the caller has given up. It may have repeated the write
// elsewhere by now, and even removed what it wrote, so it must not be sent again.
func (w *Write[P, O]) Abandoned() bool { return w.abandoned.Load() }

// Waited returns for how long the write was pending while others were written, once
// [Committer.Do] has returned and it was sent.
func (w *Write[P, O]) Waited() time.Duration { return w.waited }

// WithinOf returns for how long an entry may wait to be written: no longer than its
// request would wait for the grant.
func WithinOf(e *lock.Entry) time.Duration {
	const atLeast = 2 * time.Second
	if e.WaitUntil.IsZero() {
		return atLeast
	}
	return max(atLeast, e.WaitUntil.Sub(e.EnqueuedAt))
}

// Late waits for the outcome of a write that [Committer.Do] answered with [ErrUnknown].
// It can return ErrNotSent too.
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
