package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/test/bubble"
)

// overdraw has the next transaction that puts something executed and answered with full,
// as etcd does with one that takes it beyond its quota. The ones after it that put
// something are refused.
type overdraw struct{ next, done atomic.Bool }

func (o *overdraw) txn(
	_ context.Context, r *pb.TxnRequest, do func() (*pb.TxnResponse, error),
) (*pb.TxnResponse, error) {
	switch {
	case !puts(r):
		return do()
	case o.next.CompareAndSwap(true, false):
		if _, err := do(); err != nil {
			return nil, err
		}
		o.done.Store(true)
		return nil, rpctypes.ErrGRPCNoSpace
	case o.done.Load():
		return nil, rpctypes.ErrGRPCNoSpace
	}
	return do()
}

func startOverdrawn(t *testing.T) (*Store, *overdraw) {
	t.Helper()
	o := &overdraw{}
	s, _ := testStore(t, EmbeddedConfig{}, func(c *Conn) { c.Interfere(o.txn) })
	return s, o
}

// TestJoinBeyondTheQuota: etcd says full, and has written the entry. Who asked for it has
// it, and its lease is not used for another.
func TestJoinBeyondTheQuota(t *testing.T) {
	for _, key := range []bool{false, true} {
		s, o := startOverdrawn(t)
		o.next.Store(true)
		e, written, err := s.Enqueue(t.Context(), reusable("first", key))
		if err != nil || !written || !o.done.Load() {
			t.Fatalf("Enqueue with a key: %v = %v, %v", key, written, err)
		}
		o.done.Store(false)
		next, _, err := s.Enqueue(t.Context(), reusable("next", key))
		if err != nil || next.Handle == e.Handle {
			t.Errorf("the next entry: %+v, %v, and the first has the lease %x", next, err, e.Handle)
		}
		if err := s.Renew(t.Context(), e); err != nil {
			t.Errorf("Renew = %v", err)
		}
	}
}

// TestUnseenBeyondTheQuota: etcd says full, and does not tell whether it has written the
// entry. That is said, and the entry is taken back, although etcd is full still.
func TestUnseenBeyondTheQuota(t *testing.T) {
	t.Parallel()
	s, late := startLate(t, 0)
	o := &overdraw{}
	s.conn.Interfere(o.txn)
	s.kv.kv = s.conn.kv
	s.commits.kv = s.kv
	o.next.Store(true)
	late.setBlind(true)
	_, _, err := s.Enqueue(t.Context(), lateEntry())
	var why *lock.Error
	if !errors.As(err, &why) || why.Code != lock.StoreUnavailable || !why.OutcomeUnknown {
		t.Errorf("Enqueue = %#v", err)
	}
	late.setBlind(false)
	soon(t, "the entry is taken back", func() bool { return s.mustFind(t, lateEntry()) == nil })
}

// TestReleaseBeyondTheQuota: etcd says full, and has removed the entry. The release was
// done, and for its reason.
func TestReleaseBeyondTheQuota(t *testing.T) {
	s, o := startOverdrawn(t)
	f := &leaving{left: make(chan store.Change, 10)}
	s.tasks.Go(func() { s.Watch(s.closing, f) })
	e, _, err := s.Enqueue(t.Context(), testEntry("a", "held"))
	if err != nil {
		t.Fatal(err)
	}
	o.next.Store(true)
	if err := s.Remove(t.Context(), e, lock.Released); err != nil || !o.done.Load() {
		t.Errorf("Remove = %v", err)
	}
	if c := <-f.left; c.Left != e.ID || c.Reason != lock.Released {
		t.Errorf("the feed tells of %+v", c)
	}
	if why, kept := s.ends.unrecordedReasons.Load(e.ID); kept {
		t.Errorf("the reason is kept for an end to come: %v", why)
	}
	if err := s.Remove(t.Context(), e, lock.Released); !errors.Is(err, lock.Lost) {
		t.Errorf("Remove again = %v", err)
	}
}

