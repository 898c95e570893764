package engine

import (
	"context"
	"crypto/rand"
	"errors"
	mathrand "math/rand/v2"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/batch"
)

// Pauses and the deadline of actions on a small record.
const (
	recordTimeout = 4 * time.Second
	recordPause   = 20 * time.Millisecond
)

// Table is one attempt at each action on small records. [GetRecord], [PutRecord] and
// [DeleteRecord] build the calls of [store.RecordStore] from them.
type Table interface {
	// Look reads the state of a key. With fresh it is no older than the call.
	Look(ctx context.Context, k store.RecordKey, fresh bool) (RecordState, error)

	// Swap writes w if the state of its key is still s, and returns the version. [ErrRaced]
	// means that the state differed and nothing was written; [batch.ErrNotSent] that the write was
	// not tried. A *lock.Error ends the call. After any other error it is unknown whether the write
	// happened or will.
	Swap(ctx context.Context, s RecordState, w *RecordWrite) (version uint64, err error)
}

// RecordState is the state of a record's key.
type RecordState struct {
	State
	Form
	Version uint64
}

// RecordWrite is a put, or a deletion.
type RecordWrite struct {
	store.RecordKey
	Version uint64 // to compare with; 0 none
	Delete  bool
	Bound   bool
	Frees   bool
	Form
}

// ErrRaced means that a record has changed since it was read.
var ErrRaced = errors.New("the record has changed since it was read")

// GetRecord returns the record of a key.
func GetRecord(ctx context.Context, t Table, k store.RecordKey) (store.Record, error) {
	if err := k.Check(); err != nil {
		return store.Record{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	s, err := lookUntil(ctx, t, k, true)
	switch {
	case err != nil:
		return store.Record{}, store.Unavailable(err, "read a record", false)
	case !s.Found:
		return store.Record{}, noRecord()
	}
	return store.Record{RecordKey: k, Value: s.Value, Version: s.Version}, nil
}

// lookUntil repeats a look until there is an answer or ctx ends.
func lookUntil(
	ctx context.Context, t Table, k store.RecordKey, fresh bool,
) (s RecordState, err error) {
	for {
		if ctx.Err() != nil {
			return s, errors.Join(ctx.Err(), err)
		}
		if s, err = t.Look(ctx, k, fresh); err == nil {
			return s, nil
		}
		if store.Pause(ctx, recordPause) != nil {
			return s, err
		}
	}
}

// PutRecord writes a record.
func PutRecord(ctx context.Context, t Table, p store.RecordPut) (version uint64, err error) {
	if err := p.Check(); err != nil {
		return 0, err
	}
	if len(p.Value) > store.MaxRecordValue {
		return 0, lock.Invalid("value", "has %d bytes, more than %d", len(p.Value), store.MaxRecordValue)
	}
	return swap(ctx, t, &RecordWrite{
		RecordKey: p.RecordKey, Version: p.Version, Bound: p.Bound, Frees: p.Frees,
		Form: Form{Mark: rand.Text(), Value: p.Value},
	})
}

// DeleteRecord removes a record.
func DeleteRecord(ctx context.Context, t Table, k store.RecordKey, version uint64) error {
	if err := k.Check(); err != nil {
		return err
	}
	if version == 0 {
		return lock.Invalid("version", "is 0, which no record has")
	}
	_, err := swap(ctx, t, &RecordWrite{RecordKey: k, Version: version, Delete: true, Frees: true})
	return err
}

// swap looks and writes until it succeeds, or cannot succeed.
func swap(ctx context.Context, t Table, w *RecordWrite) (version uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	a := &recordAttempts{write: w}
	for {
		s, err := lookUntil(ctx, t, w.RecordKey, a.fresh)
		if err != nil {
			return 0, store.Unavailable(err, "write a record", a.unknown)
		}
		switch done, final := a.decide(s); {
		case done:
			return s.Version, nil
		case final != nil:
			final.OutcomeUnknown = a.unknown
			return 0, final
		case a.again:
			continue
		}
		version, err = t.Swap(ctx, s, w)
		var final *lock.Error
		switch {
		case err == nil:
			return version, nil
		case errors.As(err, &final) && final.Code == lock.Lost && a.unknown:
			return a.confirm(ctx, t, final)
		case errors.As(err, &final):
			final.OutcomeUnknown = final.OutcomeUnknown || a.unknown
			return 0, final
		}
		a.failed(s, err)
		if store.Pause(ctx, mathrand.N(recordPause)) != nil {
			return 0, store.Unavailable(err, "write a record", a.unknown)
		}
	}
}

// recordAttempts is what a call knows of the attempts at one write.
type recordAttempts struct {
	write   *RecordWrite
	fresh   bool  // the next look must be no older than it
	again   bool  // another look must come before any result
	unknown bool  // one of them may have happened, or still may
	stamp   int64 // what those were compared with, if they make a record
}

// decide returns what a state means: the write is done, cannot be done, or must be tried.
func (a *recordAttempts) decide(s RecordState) (done bool, final *lock.Error) {
	w := a.write
	a.again = false
	if !w.Delete && s.Found && s.Mark == w.Mark {
		return true, nil
	}
	final = w.refused(s)
	if final == nil && a.unknown && w.Version == 0 && s.Stamp != a.stamp {
		// It may have been written and deleted since, and must not be written a second time.
		final = store.Unavailable(ErrRaced, "write a record", true)
	}
	if final != nil && !a.fresh { // it may have changed, or not be visible yet
		a.fresh, a.again = true, true
		return false, nil
	}
	return false, final
}

// confirm handles a write that found its precondition gone, although an earlier attempt may have
// happened. That attempt would have left its mark, and cannot happen any more.
func (a *recordAttempts) confirm(ctx context.Context, t Table, gone *lock.Error) (uint64, error) {
	a.fresh = true
	s, err := lookUntil(ctx, t, a.write.RecordKey, true)
	if err != nil {
		return 0, store.Unavailable(err, "write a record", true)
	}
	done, changed := a.decide(s)
	if done {
		return s.Version, nil
	}
	gone.OutcomeUnknown = changed != nil // a later write has removed the mark, or it never existed
	return 0, gone
}

// failed records a failed attempt.
func (a *recordAttempts) failed(s RecordState, err error) {
	a.fresh = true
	if !errors.Is(err, ErrRaced) && !errors.Is(err, batch.ErrNotSent) {
		a.unknown, a.stamp = true, s.Stamp
	}
}

// refused returns why a record in this state cannot be written.
func (w *RecordWrite) refused(s RecordState) *lock.Error {
	switch {
	case w.Version == 0 && s.Found:
		return lock.Errorf(lock.Changed, "there is a record already")
	case w.Version != 0 && !s.Found:
		return noRecord()
	case w.Version != s.Version && s.Found:
		return lock.Errorf(lock.Changed, "the record has changed since it was read")
	}
	return nil
}

func noRecord() *lock.Error { return lock.Errorf(lock.NotFound, "there is no such record") }
