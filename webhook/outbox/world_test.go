package outbox_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/audit"
	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/events"
	"github.com/fencepost/fencepost/service/replicas"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/memory"
	"github.com/fencepost/fencepost/test/bubble"
	"github.com/fencepost/fencepost/test/poll"
	"github.com/fencepost/fencepost/webhook"
	"github.com/fencepost/fencepost/webhook/outbox"
	"github.com/fencepost/fencepost/webhook/subscription"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const tokenKey = "a key behind tokens, of 32 bytes"

// world is a store with replicas that send webhooks, and their receivers, in a bubble of
// testing/synctest.
type world struct {
	*memory.Server
	t     *testing.T
	hooks *subscription.Subscriptions
	asks  *outbox.Deliveries // at the replica that was made first

	mu        sync.Mutex
	live      []member
	stuck     string        // a replica that believes it is alone
	changed   chan struct{} // closed and replaced with live
	got       []received
	behave    func(url string, m webhook.Message) webhook.Result // nil: it is delivered
	took      time.Duration                                      // for each attempt
	attempted int
	ahead     time.Duration // of the owners' wall clocks
	outcomes  []string      // of attempts, as the metrics count them
	log       logLines      // of the outboxes: warnings

	next func(tenant string) time.Duration     // as [webhook.PoolConfig] has it
	wire func(cable *memory.Cable) memory.Wire // of new replicas; nil is the cable
}

// received is what a receiver took.
type received struct {
	url, id string
	at      time.Time
	event   api.Event
	secrets int
}

func run(t *testing.T, test func(t *testing.T, w *world)) {
	bubble.Test(t, func(t *testing.T) {
		w := &world{
			Server: memory.NewServer(memory.Config{Number: 100, Together: time.Millisecond}), t: t,
			changed: make(chan struct{}), took: time.Millisecond,
		}
		t.Cleanup(w.Close)
		client := w.Connect(nil)
		t.Cleanup(client.Close)
		keys := subscription.NewKeys([]byte(tokenKey))
		policy, err := webhook.NewPolicy(webhook.Settings{})
		if err != nil {
			t.Fatal(err)
		}
		w.hooks = subscription.New(subscription.Config{
			Records: client.Records(), Keys: keys, Policy: policy,
			Directory: subscription.NewDirectory(client.Records(), keys, slog.New(slog.DiscardHandler)),
		})
		test(t, w)
	})
}

// logLines is a handler that keeps warnings.
type logLines struct {
	slog.Handler
	mu    sync.Mutex
	lines []string
}

func (*logLines) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }

func (l *logLines) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := r.Message
	r.Attrs(func(a slog.Attr) bool { line += " " + a.String(); return true })
	l.lines = append(l.lines, line)
	return nil
}

// logged returns the lines that begin with a text.
func (w *world) logged(text string) (lines []string) {
	w.log.mu.Lock()
	defer w.log.mu.Unlock()
	for _, line := range w.log.lines {
		if strings.HasPrefix(line, text) {
			lines = append(lines, line)
		}
	}
	return lines
}

// replica is one that serves and sends.
type replica struct {
	backlog func() outbox.Backlog
	*service.Service
	*service.Entries
	*service.Locks
	w     *world
	name  string
	cable *memory.Cable
	own   *slowRecords
	dead  bool // guarded by the world's mutex: it sends nothing any more
	sent  int  // so too: attempts
	stop  func()
	once  sync.Once
}

// directory is a replica's copy of the subscriptions.
type directory struct {
	*subscription.Directory
	subscription.Keys
}

func (d directory) Secrets(s *subscription.Subscription, now time.Time) []webhook.Secret {
	return d.Of(s, now)
}

