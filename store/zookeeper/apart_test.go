package zookeeper_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/zookeeper"
	"github.com/fencepost/fencepost/test/rig"
)

// TestRefusedWritesOfAnotherTenant: each write that the server refuses costs a transaction
// for all that share it. One tenant can have many: it releases what is gone.
func TestRefusedWritesOfAnotherTenant(t *testing.T) {
	t.Parallel()
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	var transactions atomic.Int64
	s := open(t, zookeeper.Config{Servers: z.Endpoints(), Timeout: longTimeout, Observer: store.Observer{Operation: func(name string, _ time.Duration, _ error) {
		if name == "commit" {
			transactions.Add(1)
		}
	}}})
	e := enqueue(t, s, draft("a"))
	const refused = 40
	var others sync.WaitGroup
	defer others.Wait()
	release := s.HoldCalls()
	for i := range refused {
		gone := draft(fmt.Sprintf("gone%d", i))
		gone.ID, gone.Tenant, gone.Number = lock.ID(fmt.Sprintf("gone%d", i)), "evil", e.Number-1
		others.Go(func() {
			if err := s.Remove(t.Context(), gone, lock.Released); !errors.Is(err, lock.Lost) {
				t.Errorf("Remove of what is gone = %v", err)
			}
		})
	}
	var took int64
	before := transactions.Load()
	others.Go(func() {
		if err := s.Remove(t.Context(), e, lock.Released); err != nil {
			t.Errorf("Remove: %v", err)
		}
		took = transactions.Load() - before
	})
	within(t, 20*time.Second, "all wait to be written", func() bool { return s.PendingWrites() == refused+1 })
	release()
	others.Wait()
	if took > 5 {
		t.Errorf("a removal took %d transactions, beside %d of another tenant that were refused", took, refused)
	}
	if all := transactions.Load() - before; all < refused {
		t.Errorf("%d transactions: the others were not refused one by one", all)
	}
}
