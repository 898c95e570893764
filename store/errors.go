package store

import (
	"errors"
	"fmt"
	"time"

	"github.com/fencepost/fencepost/lock"
)

const retryAfter = time.Second

// ErrTakenBack says that a call of [Store].Enqueue wrote its entry late, and took it back before
// anybody was told of it: nothing of the call is in the store, nor ever will be.
var ErrTakenBack = errors.New("the entry was written late and taken back")

// Unavailable says that the store could not be asked to do what it is doing, and
// why. ambiguous says that one of the attempts may have happened, whatever became
// of the last one.
func Unavailable(err error, doing string, unknown bool) *lock.Error {
	return &lock.Error{
		Code: lock.StoreUnavailable, Detail: "the store did not answer in time", RetryAfter: retryAfter,
		OutcomeUnknown: unknown, Cause: &operationError{doing, err},
	}
}

type operationError struct {
	doing string
	cause error
}

func (e *operationError) Error() string { return e.doing + ": " + e.cause.Error() }
func (e *operationError) Unwrap() error { return e.cause }

// Lost says that an entry is not in the store.
func Lost(detail string) *lock.Error { return &lock.Error{Code: lock.Lost, Detail: detail} }

// ErrRecords says that the records that a store keeps of itself were deleted or changed by hand.
var ErrRecords = errors.New("the store's own records were deleted or changed by hand")

// RecordsDamaged returns an ErrRecords that names the records and says how to fix them. Without
// the fence floor among them, fences could be handed out a second time.
func RecordsDamaged(path string) error {
	return fmt.Errorf("%w, at %s%s, or to 1 if no floor was ever set", ErrRecords, path, remedy)
}

const remedy = "; nothing is granted until all servers are stopped and one is started with " +
	"--fence-floor set above every fence ever handed out"
