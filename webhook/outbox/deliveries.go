package outbox

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/api/event"
	"github.com/fencepost/fencepost/audit"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/events"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/webhook"
	"github.com/fencepost/fencepost/webhook/subscription"
)

// Deliveries is what tenants see of the deliveries of their subscriptions and may ask for, at
// any replica: whoever sends them is told by the store. Whether a subscription is the
// tenant's own is for the caller to check.
type Deliveries struct {
	records Records
	locks   Locks
	journal *audit.Journal
}

// NewDeliveries returns the use cases. What they are asked for is put into the journal before.
func NewDeliveries(records Records, locks Locks, journal *audit.Journal) *Deliveries {
	return &Deliveries{records, locks, journal}
}

// Delivery is one event that a subscription, or a callback, is told.
type Delivery struct {
	ID       string // of the message
	Type     string // of the event
	Lock     string // its first lock; "" if it is about none
	State    webhook.State
	Made     time.Time // when it was first to be sent
	Due      time.Time // of the next attempt, if there is one to come
	Tried    int       // attempts that were made
	Attempts []Attempt // the last of them
}

// Attempt is what came of one.
type Attempt struct {
	At      time.Time
	Outcome webhook.Outcome
	Status  int    // of the answer; 0 if there was none
	Err     string // what went wrong
	Took    time.Duration
	Skew    time.Duration // by how much the receiver's clock is ahead, if that is much
}

// Health is how a subscription does.
type Health struct {
	FailingSince time.Time // of the first of the attempts that fail now; zero if none does
	Failures     int
	Disabled     webhook.DisabledBecause // as of Enabled
	Enabled      int                     // how often it had been set going again
}

// Of returns how a subscription does that was set going so often: nothing is known of one
// that was since.
func (h Health) Of(enabled int) Health {
	if h.Enabled != enabled {
		return Health{Enabled: enabled}
	}
	return h
}

// Page is a part of the deliveries of a subscription: those that are still to be made, and,
// on the first page, the last ones that were attempted, which may be some seconds old.
type Page struct {
	Deliveries []Delivery // the newest first
	Next       string     // of the next page; "" says that there is none
	Health     Health
	Looked     int // at so many deliveries that are to be made, those of other subscriptions of the tenant included
}

// List returns a page of deliveries. cursor is the Next of the page before; "" begins.
func (d *Deliveries) List(ctx context.Context, tenant, id, cursor string, limit int) (*Page, error) {
	p := &Page{}
	seen := map[string]bool{}
	if cursor == "" {
		if err := d.recent(ctx, tenant, id, p, seen); err != nil {
			return nil, err
		}
	}
	q := store.RecordQuery{Kind: owedKind(shardOfTarget(tenant, id)), Tenant: tenant, After: cursor, Limit: limit}
	owed, err := d.records.List(ctx, q)
	if err != nil {
		return nil, err
	}
	for _, r := range owed.Records {
		var f owedForm
		target, _, _ := strings.Cut(r.ID, ":")
		if target == id && json.Unmarshal(r.Value, &f) == nil && !seen[f.ID] {
			p.Deliveries = append(p.Deliveries, f.delivery())
		}
	}
	p.Next, p.Looked = owed.Next, len(owed.Records)
	slices.SortStableFunc(p.Deliveries, func(a, b Delivery) int { return cmp.Compare(b.Made.UnixNano(), a.Made.UnixNano()) })
	return p, nil
}

// maxOwed is how many deliveries of a tenant are gone through to count those of one webhook.
const maxOwed = 200

// Owed is how many deliveries are kept to be tried again for a subscription.
type Owed struct {
	Deliveries int
	More       bool // there may be further ones
	Looked     int  // at so many to find that out, those of other subscriptions of the tenant included
}

