package engine_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/engine"
)

// oneValue is a driver with one value, at position 7, that notes what is written.
type oneValue struct {
	engine.Driver
	wrote int
}

func (*oneValue) Look(context.Context, engine.Key, bool) (engine.State, error) {
	data := engine.Form{Mark: "other", Value: []byte("a")}.Encode()
	return engine.State{Found: true, Position: 7, Data: data}, nil
}

func (d *oneValue) Commit(context.Context, engine.Txn) (int64, error) {
	d.wrote++
	return 8, nil
}

// rising is an own record with a floor that is raised after the first look.
type rising struct{ floor uint64 }

func (*rising) Refusal() *lock.Error         { return nil }
func (*rising) Unchanged() []engine.If       { return nil }
func (*rising) Reread(context.Context) error { return nil }
func (r *rising) Number(position int64) uint64 {
	n := uint64(position) + r.floor
	r.floor = 1000
	return n
}

// TestRecordWhileTheFloorRises: between the look at a record and its write the floor is raised, as
// after a restore. The version that the caller names is that of no record then.
func TestRecordWhileTheFloorRises(t *testing.T) {
	d := &oneValue{}
	r := engine.NewRecords(d, &rising{}, slog.New(slog.DiscardHandler))
	defer r.Close()
	_, err := r.Put(t.Context(), store.RecordPut{
		RecordKey: store.RecordKey{Kind: "note", Tenant: "acme", ID: "one"}, Version: 7,
	})
	if !errors.Is(err, lock.Changed) || d.wrote != 0 {
		t.Errorf("Put = %v after %d writes", err, d.wrote)
	}
}
