package etcd

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/fencepost/fencepost/test/bubble"
)

// TestPastIsReadBySomeAtOnce: very many calls read the history of a member that is silent. A
// bounded number reads at once, besides the feed's stream, and the others wait no longer than
// their own deadlines.
func TestPastIsReadBySomeAtOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var open []context.Context
		most := 0
		s := newStore(&Conn{
			watch: func(context.Context, string, string, int64) watch {
				t.Error("the past is read over the stream of the feed")
				return watch{}
			},
			watchPast: func(ctx context.Context, _, _ string, _ int64) watch {
				mu.Lock()
				defer mu.Unlock()
				open = append(
					slices.DeleteFunc(open, func(ctx context.Context) bool { return ctx.Err() != nil }), ctx,
				)
				most = max(most, len(open))
				return watch{messages: make(chan watchMessage), ask: func() {}}
			},
		}, Config{})
		t.Cleanup(s.stop)
		began := time.Now()
		var callers sync.WaitGroup
		for range 1000 {
			callers.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				if err := s.past(ctx, "prefix/", 1, 2, func(*mvccpb.Event) {}); !errors.Is(
					err, context.DeadlineExceeded,
				) {
					t.Errorf("past: %v", err)
				}
			})
		}
		synctest.Wait() // until no more can begin
		hurried, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_ = s.past(hurried, "prefix/", 1, 2, func(*mvccpb.Event) {}) // as all others
		if d := time.Since(began); d != 100*time.Millisecond {
			t.Errorf("who has 100 ms waits for %v", d)
		}
		callers.Wait()
		if most != maxPasts {
			t.Errorf("%d at once, want %d", most, maxPasts)
		}
		if d := time.Since(began); d > 2*time.Second {
			t.Errorf("who waits does so for %v", d)
		}
	})
}

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
