package store

import (
	"errors"
	"fmt"
	"time"

	"github.com/fencepost/fencepost/lock"
)

// Form is the highest form of stored data that this code understands, and the highest that it
// writes.
//
// A change raises the form if a reader of the form before would misread it: it would grant,
// remove or reject something that it must not. Data that such a reader can ignore does not raise
// it. A higher form may have more fields, and give existing fields another meaning, but not
// another JSON type.
//
//	1  entries that their clients keep
//	2  entries that the replicas keep ([lock.Entry.Async])
//	3  closures as entries. Closures are records now, so nothing is written in it any more. Such
//	   an entry of an earlier version belongs to a lock that no client requests
//	4  a tenant's closures as one record ([ClosuresKey]), which each put of an entry compares
//
// Form 1 is written as 0, as it was before there were forms.
const Form = 4

// formAsync is the form of entries that the replicas keep. A replica that knows only form 1
// grants correctly, but neither keeps these entries nor sends their callbacks. It would report
// that it is ready while their leases end.
const formAsync = 2

// FormOf returns the lowest form that a reader of e must understand.
func FormOf(e *lock.Entry) int {
	if e.Async {
		return formAsync
	}
	return 1
}

// formClosures is the form of closures with which puts of entries are compared. An older version
// compares nothing, so its entries would join after a closure.
const formClosures = 4

// FormOfRecord returns the lowest form that a user of a store with the record must understand.
func FormOfRecord(k RecordKey) int {
	if k == ClosuresKey(k.Tenant) {
		return formClosures
	}
	return 1
}

// ErrNewerForm is the cause of an error about stored data that this code does not understand.
// Other replicas may still work.
var ErrNewerForm = errors.New("the store is in use by a newer version of the server")

// NewerFormError reports stored data in a form that is not understood.
type NewerFormError struct{ Form, Understood int }

// Error describes the form.
func (e *NewerFormError) Error() string {
	return fmt.Sprintf("%v: what it holds is of form %d, and this version understands up to form %d; "+
		"nothing is granted here, start the newer version again", ErrNewerForm, e.Form, e.Understood)
}

// Is reports whether target is [ErrNewerForm].
func (e *NewerFormError) Is(target error) bool { return target == ErrNewerForm }

// Newer represents an entry of a form that is not understood. It is in the one queue that its key
// names, alone, for so long that no reader takes it for expired. A replica that has read one
// grants nothing.
func Newer(key Key, number uint64, handle int64) *lock.Entry {
	return &lock.Entry{
		ID: key.ID, Tenant: key.Tenant, Claims: []lock.Claim{{Name: key.Lock, Mode: lock.Exclusive}},
		Opaque: true, Holder: "unknown", TTL: lock.MaxTTL,
		EnqueuedAt: time.Now().UTC().Truncate(time.Millisecond),
		Number:     number, Handle: handle,
	}
}
