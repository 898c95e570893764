package etcd

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost/fencepost/test/bubble"
)

// TestHedged: what one member does not answer soon is asked again, and the first answer counts.
func TestHedged(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		began := time.Now()
		first, end := context.WithTimeout(t.Context(), time.Minute)
		defer end()
		got, err := hedged(first, func(ctx context.Context) (int64, error) {
			n := asked.Add(1)
			if n == 1 {
				<-ctx.Done()
				return 0, ctx.Err()
			}
			return n, nil
		})
		if got != 2 || err != nil || time.Since(began) != hedgeAfter {
			t.Errorf("%d, %v after %v", got, err, time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		asked.Store(0)
		_, err = hedged(ctx, func(ctx context.Context) (int64, error) {
			asked.Add(1)
			<-ctx.Done()
			return 0, ctx.Err()
		})
		if !errors.Is(err, context.DeadlineExceeded) || asked.Load() != mostHedges {
			t.Errorf("asked %d times: %v", asked.Load(), err)
		}
		failed := errors.New("no")
		if _, err = hedged(
			t.Context(), func(context.Context) (int64, error) { return 0, failed },
		); !errors.Is(err, failed) {
			t.Errorf("of a question that fails: %v", err)
		}
	})
}
