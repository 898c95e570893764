package service_test

import (
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/test/bubble"
)

// fixed is chance that is none.
type fixed struct{}

func (fixed) Read(p []byte) (int, error) { return len(p), nil }
func (fixed) Int64N(int64) int64         { return 0 }

// TestClockOfAReplica: instants use the replica's configured clock, and durations do not depend
// on it.
func TestClockOfAReplica(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		offset := -time.Hour
		wall := func() time.Time { return time.Now().Round(0).Add(offset) }
		r := newSharedStore(t).replica(t, func(c *service.Config) { c.Now, c.Rand = wall, fixed{} })
		began := time.Now()
		g := r.hold(want("orders:1", 0))
		if !g.Entry.EnqueuedAt.Equal(wall()) || !g.ExpiresAt.Equal(wall().Add(ttl)) {
			t.Errorf("enqueued at %v, expires at %v", g.Entry.EnqueuedAt, g.ExpiresAt)
		}
		if g.Entry.ID != "00000000000000000000000000" {
			t.Errorf("the id %s is not of the replica's chance", g.Entry.ID)
		}
		after(time.Second)
		if g, err := r.Renew(t.Context(), by(g)); err != nil || !g.ExpiresAt.Equal(wall().Add(ttl)) {
			t.Errorf("renewed: %+v, %v", g, err)
		}
		p := r.line(keyed("orders:1", 10*time.Second, "k"))
		if v := r.see("orders:1"); len(v.Waiters) != 1 || v.Waiters[0].Waited != 0 {
			t.Errorf("waiters %+v", v.Waiters)
		}
		p.fails(lock.TimedOut)
		took(t, began, 11*time.Second)
	})
}