// TestReasonBeyondTheQuotaIsNotKept: etcd says full, and has removed the entry together
// with a record of why. So this replica need not remember that, whether or not its feed has
// told it: the entry's key may come again, and end for another reason.
func TestReasonBeyondTheQuotaIsNotKept(t *testing.T) {
	s, o := startOverdrawn(t)
	e := s.mustEnqueue(t, testEntry("a", "held"))
	o.next.Store(true)
	if err := s.Remove(t.Context(), e, lock.Released); err != nil || !o.done.Load() {
		t.Errorf("Remove = %v", err)
	}
	if why, kept := s.ends.unrecordedReasons.Load(e.ID); kept {
		t.Errorf("with no feed the reason is kept: %v", why)
	}
	r := &run{s: s}
	s.ends.unrecordedReasons.Store(e.ID, lock.Released)
	r.leaves(5, e)
	r.record(5, e, lock.Released)
	if _, err := s.feed.changes(r.events); err != nil {
		t.Fatal(err)
	}
	if why, kept := s.ends.unrecordedReasons.Load(e.ID); kept {
		t.Errorf("when it is told the reason is kept: %v", why)
	}
}

// TestRecordBeyondTheQuota: etcd says full, and has written the record.
func TestRecordBeyondTheQuota(t *testing.T) {
	full := false
	s, _ := testStore(t, EmbeddedConfig{}, func(c *Conn) {
		c.Interfere(func(_ context.Context, r *pb.TxnRequest, do Do) (*pb.TxnResponse, error) {
			if !full || !strings.Contains(r.String(), "request_put") {
				return do()
			}
			full = false
			_, _ = do()
			return nil, rpctypes.ErrGRPCNoSpace
		})
	})
	full = true
	k := store.RecordKey{Kind: "note", Tenant: "acme", ID: "r"}
	version, err := s.records.Put(t.Context(), store.RecordPut{RecordKey: k, Value: []byte("1")})
	if err != nil || full {
		t.Fatalf("Put = %v", err)
	}
	full = true
	var why *lock.Error
	if err := s.records.Delete(t.Context(), k, version); !errors.As(err, &why) || !why.OutcomeUnknown {
		t.Errorf("Delete = %v, want it unclear whether that was done", err)
	}
	if _, err := s.records.Get(t.Context(), k); !errors.Is(err, lock.NotFound) {
		t.Errorf("Get = %v", err)
	}
}

// TestRefusedRecordBeyondTheQuota: etcd says full, and has not written the record. What
// stands there is not taken for it.
func TestRefusedRecordBeyondTheQuota(t *testing.T) {
	full := false
	s, _ := testStore(t, EmbeddedConfig{}, func(c *Conn) {
		c.Interfere(func(_ context.Context, r *pb.TxnRequest, do Do) (*pb.TxnResponse, error) {
			if full && strings.Contains(r.String(), "request_put") {
				return nil, rpctypes.ErrGRPCNoSpace
			}
			return do()
		})
	})
	k := store.RecordKey{Kind: "note", Tenant: "acme", ID: "r"}
	version, err := s.records.Put(t.Context(), store.RecordPut{RecordKey: k, Value: []byte("1")})
	if err != nil {
		t.Fatal(err)
	}
	full = true
	var why *lock.Error
	if now, err := s.records.Put(
		t.Context(), store.RecordPut{RecordKey: k, Value: []byte("2"), Version: version},
	); !errors.As(err, &why) || why.OutcomeUnknown {
		t.Errorf("Put = %d, %v, and the version was %d", now, err, version)
	}
}

// TestTakenAwayBeyondTheQuota: etcd says full, and has written the entry of a key. Another
// request for the key finds it and takes it back, before this one looks. So the lease may
// be in other hands, and is not used again.
func TestTakenAwayBeyondTheQuota(t *testing.T) {
	var next atomic.Bool
	var takeBack func()
	s, _ := testStore(t, EmbeddedConfig{}, func(c *Conn) {
		c.Interfere(func(_ context.Context, r *pb.TxnRequest, do Do) (*pb.TxnResponse, error) {
			if !puts(r) || !next.CompareAndSwap(true, false) {
				return do()
			}
			if _, err := do(); err != nil {
				return nil, err
			}
			takeBack()
			return nil, rpctypes.ErrGRPCNoSpace
		})
	})
	other, err := Open(t.Context(), s.conn, Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	e := reusable("first", true)
	var found *lock.Entry
	takeBack = func() {
		found = other.mustFind(t, e)
		if err := other.Remove(t.Context(), found, lock.Withdrawn); err != nil {
			t.Error(err)
		}
	}
	next.Store(true)
	if placed, _, err := s.Enqueue(t.Context(), e); err == nil || found == nil {
		t.Fatalf("Enqueue = %+v", placed)
	}
	if idle := s.leases.idleCount(); idle != 0 {
		t.Errorf("%d leases are idle", idle)
	}
}

func (p *leasePool) idleCount() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.spare
}

