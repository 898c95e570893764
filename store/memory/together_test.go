package memory_test

import (
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store/memory"
	"github.com/fencepost/fencepost/test/bubble"
)

// TestIndependentWritesShareANumber: entries of different locks that a client writes at once
// have one number. Entries of one lock never have.
func TestIndependentWritesShareANumber(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := memory.NewServer(memory.Config{Together: time.Millisecond})
		defer s.Close()
		c := s.Connect(nil)
		defer c.Close()
		var calls sync.WaitGroup
		var mu sync.Mutex
		numbers := map[string]map[uint64]int{}
		for _, id := range []lock.ID{"a1", "a2", "b1", "c1"} {
			calls.Go(func() {
				name := string(id[:1])
				e, _, err := c.Enqueue(t.Context(), &lock.Entry{
					ID: id, Tenant: "acme", TTL: time.Minute,
					Claims: []lock.Claim{{Name: name, Mode: lock.Exclusive}},
				})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				if numbers[name] == nil {
					numbers[name] = map[uint64]int{}
				}
				numbers[name][e.Number]++
			})
		}
		calls.Wait()
		if len(numbers["a"]) != 2 || s.Number() != 2 {
			t.Errorf("the entries have the numbers %v, the newest is %d", numbers, s.Number())
		}
	})
}
