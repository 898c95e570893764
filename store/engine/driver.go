// Package engine has what all stores do alike, over single attempts: joins ([Attempts]), removals
// ([Removal]), small records and the store's own record ([Driver]).
package engine

import (
	"context"
	"errors"

	"github.com/fencepost/fencepost/lock"
)

// Driver keeps values under keys for all replicas. It knows keys, values, positions and lives, but
// not what they mean.
//
// Look and Commit are one attempt each, and end within the driver's own deadline. An answer is
// reported to the store's [store.Trust], unless it is a look at [MetaKey]: what that proves is
// decided with what it says.
type Driver interface {
	// Look reads the state of a key. With fresh it is no older than the call.
	Look(ctx context.Context, k Key, fresh bool) (State, error)

	// Commit makes all the writes at one position, if every condition holds then. The key of each
	// write is among the conditions; a transaction about [MetaKey] has one of each. An error is
	// [Raced] if a condition does not hold, [ErrLifeOver] if a life is over, [Full] if the store says
	// that it is, or [batch.ErrNotSent]: then nothing was or will be written, except that a full
	// store may have done so. After any other error but a *lock.Error the writes may have happened,
	// or may still happen while their conditions hold.
	Commit(ctx context.Context, t Txn) (position int64, err error)

	// List passes the states of the keys of a directory on. Each is no older than the call.
	List(ctx context.Context, l Listing) (next string, err error)

	// Follow calls changed at once, and after every write or deletion in the directory, until
	// something fails or ctx ends.
	Follow(ctx context.Context, dir string, changed func()) error

	Lives
}

// Key names a value. Neither part begins or ends with a slash.
type Key struct {
	Dir  string // "" is that of [MetaKey] alone
	Name string // a tenant and an id, with a slash between them
}

// MetaKey is the key of the store's own record, see [Meta].
func MetaKey() Key { return Key{Name: "meta"} }

// State is what a key has at some moment.
type State struct {
	Found    bool
	Data     []byte
	Position int64 // of the last write of the value; 0 if there is none

	// Stamp differs once a value of the key was deleted, and perhaps more often. It gives "no value"
	// an identity: what was sent before a value was made and deleted does not bring it back. A
	// condition compares Position if there was a value, and else Stamp. A store may compare more.
	Stamp int64

	At At // of a look at [MetaKey]
}

// At is what a linearizable answer says of the store itself.
type At struct {
	Position int64  // the store's newest
	Cluster  uint64 // the cluster that answers; 0 if the store has no identity
}

// Txn is a transaction.
type Txn struct {
	If  []If
	Put []Put

	// Frees means that the store is smaller in the end. It may use the space that a store keeps free.
	Frees bool
}

// If is the condition that a key is as it was.
type If struct {
	Key Key
	Was State
}

// Put writes the value of a key, or deletes it.
type Put struct {
	Key    Key
	Value  []byte
	Delete bool

	// Life is the life to which the value is bound from now on, and Was the one to which the value
	// before it was; "" is none.
	Life, Was string
}

// Listing is a part of a directory to list, in an order of the driver's own.
type Listing struct {
	Dir         string
	Cursor      string // that the part before returned; "" begins
	From, Until string // only names from this one on, and before that one; "" has no bound
	Limit       int    // how many the caller expects to take

	// Seek returns the first name, from this one on, that the caller may want.
	Seek func(name string) string
	// Take receives a state, without a Stamp. If it returns false, the list ends before that one, and
	// the cursor of the rest is returned. A list can also end early, with the cursor of what is left.
	Take func(name string, s State) bool
}

// Wants reports whether the listing selects a name.
func (l *Listing) Wants(name string) bool {
	return name >= l.From && (l.Until == "" || name < l.Until) && l.Seek(name) == name
}

// Raced means that a condition did not hold, and that nothing was written.
type Raced struct {
	If int // the index of the condition; -1 if it is not known
}

func (*Raced) Error() string { return "a condition of the write does not hold" }

// Full means that the store says that it is full. It may have written nevertheless.
type Full struct{ Cause *lock.Error }

func (f *Full) Error() string { return f.Cause.Error() }

// Unwrap leaves Cause out: a *lock.Error would mean that nothing was written.
func (f *Full) Unwrap() error { return f.Cause.Cause }

// isRaced reports whether a condition did not hold.
func isRaced(err error) bool {
	_, ok := errors.AsType[*Raced](err)
	return ok
}
