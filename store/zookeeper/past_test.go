package zookeeper_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/zookeeper"
	"github.com/fencepost/fencepost/test/rig"
)

// numbers is a follower that keeps only the reported numbers.
type numbers struct {
	mu     sync.Mutex
	last   uint64
	left   int
	faults []string
	resets int
}

func (n *numbers) Reset(s store.Snapshot) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.last, n.left = s.Number, 0
	n.resets++
}

func (n *numbers) Apply(upTo uint64, changes []store.Change) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range changes {
		if c.Number <= n.last {
			n.faults = append(n.faults, fmt.Sprintf("a change at %d, after %d", c.Number, n.last))
		}
		if c.Joined == nil {
			n.left++
		}
	}
	n.last = upTo
}

// begun counts the views.
func (n *numbers) begun() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.resets
}

// told counts the ends.
func (n *numbers) told() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.left
}

func (*numbers) Recall([]store.Ended, bool) {}
func (*numbers) Lost(error)                 {}

// TestFeedOfALostPast puts an older copy of its data under a server whose log is followed. Until
// a floor is set, later writes have smaller numbers, and the feed restarts below them.
func TestFeedOfALostPast(t *testing.T) {
	t.Parallel()
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	s := open(t, zookeeper.Config{Servers: z.Endpoints()})
	var held []*lock.Entry
	for i := range 60 {
		e := draft(fmt.Sprint("a-", i))
		e.ID = lock.ID(fmt.Sprintf("HELD%022d", i))
		held = append(held, take(t, s, e))
	}
	server, copied := z.Server(0), t.TempDir()
	replaced(t, server, server.Data(), copied)
	for i := range 30 {
		within(t, time.Minute, "the store is there again", func() bool {
			_, _, err := s.Enqueue(t.Context(), draft(fmt.Sprint("b-", i)))
			return err == nil
		})
	}
	n := &numbers{}
	ctx, cancel := context.WithCancel(t.Context())
	var following sync.WaitGroup
	following.Go(func() { s.Watch(ctx, n) })
	t.Cleanup(func() { cancel(); following.Wait() })
	within(t, time.Minute, "the feed begins", func() bool { return n.begun() > 0 })
	before := n.begun()
	replaced(t, server, copied, server.Data())
	within(t, time.Minute, "the feed begins anew", func() bool { return n.begun() > before })
	looks := 0
	within(
		t,
		time.Minute,
		"the feed tells what is released",
		func() bool { // it may restart more than once
			if looks++; looks%50 == 1 && len(held) > 0 &&
				s.Remove(t.Context(), held[0], lock.Released) == nil {
				held = held[1:]
			}
			return n.told() > 0
		},
	)
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, fault := range n.faults {
		t.Error(fault)
	}
}