// Owed returns how many they are.
func (d *Deliveries) Owed(ctx context.Context, tenant, id string) (o Owed, err error) {
	q := store.RecordQuery{Kind: owedKind(shardOfTarget(tenant, id)), Tenant: tenant, Limit: maxOwed}
	page, err := d.records.List(ctx, q)
	for _, r := range page.Records {
		if target, _, _ := strings.Cut(r.ID, ":"); target == id {
			o.Deliveries++
		}
	}
	o.More, o.Looked = page.Next != "", len(page.Records)
	return o, err
}

// Health returns how a subscription does, as its sender last wrote it.
func (d *Deliveries) Health(ctx context.Context, tenant, id string) (Health, error) {
	s, err := d.state(ctx, tenant, id)
	return s.health(), err
}

func (s *state) health() Health {
	return Health{s.Health.FailingSince, s.Health.Failures, s.Health.Disabled, s.Enabled}
}

// recent adds what was attempted last.
func (d *Deliveries) recent(ctx context.Context, tenant, id string, p *Page, seen map[string]bool) error {
	s, err := d.state(ctx, tenant, id)
	if err != nil {
		return err
	}
	p.Health = s.health()
	for _, r := range s.Recent {
		seen[r.ID] = true
		p.Deliveries = append(p.Deliveries, Delivery{r.ID, r.Kind, r.Lock, r.State, r.Made, r.Due, r.Tried, attemptsOf(r.Attempts)})
	}
	return nil
}

func (d *Deliveries) state(ctx context.Context, tenant, id string) (s state, err error) {
	key := store.RecordKey{Kind: stateKind(shardOfTarget(tenant, id)), Tenant: tenant, ID: id}
	r, err := d.records.Get(ctx, key)
	if errors.Is(err, lock.NotFound) {
		return s, nil // it was told nothing yet
	}
	if err != nil {
		return s, err
	}
	s, _ = readState(r) // what cannot be read is logged by who sends
	return s, nil
}

func (f *owedForm) delivery() Delivery {
	return Delivery{
		f.ID, f.Kind, f.Lock, webhook.StatePending, time.UnixMilli(f.Made).UTC(), time.UnixMilli(f.Due).UTC(), f.Tried + f.Beside, attemptsOf(f.Attempts),
	}
}

func attemptsOf(all []attempt) []Attempt {
	made := make([]Attempt, 0, len(all))
	for _, a := range all {
		made = append(made, Attempt{
			a.At.UTC(), a.Outcome, a.Status, a.Err, time.Duration(a.TookMS) * time.Millisecond, time.Duration(a.SkewS) * time.Second,
		})
	}
	return made
}

// maxRequests is how many requests of a tenant may wait in a shard to be taken up. That takes a moment. They are counted
// before one is added, so those that come at the same moment can be more: by what the journal takes at once of a tenant
// at each replica, which are 120 of those who use webhooks and 200 of operators.
const maxRequests = 100

// Order is what somebody asks for, to whom it is to be told.
type Order struct {
	subscription.Actor
	Of *subscription.Subscription // nil are the tenant's callbacks
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
	about := audit.Webhook{Delivery: test}
	return test, d.request(ctx, &o, audit.TestWebhook, about, &request{Test: test})
}

// Redeliver has a delivery made again, or now if there is an attempt to come. It is
// [lock.NotFound] if it is none of the target's, or nothing is known any more of what happened, and
// [lock.Lost] if it is of a grant whose lease is over.
func (d *Deliveries) Redeliver(ctx context.Context, o Order, delivery string) error {
	if err := d.known(ctx, &o, delivery); err != nil {
		return err
	}
	return d.request(ctx, &o, audit.Redeliver, audit.Webhook{Delivery: delivery}, &request{Delivery: delivery})
}

// RedeliverSince has everything delivered again that happened since, as far as it is known.
func (d *Deliveries) RedeliverSince(ctx context.Context, o Order, since time.Time) error {
	return d.request(ctx, &o, audit.Redeliver, audit.Webhook{Since: new(since.UTC())}, &request{Since: max(1, since.UnixMilli())})
}