func (w *world) replica(name string) *replica {
	w.t.Helper()
	r := &replica{w: w, name: name, cable: memory.NewCable()}
	var wire memory.Wire = r.cable
	if w.wire != nil {
		wire = w.wire(r.cable)
	}
	client := w.Connect(wire)
	r.Service = service.New(service.Config{
		Store: client, TokenKey: []byte(tokenKey), MinTTL: time.Second,
		Sharing: func() replicas.Sharing { return w.sharing(name) },
	})
	r.Entries, r.Locks = r.Service.Entries, r.Service.Locks
	r.own = &slowRecords{RecordStore: client.Records()}
	dir := directory{
		subscription.NewDirectory(r.own, w.hooks.Keys, slog.New(slog.DiscardHandler)), w.hooks.Keys,
	}
	box := outbox.New(outbox.Config{
		Metrics: w, Self: name, Logger: slog.New(&w.log), Locks: r.Service, Records: r.own,
		Entries: r.Entries, Holders: r.Locks,
		Subscriptions: dir, Sender: r,
		Sharing: func() replicas.Sharing { return w.sharing(name) },
		Rand:    func() float64 { return 0.5 },
		Now:     w.wall,
		Pool:    webhook.PoolConfig{Next: w.next},
	})
	if w.asks == nil {
		w.asks = outbox.NewDeliveries(client.Records(), r.Service, r.Locks, w.hooks.Journal)
	}
	r.backlog = box.Backlog
	ctx, cancel := context.WithCancel(w.t.Context())
	var running sync.WaitGroup
	running.Go(func() { dir.Run(ctx) })
	running.Go(func() { box.Run(ctx) })
	r.stop = func() {
		r.once.Do(func() {
			cancel()
			running.Wait()
			r.Close()
			client.Close()
		})
	}
	w.t.Cleanup(r.stop)
	w.join(name)
	return r
}

// kill has a replica end at once, as the system would: it says and sends nothing more. What
// it has open ends by itself.
func (r *replica) kill() {
	r.w.mu.Lock()
	r.dead = true
	r.w.mu.Unlock()
	r.cable.Cut(memory.Silent)
	r.w.leave(r.name)
}

type member struct {
	name    string
	started time.Time
}

func (w *world) join(name string) {
	w.share(func(live []member) []member { return append(live, member{name, time.Now()}) })
}

func (w *world) leave(name string) {
	w.share(func(live []member) []member {
		return slices.DeleteFunc(live, func(one member) bool { return one.name == name })
	})
}

func (w *world) share(change func([]member) []member) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.live = change(slices.Clone(w.live))
	close(w.changed)
	w.changed = make(chan struct{})
}

// sharing is as [replicas.List.Settled].
func (w *world) sharing(name string) replicas.Sharing {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := replicas.Sharing{Self: name, Changed: w.changed}
	if name == w.stuck {
		s.Live = []string{name}
		return s
	}
	for _, settled := range []bool{true, false} {
		for _, one := range w.live {
			if !settled || time.Since(one.started) >= replicas.SettledAfter {
				s.Live = append(s.Live, one.name)
			}
		}
		if s.Live != nil {
			break
		}
	}
	return s
}

// Send implements [outbox.Sender].
func (r *replica) Send(ctx context.Context, t webhook.Target, m webhook.Message) webhook.Result {
	w := r.w
	w.mu.Lock()
	took, behave := w.took, w.behave
	w.mu.Unlock()
	timer := time.NewTimer(took)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return webhook.Result{Outcome: webhook.Interrupted}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.dead {
		return webhook.Result{Outcome: webhook.Interrupted}
	}
	if !m.NotAfter.IsZero() && !time.Now().Before(m.NotAfter) {
		return webhook.Result{Outcome: webhook.Expired}
	}
	var sent api.Event
	if err := json.Unmarshal(m.Payload, &sent); err != nil || sent.ID != m.ID {
		w.t.Errorf("the body of %s has the id %q (%v)", m.ID, sent.ID, err)
	}
	w.attempted++
	r.sent++
	result := webhook.Result{Outcome: webhook.Delivered, Status: 204}
	if behave != nil {
		result = behave(t.URL, m)
	}
	if result.Outcome == webhook.Delivered {
		one := received{url: t.URL, id: m.ID, at: time.Now(), secrets: len(t.Secrets)}
		if err := json.Unmarshal(m.Payload, &one.event); err != nil {
			w.t.Errorf("a payload is not an event: %v: %s", err, m.Payload)
		}
		w.got = append(w.got, one)
	}
	return result
}

// WebhookAttempted implements [outbox.Metrics].
func (w *world) WebhookAttempted(_ context.Context, outcome string, d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.outcomes = append(w.outcomes, outcome)
}

func (w *world) setBehave(f func(url string, m webhook.Message) webhook.Result) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.behave = f
}

func (w *world) wall() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Add(w.ahead)
}

func (w *world) received(url string) (got []received) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range w.got {
		if one.url == url {
			got = append(got, one)
		}
	}
	return got
}

func (w *world) attempts() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.attempted
}

func principal(tenant string) *auth.Principal {
	return &auth.Principal{Tenant: tenant, Subject: "tester"}
}

func actor(p *auth.Principal) subscription.Actor {
	return subscription.Actor{Principal: p, By: audit.Who{Subject: p.Subject, Tenant: p.Tenant}}
}

