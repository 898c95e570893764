package engine

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/test/bubble"
)

// tableOfOne is a table with one record, whose looks and swaps can be tampered with.
type tableOfOne struct {
	now    RecordState
	number uint64
	looks  func(s RecordState, fresh bool) (RecordState, error)
	after  func(swap int) error // of a swap that was done
	swaps  int
}

func (t *tableOfOne) Look(_ context.Context, _ store.RecordKey, fresh bool) (RecordState, error) {
	if t.looks != nil {
		return t.looks(t.now, fresh)
	}
	return t.now, nil
}

func (t *tableOfOne) Swap(_ context.Context, s RecordState, w *RecordWrite) (uint64, error) {
	if s.Found != t.now.Found || s.Version != t.now.Version || s.Stamp != t.now.Stamp {
		return 0, ErrRaced
	}
	t.number++
	t.now = RecordState{State: State{Found: true, Stamp: t.now.Stamp}, Version: t.number, Form: w.Form}
	if w.Delete {
		t.gone()
	}
	version := t.number
	t.swaps++
	if t.after != nil {
		return version, t.after(t.swaps)
	}
	return version, nil
}

func (t *tableOfOne) gone() { t.now = RecordState{State: State{Stamp: t.now.Stamp + 1}} }

var (
	oneKey   = store.RecordKey{Kind: "note", Tenant: "acme", ID: "one"}
	errNoise = errors.New("no answer")
)

func wantOutcome(t *testing.T, err error, code lock.Code, ambiguous bool) {
	t.Helper()
	var typed *lock.Error
	if !errors.As(err, &typed) || typed.Code != code || typed.OutcomeUnknown != ambiguous {
		t.Errorf("the call ended with %v, want %s, ambiguous: %t", err, code, ambiguous)
	}
}

// TestRecordLostAnswer loses the answer to a write that was done: it is found again, and
// not done twice.
func TestRecordLostAnswer(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		table := &tableOfOne{after: func(int) error { return errNoise }}
		put := store.RecordPut{RecordKey: oneKey, Value: []byte("a")}
		version, err := PutRecord(t.Context(), table, put)
		if err != nil || version != 1 || table.swaps != 1 {
			t.Errorf("a put = %d, %v after %d writes", version, err, table.swaps)
		}
		_, err = PutRecord(t.Context(), table, put)
		wantOutcome(t, err, lock.Changed, false)
		err = DeleteRecord(t.Context(), table, oneKey, 1)
		wantOutcome(t, err, lock.NotFound, true)
	})
}

// TestRecordReplacedMeanwhile: another client replaces or deletes what a call wrote, before the
// call learns that it did.
func TestRecordReplacedMeanwhile(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		table := &tableOfOne{}
		table.after = func(int) error {
			table.now.Mark, table.now.Version = "another", 7
			return errNoise
		}
		_, err := PutRecord(t.Context(), table, store.RecordPut{RecordKey: oneKey})
		wantOutcome(t, err, lock.Changed, true)
		table = &tableOfOne{}
		table.after = func(int) error { table.gone(); return errNoise }
		_, err = PutRecord(t.Context(), table, store.RecordPut{RecordKey: oneKey})
		wantOutcome(t, err, lock.StoreUnavailable, true)
		if table.swaps != 1 || table.now.Found {
			t.Errorf("a record that was deleted came back, by %d writes", table.swaps)
		}
	})
}

// TestRecordOldLook reads from a member that is behind: nothing is refused because of
// that.
func TestRecordOldLook(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		table := &tableOfOne{number: 5, now: RecordState{State: State{Found: true}, Version: 5}}
		table.looks = func(s RecordState, fresh bool) (RecordState, error) {
			if !fresh {
				return RecordState{State: State{Found: true}, Version: 4}, nil
			}
			return s, nil
		}
		version, err := PutRecord(t.Context(), table, store.RecordPut{RecordKey: oneKey, Version: 5})
		if err != nil || version != 6 {
			t.Errorf("a put = %d, %v", version, err)
		}
	})
}

// TestRecordOfASilentStore checks what is said when time is over.
func TestRecordOfASilentStore(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		silent := func(RecordState, bool) (RecordState, error) { return RecordState{}, errNoise }
		table := &tableOfOne{looks: silent}
		_, err := PutRecord(t.Context(), table, store.RecordPut{RecordKey: oneKey})
		wantOutcome(t, err, lock.StoreUnavailable, false)
		_, err = GetRecord(t.Context(), table, oneKey)
		wantOutcome(t, err, lock.StoreUnavailable, false)
		table = &tableOfOne{}
		table.after = func(int) error { table.looks = silent; return errNoise }
		_, err = PutRecord(t.Context(), table, store.RecordPut{RecordKey: oneKey})
		wantOutcome(t, err, lock.StoreUnavailable, true)
		table.looks = nil
		table.after = func(int) error {
			table.looks = silent
			return &lock.Error{Code: lock.StoreUnavailable}
		}
		_, err = PutRecord(t.Context(), table, store.RecordPut{RecordKey: oneKey, Version: 1})
		wantOutcome(t, err, lock.StoreUnavailable, false)
	})
}

func TestForm(t *testing.T) {
	for _, value := range []string{"", "\n", "1 a b\nc"} {
		for _, life := range []string{"", "L"} {
			f := ParseForm(Form{"M", life, []byte(value)}.Encode())
			if f.Mark != "M" || f.Life != life || string(f.Value) != value {
				t.Errorf("%q of life %q is read as %+v", value, life, f)
			}
		}
	}
	for _, foreign := range []string{
		"", "{}", "2 M -\nvalue", "1 M\nvalue", "1  -\nvalue", "1 M -", "\n",
	} {
		if f := ParseForm([]byte(foreign)); f.Mark != "" || !bytes.Equal(f.Value, []byte(foreign)) {
			t.Errorf("%q is read as %+v", foreign, f)
		}
	}
}

// removalTable is a table whose writes also remove an entry. The first of them arrives after the
// call has looked for it in vain.
type removalTable struct {
	*tableOfOne
	late    func()
	removed bool
}

func (t *removalTable) Swap(ctx context.Context, s RecordState, w *RecordWrite) (uint64, error) {
	if t.late == nil {
		t.late = func() { _, _ = t.tableOfOne.Swap(ctx, s, w) }
		return 0, errNoise
	}
	if !t.removed {
		t.removed = true
		t.late()
	}
	return 0, store.Lost("the entry is gone")
}

// TestRemovalFoundLate has a removal with a record happen after the call has looked for its
// record, and before it tries again: it was this call that did it.
func TestRemovalFoundLate(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		table := &removalTable{tableOfOne: &tableOfOne{}}
		version, err := PutRecord(t.Context(), table, store.RecordPut{RecordKey: oneKey})
		if err != nil || version != 1 {
			t.Errorf("a removal that happened = %d, %v", version, err)
		}
		table = &removalTable{tableOfOne: &tableOfOne{}, removed: true}
		_, err = PutRecord(t.Context(), table, store.RecordPut{RecordKey: oneKey})
		wantOutcome(t, err, lock.Lost, false)
		table = &removalTable{tableOfOne: &tableOfOne{}}
		table.looks = func(s RecordState, _ bool) (RecordState, error) {
			if s.Found {
				s.Mark = "another"
			}
			return s, nil
		}
		_, err = PutRecord(t.Context(), table, store.RecordPut{RecordKey: oneKey})
		wantOutcome(t, err, lock.Lost, true)
	})
}
