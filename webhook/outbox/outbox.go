// Package outbox sends lock events to subscriptions and callbacks: each event at least once, or an
// events.missed that names what is missing. It is a transactional outbox over the store's events.
//
// Subscriptions and callbacks are divided into eight shards. The replica that holds a shard's lock
// owns it ([owner]). It follows the events from the shard's cursor, makes first attempts from
// memory, and writes a delivery into the store if its attempt failed or takes longer than 2 s. The
// cursor stays behind the first event of which a delivery is neither made nor written. So the next
// owner repeats what happened since the cursor, and loses nothing. Each record is written by its
// known version: a replica that lost its shard may send something twice, but changes nothing.
package outbox

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/webhook"
	"github.com/fencepost/fencepost/webhook/subscription"
)

// Locks has the locks of shards, the events, and the entries that name callbacks;
// [service.Service] implements it.
type Locks interface {
	Acquire(context.Context, service.AcquireRequest) (*service.Grant, error)
	Renew(context.Context, service.TokenRequest) (*service.Grant, error)
	Release(context.Context, service.TokenRequest) error
	Events(context.Context, service.EventsRequest) (*service.EventStream, error)

	// HeldCallbacks returns the entries that hold now and name a callback.
	HeldCallbacks() []*lock.Entry

	// HeldCallback returns the tenant's entry with the id if it holds now and names a callback,
	// and nil otherwise.
	HeldCallback(tenant string, id lock.ID) *lock.Entry

	// Gone reports whether an entry is known to have ended. It uses the id and the number.
	Gone(id lock.ID, number uint64) bool

	// Token returns the token of an entry. It uses the id, the tenant, the number, and the first
	// lock or that the entry is a set.
	Token(*lock.Entry) string
}

// Records are the store's small records.
type Records interface {
	Get(ctx context.Context, k store.RecordKey) (store.Record, error)
	List(ctx context.Context, q store.RecordQuery) (store.RecordPage, error)
	Put(ctx context.Context, p store.RecordPut) (version uint64, err error)
	Delete(ctx context.Context, k store.RecordKey, version uint64) error
	Watch(ctx context.Context, kind string, changed func())
}

// Subscriptions is a replica's copy of all subscriptions and their secrets.
type Subscriptions interface {
	// Current returns all subscriptions, ok if they are known, and a channel that is closed when
	// they change. The slice and its elements do not change.
	Current() (all []*subscription.Subscription, ok bool, changed <-chan struct{})

	// Secrets and CallbackSecrets return the secrets that sign at an instant.
	Secrets(s *subscription.Subscription, now time.Time) []webhook.Secret
	CallbackSecrets(tenant string, now time.Time) []webhook.Secret
}

// Sender makes one attempt, as [webhook.Sender] does.
type Sender interface {
	Send(ctx context.Context, t webhook.Target, m webhook.Message) webhook.Result
}

// Metrics counts attempts by their outcome.
type Metrics interface {
	WebhookAttempted(ctx context.Context, outcome string, d time.Duration)
}

type silent struct{}

func (silent) WebhookAttempted(context.Context, string, time.Duration) {}

// Config of an [Outbox]. Fields without a default are required.
type Config struct {
	Self          string // this replica's id
	Locks         Locks
	Records       Records
	Subscriptions Subscriptions
	Sender        Sender

	// Sharing returns the replicas that share the work now, as far as possible those that have
	// run for [SettledAfter].
	Sharing func() service.Sharing

	Metrics Metrics      // nil records nothing
	Logger  *slog.Logger // nil discards

	Pool webhook.PoolConfig // how many attempts run at once

	Now  func() time.Time // the wall clock; nil is time.Now
	Rand func() float64   // from [0, 1), for the schedule; nil is the system's
}

// Outbox is one replica's part of the sending.
type Outbox struct {
	Config
	pool     *webhook.Pool
	backlogs [shards]atomic.Pointer[Backlog] // of the shards that this replica owns
}

// New returns an outbox that does nothing until [Outbox.Run].
func New(c Config) *Outbox {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Metrics == nil {
		c.Metrics = silent{}
	}
	if c.Rand == nil {
		c.Rand = rand.Float64
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &Outbox{Config: c}
}

// Run sends until ctx ends, and returns when nothing of it runs any more.
func (o *Outbox) Run(ctx context.Context) {
	o.pool = webhook.NewPool(o.Pool)
	var all sync.WaitGroup
	for i := range shards {
		all.Go(func() { (&shard{o, shardName(i), &o.backlogs[i]}).run(ctx) })
	}
	all.Wait()
	over, cancel := context.WithCancel(context.Background())
	cancel()
	o.pool.Close(over)
}

// shardPrefix begins the names of shards, which are the names of their locks.
const shardPrefix = "webhooks:"

func shardName(i int) string { return fmt.Sprint(shardPrefix, i) }

// Backlog is what is due and not delivered yet, to receivers that are sent something now.
type Backlog struct {
	Deliveries int

	// Oldest is since when the first of them is due that is neither under way nor to be left alone, as
	// its receiver asked. Zero without any.
	Oldest time.Time

	// Behind is when the first event happened that the cursor has not passed, or since when the
	// cursor cannot be written or an owner does nothing. Zero without any.
	Behind time.Time

	looked time.Time
}

// Backlog returns what this replica has to deliver, as it was at most some seconds ago.
func (o *Outbox) Backlog() (all Backlog) {
	for i := range o.backlogs {
		if b := o.backlogs[i].Load(); b != nil {
			all.Deliveries += b.Deliveries
			all.Oldest = first(all.Oldest, b.Oldest)
			if all.Behind = first(all.Behind, b.Behind); time.Since(b.looked) >= silentTime {
				all.Behind = first(all.Behind, b.looked) // it is stuck since then
			}
		}
	}
	return all
}

// first returns the earlier one of two instants, of which the zero one is none.
func first(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
