package memory_test

import (
	"testing"
	"time"

	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/memory"
	"github.com/fencepost/fencepost/store/storetest"
)

// TestConformance runs what every store has to pass.
func TestConformance(t *testing.T) {
	storetest.Run(t, storetest.Harness{
		MinTTL: 500 * time.Millisecond, Late: time.Second, Open: open,
	})
}

func open(t *testing.T) storetest.Store {
	s := memory.NewServer(memory.Config{})
	t.Cleanup(s.Close)
	connect := func(t *testing.T, w memory.Wire) store.Store {
		c := s.Connect(w)
		t.Cleanup(c.Close)
		return c
	}
	cable := memory.NewCable()
	return storetest.Store{
		A: connect(t, nil), B: connect(t, cable),
		Reopen: func(t *testing.T) store.Store { return connect(t, nil) },
		CutB: func(_ *testing.T, how storetest.Fault) func() {
			cable.Cut(memory.Cut(how))
			return func() { cable.Cut("") }
		},
		Compact: func(*testing.T) { s.Compact() },
	}
}
