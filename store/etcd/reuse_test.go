package etcd

import (
	"context"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/fencepost/fencepost/lock"
)

// reusable is an entry of its own lock; with a key it is resumable.
func reusable(id lock.ID, key bool) *lock.Entry {
	e := &lock.Entry{
		ID: id, Tenant: "acme", Holder: "worker", TTL: time.Hour, EnqueuedAt: time.Now(),
		Claims: []lock.Claim{{Name: "lock-" + string(id), Mode: lock.Exclusive}},
	}
	if key {
		e.Request = "the parameters"
	}
	return e
}

// startTwo starts two replicas. The answer to the first write of an entry is lost: the write
// commits when committed is closed, and its call fails when lose is called.
func startTwo(t *testing.T) (a, b *Store, committed chan struct{}, lose func()) {
	t.Helper()
	conn, err := StartEmbedded(t.Context(), EmbeddedConfig{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	first := make(chan struct{}, 1)
	first <- struct{}{}
	committed, answer := make(chan struct{}), make(chan struct{})
	conn.Interfere(func(_ context.Context, r *pb.TxnRequest, do Do) (*pb.TxnResponse, error) {
		resp, err := do()
		if err != nil || !puts(r) {
			return resp, err
		}
		select {
		case <-first:
			close(committed)
			<-answer
			return nil, rpctypes.ErrGRPCTimeout
		default:
			return resp, err
		}
	})
	replica := func() *Store {
		s, err := Open(t.Context(), conn, Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	return replica(), replica(), committed, func() { close(answer) }
}

// mustJoin repeats the request of an entry that is there.
func (s *Store) mustJoin(t *testing.T, e *lock.Entry) *lock.Entry {
	t.Helper()
	joined, written, err := s.Enqueue(t.Context(), e)
	if err != nil || written {
		t.Fatalf("a retry is answered %+v, %v, %v", joined, written, err)
	}
	return joined
}

// TestLeaseThatAnotherCallMayEnd: the answer to the write of an entry is late, and another caller
// removes the entry meanwhile. When the first call learns that the entry is gone, it revokes the
// lease, so the lease must not carry anything else.
func TestLeaseThatAnotherCallMayEnd(t *testing.T) {
	for name, c := range map[string]struct {
		key, elsewhere bool
		why            lock.Reason
	}{
		"retried and released":               {key: true, why: lock.Released},
		"retried and released elsewhere":     {key: true, elsewhere: true, why: lock.Released},
		"without a key, revoked":             {why: lock.Revoked},
		"without a key, revoked elsewhere":   {elsewhere: true, why: lock.Revoked},
		"without a key, withdrawn elsewhere": {elsewhere: true, why: lock.Withdrawn},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b, committed, lose := startTwo(t)
			if !c.elsewhere {
				b = a
			}
			ctx, e := t.Context(), reusable("late", c.key)
			over := make(chan struct{})
			go func() {
				defer close(over)
				_, _, _ = a.Enqueue(ctx, e) // what it answers is other tests' matter
			}()
			<-committed
			found := b.mustFind(t, e)
			if c.key {
				found = b.mustJoin(t, e)
			}
			if err := b.Remove(ctx, found, c.why); err != nil {
				t.Fatal(err)
			}
			next, _, err := b.Enqueue(ctx, reusable("next", false))
			if err != nil {
				t.Fatal(err)
			}
			lose()
			<-over
			soon(t, "the lease is ended", func() bool { return !a.lives(t, found.Handle) })
			if err := b.Renew(ctx, next); err != nil {
				t.Errorf(
					"the next entry, under lease %x, after that of the first, %x, was ended: %v", next.Handle,
					found.Handle, err,
				)
			}
		})
	}
}

// TestLeaseIsUsedAgain: a lease that no other call may revoke saves the next acquire a write.
func TestLeaseIsUsedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		key, elsewhere bool
		why            lock.Reason
		again          bool
	}{
		"released":                        {why: lock.Released, again: true},
		"released elsewhere":              {elsewhere: true, why: lock.Released, again: true},
		"with a key, released":            {key: true, why: lock.Released, again: true},
		"with a key, released elsewhere":  {key: true, elsewhere: true, why: lock.Released},
		"withdrawn":                       {why: lock.Withdrawn, again: true},
		"withdrawn elsewhere":             {elsewhere: true, why: lock.Withdrawn},
		"with a key, withdrawn elsewhere": {key: true, elsewhere: true, why: lock.Withdrawn},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b, _, lose := startTwo(t)
			lose()
			if _, _, err := a.Enqueue(t.Context(), reusable("lost", false)); err != nil {
				t.Fatal(err)
			}
			if !c.elsewhere {
				b = a
			}
			first, _, err := a.Enqueue(t.Context(), reusable("first", c.key))
			if err != nil {
				t.Fatal(err)
			}
			if err := b.Remove(t.Context(), first, c.why); err != nil {
				t.Fatal(err)
			}
			next, _, err := b.Enqueue(t.Context(), reusable("next", c.key))
			if err != nil || (next.Handle == first.Handle) != c.again {
				t.Errorf(
					"the next entry is under lease %x, %v; the first was under %x, to be used again: %v",
					next.Handle, err, first.Handle, c.again,
				)
			}
			if !c.again {
				soon(t, "the lease is ended", func() bool { return !a.lives(t, first.Handle) })
			}
		})
	}
}
