package subscription_test

import (
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/fencepost/fencepost/audit"
	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/memory"
	"github.com/fencepost/fencepost/webhook"
	"github.com/fencepost/fencepost/webhook/subscription"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

const (
	receiver = "https://example.org/told"
	tokenKey = "0123456789abcdef0123456789abcdef"
)

// world is the use cases on a store of their own, with a directory that does not run.
type world struct {
	*subscription.Subscriptions
	records store.RecordStore
	now     time.Time
}

func newWorld(t testing.TB) *world {
	t.Helper()
	server := memory.NewServer(memory.Config{})
	client := server.Connect(nil)
	t.Cleanup(server.Close)
	t.Cleanup(client.Close)
	w := &world{records: client.Records(), now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	w.Subscriptions = w.over(w.records)
	return w
}

// over returns the use cases with other records.
func (w *world) over(records store.RecordStore) *subscription.Subscriptions {
	keys := subscription.NewKeys([]byte(tokenKey))
	var puts atomic.Int64 // a second passes between any two, so that tests are not kept to a pace
	return subscription.New(subscription.Config{
		Records: records, Keys: keys, Policy: must(webhook.NewPolicy(webhook.Settings{})),
		Directory: subscription.NewDirectory(w.records, keys, slog.New(slog.DiscardHandler)),
		Now:       func() time.Time { return w.now },
		Journal: audit.NewJournal(
			w.records, func() time.Time { return w.now.Add(time.Duration(puts.Add(1)) * time.Second) }, nil,
		),
	})
}

// who returns a principal of a tenant, limited to the patterns, if there are any.
func who(tenant string, patterns ...string) *auth.Principal {
	p := &auth.Principal{Tenant: tenant, Subject: "worker-1"}
	for _, text := range patterns {
		p.Locks = append(p.Locks, must(auth.ParsePattern(text)))
	}
	return p
}

// by returns the actor of a change.
func by(p *auth.Principal) subscription.Actor {
	return subscription.Actor{Principal: p, By: audit.Who{
		Subject: p.Subject, Tenant: p.Tenant, Scope: "webhooks:write", Address: "192.0.2.7",
		RequestID: "r1",
	}}
}

func said(url string) subscription.Change { return subscription.Change{URL: &url} }

func (w *world) make(t testing.TB, tenant string) (*subscription.Subscription, webhook.Secret) {
	t.Helper()
	s, secret, err := w.Create(t.Context(), by(who(tenant)), said(receiver))
	if err != nil {
		t.Fatal(err)
	}
	return s, secret
}
