package outbox_test

import (
	"context"
	"errors"
	"testing"

	"github.com/fencepost/fencepost/audit"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/webhook/outbox"
)

// closedBook is a journal's store that takes nothing.
type closedBook struct{}

func (closedBook) Put(context.Context, store.RecordPut) (uint64, error) {
	return 0, &lock.Error{Code: lock.StoreUnavailable, Detail: "away"}
}

// TestAskedIsOnRecord: each request for a test or for deliveries is on record, and nothing is
// sent without a record.
func TestAskedIsOnRecord(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		client := w.Connect(nil)
		defer client.Close()
		s := w.subscribe("acme", here, "*")
		unrecorded := outbox.NewDeliveries(
			client.Records(), nil, nil, audit.NewJournal(closedBook{}, nil, nil),
		)
		_, err := unrecorded.Test(t.Context(), order(s))
		if !errors.Is(err, lock.StoreUnavailable) {
			t.Errorf("without a record: %v", err)
		}
		if left := w.recordsOf("webhook-request-"); len(left) != 0 {
			t.Errorf("asked for without a record: %v", left)
		}
		asks := outbox.NewDeliveries(client.Records(), nil, nil, w.hooks.Journal)
		if _, err = asks.Test(t.Context(), order(s)); err != nil {
			t.Fatal(err)
		}
		if left := w.recordsOf("webhook-request-"); len(left) != 1 {
			t.Errorf("asked for is %v", left)
		}
		shard := outbox.ShardOf(s.ID)
		key := store.RecordKey{
			Kind: "webhook-owed-" + shard[len(shard)-1:], Tenant: "acme", ID: s.ID + ":7-1",
		}
		if _, err = client.Records().Put(
			t.Context(), store.RecordPut{RecordKey: key, Value: []byte("{}")},
		); err != nil {
			t.Fatal(err)
		}
		if err = asks.Redeliver(t.Context(), order(s), "7-1"); err != nil {
			t.Fatal(err)
		}
		page, err := audit.NewLog(client.Records(), audit.DefaultRetention, nil).Page(
			t.Context(), audit.Query{Tenant: "acme", Limit: 10},
		)
		if err != nil || len(page.Records) != 3 { // the first is of what was made
			t.Fatalf("%v, %v", page, err)
		}
		did := map[string]string{}
		for _, r := range page.Records {
			did[r.Action] = r.Object.Webhook.ID
		}
		if did[audit.TestWebhook] != s.ID || did[audit.Redeliver] != s.ID {
			t.Errorf("on record is %v", did)
		}
	})
}

// TestManyAskedFor: the number of a tenant's open requests is bounded.
func TestManyAskedFor(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		client := w.Connect(nil)
		defer client.Close()
		s := w.subscribe("acme", here, "*")
		asks := outbox.NewDeliveries(client.Records(), nil, nil, w.hooks.Journal)
		for i := range 101 {
			_, err := asks.Test(t.Context(), order(s))
			if want := i == 100; errors.Is(err, lock.RateLimited) != want || err != nil && !want {
				t.Fatalf("of the %d. it is said: %v", i+1, err)
			}
		}
		if _, err := asks.Test(t.Context(), order(w.subscribe("bolt", there, "*"))); err != nil {
			t.Errorf("another tenant: %v", err)
		}
	})
}
