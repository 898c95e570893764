package memory_test

import (
	"errors"
	"testing"
	"time"

	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/memory"
	"github.com/fencepost/fencepost/store/storetest"
)

// TestConformance runs what every store has to pass.
func TestConformance(t *testing.T) {
	storetest.Run(t, storetest.Harness{
		MinTTL: 2 * time.Second, Open: open, OpenAlone: open, NoHistory: "its server outlives no replica",
		NoEarlier: "its server outlives no replica", NoBound: "a write is a call of a function",
	})
}

func open(t *testing.T) storetest.Store {
	s := memory.NewServer(memory.Config{ExpiryRecord: time.Second})
	t.Cleanup(s.Close)
	connect := func(t *testing.T, w memory.Wire) store.Store {
		c := s.Connect(w)
		t.Cleanup(c.Close)
		return c
	}
	cable := memory.NewCable()
	return storetest.Store{
		A: connect(t, nil), B: connect(t, cable),
		Records: func(s store.Store) store.RecordStore { return s.(*memory.Client).Records() },
		Reopen:  func(t *testing.T) store.Store { return connect(t, nil) },
		CutB: func(_ *testing.T, how storetest.Fault) func() {
			cable.Cut(memory.Cut(how))
			return func() { cable.Cut("") }
		},
		OpenFloor: func(t *testing.T, floor uint64) (store.Store, error) {
			c := connect(t, nil)
			if err := c.Refusal(); errors.Is(err, store.ErrOlderForm) || errors.Is(err, store.ErrNewerForm) {
				return nil, err
			}
			if floor == 0 {
				return c, nil
			}
			return c, s.Raise(floor)
		},
		SetForm: func(_ *testing.T, form int) { s.SetForm(form) },
		Backup: func(*testing.T) func(*testing.T) {
			backup := s.Checkpoint()
			return func(*testing.T) { s.Restore(backup) }
		},
		Compact: func(*testing.T) { s.Compact() },
	}
}
