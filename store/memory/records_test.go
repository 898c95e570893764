package memory_test

import (
	"context"
	"errors"
	"testing"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/engine"
	"github.com/fencepost/fencepost/store/memory"
	"github.com/fencepost/fencepost/store/storetest"
)

// TestRecordsConformance runs what every store's small records have to pass.
func TestRecordsConformance(t *testing.T) {
	storetest.RunRecords(t, storetest.RecordHarness{Open: openRecords, OpenAlone: openRecords})
}

func openRecords(t *testing.T) storetest.RecordClients {
	s := memory.NewServer(memory.Config{})
	t.Cleanup(s.Close)
	cable := memory.NewCable()
	a, b := s.Connect(nil), s.Connect(cable)
	t.Cleanup(a.Close)
	t.Cleanup(b.Close)
	return storetest.RecordClients{
		A: a.Records(), B: b.Records(), CloseB: b.Close,
		CutB: func(_ *testing.T, how storetest.Fault) func() {
			cable.Cut(memory.Cut(how))
			return func() { cable.Cut("") }
		},
		Backup: func(*testing.T) func(*testing.T) {
			backup := s.Checkpoint()
			return func(*testing.T) { s.Restore(backup) }
		},
	}
}

// lateWire delivers the first write of a record when the test says so, although the client
// has long got no answer.
type lateWire struct {
	*memory.Cable
	late func() error
}

func (w *lateWire) Call(
	ctx context.Context,
	op memory.Operation,
	id lock.ID,
	do func() error,
) error {
	if op == memory.Commit && w.late == nil {
		w.late = do
		return memory.ErrUnknown
	}
	return w.Cable.Call(ctx, op, id, do)
}

// TestLateRecord has a write arrive when its record has come and gone: it does not bring
// it back.
func TestLateRecord(t *testing.T) {
	s := memory.NewServer(memory.Config{})
	t.Cleanup(s.Close)
	w := &lateWire{Cable: memory.NewCable()}
	c := s.Connect(w)
	t.Cleanup(c.Close)
	k := store.RecordKey{Kind: "note", Tenant: "acme", ID: "r"}
	version, err := c.Records().Put(t.Context(), store.RecordPut{RecordKey: k})
	if err == nil {
		err = c.Records().Delete(t.Context(), k, version)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := w.late(); !errors.As(err, new(*engine.Raced)) {
		t.Errorf("the late write = %v", err)
	}
	if _, err := c.Records().Get(t.Context(), k); !errors.Is(err, lock.NotFound) {
		t.Errorf("Get = %v, want %s", err, lock.NotFound)
	}
}
