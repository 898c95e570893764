package memory

import (
	"context"
	"errors"
	"slices"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// Enqueue implements [store.Store]. An attempt without an answer is followed by
// another one, which writes nothing if an earlier one did. What is left of the
// attempts at the end is excluded in the background, unless a client can come back for
// what it may write: the contract allows that to come late.
func (c *Client) Enqueue(
	ctx context.Context,
	e *lock.Entry,
) (placed *lock.Entry, written bool, err error) {
	if ctx.Err() != nil {
		return nil, false, store.Unavailable(ctx.Err(), string(Put), false)
	}
	ctx, cancel := context.WithTimeout(ctx, c.server.cfg.CallLimit)
	defer cancel()
	var attempts []Attempt
	var withdrawn uint64 // the number of the withdrawal that the key is free by
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
	if err == nil { // what the others still write, when this one is gone, is not wanted
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
		return c.server.put(attempts, withdrawn, known, c.understood, e)
	})
}

// settle makes sure, however long that takes, that nothing is written by attempts
// that had no answer, and takes back what they have written.
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

// outcomeUnknown is a refusal of the last attempt, after others that may have been
// carried out. That the entry ended says all there is to say.
func outcomeUnknown(err error, unknown bool) error {
	var refused *lock.Error
	if !unknown || !errors.As(err, &refused) || refused.Code == lock.Lost {
		return err
	}
	both := *refused
	both.OutcomeUnknown = true
	return &both
}
