package zookeeper

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/fencepost/fencepost/lock"
)

const storeRetryAfter = time.Second

// unavailable translates an error at the boundary.
func unavailable(err error, doing string, ambiguous bool) *lock.Error {
	e := &lock.Error{
		Code: lock.StoreUnavailable, Detail: "the store did not answer in time", RetryAfter: storeRetryAfter,
		Ambiguous: ambiguous, Cause: &operationError{doing, err},
	}
	if errors.Is(err, zk.ErrNoAuth) || errors.Is(err, errRefused) {
		e.Detail = "the store does not let this server in"
	}
	return e
}

func errLost(detail string) *lock.Error { return &lock.Error{Code: lock.Lost, Detail: detail} }

type operationError struct {
	doing string
	cause error
}

func (e *operationError) Error() string { return e.doing + ": " + e.cause.Error() }
func (e *operationError) Unwrap() error { return e.cause }

// answered reports whether the server itself said that it did not execute a
// request.
func answered(err error) bool {
	for _, definite := range []error{
		zk.ErrNoNode, zk.ErrNodeExists, zk.ErrBadVersion, zk.ErrNotEmpty, zk.ErrNoAuth, zk.ErrInvalidACL,
		zk.ErrNoChildrenForEphemerals, zk.ErrAPIError, zk.ErrBadArguments, zk.ErrInvalidPath,
	} {
		if errors.Is(err, definite) {
			return true
		}
	}
	return false
}

// harmless reports whether a write with this error cannot have happened and
// never will. [zk.ErrNoServer] is given to what was not sent.
func harmless(err error) bool {
	var unsent *notSent
	return answered(err) || errors.As(err, &unsent) || errors.Is(err, zk.ErrNoServer)
}

// pause waits before the next attempt of an operation, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
