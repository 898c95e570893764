package service_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/test/bubble"
)

// TestGoneClientWritesNothing: of a request whose client is gone before the store takes its write,
// nothing is written and nothing has to be removed: a lock, a set or an async entry. A client with
// a key can come back, so its entry is written.
func TestGoneClientWritesNothing(t *testing.T) {
	async := want("d", time.Minute)
	async.Async = true
	for name, c := range map[string]struct {
		req     service.AcquireRequest
		written uint64
	}{
		"lock":  {req: want("a", time.Minute)},
		"set":   {req: pair("b", "c")},
		"async": {req: async},
		"key":   {req: keyed("e", time.Minute, "k"), written: 1},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				s := newSharedStore(t)
				r := s.replica(t)
				synctest.Wait()
				before := s.Number()
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				if _, err := r.Acquire(ctx, c.req); !errors.Is(err, context.Canceled) {
					t.Errorf("Acquire = %v", err)
				}
				synctest.Wait()
				if n := s.Number() - before; n != c.written {
					t.Errorf("%d writes, want %d", n, c.written)
				}
			})
		})
	}
}