// Since returns how many events a subscription would be told again that happened since an instant, and at
// how many names it looked to find that out, each as often as it takes longer to hold it against the
// subscription's patterns, as this replica knows them: what [Deliveries.RedeliverSince] costs. turn is called
// before each part of that, and an error of it ends it.
func (d *Deliveries) Since(ctx context.Context, s *subscription.Subscription, since time.Time, turn func() error) (told, looked int, err error) {
	c := count{of: s, filter: filterOf(s), since: since, began: time.Now(), room: make([]*events.Record, replayPart)}
	for more := true; more && err == nil; {
		if err = turn(); err == nil {
			more, err = d.countPart(ctx, &c)
		}
	}
	return c.told, c.looked * c.filter.Effort(), err
}

// count is how far it is known what a subscription would be told again.
type count struct {
	of     *subscription.Subscription
	filter event.Filter
	since  time.Time
	began  time.Time // what happens from then on is told anyway

	at           lock.EventID // everything up to it was looked at
	told, looked int
	room         []*events.Record
}

// countPart looks at the next events, and reports whether there may be more. It follows them no longer than that: who
// waits for his next turn meanwhile must not take up a place of those that are the server's own.
func (d *Deliveries) countPart(ctx context.Context, c *count) (more bool, err error) {
	stream, err := d.locks.Events(ctx, service.EventsRequest{Of: lock.OwnTenant, Tenant: c.of.Tenant, After: &c.at})
	if err != nil {
		return false, err
	}
	defer stream.Close()
	given, missed, _ := stream.Next(c.room)
	if missed != nil {
		c.at = missed.Before
	}
	for _, e := range given {
		if e.At.After(c.began) {
			return false, nil
		}
		c.at = e.ID
		c.looked += len(e.Entry.Claims)
		if !e.At.Before(c.since) && e.ID.Number > c.of.From && len(c.filter.Claims(&e.Event)) > 0 {
			c.told++
		}
	}
	return len(given) > 0 || missed != nil, nil
}

var errUnknown = lock.Errorf(lock.NotFound, "there is no such delivery, or what happened is not known any more")

// known returns nil if a delivery is owed, or what it tells is known and of those that the target is told.
func (d *Deliveries) known(ctx context.Context, o *Order, delivery string) error {
	record := recordOf(o.id(), delivery)
	if !lock.ValidName(record) || delivery == missedRecord { // which is the name of a record, and of no delivery
		return errUnknown
	}
	key := store.RecordKey{Kind: owedKind(shardOfTarget(o.Tenant, o.id())), Tenant: o.Tenant, ID: record}
	owed, err := d.records.Get(ctx, key)
	switch {
	case err == nil && tellsOf(&owed, delivery):
		return nil
	case err == nil:
		return errUnknown
	case !errors.Is(err, lock.NotFound):
		return err
	}
	if o.Of == nil {
		return d.knownCall(ctx, o.Tenant, delivery)
	}
	id, bad := lock.ParseEventID(delivery)
	if bad != nil {
		return errUnknown
	}
	e, err := d.event(ctx, o.Tenant, id)
	if err == nil && (e == nil || !tells(o.Of, e)) {
		return errUnknown
	}
	return err
}

// knownCall returns nil if the entry of a grant holds, or the end of its wait is known.
func (d *Deliveries) knownCall(ctx context.Context, tenant, delivery string) error {
	if told, err := findCall(ctx, d.locks, tenant, tenant, delivery); told != nil || err != nil {
		return err
	}
	s, err := d.state(ctx, tenant, Callbacks)
	granted := func(r *recent) bool { return r.ID == delivery && r.Kind == string(lock.EventAcquired) }
	if err == nil && slices.ContainsFunc(s.Recent, granted) {
		return lock.Errorf(lock.Lost, "the lease of that grant is over, so its notice is of no use and not sent again")
	}
	return cmp.Or(err, error(errUnknown))
}

