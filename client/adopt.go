package client

import (
	"context"
	"errors"
	"strings"

	"github.com/fencepost/fencepost/api"
)

// Adopt takes over a lock by the token of the process that acquired it, see [Held.Token]. It renews
// the lock, and continues until it is released or lost. The other process has to close its client,
// or to end, and does not release. Of options it uses Margin,
// OnReleaseRequested and AtLeast, from now on.
//
// It returns a [LostError] if the lock has passed on, or the entry still waits. A failed Adopt
// releases nothing. A set of locks cannot be adopted.
func (c *Client) Adopt(
	ctx context.Context, name, token string, options Options,
) (*Held, error) {
	if err := options.check(); err != nil {
		return nil, err
	}
	of, asked := target{name: name}, &entry{Token: strings.TrimSpace(token)}
	var e *entry
	var since reading
	err := c.repeat(
		ctx, c.within(c.config.RetryFor), func(ctx context.Context, base string) (err error) {
			since = c.config.clock()
			e, _, err = c.tryEntry(ctx, base, renewal(of, asked))
			return err
		},
	)
	var problem *Error
	switch {
	case errors.As(err, &problem) && problem.Code == api.Lost:
		return nil, lostOf(name, problem)
	case err != nil:
		return nil, err
	case e.State != stateHeld:
		return nil, &LostError{Name: name, Reason: ReasonNotGranted}
	}
	return c.hold(ctx, of, e, options, since)
}
