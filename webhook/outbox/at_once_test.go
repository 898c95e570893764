package outbox

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/fencepost/fencepost/audit"
	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/webhook/subscription"
)

// allListFirst has nobody go on who has listed requests before all have.
type allListFirst struct {
	Records
	all *sync.WaitGroup
}

func (r allListFirst) List(ctx context.Context, q store.RecordQuery) (store.RecordPage, error) {
	page, err := r.Records.List(ctx, q)
	r.all.Done()
	r.all.Wait()
	return page, err
}

// TestManyAskedForAtOnce: of what a tenant asks for at the same moment, before any of it is there to be counted, no more
// waits than each replica puts on record at once.
func TestManyAskedForAtOnce(t *testing.T) {
	const replicas, callers, burst = 2, 500, 120
	m := newMissing(t)
	who := subscription.Actor{Principal: &auth.Principal{Tenant: "acme"}, By: audit.Who{Subject: "w", Tenant: "acme", Scope: string(auth.WebhooksWrite)}}
	of := &subscription.Subscription{ID: "x", Tenant: "acme", Locks: "*"}
	var listed, done sync.WaitGroup
	listed.Add(replicas * callers)
	for range replicas {
		d := NewDeliveries(allListFirst{m.Records, &listed}, nil, audit.NewJournal(m.Records, nil, nil))
		for range callers {
			done.Go(func() {
				if _, err := d.Test(t.Context(), Order{Actor: who, Of: of}); err != nil && !errors.Is(err, lock.RateLimited) {
					t.Error(err)
				}
			})
		}
	}
	done.Wait()
	there := 0
	for _, err := range store.EachRecord(t.Context(), m.Records, store.RecordQuery{Kind: requestKind(shardOf("x"))}) {
		if there++; err != nil {
			t.Fatal(err)
		}
	}
	const slack = 10 // a second's worth for each second that this takes
	if there > maxRequests+replicas*(burst+slack) || there <= maxRequests {
		t.Errorf("%d wait, want more than %d, and up to %d more for each replica", there, maxRequests, burst)
	}
}
