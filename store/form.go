package store

import (
	"errors"
	"fmt"
	"time"

	"github.com/fencepost/fencepost/lock"
)

// Form is the highest form of what is stored that this code understands, and the
// highest that it writes.
//
// A form is raised by what a reader of the one before would treat wrong: it would
// grant, remove or refuse something that it must not. What such a reader can pass over
// raises none. A higher form may have more fields, and give another meaning to those
// that are there, but not another JSON type.
//
//	1  entries that their clients keep
//	2  entries that the replicas keep ([lock.Entry.Async])
//	3  closures as entries, which are records now: nothing is written in it any more, and such
//	   an entry of an earlier version is one of a lock that nobody asks for
//
// A form is written as 0 if it is 1, as it was before there were forms.
const Form = 3

// formAsync is that of entries that the replicas keep. A replica that knows only form 1
// grants as it should, but it keeps none of them and calls nobody back: it would say that
// it is ready to serve while their places lapse.
const formAsync = 2

// FormOf returns the lowest form that whoever reads e has to understand.
func FormOf(e *lock.Entry) int {
	if e.Async {
		return formAsync
	}
	return 1
}

// ErrNewerForm is the cause of a refusal, or of an error of opening a store, that holds
// what this code does not understand. Other replicas may go on.
var ErrNewerForm = errors.New("the store is in use by a newer version of the server")

// NewerFormError says that something is stored in a form that is not understood.
type NewerFormError struct{ Form, Understood int }

// Error says which form it is.
func (e *NewerFormError) Error() string {
	return fmt.Sprintf("%v: what it holds is of form %d, and this version understands up to form %d; "+
		"nothing is granted here, start the newer version again", ErrNewerForm, e.Form, e.Understood)
}

// Is reports whether target is [ErrNewerForm].
func (e *NewerFormError) Is(target error) bool { return target == ErrNewerForm }

// Newer stands for an entry of a form that is not understood: in the one queue that is
// known to be its, alone, and for so long that nobody here takes it for expired. Who has met one
// grants nothing.
func Newer(key Key, number uint64, handle int64) *lock.Entry {
	return &lock.Entry{
		ID: key.ID, Tenant: key.Tenant, Claims: []lock.Claim{{Name: key.Lock, Mode: lock.Exclusive}},
		Opaque: true, Holder: "unknown", TTL: lock.MaxTTL,
		EnqueuedAt: time.Now().UTC().Truncate(time.Millisecond),
		Number:     number, Handle: handle,
	}
}