// TestSharedBeyondTheQuota: a removal without a record shares a transaction with a join, for
// which there is no space. It is sent again alone. If it is not applied then, it may have been
// applied the first time, which the caller learns. The join is not sent again.
func TestSharedBeyondTheQuota(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		l := &ledger{took: time.Microsecond, refuse: 1, full: 1}
		c := (&committer{
			own: &ownWrites{}, writer: knownWriter(),
			ctx: t.Context(), trusted: trusting{}, observe: func(int, time.Duration, error) {},
		}).over(l, true)
		defer c.Close()
		var removed sync.WaitGroup
		removed.Go(func() {
			if out, err := c.Do(t.Context(), removal("b", true)); err != nil || out.applied || !out.again {
				t.Errorf("the removal: %+v, %v", out, err)
			}
		})
		synctest.Wait()
		p := &part{puts: true, ops: []*pb.RequestOp{putOp([]byte("a"), nil, 1)}}
		if out, err := c.Do(
			t.Context(), p.sized(&write{Keys: []string{"a"}, Payload: p}),
		); !isNoSpace(err) {
			t.Errorf("the join: %+v, %v", out, err)
		}
		removed.Wait()
		if got := l.seen(); !slices.Equal(got, []int{2, 1}) {
			t.Errorf("transactions of %v writes", got)
		}
	})
}

// trusting is a store whose records never change.
type trusting struct{}

func (trusting) unchanged() []*pb.Compare     { return nil }
func (trusting) reread(context.Context) error { return nil }
func (trusting) refuses() bool                { return false }

// TestRefusedIsNotThere: many entries join at once until etcd is full. An entry with a certain
// rejection is not there, and no lease with an entry under it is reused.
func TestRefusedIsNotThere(t *testing.T) {
	// as a cluster, whose quota this process does not guard
	s, _ := testStore(t, EmbeddedConfig{Quota: 16 << 20}, func(c *Conn) { c.admit = nil })
	var mu sync.Mutex
	var refused, placed []*lock.Entry
	var all sync.WaitGroup
	for worker := range 256 {
		all.Go(func() {
			for i := 0; ; i++ {
				e := testEntry(fmt.Sprintf("lock-%d-%d", worker, i), fmt.Sprintf("big-%d-%d", worker, i))
				e.Metadata = map[string]string{"filler": strings.Repeat(`"`, lock.MaxMetadataSize-6)}
				now, _, err := s.Enqueue(t.Context(), e)
				var why *lock.Error
				mu.Lock()
				switch {
				case err == nil:
					placed = append(placed, now)
				case errors.As(err, &why) && !why.OutcomeUnknown:
					refused = append(refused, e)
				}
				mu.Unlock()
				if why != nil && strings.Contains(why.Detail, "out of space") {
					return
				}
			}
		})
	}
	all.Wait()
	if len(refused) == 0 {
		t.Error("nobody was refused")
	}
	for _, e := range refused {
		if found := s.mustFind(t, e); found != nil {
			t.Errorf("%s was refused, and is in the queue", e.ID)
		}
	}
	s.leases.mu.Lock()
	defer s.leases.mu.Unlock()
	for _, idle := range s.leases.idle {
		for _, l := range idle {
			if slices.ContainsFunc(placed, func(e *lock.Entry) bool { return e.Handle == l.id }) {
				t.Errorf("a lease is idle and carries an entry: %x", l.id)
			}
		}
	}
}
