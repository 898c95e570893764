package etcd

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fencepost/fencepost/test/bubble"
)

// TestMemoryLeases: records go under a new lease after so long or so many, and one that
// is gone is not given out again.
func TestMemoryLeases(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		granted := 0
		var refusal error
		m := newMemory(func(_ context.Context, _ int64, ttl time.Duration) error {
			if ttl < 11*time.Minute {
				t.Errorf("a lease of %v", ttl)
			}
			granted++
			return refusal
		})
		want := func(n, leases int) {
			t.Helper()
			if _, err := m.lease(t.Context(), n); err != nil || granted != leases {
				t.Fatalf("%d leases, %v, want %d", granted, err, leases)
			}
		}
		want(1, 1)
		want(memoryRecords-1, 1)
		want(1, 2)
		<-time.After(memorySpan)
		want(1, 2)
		<-time.After(1)
		want(1, 3)
		m.drop(m.id)
		want(1, 4)
		m.drop(m.id)
		refusal = errors.New("no room")
		if _, err := m.lease(t.Context(), 1); !errors.Is(err, refusal) {
			t.Errorf("a lease that was not granted: %v", err)
		}
		refusal = nil
		want(1, 6)
	})
}
