package memory

import (
	"context"
	"errors"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/engine"
)

const retryPause = 50 * time.Millisecond

// none is the answer of a request that returns only an error.
type none = struct{}

// reply is an answer with the server's number at that time.
type reply[T any] struct {
	value  T
	number uint64
}

// once sends a request over the wire, once. The answer counts only if it arrives while the caller
// waits.
func once[T any](
	ctx context.Context,
	c *Client,
	op Operation,
	id lock.ID,
	do func() (T, uint64, error),
) (answer T, err error) {
	ctx, cancel := context.WithTimeout(ctx, attemptLimit)
	defer cancel()
	if ctx.Err() != nil {
		return answer, ErrUnsent
	}
	known := c.newest()
	answered := make(chan reply[T], 1) // a late one finds no receiver
	err = c.wire.Call(ctx, op, id, c.together(op, func() error {
		value, number, err := do()
		select {
		case answered <- reply[T]{value, number}:
		default:
		}
		return err
	}))
	full := (*engine.Full)(nil)
	if unanswered(err) || errors.As(err, &full) {
		return answer, err
	}
	got := <-answered
	if c.note(known, got.number) && op != Distrust {
		c.lostPast(ctx, known)
	}
	return got.value, err
}

// together has a write wait for others, if the server is so configured.
func (c *Client) together(op Operation, do func() error) func() error {
	within := c.server.cfg.Together
	if within == 0 || op != Put && op != Remove && op != Narrow {
		return do
	}
	return func() error { return c.group.carryOut(c.server, within, do) }
}

func (c *Client) doubt(more int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.doubts += more
}

func unanswered(err error) bool { return errors.Is(err, ErrUnknown) || errors.Is(err, ErrUnsent) }

// lostPast reports that the server's newest number is below an earlier one.
func (c *Client) lostPast(ctx context.Context, known uint64) {
	c.doubt(1)
	c.inBackground(ctx, func(ctx context.Context) {
		defer c.doubt(-1)
		untilDone(ctx, c, Distrust, "", c.distrusting(known))
	})
}

// ask repeats an unanswered request until the call's deadline.
func ask[T any](
	ctx context.Context,
	c *Client,
	op Operation,
	id lock.ID,
	do func() (T, uint64, error),
) (answer T, err error) {
	if ctx.Err() != nil {
		return answer, store.Unavailable(ctx.Err(), string(op), false)
	}
	ctx, cancel := context.WithTimeout(ctx, c.server.cfg.CallLimit)
	defer cancel()
	for unknown := false; ; {
		answer, err = once(ctx, c, op, id, do)
		if !unanswered(err) {
			return answer, err
		}
		unknown = unknown || errors.Is(err, ErrUnknown)
		if ctx.Err() != nil || store.Pause(ctx, retryPause) != nil {
			return answer, store.Unavailable(err, string(op), unknown && op == Remove)
		}
	}
}

// untilDone repeats a request until the server has answered it, or ctx ends.
func untilDone[T any](
	ctx context.Context,
	c *Client,
	op Operation,
	id lock.ID,
	do func() (T, uint64, error),
) {
	for {
		if _, err := once(ctx, c, op, id, do); !unanswered(err) || store.Pause(ctx, retryPause) != nil {
			return
		}
	}
}
