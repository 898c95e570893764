package service_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/view"
	"github.com/fencepost/fencepost/store/etcd"
	"github.com/fencepost/fencepost/test/poll"
)

// The tests in this file run on a real store, in real time. What they show is that
// the two fit together; the exact behaviour is in the other files.

// real is a replica on etcd.
type real struct {
	*service.Service
	*service.Entries
	*service.Locks
	t     *testing.T
	store *etcd.Store
}

// newReal starts a replica with a store of its own in the member's prefix.
func newReal(t *testing.T, conn *etcd.Conn, prefix string) *real {
	t.Helper()
	store, err := etcd.Open(t.Context(), conn, etcd.Config{Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	// The patience is long, so that a slow machine does not change what is tested.
	s := service.New(service.Config{
		Store: store, TokenKey: store.TokenKey(), MinTTL: etcd.MinTTL, FeedTimeout: 5 * time.Second,
	})
	t.Cleanup(func() {
		s.Close()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return &real{s, s.Entries, s.Locks, t, store}
}

func (r *real) hold(req service.AcquireRequest) *service.Grant {
	r.t.Helper()
	g, err := r.Acquire(r.t.Context(), req)
	if err != nil || !g.Held {
		r.t.Fatalf("does not hold: %+v, %v", g, err)
	}
	return g
}

// queued waits until n wait for the lock.
func (r *real) queued(name string, n int) {
	r.t.Helper()
	poll.Until(r.t, fmt.Sprint(n, " wait for ", name), func() bool {
		v, err := r.Lock(r.t.Context(), ref(name), true, nil)
		return err == nil && v.Waiting == n
	})
}

// answer is the result of a waiting request.
type answer struct {
	grant *service.Grant
	err   error
}

// ask sends the request and does not wait for the answer.
func (r *real) ask(ctx context.Context, req service.AcquireRequest) <-chan answer {
	c := make(chan answer, 1)
	var asked sync.WaitGroup
	r.t.Cleanup(asked.Wait)
	asked.Go(func() {
		g, err := r.Acquire(ctx, req)
		c <- answer{g, err}
	})
	return c
}

func TestOnEtcd(t *testing.T) {
	conn, err := etcd.StartEmbedded(t.Context(), etcd.EmbeddedConfig{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	cases := map[string]func(t *testing.T, a, b *real){
		"HandsOverInOrder":   handsOverInOrder,
		"OneKeyAtTwo":        oneKeyAtTwo,
		"KeyThatJustEnded":   keyThatJustEnded,
		"GoneClient":         goneClient,
		"RevokedWaiter":      revokedWaiter,
		"DeadHolder":         deadHolder,
		"TryAfterARelease":   tryAfterARelease,
		"RenewAfterARelease": renewAfterARelease,
		"Drain":              drainOnEtcd,
	}
	t.Run("cases", func(t *testing.T) {
		for name, run := range cases {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				prefix := "/" + name + "/"
				run(t, newReal(t, conn, prefix), newReal(t, conn, prefix))
			})
		}
	})
	t.Run("Restart", func(t *testing.T) { restart(t, conn) })
}

func handsOverInOrder(t *testing.T, a, b *real) {
	holder := a.hold(want("orders:1", 0))
	var line []<-chan answer
	for i := range 30 {
		r := []*real{a, b}[i%2]
		line = append(line, r.ask(t.Context(), want("orders:1", time.Minute)))
		a.queued("orders:1", i+1)
	}
	for i, next := range line {
		if err := b.Release(t.Context(), by(holder)); err != nil {
			t.Fatal(err)
		}
		got := <-next
		if got.err != nil || !got.grant.Held || got.grant.Entry.Number <= holder.Entry.Number {
			t.Fatalf("waiter %d: %+v, %v", i, got.grant, got.err)
		}
		for j, later := range line[i+1:] {
			select {
			case early := <-later:
				t.Fatalf("waiter %d was answered before %d: %+v", i+1+j, i, early)
			default:
			}
		}
		holder = got.grant
	}
}

func oneKeyAtTwo(t *testing.T, a, b *real) {
	for i := range 20 {
		req := keyed(fmt.Sprint("orders:", i), time.Minute, "k")
		one, two := a.ask(t.Context(), req), b.ask(t.Context(), req)
		first, second := <-one, <-two
		if first.err != nil || second.err != nil {
			t.Fatalf("%v, %v", first.err, second.err)
		}
		same(t, first.grant, second.grant)
	}
	if page, err := a.List(
		t.Context(),
		service.ListRequest{ListRequest: view.ListRequest{Tenant: "acme", Limit: 100}, Consistent: true},
	); err != nil || len(page.Locks) != 20 {
		t.Errorf("%+v, %v", page, err)
	}
}

func keyThatJustEnded(t *testing.T, a, b *real) {
	for i := range 20 {
		req := keyed(fmt.Sprint("orders:", i), time.Minute, "k")
		if err := a.Release(t.Context(), by(a.hold(req))); err != nil {
			t.Fatal(err)
		}
		_, err := b.Acquire(t.Context(), req)
		lostFor(t, err, lock.Released)
	}
	if page, err := a.List(
		t.Context(),
		service.ListRequest{ListRequest: view.ListRequest{Tenant: "acme", Limit: 100}, Consistent: true},
	); err != nil || len(page.Locks) != 0 {
		t.Errorf("%+v, %v", page, err)
	}
}

func goneClient(t *testing.T, a, b *real) {
	holder := a.hold(want("orders:1", 0))
	ctx, cancel := context.WithCancel(t.Context())
	gone, next := b.ask(ctx, want("orders:1", time.Minute)), b.ask(
		t.Context(), want("orders:1", time.Minute),
	)
	a.queued("orders:1", 2)
	cancel()
	<-gone
	a.queued("orders:1", 1)
	if err := a.Release(t.Context(), by(holder)); err != nil {
		t.Fatal(err)
	}
	if got := <-next; got.err != nil || !got.grant.Held {
		t.Errorf("%+v, %v", got.grant, got.err)
	}
}

func revokedWaiter(t *testing.T, a, b *real) {
	a.hold(want("orders:1", 0))
	waiter := b.ask(t.Context(), want("orders:1", time.Minute))
	a.queued("orders:1", 1)
	v, err := a.Lock(t.Context(), ref("orders:1"), true, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.store.Remove(t.Context(), v.Waiters[0].Entry, lock.Revoked); err != nil {
		t.Fatal(err)
	}
	lostFor(t, (<-waiter).err, lock.Revoked)
}

func deadHolder(t *testing.T, a, b *real) {
	req := want("orders:1", time.Minute)
	const ttl = 3 * etcd.MinTTL // so that a busy machine sees most of the next one's
	req.TTL = ttl
	holder := a.hold(req)
	died := time.Now()
	got := <-b.ask(t.Context(), req)
	if got.err != nil || !got.grant.Held {
		t.Fatalf("%+v, %v", got.grant, got.err)
	}
	if d := time.Since(died); d < ttl-100*time.Millisecond || d > ttl+20*time.Second {
		t.Errorf("free after %v", d)
	}
	if left := time.Until(got.grant.ExpiresAt); left < ttl/2 {
		t.Errorf("granted with %v left", left)
	}
	_, err := a.Renew(t.Context(), by(holder))
	lostFor(t, err, lock.Expired)
}

func tryAfterARelease(t *testing.T, a, b *real) {
	for range 50 {
		g := a.hold(want("orders:1", 0))
		if _, err := b.Acquire(t.Context(), want("orders:1", 0)); err == nil {
			t.Fatal("two hold")
		}
		if err := a.Release(t.Context(), by(g)); err != nil {
			t.Fatal(err)
		}
		if err := b.Release(t.Context(), by(b.hold(want("orders:1", 0)))); err != nil {
			t.Fatal(err)
		}
	}
}

func renewAfterARelease(t *testing.T, a, b *real) {
	for range 50 {
		g := a.hold(want("orders:1", 0))
		if _, err := b.Renew(t.Context(), by(g)); err != nil {
			t.Fatal(err)
		}
		if err := a.Release(t.Context(), by(g)); err != nil {
			t.Fatal(err)
		}
		_, err := b.Renew(t.Context(), by(g))
		lostFor(t, err, lock.Released)
	}
}

func drainOnEtcd(t *testing.T, a, b *real) {
	holder := b.hold(want("orders:1", 0))
	waiter := a.ask(t.Context(), want("orders:1", time.Minute))
	b.queued("orders:1", 1)
	a.Drain()
	told := <-waiter
	coded(t, told.err, lock.Draining)
	if err := b.Release(t.Context(), by(holder)); err != nil {
		t.Fatal(err)
	}
	g, err := b.Entry(t.Context(), by(told.grant), time.Minute)
	if err != nil || !g.Held {
		t.Fatalf("%+v, %v", g, err)
	}
	same(t, told.grant, g)
}

// restart shows that a replica holds nothing that the store does not.
func restart(t *testing.T, conn *etcd.Conn) {
	var held, released *service.Grant
	t.Run("Before", func(t *testing.T) {
		r := newReal(t, conn, "/restart/")
		held, released = r.hold(want("orders:1", 0)), r.hold(keyed("orders:2", 0, "k"))
		if err := r.Release(t.Context(), by(released)); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("After", func(t *testing.T) {
		r := newReal(t, conn, "/restart/")
		g, err := r.Renew(t.Context(), by(held))
		if err != nil {
			t.Fatal(err)
		}
		same(t, held, g)
		poll.Until(r.t, "the first list is read", func() bool { return r.Ready(t.Context()) == nil })
		lostFor(t, r.Release(t.Context(), by(released)), lock.Released)
		_, err = r.Acquire(t.Context(), keyed("orders:2", 0, "k"))
		lostFor(t, err, lock.Released)
		v, err := r.Lock(t.Context(), ref("orders:1"), true, nil)
		if err != nil || len(v.Holders) != 1 || cmp.Diff(held.Entry, v.Holders[0].Entry) != "" {
			t.Errorf("%+v, %v", v, err)
		}
	})
}
