package etcd

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/engine"
)

// givenUp is when a call is abandoned whose writes are late. A busy machine has sent one by then.
const givenUp = 2 * time.Second

// lateKV holds back writes that put an entry. Their callers time out, and the writes can commit
// later, like those that a slow follower forwards.
type lateKV struct {
	kvClient
	now func() bool // whether one is held back, or committed with its answer lost

	mu   sync.Mutex
	held []*pb.TxnRequest
	hold int // so many

	blind bool // reads are refused, or they would tell the call that its write stands

	beforeRead atomic.Pointer[func()]
}

// let has no more writes be late, and returns those that are.
func (l *lateKV) let() []*pb.TxnRequest {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hold = 0
	return l.held
}

func (l *lateKV) Range(
	ctx context.Context, r *pb.RangeRequest, _ ...grpc.CallOption,
) (*pb.RangeResponse, error) {
	l.mu.Lock()
	blind := l.blind
	l.mu.Unlock()
	if blind {
		return nil, context.DeadlineExceeded
	}
	if do := l.beforeRead.Swap(nil); do != nil {
		(*do)()
	}
	return l.kvClient.Range(ctx, r)
}

func (l *lateKV) setBlind(blind bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.blind = blind
}

func (l *lateKV) Txn(
	ctx context.Context, r *pb.TxnRequest, _ ...grpc.CallOption,
) (*pb.TxnResponse, error) {
	l.mu.Lock()
	late := l.hold > 0 && puts(r)
	if late {
		l.hold--
		l.held = append(l.held, r)
	}
	l.mu.Unlock()
	if !late {
		return l.kvClient.Txn(ctx, r)
	}
	if l.now != nil && l.now() {
		if _, err := l.kvClient.Txn(ctx, r); err != nil {
			return nil, err
		}
	}
	return nil, context.DeadlineExceeded
}

// puts reports whether a transaction puts something under a lease, besides a writer's key.
func puts(r *pb.TxnRequest) bool {
	for _, op := range r.Success {
		put, inner := op.GetRequestPut(), op.GetRequestTxn()
		if put.GetLease() != 0 && !bytes.Contains(put.Key, []byte(writersDir)) ||
			inner != nil && puts(inner) {
			return true
		}
	}
	return false
}

// deliver has what was held back commit if it can, and returns how much was.
func (l *lateKV) deliver(t *testing.T) int {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.held {
		if _, err := l.kvClient.Txn(t.Context(), r); err != nil && !isLeaseNotFound(err) {
			t.Errorf("a late write: %v", err)
		}
	}
	return len(l.held)
}

func startLate(t *testing.T, hold int) (*Store, *lateKV) {
	t.Helper()
	conn, err := StartEmbedded(t.Context(), EmbeddedConfig{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	late := &lateKV{kvClient: conn.kv, hold: hold}
	conn.kv = late
	conn.local = false // its calls hang
	s, err := Open(t.Context(), conn, Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), conn.Close()); err != nil {
			t.Error(err)
		}
	})
	return s, late
}

func lateEntry() *lock.Entry {
	return &lock.Entry{
		ID: "late", Tenant: "acme", Holder: "worker", TTL: time.Hour, EnqueuedAt: time.Now(),
		Claims: []lock.Claim{{Name: "a", Mode: lock.Exclusive}},
	}
}

