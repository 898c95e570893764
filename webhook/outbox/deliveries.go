package outbox

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/audit"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/webhook"
	"github.com/fencepost/fencepost/webhook/subscription"
)

// Deliveries are the use cases of a tenant's deliveries, at any replica. The owner of the shard
// learns of what is asked for from the store. The caller checks whose a subscription is.
type Deliveries struct {
	records store.RecordStore
	history history
	journal *audit.Journal
}

// NewDeliveries returns the use cases. Each request is put into the journal before.
func NewDeliveries(
	records store.RecordStore, locks Locks, holders Holders, journal *audit.Journal,
) *Deliveries {
	return &Deliveries{records, history{locks, holders}, journal}
}

// Delivery is one event for a subscription, or for a callback.
type Delivery struct {
	ID       string        `json:"id"`   // of the message
	Type     string        `json:"kind"` // of the event
	Lock     string        `json:"lock,omitempty"`
	State    webhook.State `json:"state"`
	Made     time.Time     `json:"made"`
	Due      time.Time     `json:"due,omitzero"` // of the next attempt
	Tried    int           `json:"tried"`
	Attempts []Attempt     `json:"attempts"` // the last of them
}

// Attempt is the outcome of one.
type Attempt struct {
	At      time.Time       `json:"at"`
	Outcome webhook.Outcome `json:"outcome"`
	Status  int             `json:"status,omitempty"` // of the answer
	Err     string          `json:"error,omitempty"`
	TookMS  int64           `json:"took_ms"`
	SkewS   int64           `json:"skew_s,omitempty"`  // by how much the receiver's clock is ahead
	RetryS  int64           `json:"retry_s,omitempty"` // the receiver's Retry-After
}

// Health says how the attempts of a subscription end.
type Health struct {
	FailingSince time.Time // of the first attempt that fails now; zero if none does
	Failures     int
	Disabled     webhook.DisabledBecause // as of Enabled
	Enabled      int                     // how often it had been enabled
}

// Of returns the health of a subscription that was enabled so often: none is known since the last.
func (h Health) Of(enabled int) Health {
	if h.Enabled != enabled {
		return Health{Enabled: enabled}
	}
	return h
}

// Page is a part of the deliveries of a subscription: the pending ones, and on the first page the
// last ones that were attempted, which may be some seconds old.
type Page struct {
	Deliveries []Delivery // the newest first
	Next       string     // of the next page; "" without one
	Health     Health
}

