package service

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/fencepost/fencepost/audit"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/quota"
	"github.com/fencepost/fencepost/service/closures"
	"github.com/fencepost/fencepost/service/events"
	"github.com/fencepost/fencepost/service/figures"
	"github.com/fencepost/fencepost/service/replicas"
	"github.com/fencepost/fencepost/service/view"
	"github.com/fencepost/fencepost/store"
)

// Metrics counts what happens to locks. Package telemetry defines the words for outcomes and
// ends.
type Metrics interface {
	Waited(ctx context.Context, outcome string, contended bool, d time.Duration)
	Acquired(ctx context.Context, outcome string, keys int) // keys is the number of requested locks
	// a request answered a grant after a wait, d after the view saw the grant
	HandedOver(ctx context.Context, d time.Duration)
	Held(ctx context.Context, mode, end string, d time.Duration)
	Renewed(ctx context.Context, outcome string)
	RenewedWith(ctx context.Context, slack float64) // slack is the share of the TTL that was left
	Revoked(ctx context.Context, actor string)      // actor is the operator's scope
	Deadlocked(ctx context.Context)                 // a request that closed a cycle was rejected
	// a resource reported a write that came late after the hold ended; 0 if that is unknown
	StaleWrite(ctx context.Context, late time.Duration)
}

// Config configures a [Service]. A zero duration means the default in its comment.
type Config struct {
	Store    store.Store
	Records  Records        // the audit, and reports of stale writes
	Journal  *audit.Journal // writes the audit; nil is one in Records
	Closures Closures       // nil means that no lock is closed
	TokenKey []byte         // signs the lock tokens; at least 32 bytes, the same on all replicas

	MinTTL     time.Duration // the store's shortest lease
	MaxTTL     time.Duration // 1 h; at most [lock.MaxTTL]
	DefaultTTL time.Duration // 30 s; never more than MaxTTL
	MaxWait    time.Duration // 24 h
	MaxHold    time.Duration // bounds how long one request is held open: 50 s

	Events events.Config // bounds the kept events and their followers

	// MaxKeys bounds the idempotency keys that a tenant may use at this replica while the store
	// keeps them: 1,000,000.
	MaxKeys int

	// Limits returns a tenant's limits; nil is [quota.Standard] for each. It does not block.
	Limits func(tenant string) *quota.Limits

	// FeedTimeout bounds how long a request that joined waits for the view before it asks the store
	// itself: 250 ms. Afterwards it keeps checking the view.
	FeedTimeout time.Duration

	// Sharing returns the replicas that share the async entries; nil means that this replica keeps
	// all.
	Sharing func() replicas.Sharing

	Now  func() time.Time // the wall clock of all instants shown to others; nil is time.Now
	Rand Rand             // nil is the system's randomness

	Metrics Metrics      // nil records nothing
	Logger  *slog.Logger // nil discards
	Tracer  trace.Tracer // nil traces nothing
}

// Service implements one replica's use cases. It holds no state that another replica could not
// build from the store. Its own methods join queues and wait; its parts answer about entries and
// locks, and keep reports.
type Service struct {
	*base
	Entries     *Entries
	Locks       *Locks
	StaleWrites *StaleWrites

	reads       *queueReads
	withdrawals *withdrawals
	events      publisher
	keys        *usedKeys
	async       *asyncKeeper

	feed     context.CancelFunc
	close    context.CancelFunc
	draining chan struct{}
	drain    sync.Once
}

