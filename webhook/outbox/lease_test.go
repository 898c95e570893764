package outbox

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/replicas"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/test/bubble"
	"github.com/fencepost/fencepost/webhook/subscription"
)

// answersLate answers an acquire late, and renewals not at all.
type answersLate struct {
	Locks
	Entries
	late time.Duration
}

func (l answersLate) Acquire(
	ctx context.Context, _ service.AcquireRequest,
) (*service.Grant, error) {
	_ = store.Pause(ctx, l.late)
	return &service.Grant{Held: true, Entry: &lock.Entry{Number: 7}}, nil
}

func (answersLate) Renew(ctx context.Context, _ service.TokenRequest) (*service.Grant, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (answersLate) Release(context.Context, service.TokenRequest) error { return nil }

// watched are subscriptions that no replica knows yet, and when an owner asked for them.
type watched struct {
	Subscriptions
	mu    sync.Mutex
	asked []time.Time
}

func (w *watched) Current() ([]*subscription.Subscription, bool, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, time.Now())
	changed := make(chan struct{})
	close(changed)
	return nil, false, changed
}

// TestLeaseCountsFromTheRequest: an owner whose lock was granted by a late answer, and that cannot
// renew it, does nothing after the lease that began when it sent the acquire.
func TestLeaseCountsFromTheRequest(t *testing.T) {
	for _, late := range []time.Duration{0, shardTTL / 2, shardTTL - leaseMargin/2} {
		bubble.Test(t, func(t *testing.T) {
			subs := &watched{}
			locks := answersLate{late: late}
			box := New(
				Config{
					Logger: slog.New(slog.DiscardHandler), Locks: locks, Entries: locks, Subscriptions: subs,
					Sharing: func() replicas.Sharing { return replicas.Sharing{} },
				},
			)
			ctx, cancel := context.WithTimeout(t.Context(), 3*shardTTL)
			defer cancel()
			sent := time.Now()
			(&shard{box, shardName(0), &box.backlogs[0]}).hold(ctx)
			subs.mu.Lock()
			defer subs.mu.Unlock()
			for _, at := range subs.asked {
				if at.Sub(sent) > shardTTL {
					t.Errorf("answered after %v, it works %v after it sent the acquire", late, at.Sub(sent))
					break
				}
			}
			if works := len(subs.asked) > 0; works != (late < shardTTL-leaseMargin) {
				t.Errorf("answered after %v, it works: %v", late, works)
			}
		})
	}
}
