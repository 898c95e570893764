package client

import (
	"context"
	"errors"
	"net/http"

	"github.com/fencepost/fencepost/api"
)

// Lead campaigns for a lock and calls work while this process is the leader. The term is the
// fence: it grows from each leader to the next, and a resource that compares it rejects writes of
// earlier leaders. The context of work ends when the lock is lost, as [Held.Check] also says; work
// has to return then, and Lead campaigns again. If work returns while the lock is held, Lead
// resigns and returns its error.
//
// Lead waits for as long as ctx allows, also while no server answers. Other errors of the acquire,
// such as forbidden, end it.
func (c *Client) Lead(
	ctx context.Context, name string, options Options,
	work func(ctx context.Context, held *Held) error,
) error {
	campaign, stop := until(ctx, c.calls)
	defer stop()
	for pauses := 0; ; pauses++ {
		held, err := c.Lock(ctx, name, options)
		if err == nil {
			pauses = 0
			var lost bool
			if lost, err = lead(held, work); !lost {
				return err
			}
		} else if !passes(err) {
			return err
		}
		if !sleep(campaign, patient(nil).pause(0, pauses)) {
			return cancelled(context.Cause(campaign))
		}
	}
}

// lead runs work while the lock is held, and releases it, also if work panics.
func lead(held *Held, work func(context.Context, *Held) error) (lost bool, err error) {
	defer func() { lost = CodeOf(held.Release(context.WithoutCancel(held.ctx))) == api.Lost }()
	return false, work(held.Context(), held)
}

// passes reports whether a later acquire may succeed.
func passes(err error) bool {
	var problem *Error
	if !errors.As(err, &problem) {
		return CodeOf(err) == api.Lost
	}
	switch status := problem.Status; status {
	case http.StatusLocked, http.StatusTooManyRequests:
		return true
	default:
		return problem.Code == NoAnswer || status >= http.StatusInternalServerError
	}
}
