package faults_test

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost/fencepost/test/faults/drive"
	"github.com/fencepost/fencepost/test/faults/history"
)

// TestF5LateDuplicate freezes one member of the store after the other. A replica
// whose feed comes from it sees nothing new for a while, though it can still read
// and write through the others. A key that was used up through the other replica
// must not make it grant the lock a second time.
func TestF5LateDuplicate(t *testing.T) {
	passes := count(1, 8)
	s := newStand(t, 40*time.Minute)
	var refused, unclear atomic.Int64
	for range passes {
		for member := range s.cluster.Size() {
			s.must(s.cluster.Member(member).Stop())
			before := refused.Load()
			ctx, stop := s.until(3*time.Second, func() bool { return refused.Load() > before })
			s.each(func(c *drive.Client) {
				for ctx.Err() == nil {
					s.duplicate(c, &refused, &unclear)
				}
			})
			stop()
			s.must(s.cluster.Member(member).Continue())
			if refused.Load() == before {
				t.Errorf("member %d stood still for %v, and no late duplicate was refused", member, seenWithin)
			}
		}
	}
	t.Logf("%d late duplicates were refused, %d could not be answered", refused.Load(), unclear.Load())
	s.judge()
}

// duplicate uses up a key at one replica and repeats the request at the other.
func (s *stand) duplicate(c *drive.Client, refused, unclear *atomic.Int64) {
	s.t.Helper()
	home := c.Number % 2
	r := drive.Request{
		Lock: fmt.Sprint("late:", c.Number), TTL: 4 * time.Second, Wait: 3 * time.Second,
		Key: fmt.Sprintf("late-%d-%d", c.Number, c.Now()), Replica: home,
	}
	h, _ := c.Acquire(s.ctx, r)
	if h == nil {
		return
	}
	if c.Release(s.ctx, home, 1, h) != history.OK {
		return
	}
	switch a := c.Post(s.ctx, 1-home, r); a.Status {
	case http.StatusGone:
		refused.Add(1)
	case http.StatusCreated:
		s.t.Errorf(
			"%s: granted with fence %d, and after the release the same key was granted again with fence %d",
			r.Lock, h.Fence, a.Entry.Fence,
		)
		c.Record(history.Acquire, drive.HoldOf(r, a), a)
		c.Release(s.ctx, 1-home, 1, drive.HoldOf(r, a))
	default:
		unclear.Add(1)
	}
}
