package simulation

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/replicas"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/engine"
	"github.com/fencepost/fencepost/webhook"
	"github.com/fencepost/fencepost/webhook/outbox"
	"github.com/fencepost/fencepost/webhook/subscription"
)

// sendWebhooks starts the outbox of this life of the replica, which ends with unsend.
func (r *replica) sendWebhooks() {
	if !r.w.Webhooks {
		r.unsend = func() {}
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	name, started := r.name(), r.w.now()
	r.w.list.settles(name, started+settledAfter)
	box := outbox.New(outbox.Config{
		Self: name, Records: ownRecords{r.store.Records(), r.wire}, Subscriptions: &r.w.hooks,
		Locks: shardLocks{r.svc, r.wire}, Entries: r.svc.Entries, Holders: r.svc.Locks,
		Sender: post{r.wire}, Metrics: noMetrics{},
		Logger:  slog.New(slog.DiscardHandler),
		Sharing: func() replicas.Sharing { return r.w.list.settled(name, r.w.now()) },
		Rand:    func() float64 { return 0.5 },
	})
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		box.Run(ctx)
	}()
	r.unsend = func() {
		cancel()
		<-gone
	}
}

// shardLocks are the locks of shards, each asked for at an instant of its own: what a replica
// draws at random is a function of the instant. Shards with nothing to send wait forever.
type shardLocks struct {
	*service.Service
	wire *wire
}

// Acquire implements [outbox.Locks].
func (l shardLocks) Acquire(
	ctx context.Context, req service.AcquireRequest,
) (*service.Grant, error) {
	w, turn, name := l.wire.w, make(chan struct{}), req.Claims[0].Name
	if name == theShard {
		l.wire.arrive("shard", name, func() { w.schedule(w.latency(), func() { close(turn) }) })
	}
	select {
	case <-turn:
		return l.Service.Acquire(ctx, req)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// ownRecords are small records without the news of requests, which there are none of.
type ownRecords struct {
	*engine.Records
	wire *wire
}

// Put implements [store.RecordStore].
func (r ownRecords) Put(ctx context.Context, p store.RecordPut) (version uint64, err error) {
	posted := &r.wire.w.posted
	r.wire.arrive("write over", p.ID, func() { r.wire.w.checkOver(&p) })
	c := newWrite(r.wire, nil)
	version, err = engine.PutRecord(c.in(ctx), &steady{Records: r.Records}, p)
	r.wire.arrive("written", p.ID, func() { c.end(err) })
	r.wire.arrive("wrote", p.ID, func() { posted.writers[version] = fenceOf(&p) })
	return version, err
}

// Delete implements [store.RecordStore].
func (r ownRecords) Delete(ctx context.Context, k store.RecordKey, version uint64) error {
	c := newWrite(r.wire, nil)
	err := engine.DeleteRecord(c.in(ctx), &steady{Records: r.Records}, k, version)
	r.wire.arrive("written", k.ID, func() { c.end(err) })
	return err
}

// steady is the table of one write. Between two attempts the write pauses at random, which would
// make each replay another history: the next one begins 20 ms after the last.
type steady struct {
	*engine.Records
	failed time.Time
}

// Look implements [engine.Table].
func (s *steady) Look(
	ctx context.Context, k store.RecordKey, fresh bool,
) (engine.RecordState, error) {
	_ = store.Pause(ctx, time.Until(s.failed.Add(20*time.Millisecond))) // then the look fails
	return s.Records.Look(ctx, k, fresh)
}

// Swap implements [engine.Table].
func (s *steady) Swap(
	ctx context.Context, was engine.RecordState, w *engine.RecordWrite,
) (version uint64, err error) {
	if version, err = s.Records.Swap(ctx, was, w); err != nil {
		s.failed = time.Now()
	}
	return version, err
}

// Watch implements [store.RecordStore].
func (ownRecords) Watch(ctx context.Context, _ string, _ func()) { <-ctx.Done() }

// post is a replica's way to the receivers.
type post struct{ wire *wire }

// Send implements [outbox.Sender].
func (p post) Send(ctx context.Context, t webhook.Target, m webhook.Message) webhook.Result {
	a := &attempt{wire: p.wire, url: t.URL, message: m, answer: make(chan webhook.Result, 1)}
	p.wire.arrive("attempt", t.URL+m.ID, func() { p.wire.w.dispatch(a) })
	select {
	case r := <-a.answer:
		return r
	case <-ctx.Done():
	case <-p.wire.dead:
	}
	return webhook.Result{Outcome: webhook.Interrupted}
}

// arrive hands something other than a request for the store to the goroutine that decides.
func (l *wire) arrive(kind, id string, handle func()) {
	l.w.inbox.add(arrival{l.r.n, l.life, kind, -1, lock.ID(id), 0, handle})
}

type noMetrics struct{}

// WebhookAttempted implements [outbox.Metrics].
func (noMetrics) WebhookAttempted(context.Context, string, time.Duration) {}

// The subscription of the history's tenant, and that of another one. They and the callbacks are in
// one shard.
const (
	tenant   = "acme"
	hookID   = "hook-0"
	hookURL  = "https://hook.test/"
	alienID  = "hook-8"
	alien    = "https://alien.test/"
	theShard = "webhooks:7"
)

// hooks are the subscriptions as each replica knows them. All know a change at once, and see the
// events before it later.
type hooks struct {
	mu      sync.Mutex
	all     []*subscription.Subscription
	changed chan struct{}
}

// subscribe makes the subscriptions. They get what happens from now on.
func (w *world) subscribe() {
	h := &w.hooks
	h.mu.Lock()
	defer h.mu.Unlock()
	w.posted.from = w.server.Number()
	w.note("subscribe", w.posted.from)
	for _, s := range []*subscription.Subscription{
		{ID: hookID, Tenant: tenant, URL: hookURL}, {ID: alienID, Tenant: "umbrella", URL: alien},
	} {
		s.Locks, s.From, s.Version = "*", w.posted.from, w.posted.from
		h.all = append(h.all, s)
	}
	if h.changed != nil {
		close(h.changed)
		h.changed = nil
	}
}

// Current implements [outbox.Subscriptions].
func (h *hooks) Current() (all []*subscription.Subscription, ok bool, changed <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.changed == nil {
		h.changed = make(chan struct{})
	}
	return h.all, true, h.changed
}

// Secrets implements [outbox.Subscriptions].
func (h *hooks) Secrets(*subscription.Subscription, time.Time) []webhook.Secret { return secrets() }

// CallbackSecrets implements [outbox.Subscriptions].
func (h *hooks) CallbackSecrets(string, time.Time) []webhook.Secret { return secrets() }

func secrets() []webhook.Secret { return []webhook.Secret{webhook.SecretOf([32]byte{})} }