// findCall returns what the callback with an id tells, nil if that is not known any more: the grant of an
// entry that holds, or the end of a wait. of is the tenant whose subscription to events is used.
func findCall(ctx context.Context, locks Locks, of, tenant, delivery string) (*lock.Event, error) {
	number, id, ok := parseCallID(delivery)
	if !ok {
		return nil, nil //nolint:nilnil // it is not known
	}
	if e := locks.HeldCallback(tenant, id); e != nil && e.Number == number {
		told := lock.EventOfGrant(e)
		told.ID, told.At = lock.Before(number), time.Now()
		return &told, nil
	}
	stream, err := locks.Events(ctx, service.EventsRequest{Of: of, Tenant: tenant, After: new(lock.Before(number))})
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	for room := make([]*events.Record, 64); ; {
		given, _, _ := stream.Next(room)
		for _, r := range given {
			if e := &r.Event; e.ID.Number == number && e.Entry.ID == id && !e.Held && concernsCaller(e) {
				return e, nil
			}
		}
		if len(given) == 0 || given[len(given)-1].ID.Number > number {
			return nil, nil //nolint:nilnil // it is not known
		}
	}
}

// tells reports whether a subscription is told of an event.
func tells(s *subscription.Subscription, e *lock.Event) bool {
	filter := filterOf(s)
	return e.ID.Number > s.From && len(filter.Claims(e)) > 0
}

// event returns one of a tenant, nil if it is not known.
func (d *Deliveries) event(ctx context.Context, tenant string, id lock.EventID) (*lock.Event, error) {
	if id.Index == 0 {
		return nil, nil //nolint:nilnil // it is the place before one
	}
	after := justBefore(id)
	stream, err := d.locks.Events(ctx, service.EventsRequest{Of: tenant, Tenant: tenant, After: &after})
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	given, _, _ := stream.Next(make([]*events.Record, 1))
	if len(given) == 0 || given[0].ID != id {
		return nil, nil //nolint:nilnil // as it says
	}
	return &given[0].Event, nil
}

// tellsOf reports whether what is owed is the delivery with an id: of what is missed, all of that gap.
func tellsOf(owed *store.Record, delivery string) bool {
	gap, ok := gapOf(delivery)
	if !ok {
		return true
	}
	var f owedForm
	if json.Unmarshal(owed.Value, &f) != nil {
		return false
	}
	is := f.missed()
	return is.After.Compare(gap.After) <= 0 && gap.Before.Compare(is.Before) <= 0
}

// request leaves a request for the owner of the subscription's shard, and puts it on record before.
func (d *Deliveries) request(ctx context.Context, o *Order, action string, about audit.Webhook, r *request) error {
	tenant := o.Tenant
	r.Webhook = o.id()
	kind := requestKind(shardOfTarget(tenant, r.Webhook))
	page, err := d.records.List(ctx, store.RecordQuery{Kind: kind, Tenant: tenant, Limit: maxRequests})
	if err != nil {
		return err
	}
	if len(page.Records) >= maxRequests {
		return &lock.Error{Code: lock.RateLimited, Detail: "too many requests about webhooks wait to be taken up", RetryAfter: retryPause}
	}
	record := subscription.RecordOf(o.Actor, action, o.Of)
	record.Object.Webhook.Delivery, record.Object.Webhook.Since = about.Delivery, about.Since
	if err := d.journal.Put(ctx, record); err != nil {
		return err
	}
	key := store.RecordKey{Kind: kind, Tenant: tenant, ID: strings.ToLower(rand.Text())}
	_, err = d.records.Put(ctx, store.RecordPut{RecordKey: key, Value: store.Encode(r)})
	return err
}

// shardOfTarget returns the shard of a subscription, or of a tenant's callbacks.
func shardOfTarget(tenant, id string) string {
	if id == Callbacks {
		return shardOf(tenant)
	}
	return shardOf(id)
}