func (s *Store) mustFind(t *testing.T, e *lock.Entry) *lock.Entry {
	t.Helper()
	found, err := s.find(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func soon(t *testing.T, what string, ok func() bool) {
	t.Helper()
	within(t, time.Minute, what, ok)
}

func within(t *testing.T, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !ok(); {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// lives reports whether etcd has the lease.
func (s *Store) lives(t *testing.T, id int64) bool {
	t.Helper()
	resp, err := s.conn.leases.LeaseTimeToLive(t.Context(), &pb.LeaseTimeToLiveRequest{ID: id})
	if isLeaseNotFound(err) {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	return resp.TTL > 0
}

func leaseOf(r *pb.TxnRequest) int64 {
	for _, op := range r.Success {
		if lease := op.GetRequestPut().GetLease(); lease != 0 {
			return lease
		}
		if nested := op.GetRequestTxn(); nested != nil {
			return leaseOf(nested)
		}
	}
	return 0
}

// TestLateAttempt: an attempt that commits after its retry moves the entry to no other
// lease, and one that commits after the release brings nothing back.
func TestLateAttempt(t *testing.T) {
	s, late := startLate(t, 2)
	sent := lateEntry()
	sent.Request = "the parameters"
	e, written, err := s.Enqueue(t.Context(), sent)
	if err != nil || !written {
		t.Fatal(written, err)
	}
	if n := late.deliver(t); n != 2 {
		t.Fatalf("%d writes are late", n)
	}
	if found := s.mustFind(t, e); found.Handle != e.Handle || found.Number != e.Number {
		t.Errorf("after a late attempt the entry is %+v, and was %+v", found, e)
	}
	if err := s.Renew(t.Context(), e); err != nil {
		t.Errorf("Renew after a late attempt: %v", err)
	}
	for _, r := range late.held {
		soon(
			t, "the lease of an attempt that does not stand is revoked",
			func() bool { return !s.lives(t, leaseOf(r)) },
		)
	}
	if err := s.Remove(t.Context(), e, lock.Released); err != nil {
		t.Fatal(err)
	}
	late.deliver(t)
	if found, err := s.find(t.Context(), e); found != nil || engine.UsedUp(err) == nil {
		t.Errorf("an entry that was released came back: %+v, %v", found, err)
	}
}

// TestGivenUp: an entry that no client can come back for is removed, whether its write has
// committed or still will. One that a client can come back for stays.
func TestGivenUp(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name            string
		committed       bool
		resumable, kept bool
	}{
		{name: "Committed", committed: true},
		{name: "StillOut"},
		{name: "CommittedWithAKey", committed: true, resumable: true, kept: true},
		{name: "StillOutWithAKey", resumable: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, late := startLate(t, 1_000_000)
			late.now = func() bool { return c.committed }
			e := lateEntry()
			if c.resumable {
				e.Request = "the parameters"
			}
			late.setBlind(true)
			ctx, cancel := context.WithTimeout(t.Context(), givenUp)
			defer cancel()
			_, _, err := s.Enqueue(ctx, e)
			var le *lock.Error
			if !errors.As(err, &le) || le.Code != lock.StoreUnavailable || !le.OutcomeUnknown {
				t.Fatalf("Enqueue: %v", err)
			}
			late.setBlind(false)
			out := late.let()
			var stands int64
			if c.kept {
				found := s.mustFind(t, e)
				if found == nil {
					t.Fatal("the entry was taken back although its client can come back for it")
				}
				stands = found.Handle
			}
			for _, r := range out {
				if l := leaseOf(r); l != stands {
					soon(t, "the lease of the write is revoked", func() bool { return !s.lives(t, l) })
				}
			}
			late.deliver(t)
			if found := s.mustFind(t, e); c.kept != (found != nil) || c.kept && found.Handle != stands {
				t.Errorf("after what was late there is %+v, want that it is kept: %t", found, c.kept)
			}
			if c.resumable {
				if placed, written, err := s.Enqueue(t.Context(), e); err != nil || written == c.kept {
					t.Errorf("a retry: %+v, written %t, %v", placed, written, err)
				}
			}
		})
	}
}

// TestWithdrawnIsTold: feeds report that an abandoned entry was withdrawn, and not that it
// expired.
func TestWithdrawnIsTold(t *testing.T) {
	s, late := startLate(t, 1_000_000)
	late.now = func() bool { return true }
	f := &leaving{left: make(chan store.Change, 10)}
	s.tasks.Go(func() { s.Watch(s.closing, f) })
	soon(t, "the feed is up", func() bool { return f.isUp() })
	late.setBlind(true)
	ctx, cancel := context.WithTimeout(t.Context(), givenUp)
	defer cancel()
	if _, _, err := s.Enqueue(ctx, lateEntry()); err == nil {
		t.Fatal("the answer was not lost")
	}
	late.setBlind(false)
	if c := <-f.left; c.Left != "late" || c.Reason != lock.Withdrawn {
		t.Errorf("the feed tells of %+v", c)
	}
}

// leaving collects who went.
type leaving struct {
	left chan store.Change
	mu   sync.Mutex
	up   bool
}

func (f *leaving) isUp() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.up
}

func (f *leaving) Reset(store.Snapshot) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.up = true
}
func (f *leaving) Recall([]store.Ended, bool) {}
func (f *leaving) Lost(error)                 {}
func (f *leaving) Apply(_ uint64, changes []store.Change) {
	for _, c := range changes {
		if c.Joined == nil {
			f.left <- c
		}
	}
}
