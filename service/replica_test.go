package service_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
)

const (
	minTTL = 2 * time.Second
	ttl    = 30 * time.Second // the default
	hold   = 50 * time.Second // the longest that one request is held open
)

// tokenKey is the key that all replicas share.
func tokenKey() []byte { return []byte("a key behind the lock tokens, long enough") }

// replica is a service with its way to the store.
type replica struct {
	*service.Service
	*service.Entries
	*service.Locks
	*service.StaleWrites
	t     *testing.T
	store *client
}

func (s *sharedStore) replica(t *testing.T, change ...func(*service.Config)) *replica {
	t.Helper()
	return s.replicaWith(t, newClient(s), change...)
}

func (s *sharedStore) replicaWith(
	t *testing.T, c *client, change ...func(*service.Config),
) *replica {
	t.Helper()
	cfg := service.Config{Store: c, Records: c.inner.Records(), TokenKey: tokenKey(), MinTTL: minTTL}
	for _, f := range change {
		f(&cfg)
	}
	one := service.New(cfg)
	r := &replica{one, one.Entries, one.Locks, one.StaleWrites, t, c}
	t.Cleanup(r.Close)
	synctest.Wait() // until the first list is read
	return r
}

// want asks for a lock. With a wait of 0 it is a try.
func want(name string, wait time.Duration) service.AcquireRequest {
	return service.AcquireRequest{
		Tenant: "acme", Holder: "worker-1", Wait: wait,
		Claims: []lock.Claim{{Name: name, Mode: lock.Exclusive}},
	}
}

// keyed asks for a lock with an idempotency key.
func keyed(name string, wait time.Duration, key string) service.AcquireRequest {
	req := want(name, wait)
	req.IdempotencyKey = key
	return req
}

// lasting asks for a lease that outlasts the test.
func lasting(req service.AcquireRequest) service.AcquireRequest {
	req.TTL = time.Hour
	return req
}

// by is a token request of the client with the grant g.
func by(g *service.Grant) service.TokenRequest {
	if g.Entry.Set {
		return service.TokenRequest{Tenant: g.Entry.Tenant, Set: true, ID: g.Entry.ID, Token: g.Token}
	}
	return service.TokenRequest{Tenant: g.Entry.Tenant, Name: g.Entry.Name(), Token: g.Token}
}

// pending is a request that may not be answered yet.
type pending struct {
	t      *testing.T
	cancel context.CancelFunc // the client goes away
	done   chan struct{}

	// Valid when done is closed.
	grant *service.Grant
	err   error
	at    time.Time
}

func (r *replica) begin(
	ctx context.Context, ask func(context.Context) (*service.Grant, error),
) *pending {
	ctx, cancel := context.WithCancel(ctx)
	p := &pending{t: r.t, cancel: cancel, done: make(chan struct{})}
	r.t.Cleanup(func() { cancel(); <-p.done })
	go func() {
		defer close(p.done)
		p.grant, p.err = ask(ctx)
		p.at = time.Now()
	}()
	return p
}

// start sends the request and lets everything happen that takes no time.
func (r *replica) start(req service.AcquireRequest) *pending {
	r.t.Helper()
	p := r.begin(
		r.t.Context(), func(ctx context.Context) (*service.Grant, error) { return r.Acquire(ctx, req) },
	)
	synctest.Wait()
	return p
}

// resume goes on waiting with a grant's token.
func (r *replica) resume(g *service.Grant, wait time.Duration) *pending {
	r.t.Helper()
	p := r.begin(
		r.t.Context(),
		func(ctx context.Context) (*service.Grant, error) { return r.Entry(ctx, by(g), wait) },
	)
	synctest.Wait()
	return p
}

// line puts the request into its queue, where it has to wait.
func (r *replica) line(req service.AcquireRequest) *pending {
	r.t.Helper()
	p := r.start(req)
	p.waits()
	return p
}

// hold acquires and must be granted at once.
func (r *replica) hold(req service.AcquireRequest) *service.Grant {
	r.t.Helper()
	return r.start(req).holds()
}

func (r *replica) release(g *service.Grant) {
	r.t.Helper()
	if err := r.Release(r.t.Context(), by(g)); err != nil {
		r.t.Fatalf("release: %v", err)
	}
	synctest.Wait()
}

func (p *pending) answered() bool {
	synctest.Wait()
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// waits fails if the request was answered.
func (p *pending) waits() {
	p.t.Helper()
	if p.answered() {
		p.t.Fatalf("answered instead of waiting: %+v, %v", p.grant, p.err)
	}
}

// holds waits until everything that takes no time has happened; then the request
// must have been granted.
func (p *pending) holds() *service.Grant {
	p.t.Helper()
	if !p.answered() {
		p.t.Fatal("still waits instead of holding")
	}
	return p.holdsLater()
}

// holdsLater waits for the answer, which must be a grant.
func (p *pending) holdsLater() *service.Grant {
	p.t.Helper()
	<-p.done
	if p.err != nil || !p.grant.Held {
		p.t.Fatalf("does not hold: %+v, %v", p.grant, p.err)
	}
	return p.grant
}

// stillWaits waits for the answer, which must be that the entry still waits.
func (p *pending) stillWaits() *service.Grant {
	p.t.Helper()
	<-p.done
	if p.err != nil || p.grant.Held {
		p.t.Fatalf("does not wait any more: %+v, %v", p.grant, p.err)
	}
	return p.grant
}

// fails waits for the answer, which must be an error with the code.
func (p *pending) fails(code lock.Code) lock.Error {
	p.t.Helper()
	<-p.done
	if p.err == nil {
		p.t.Fatalf("no error %s but %+v", code, p.grant)
	}
	return coded(p.t, p.err, code)
}

// ends waits for the answer, which must be that the entry ended for the reason.
func (p *pending) ends(why lock.Reason) {
	p.t.Helper()
	if e := p.fails(lock.Lost); e.Reason != why {
		p.t.Fatalf("lost because it was %q, want %q", e.Reason, why)
	}
	if p.grant != nil {
		p.t.Fatalf("an entry that ended comes with %+v", p.grant)
	}
}

// coded returns the error, which must have the code.
func coded(t *testing.T, err error, code lock.Code) lock.Error {
	t.Helper()
	e, ok := errors.AsType[*lock.Error](err)
	if !ok || e.Code != code {
		t.Fatalf("error %v, want %s", err, code)
	}
	return *e
}

// lostFor is an error that must say why the entry ended.
func lostFor(t *testing.T, err error, why lock.Reason) {
	t.Helper()
	if e := coded(t, err, lock.Lost); e.Reason != why {
		t.Fatalf("lost because it was %q, want %q", e.Reason, why)
	}
}

// after lets time pass, and then everything happen that takes none.
func after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// took fails unless just d has passed since began.
func took(t *testing.T, began time.Time, d time.Duration) {
	t.Helper()
	if got := time.Since(began); got != d {
		t.Fatalf("took %v, want %v", got, d)
	}
}
