// Package outbox tells subscribers what happened to locks, and callers that their turn has
// come: each event of each subscription at least once, or that something is missed.
//
// What there is to tell is divided among the replicas by shards. A shard belongs to the one
// replica that holds a lock of Fencepost's own ([owner]): it follows the events from where
// the shard's cursor is, makes the first attempt of each delivery at once, and keeps in the
// store what is still owed. The cursor is written behind what was delivered or is kept, so
// whoever takes the shard over repeats what happened since, and loses nothing. Cursor and
// deliveries are written by version: a replica that was paused and has lost its shard
// can send something again, but changes nothing any more.
package outbox

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/webhook"
	"github.com/fencepost/fencepost/webhook/subscription"
)

// Locks is how replicas agree on whose a shard is, and what tells events;
// [service.Service] is it.
type Locks interface {
	Acquire(context.Context, service.AcquireRequest) (*service.Grant, error)
	Renew(context.Context, service.TokenRequest) (*service.Grant, error)
	Release(context.Context, service.TokenRequest) error
	Events(context.Context, service.EventsRequest) (*service.EventStream, error)

	// HeldCallbacks returns the entries that hold now and name a callback, and those of
	// which it is not known whether they hold.
	HeldCallbacks() (held, doubtful []*lock.Entry)

	// HeldCallback returns the tenant's entry with the id if it holds now and names a callback,
	// and nil otherwise.
	HeldCallback(tenant string, id lock.ID) *lock.Entry

	// Gone reports whether an entry is known to have ended, of which the id and the number count.
	Gone(id lock.ID, number uint64) bool

	// Token is what proves that an entry is its client's. Of the entry the id, the tenant,
	// the number and what it is bound to count: its first lock, or that it is a set.
	Token(*lock.Entry) string
}

// Records is what the outbox needs of the store's small records.
type Records interface {
	Get(ctx context.Context, k store.RecordKey) (store.Record, error)
	List(ctx context.Context, q store.RecordQuery) (store.RecordPage, error)
	Put(ctx context.Context, p store.RecordPut) (version uint64, err error)
	Delete(ctx context.Context, k store.RecordKey, version uint64) error
	Watch(ctx context.Context, kind string, changed func())
}

// Subscriptions is what a replica knows of who is to be told.
type Subscriptions interface {
	// Current returns all subscriptions, ok if they are known, and what is closed when
	// there may be others. The slice and what it points to do not change.
	Current() (all []*subscription.Subscription, ok bool, changed <-chan struct{})

	// Secrets are those that sign for a subscription, or a tenant's callbacks, now.
	Secrets(s *subscription.Subscription, now time.Time) []webhook.Secret
	CallbackSecrets(tenant string, now time.Time) []webhook.Secret
}

// Sender makes attempts, as [webhook.Sender] does.
type Sender interface {
	Send(ctx context.Context, t webhook.Target, m webhook.Message) webhook.Result
}

// Metrics is told what comes of attempts; the words for outcomes are those of package webhook.
type Metrics interface {
	WebhookAttempted(ctx context.Context, outcome string, d time.Duration)
}

type silent struct{}

func (silent) WebhookAttempted(context.Context, string, time.Duration) {}

// Config of an [Outbox]. All fields are required but those that say what they are without.
type Config struct {
	Self          string // which replica this is
	Locks         Locks
	Records       Records
	Subscriptions Subscriptions
	Sender        Sender

	// Sharing tells who shares the work now: as far as possible replicas that have run for
	// [SettledAfter]. It is asked again and again.
	Sharing func() service.Sharing

	// Charge has a tenant pay for what it took to tell its webhooks. It must not block. nil charges nobody.
	Charge func(tenant string, c Cost)

	Metrics Metrics      // nil records nothing
	Logger  *slog.Logger // nil discards

	Pool webhook.PoolConfig // how many attempts are made at once

	Now  func() time.Time // the wall clock; nil is time.Now
	Rand func() float64   // from [0, 1), for the schedule; nil is the system's
}

// Outbox is one replica's part of the sending.
type Outbox struct {
	Config
	pool     *webhook.Pool
	keeping  keeping
	backlogs [shards]atomic.Pointer[Backlog] // of the shards that this replica has
}

// New returns an outbox that does nothing until [Outbox.Run].
func New(c Config) *Outbox { return &Outbox{Config: c.withDefaults()} }

// shards is into how many parts the work is divided. It is the same for all replicas of a
// store: with another number, what is kept in the store would be in other parts.
const shards = 8

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

// shardPrefix is what the names of shards, which are those of their locks, begin with.
const shardPrefix = "webhooks:"

func shardName(i int) string { return fmt.Sprint(shardPrefix, i) }
