package store

import (
	"context"
	"crypto/rand"
	"errors"
	mathrand "math/rand/v2"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store/batch"
)

// Pauses and the deadline of actions on a small record.
const (
	recordTimeout = 4 * time.Second
	recordPause   = 20 * time.Millisecond
)

// RecordTable is an adapter's part in small records: one attempt at each action. [GetRecord],
// [PutRecord] and [DeleteRecord] build the calls of [RecordStore] from them.
type RecordTable interface {
	// Look reads the state of a key. With fresh it is no older than the call.
	Look(ctx context.Context, k RecordKey, fresh bool) (RecordState, error)

	// Swap writes w if the state of its key is still s, and returns the version. [ErrRecordRaced]
	// means that the state differed and nothing was written; [batch.ErrNotSent] that the write was
	// not tried. A *lock.Error ends the call. After any other error it is unknown whether the write
	// happened or will.
	Swap(ctx context.Context, s RecordState, w *RecordWrite) (version uint64, err error)
}

// RecordState is the state of a key.
type RecordState struct {
	Found   bool
	Version uint64
	RecordForm

	// Guard changes whenever a record under this key is deleted, and perhaps more often. It gives
	// "no record" an identity: a write that was sent before a record was made and deleted does not
	// bring it back.
	Guard int64
}

// RecordWrite is a put, or a deletion.
type RecordWrite struct {
	RecordKey
	Version uint64 // to compare with; 0 none
	Delete  bool
	Bound   bool
	RecordForm
}

// ErrRecordRaced means that a record has changed since it was read.
var ErrRecordRaced = errors.New("the record has changed since it was read")

// CheckRemovalPut returns what is wrong with a record that is put together with a removal.
func CheckRemovalPut(p RecordPut) error {
	if p.Bound {
		return lock.Invalid("bound", "is not for a record that is put with a removal")
	}
	return nil
}

// GetRecord returns the record of a key.
func GetRecord(ctx context.Context, t RecordTable, k RecordKey) (Record, error) {
	if err := k.check(); err != nil {
		return Record{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	s, err := lookUntil(ctx, t, k, true)
	switch {
	case err != nil:
		return Record{}, Unavailable(err, "read a record", false)
	case !s.Found:
		return Record{}, noRecord()
	}
	return Record{k, s.Value, s.Version}, nil
}

// lookUntil repeats a look until there is an answer or ctx ends.
func lookUntil(
	ctx context.Context, t RecordTable, k RecordKey, fresh bool,
) (s RecordState, err error) {
	for {
		if ctx.Err() != nil {
			return s, errors.Join(ctx.Err(), err)
		}
		if s, err = t.Look(ctx, k, fresh); err == nil {
			return s, nil
		}
		if Pause(ctx, recordPause) != nil {
			return s, err
		}
	}
}

// PutRecord writes a record.
func PutRecord(ctx context.Context, t RecordTable, p RecordPut) (version uint64, err error) {
	if err := p.check(); err != nil {
		return 0, err
	}
	if len(p.Value) > MaxRecordValue {
		return 0, lock.Invalid("value", "has %d bytes, more than %d", len(p.Value), MaxRecordValue)
	}
	form := RecordForm{Mark: rand.Text(), Value: p.Value}
	return swap(
		ctx, t,
		&RecordWrite{RecordKey: p.RecordKey, Version: p.Version, Bound: p.Bound, RecordForm: form},
	)
}

// DeleteRecord removes a record.
func DeleteRecord(ctx context.Context, t RecordTable, k RecordKey, version uint64) error {
	if err := k.check(); err != nil {
		return err
	}
	if version == 0 {
		return lock.Invalid("version", "is 0, which no record has")
	}
	_, err := swap(ctx, t, &RecordWrite{RecordKey: k, Version: version, Delete: true})
	return err
}

// swap looks and writes until it succeeds, or cannot succeed.
func swap(ctx context.Context, t RecordTable, w *RecordWrite) (version uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	a := &recordAttempts{write: w}
	for {
		s, err := lookUntil(ctx, t, w.RecordKey, a.fresh)
		if err != nil {
			return 0, Unavailable(err, "write a record", a.unknown)
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
		if Pause(ctx, mathrand.N(recordPause)) != nil {
			return 0, Unavailable(err, "write a record", a.unknown)
		}
	}
}

// recordAttempts is what a call knows of the attempts at one write.
type recordAttempts struct {
	write   *RecordWrite
	fresh   bool  // the next look must be no older than it
	again   bool  // another look must come before any result
	unknown bool  // one of them may have happened, or still may
	guard   int64 // what those were compared with, if they make a record
}

// decide returns what a state means: the write is done, cannot be done, or must be tried.
func (a *recordAttempts) decide(s RecordState) (done bool, final *lock.Error) {
	w := a.write
	a.again = false
	if !w.Delete && s.Found && s.Mark == w.Mark {
		return true, nil
	}
	final = w.refused(s)
	if final == nil && a.unknown && w.Version == 0 && s.Guard != a.guard {
		// It may have been written and deleted since, and must not be written a second time.
		final = Unavailable(ErrRecordRaced, "write a record", true)
	}
	if final != nil && !a.fresh { // it may have changed, or not be visible yet
		a.fresh, a.again = true, true
		return false, nil
	}
	return false, final
}

// confirm handles a write that found its precondition gone, although an earlier attempt may have
// happened. That attempt would have left its mark, and cannot happen any more.
func (a *recordAttempts) confirm(
	ctx context.Context, t RecordTable, gone *lock.Error,
) (uint64, error) {
	a.fresh = true
	s, err := lookUntil(ctx, t, a.write.RecordKey, true)
	if err != nil {
		return 0, Unavailable(err, "write a record", true)
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
	if !errors.Is(err, ErrRecordRaced) && !errors.Is(err, batch.ErrNotSent) {
		a.unknown, a.guard = true, s.Guard
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