// List returns a page of deliveries. cursor is the Next of the page before; "" begins.
func (d *Deliveries) List(
	ctx context.Context, tenant, id, cursor string, limit int,
) (*Page, error) {
	s, err := d.state(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	p := &Page{Health: s.health()}
	if cursor == "" {
		for _, r := range s.Recent {
			p.Deliveries = append(p.Deliveries, *r)
		}
	}
	pending, err := d.pendingOf(ctx, tenant, id, cursor, limit)
	if err != nil {
		return nil, err
	}
	for _, r := range pending.Records {
		f, bad := readForm(r)
		shown := func(d Delivery) bool { return d.ID == f.ID }
		if targetOf(r) != id || bad != nil || slices.ContainsFunc(p.Deliveries, shown) {
			continue
		}
		row := f.row(webhook.StatePending)
		row.Due = time.UnixMilli(f.Due).UTC()
		p.Deliveries = append(p.Deliveries, row)
	}
	p.Next = pending.Next
	slices.SortStableFunc(p.Deliveries, func(a, b Delivery) int { return b.Made.Compare(a.Made) })
	return p, nil
}

// pendingOf returns a page of a tenant's pending deliveries, in a target's shard.
func (d *Deliveries) pendingOf(
	ctx context.Context, tenant, id, after string, limit int,
) (store.RecordPage, error) {
	kind := pendingKind(shardOfTarget(tenant, id))
	q := store.RecordQuery{Kind: kind, Tenant: tenant, After: after, Limit: limit}
	return d.records.List(ctx, q)
}

// Pending counts the pending deliveries of a subscription.
type Pending struct {
	Deliveries int
	More       bool // there may be further ones
}

// Pending returns how many deliveries are pending, among the first 200 of the tenant.
func (d *Deliveries) Pending(ctx context.Context, tenant, id string) (p Pending, err error) {
	page, err := d.pendingOf(ctx, tenant, id, "", 200)
	for _, r := range page.Records {
		if targetOf(r) == id {
			p.Deliveries++
		}
	}
	p.More = page.Next != ""
	return p, err
}

// Health returns the health of a subscription, as its sender last wrote it.
func (d *Deliveries) Health(ctx context.Context, tenant, id string) (Health, error) {
	s, err := d.state(ctx, tenant, id)
	return s.health(), err
}

func (s *state) health() Health {
	return Health{s.Health.FailingSince, s.Health.Failures, s.Health.Disabled, s.Enabled}
}

func (d *Deliveries) state(ctx context.Context, tenant, id string) (s state, err error) {
	kind := stateKind(shardOfTarget(tenant, id))
	r, err := d.records.Get(ctx, store.RecordKey{Kind: kind, Tenant: tenant, ID: id})
	if errors.Is(err, lock.NotFound) {
		return s, nil // it was sent nothing yet
	}
	if err == nil {
		s, _ = readState(r) // the sender logs what cannot be read
	}
	return s, err
}

// Order is a request of an actor about a subscription.
type Order struct {
	subscription.Actor
	Of *subscription.Subscription // nil is the tenant's callbacks
}

func (o *Order) id() string {
	if o.Of == nil {
		return Callbacks
	}
	return o.Of.ID
}

// Test has a test sent to a subscription, and returns its id.
func (d *Deliveries) Test(ctx context.Context, o Order) (delivery string, err error) {
	test := "test-" + strings.ToLower(rand.Text())
	return test, d.request(ctx, &o, audit.TestWebhook, test, &request{Test: test})
}

// Redeliver has a delivery made again, or now if it is pending. Errors: [lock.NotFound] if the
// target has no such delivery, or its event is not known any more; [lock.Lost] if it is of a grant
// whose entry has ended.
func (d *Deliveries) Redeliver(ctx context.Context, o Order, delivery string) error {
	if err := d.known(ctx, &o, delivery); err != nil {
		return err
	}
	return d.request(ctx, &o, audit.Redeliver, delivery, &request{Delivery: delivery})
}

// known returns nil if a delivery is pending, or its event is known.
func (d *Deliveries) known(ctx context.Context, o *Order, delivery string) error {
	unknown := lock.Errorf(lock.NotFound,
		"there is no such delivery, or its event is not known any more; list the deliveries again")
	record := recordOf(o.id(), delivery)
	if !lock.ValidName(record) || delivery == missedRecord {
		return unknown
	}
	kind := pendingKind(shardOfTarget(o.Tenant, o.id()))
	switch r, err := d.records.Get(ctx, store.RecordKey{Kind: kind, Tenant: o.Tenant, ID: record}); {
	case err == nil && holdsGap(r, delivery):
		return nil
	case err == nil:
		return unknown
	case !errors.Is(err, lock.NotFound):
		return err
	}
	if e, err := d.history.find(ctx, o.Tenant, o.Tenant, o.Of, delivery); e != nil || err != nil {
		return err
	}
	s, err := d.state(ctx, o.Tenant, o.id())
	granted := func(r *Delivery) bool {
		return r.ID == delivery && r.Type == string(lock.EventAcquired)
	}
	if err == nil && o.Of == nil && slices.ContainsFunc(s.Recent, granted) {
		return lock.Errorf(lock.Lost,
			"the entry of that grant has ended, so its callback is not sent again; acquire again")
	}
	return cmp.Or(err, error(unknown))
}

// holdsGap reports whether a pending delivery is the one with an id: an events.missed is, if it is
// about all of that gap.
func holdsGap(r store.Record, delivery string) bool {
	gap, ok := gapOf(delivery)
	if !ok {
		return true
	}
	f, err := readForm(r)
	if err != nil {
		return false
	}
	is, _ := gapOf(f.ID)
	return is.After.Compare(gap.After) <= 0 && gap.Before.Compare(is.Before) <= 0
}

// request leaves a request for the owner of the shard, and puts it into the journal before. Some
// more than maxRequests may come at the same moment.
func (d *Deliveries) request(
	ctx context.Context, o *Order, action, delivery string, r *request,
) error {
	r.Webhook = o.id()
	kind := requestKind(shardOfTarget(o.Tenant, r.Webhook))
	q := store.RecordQuery{Kind: kind, Tenant: o.Tenant, Limit: maxRequests}
	page, err := d.records.List(ctx, q)
	if err != nil {
		return err
	}
	if len(page.Records) >= maxRequests {
		detail := "too many requests about webhooks are pending; retry after Retry-After"
		return &lock.Error{Code: lock.RateLimited, Detail: detail, RetryAfter: retryPause}
	}
	record := subscription.RecordOf(o.Actor, action, o.Of)
	record.Object.Webhook.Delivery = delivery
	if err := d.journal.Put(ctx, record); err != nil {
		return err
	}
	key := store.RecordKey{Kind: kind, Tenant: o.Tenant, ID: strings.ToLower(rand.Text())}
	_, err = d.records.Put(ctx, store.RecordPut{RecordKey: key, Value: store.Encode(r)})
	return err
}
