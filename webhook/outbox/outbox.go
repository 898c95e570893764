// Package outbox sends lock events to subscriptions and callbacks: each event at least once, or an
// events.missed that names what is missing. It is a transactional outbox over the store's events.
//
// Subscriptions and callbacks are divided into eight shards. The replica that holds a shard's lock
// owns it ([owner]). It follows the events from the shard's cursor, makes first attempts from
// memory, and writes a delivery into the store if its attempt failed or takes longer than 2 s. The
// cursor stays behind the first event that has a delivery neither made nor written. So the next
// owner repeats what happened since the cursor, and loses nothing. Each record is written by its
// known version: a replica that lost its shard may send something twice, but changes nothing.
package outbox

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/replicas"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/webhook"
	"github.com/fencepost/fencepost/webhook/subscription"
)

// Locks acquires the locks of shards and follows the events; [service.Service] does.
type Locks interface {
	Acquire(context.Context, service.AcquireRequest) (*service.Grant, error)
	Events(context.Context, service.EventsRequest) (*service.EventStream, error)
}

// Entries keeps the locks of shards; [service.Entries] does.
type Entries interface {
	Renew(context.Context, service.TokenRequest) (*service.Grant, error)
	Release(context.Context, service.TokenRequest) error

	// Token returns the token of an entry. It uses the id, the tenant, the number, and the first
	// lock or that the entry is a set.
	Token(*lock.Entry) string
}

// Holders has the entries that name callbacks; [service.Locks] does.
type Holders interface {
	// HeldCallbacks returns the entries that hold now and name a callback. HeldCallback returns one
	// of them, or nil.
	HeldCallbacks() []*lock.Entry
	HeldCallback(tenant string, id lock.ID) *lock.Entry

	// Gone reports whether an entry is known to have ended. It uses the id and the number.
	Gone(id lock.ID, number uint64) bool
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

// Config of an [Outbox].
type Config struct {
	Self          string // this replica's id
	Locks         Locks
	Entries       Entries
	Holders       Holders
	Records       store.RecordStore
	Subscriptions Subscriptions
	Sender        Sender
	Metrics       Metrics
	Logger        *slog.Logger

	// Sharing returns the replicas that share the work now, as far as possible settled ones. One that
	// takes over earlier may have less of the events in memory than the one before: the cursor is some
	// seconds behind.
	Sharing func() replicas.Sharing

	Pool webhook.PoolConfig // how many attempts run at once
	Now  func() time.Time   // the wall clock; nil is time.Now
	Rand func() float64     // from [0, 1), for the schedule; nil is the system's
}

// Outbox is one replica's part of the sending.
type Outbox struct {
	Config
	history  history
	pool     *webhook.Pool
	backlogs [shards]atomic.Pointer[Backlog] // of the shards that this replica owns
}

// New returns an outbox that does nothing until [Outbox.Run].
func New(c Config) *Outbox {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Rand == nil {
		c.Rand = rand.Float64
	}
	return &Outbox{Config: c, history: history{c.Locks, c.Holders}}
}

// Run sends until ctx ends, and returns when nothing of it runs any more.
func (o *Outbox) Run(ctx context.Context) {
	o.pool = webhook.NewPool(o.Pool)
	defer o.pool.Close()
	var all sync.WaitGroup
	for i := range shards {
		all.Go(func() { (&shard{o, shardName(i), &o.backlogs[i]}).run(ctx) })
	}
	all.Wait()
}

// Backlog is what is due and not delivered yet, to receivers that are sent something now. Of its
// instants the zero one is none.
type Backlog struct {
	Deliveries int
	Oldest     time.Time // since when the first of them waits for a worker
	// since when an event waits, the cursor cannot be written or an owner is stuck
	Behind time.Time

	looked time.Time
}

// Backlog returns what this replica has to deliver, as it was at most some seconds ago.
func (o *Outbox) Backlog() (all Backlog) {
	for i := range o.backlogs {
		b := o.backlogs[i].Load()
		if b == nil {
			continue
		}
		all.Deliveries += b.Deliveries
		all.Oldest = first(all.Oldest, b.Oldest)
		if all.Behind = first(all.Behind, b.Behind); time.Since(b.looked) >= silentTime {
			all.Behind = first(all.Behind, b.looked) // it is stuck since then
		}
	}
	return all
}

// first returns the earlier one of two instants.
func first(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