// New starts to follow the store. The service works at once. It is current, and [Service.Ready],
// after the first list.
func New(cfg Config) *Service {
	cfg = cfg.withDefaults()
	if !cfg.untraced() {
		cfg.Store = Traced(cfg.Store, cfg.Tracer)
	}
	seen := figures.New(0)
	out := publisher{newDispatcher(cfg.Metrics, cfg.Logger), events.NewLog(cfg.Events)}
	seen.Contradicts = out.contradicts
	b := &base{Config: cfg, tokens: newTokens(cfg.TokenKey), figures: seen, view: view.New(view.Config{
		Events: out, Wall: cfg.Now, Refusal: cfg.Store.Refusal,
		Limits: cfg.Limits, Fresh: freshEnough, Figures: seen,
	})}
	reads := &queueReads{base: b}
	removals := &withdrawals{base: b, reads: reads}
	s := &Service{
		base: b, Entries: &Entries{base: b, reads: reads, withdrawals: removals},
		Locks:       &Locks{base: b, expiries: newExpiries(), events: out, started: cfg.Now()},
		StaleWrites: newStaleWrites(b), reads: reads, withdrawals: removals, events: out,
		keys: newUsedKeys(cfg.MaxKeys), draining: make(chan struct{}),
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.feed = cancel
	b.closing, s.close = context.WithCancel(context.Background())
	s.tasks.Go(func() { cfg.Store.Watch(ctx, s.view) })
	s.tasks.Go(func() { s.figures.Run(s.closing) })
	s.tasks.Go(func() { s.StaleWrites.run(s.closing) })
	s.async = newAsyncKeeper(s)
	s.tasks.Go(func() { s.async.run(s.closing) })
	return s
}

func (c Config) withDefaults() Config {
	c.MaxTTL = orDuration(c.MaxTTL, time.Hour)
	c.DefaultTTL = min(orDuration(c.DefaultTTL, 30*time.Second), c.MaxTTL)
	c.MaxWait = orDuration(c.MaxWait, 24*time.Hour)
	c.MaxHold = orDuration(c.MaxHold, 50*time.Second)
	c.FeedTimeout = orDuration(c.FeedTimeout, 250*time.Millisecond)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Limits == nil {
		standard := quota.Standard()
		c.Limits = func(string) *quota.Limits { return standard }
	}
	c.Events.Limits = c.Limits
	if c.Sharing == nil {
		c.Sharing = func() replicas.Sharing { return replicas.Sharing{} }
	}
	if c.Rand == nil {
		c.Rand = systemRand{}
	}
	if c.Metrics == nil {
		c.Metrics = silent{}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Tracer == nil {
		c.Tracer = noop.Tracer{}
	}
	if c.Journal == nil {
		c.Journal = audit.NewJournal(c.Records, c.Now, c.Logger)
	}
	return c
}

// untraced reports whether no span is recorded.
func (c *Config) untraced() bool {
	_, off := c.Tracer.(noop.Tracer)
	return off
}

func orDuration(d, otherwise time.Duration) time.Duration {
	if d == 0 {
		return otherwise
	}
	return d
}

// Drain answers every waiting request with [lock.Draining]. The entries stay queued for one TTL,
// within which their clients can resume at another replica.
func (s *Service) Drain() { s.drain.Do(func() { close(s.draining) }) }

// Draining reports whether the service rejects new entries.
func (s *Service) Draining() bool {
	select {
	case <-s.draining:
		return true
	default:
		return false
	}
}

// Close drains, ends the feed, and waits for the remaining clean-up. All requests must have
// ended.
func (s *Service) Close() {
	s.Drain()
	s.feed()
	s.close()
	s.tasks.Wait()
	s.events.close()
	s.events.history.Close()
}

// Ready returns nil if the service can work: it is not draining, understands what is stored, and
// has read the closures; the store answers, and the view is current.
func (s *Service) Ready(ctx context.Context) error {
	if s.Draining() {
		return errDraining()
	}
	if err := s.outdated(); err != nil {
		return err
	}
	if c := s.Config.Closures; c != nil && !c.Read() {
		return closures.ErrUnread()
	}
	return s.awaitNewest(ctx, time.Second)
}

// Current reports whether, before ctx ends, the view reaches everything that was in the store at
// the call, and this version understands it. An error means that the store did not answer.
func (s *Service) Current(ctx context.Context) (bool, error) {
	if s.outdated() != nil {
		return false, nil
	}
	asked := time.Now()
	number, err := s.Store.Newest(ctx)
	if err != nil {
		return false, err
	}
	if s.view.Progress.Await(ctx, number) != nil {
		return false, nil
	}
	s.view.Progress.HadAll(asked)
	return true, nil
}

func errDraining() error {
	return &lock.Error{
		Code:       lock.Draining,
		Detail:     "this replica is shutting down; retry at another, or here when it is back",
		RetryAfter: time.Second,
	}
}

type silent struct{}

func (silent) Waited(context.Context, string, bool, time.Duration) {}
func (silent) Acquired(context.Context, string, int)               {}
func (silent) HandedOver(context.Context, time.Duration)           {}
func (silent) Held(context.Context, string, string, time.Duration) {}
func (silent) Renewed(context.Context, string)                     {}
func (silent) RenewedWith(context.Context, float64)                {}
func (silent) Revoked(context.Context, string)                     {}
func (silent) Deadlocked(context.Context)                          {}
func (silent) StaleWrite(context.Context, time.Duration)           {}
