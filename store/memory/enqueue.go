package memory

import (
	"context"
	"errors"
	"slices"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// Enqueue implements [store.Store]. After an unanswered attempt it makes another one, which
// writes nothing if an earlier one did. In the end the client excludes the remaining attempts in
// the background. It leaves an attempt alone if a client can come back for its entry: the
// contract allows that to come late.
func (c *Client) Enqueue(
	ctx context.Context,
	e *lock.Entry,
) (placed *lock.Entry, written bool, err error) {
	if ctx.Err() != nil || store.IsGone(ctx) {
		return nil, false, store.Unavailable(ErrUnsent, string(Put), false)
	}
	ctx, cancel := context.WithTimeout(ctx, c.server.cfg.CallLimit)
	defer cancel()
	var attempts []Attempt
	var withdrawn uint64 // the number of the withdrawal that freed the key
	unknown := false
	for {
		attempts = append(attempts, c.attempt())
		placed, err = c.put(ctx, slices.Clone(attempts), withdrawn, e)
		if free := (*withdrawnError)(nil); errors.As(err, &free) {
			withdrawn = free.number
			continue
		}
		if !unanswered(err) {
			break
		}
		unknown = unknown || errors.Is(err, ErrUnknown)
		if ctx.Err() != nil || store.Pause(ctx, retryPause) != nil {
			err = store.Unavailable(err, string(Put), unknown)
			break
		}
	}
	if err == nil { // remove what the other attempts may still write after this entry is gone
		others := slices.DeleteFunc(
			slices.Clone(attempts),
			func(a Attempt) bool { return a == Attempt(placed.Handle) },
		)
		attempts, written = others, len(others) < len(attempts)
	}
	if unknown && (err == nil || !e.Resumable()) {
		c.settle(ctx, attempts, e)
	}
	if err != nil {
		return nil, false, outcomeUnknown(err, unknown)
	}
	return placed, written, nil
}

func (c *Client) put(
	ctx context.Context,
	attempts []Attempt,
	withdrawn uint64,
	e *lock.Entry,
) (*lock.Entry, error) {
	known := c.newest()
	return once(ctx, c, Put, e.ID, func() (*lock.Entry, uint64, error) {
		return c.server.put(attempts, withdrawn, known, e)
	})
}

// settle makes sure, however long that takes, that unanswered attempts write nothing, and removes
// what they have written.
func (c *Client) settle(ctx context.Context, attempts []Attempt, e *lock.Entry) {
	c.inBackground(ctx, func(ctx context.Context) {
		untilDone(
			ctx,
			c,
			Exclude,
			e.ID,
			func() (none, uint64, error) { return none{}, c.server.takeBack(attempts, e), nil },
		)
	})
}

// outcomeUnknown marks the error of the last attempt, after others that may have run. An error
// about an ended entry stays as it is.
func outcomeUnknown(err error, unknown bool) error {
	var refused *lock.Error
	if !unknown || !errors.As(err, &refused) || refused.Code == lock.Lost {
		return err
	}
	both := *refused
	both.OutcomeUnknown = true
	return &both
}
