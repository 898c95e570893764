package store

import (
	"errors"
	"fmt"
	"time"

	"github.com/fencepost/fencepost/lock"
)

const retryAfter = time.Second

// ErrNotWritten means that nothing of a call of [Store].Enqueue is in the store, nor ever will be.
// Its entry may have been there for a moment: no client has learned of it.
var ErrNotWritten = errors.New("the entry is not there, and will not be written")

// ErrClosuresChanged means that the record of a tenant's closures has not the version by which an
// entry was admitted. The entry was not written. A caller that still wants the lock reads the
// closures again.
var ErrClosuresChanged = errors.New("the closures of the tenant have changed")

// Unavailable returns the error for a store that did not answer while doing something, with the
// cause. unknown means that one of the attempts may have taken effect, even if the last one did
// not.
func Unavailable(err error, doing string, unknown bool) *lock.Error {
	return &lock.Error{
		Code: lock.StoreUnavailable, Detail: "the store did not answer in time; " +
			"retry with the same Idempotency-Key", RetryAfter: retryAfter,
		OutcomeUnknown: unknown, Cause: &operationError{doing, err},
	}
}

type operationError struct {
	doing string
	cause error
}

func (e *operationError) Error() string { return e.doing + ": " + e.cause.Error() }
func (e *operationError) Unwrap() error { return e.cause }

// Lost returns the error for an entry that is not in the store.
func Lost(detail string) *lock.Error { return &lock.Error{Code: lock.Lost, Detail: detail} }

// ErrRecords means that the store's own record was deleted or changed by hand.
var ErrRecords = errors.New("the store's own record was deleted or changed by hand")

// RecordsDamaged returns an ErrRecords that names the records and says how to fix them. Without
// the fence floor among them, the store could issue fences a second time.
func RecordsDamaged(path string) error {
	return fmt.Errorf("%w, at %s%s, or to 1 if no floor was ever set", ErrRecords, path, remedy)
}

const remedy = "; nothing is granted until all servers are stopped and one is started with " +
	"--fence-floor set above every fence ever handed out"
