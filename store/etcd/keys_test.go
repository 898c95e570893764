package etcd

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/engine"
)

// TestWithdrawnAfterTheRecord: an entry that expired, and whose key was in use again before that
// was recorded, uses up nothing. The end of the entry that has the key counts.
func TestWithdrawnAfterTheRecord(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		why    lock.Reason
		record int // how many replicas record it
		want   lock.Reason
	}{
		"withdrawn":                       {why: lock.Withdrawn, record: 1},
		"released":                        {why: lock.Released, record: 1, want: lock.Released},
		"withdrawn, not before":           {why: lock.Withdrawn},
		"expired, until that is recorded": {why: lock.Expired, record: 1},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := testStore(t, EmbeddedConfig{}, func(*Conn) {})
			draft := reusable("again", true)
			first := s.mustEnqueue(t, draft)
			if err := s.leases.revoke(t.Context(), first.Handle); err != nil {
				t.Fatal(err)
			}
			second := s.mustEnqueue(t, draft)
			if second.Number == first.Number {
				t.Fatal("it has not expired")
			}
			for range c.record {
				end := unrecordedEnd{
					End: store.End{
						ID: first.ID, Tenant: first.Tenant, Reason: lock.Expired, At: time.Now().UnixMilli(),
					},
					marked: true, key: store.Key{Tenant: first.Tenant, Lock: first.Name(), ID: first.ID},
				}
				if err := s.feed.recordSome([]unrecordedEnd{end}); err != nil {
					t.Fatal(err)
				}
			}
			if again, written, err := s.Enqueue(
				t.Context(), draft,
			); err != nil || written || again.Number != second.Number {
				t.Fatalf("the second one is found as %+v, %t, %v", again, written, err)
			}
			if c.why == lock.Expired {
				if err := s.leases.revoke(t.Context(), second.Handle); err != nil {
					t.Fatal(err)
				}
			} else if err := s.Remove(t.Context(), second, c.why); err != nil {
				t.Fatal(err)
			}
			_, written, err := s.Enqueue(t.Context(), draft)
			var used *lock.Error
			if errors.As(err, &used); c.want == "" && (!written || err != nil) || c.want != "" &&
				(used == nil || used.Code != lock.Lost || used.Reason != c.want) {
				t.Errorf("the key gives %t, %v; want %q", written, err, c.want)
			}
		})
	}
}

// noRoom answers as etcd does when it is full, or to who records an end as if it did not answer.
type noRoom struct{ full, forEnds atomic.Bool }

func (n *noRoom) txn(
	_ context.Context, r *pb.TxnRequest, do func() (*pb.TxnResponse, error),
) (*pb.TxnResponse, error) {
	switch text := r.String(); {
	case n.full.Load() && strings.Contains(text, "request_put"):
		return nil, rpctypes.ErrGRPCNoSpace
	case n.forEnds.Load() && strings.Contains(text, endedDir):
		return nil, context.DeadlineExceeded
	}
	return do()
}

// TestWithdrawalRecordedLate: that an entry was withdrawn from a full store is recorded when its
// key is in use again. That uses up nothing.
func TestWithdrawalRecordedLate(t *testing.T) {
	no := &noRoom{}
	s, _ := testStore(t, EmbeddedConfig{}, func(c *Conn) { c.Interfere(no.txn) })
	told := &leaving{left: make(chan store.Change, 10)}
	s.tasks.Go(func() { s.Watch(s.closing, told) })
	soon(t, "the feed is up", told.isUp)
	draft := reusable("again", true)
	first := s.mustEnqueue(t, draft)
	no.full.Store(true)
	if err := s.Remove(t.Context(), first, lock.Withdrawn); err != nil {
		t.Fatal(err)
	}
	<-told.left
	no.forEnds.Store(true)
	no.full.Store(false)
	second := s.mustEnqueue(t, draft)
	no.forEnds.Store(false)
	soon(t, "it is recorded", func() bool { return len(s.feed.unrecorded.ends()) == 0 })
	if err := s.Remove(t.Context(), second, lock.Withdrawn); err != nil {
		t.Fatal(err)
	}
	if why := s.usedUpBy(t, draft); why != "" {
		t.Errorf("the key is used up by %q", why)
	}
}

// usedUpBy returns why the key of e cannot be used, "" if it can.
func (s *Store) usedUpBy(t *testing.T, e *lock.Entry) lock.Reason {
	t.Helper()
	l, err := s.lookFor(t.Context(), e)
	if used := engine.UsedUp(err); used != nil {
		return used.Reason
	}
	if err != nil || l.found != nil {
		t.Errorf("there is %+v, %v", l.found, err)
	}
	return ""
}

// find reads the entry with e's id, or nil if there is none.
func (s *Store) find(ctx context.Context, e *lock.Entry) (*lock.Entry, error) {
	l, err := s.lookFor(ctx, e)
	return l.found, err
}