func order(of *subscription.Subscription) outbox.Order {
	return outbox.Order{Actor: actor(principal(of.Tenant)), Of: of}
}

// subscribe makes a subscription to some kinds of events of some locks.
func (w *world) subscribe(
	tenant, url, locks string, kinds ...lock.EventKind,
) *subscription.Subscription {
	w.t.Helper()
	c := subscription.Change{URL: &url, Locks: &locks}
	for _, k := range kinds {
		c.Events = append(c.Events, string(k))
	}
	s, _, err := w.hooks.Create(w.t.Context(), actor(principal(tenant)), c)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// cycle takes a lock and releases it.
func (r *replica) cycle(tenant, name string) {
	r.w.t.Helper()
	r.release(tenant, name, r.take(tenant, name))
}

func (r *replica) take(tenant, name string) *service.Grant {
	r.w.t.Helper()
	return r.takeFor(tenant, name, 30*time.Second)
}

func (r *replica) takeFor(tenant, name string, ttl time.Duration) *service.Grant {
	r.w.t.Helper()
	g, err := r.Acquire(r.w.t.Context(), acquire(tenant, name, ttl))
	if err != nil || !g.Held {
		r.w.t.Fatalf("Acquire: %+v, %v", g, err)
	}
	return g
}

func acquire(tenant, name string, ttl time.Duration) service.AcquireRequest {
	return service.AcquireRequest{
		Tenant: tenant, Claims: []lock.Claim{{Name: name, Mode: lock.Exclusive}}, Holder: "worker-1",
		TTL: ttl, Wait: 20 * time.Second,
	}
}

func (r *replica) release(tenant, name string, g *service.Grant) {
	r.w.t.Helper()
	if err := r.Release(
		r.w.t.Context(), service.TokenRequest{Tenant: tenant, Name: name, Token: g.Token},
	); err != nil {
		r.w.t.Fatalf("Release: %v", err)
	}
}

// untilTold waits until a receiver got so many events about a lock, or with "" in all.
func (w *world) untilTold(within time.Duration, url, name string, events int) {
	w.t.Helper()
	poll.Within(w.t, within, fmt.Sprint(url, " gets ", events, " events of ", name), func() bool {
		return len(kindsOf(w.received(url), name)) >= events
	})
}

// untilNoneLeft waits until no delivery and no request is in the store.
func (w *world) untilNoneLeft(within time.Duration) {
	w.t.Helper()
	poll.Within(w.t, within, "nothing is left", func() bool { return len(w.left()) == 0 })
}

// kinds are the kinds of events that were received about a lock, in order.
func kindsOf(got []received, name string) (kinds []string) {
	for _, one := range got {
		if name == "" || one.event.Data.Lock == name {
			kinds = append(kinds, one.event.Type)
		}
	}
	return kinds
}

// left describes the small records of the outbox that are not a cursor or a state.
func (w *world) left() (all []string) {
	for k, n := range w.recordsOf("webhook-owed-", "webhook-request-") {
		all = append(all, fmt.Sprint(k, n))
	}
	slices.Sort(all)
	return all
}

func (w *world) recordsOf(prefixes ...string) map[string]int {
	n := map[string]int{}
	client := w.Connect(nil)
	defer client.Close()
	for _, prefix := range prefixes {
		for i := range 8 {
			q := store.RecordQuery{Kind: fmt.Sprint(prefix, i)}
			for _, err := range store.EachRecord(w.t.Context(), client.Records(), q) {
				if err != nil {
					w.t.Fatal(err)
				}
				n[q.Kind]++
			}
		}
	}
	return n
}

func eventsOf(tenant string) service.EventsRequest {
	return service.EventsRequest{Of: tenant, Tenant: tenant}
}

func newRoom() []*events.Record { return make([]*events.Record, 64) }

// redeliverSince has all deliveries made again that are listed and were made since an instant.
func (w *world) redeliverSince(o outbox.Order, since time.Time) error {
	for cursor := ""; ; {
		page, err := w.asks.List(w.t.Context(), o.Tenant, o.Of.ID, cursor, 100)
		if err != nil {
			return err
		}
		for _, d := range page.Deliveries {
			if d.Made.Before(since) {
				continue
			}
			if err := w.asks.Redeliver(w.t.Context(), o, d.ID); err != nil {
				return err
			}
		}
		if cursor = page.Next; cursor == "" {
			return nil
		}
	}
}
