package service_test

import (
	"context"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store/memory"
)

// sharedStore is a store in memory, shared by any number of replicas, each with a
// client of its own. Leases end by timers: in a bubble of testing/synctest
// everything happens at its exact time.
type sharedStore struct {
	*memory.Server
	t *testing.T
}

func newSharedStore(t *testing.T) *sharedStore {
	s := &sharedStore{memory.NewServer(memory.Config{Number: 100}), t}
	t.Cleanup(s.Close)
	return s
}

// end takes the entry away, if it is there.
func (s *sharedStore) end(e *lock.Entry, why lock.Reason) error {
	if !s.End(e, why) {
		return &lock.Error{Code: lock.Lost}
	}
	return nil
}

// restoreBackup drops all entries and goes back to an earlier number.
func (s *sharedStore) restoreBackup(number uint64) { s.Restore(memory.Checkpoint{Number: number}) }

// ids are those of all entries, in order.
func (s *sharedStore) ids() []lock.ID {
	entries := s.Entries()
	ids := make([]lock.ID, 0, len(entries))
	for _, e := range entries {
		ids = append(ids, e.ID)
	}
	return ids
}

// reasonOf returns the recorded reason for an entry's end, or "".
func (s *sharedStore) reasonOf(id lock.ID) lock.Reason {
	for _, e := range s.Ends() {
		if e.ID == id && e.Reason != lock.Withdrawn {
			return e.Reason
		}
	}
	return ""
}

// occupy writes an entry that stays, as another replica would have.
func (s *sharedStore) occupy(t *testing.T, name string) *lock.Entry {
	t.Helper()
	e, _, err := s.insert(&lock.Entry{
		ID: lock.ID("by-hand-on-" + name), Tenant: "acme", Holder: "somebody", TTL: time.Hour,
		Claims: []lock.Claim{{Name: name, Mode: lock.Exclusive}}, EnqueuedAt: time.Now(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func (s *sharedStore) insert(e *lock.Entry) (placed *lock.Entry, written bool, err error) {
	c := s.Connect(nil)
	defer c.Close()
	return c.Enqueue(context.Background(), e)
}
