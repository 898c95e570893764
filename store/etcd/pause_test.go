package etcd

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/test/bubble"
)

// atRest is a store in which nothing happens any more.
type atRest struct{ kvClient }

const restsAt = 7

func (atRest) Range(
	_ context.Context, _ *pb.RangeRequest, _ ...grpc.CallOption,
) (*pb.RangeResponse, error) {
	return &pb.RangeResponse{Header: &pb.ResponseHeader{Revision: restsAt}}, nil
}

// TestEndsOfALongPause: an entry with a key left while a replica was paused or cut off. After a
// pause longer than the store keeps reasons, no replica can know that it expired. A feed that was
// silent for long is not a pause.
func TestEndsOfALongPause(t *testing.T) {
	for name, c := range map[string]struct {
		quiet, pause time.Duration
		told         int
	}{
		"a short one":                 {0, time.Minute, 1},
		"a short one of a quiet feed": {time.Hour, time.Minute, 1},
		"a long one":                  {0, time.Hour, 0},
		"a long one of a quiet feed":  {time.Hour, time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				s := newStore(&Conn{}, Config{})
				defer s.leases.grants.Close()
				defer s.commits.Close()
				s.kv.kv = atRest{}
				g := newGaps(s.feed, &leaving{})
				e := reusable("e", true)
				e.Number = restsAt
				g.Reset(store.Snapshot{Number: restsAt, Entries: []*lock.Entry{e}})
				guard := newGuard(s.keyspace, restsAt, func() {})
				guard.reached = g.reached
				for range c.quiet / feedCheck {
					<-time.After(feedCheck)
					if err := guard.check(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				<-time.After(c.pause)
				g.Lost(errors.New("it stood still"))
				g.Reset(store.Snapshot{Number: restsAt + 1})
				g.Recall(nil, true)
				if told := len(s.feed.unrecorded.ends()); told != c.told {
					t.Errorf("%d ends are put down, want %d", told, c.told)
				}
			})
		})
	}
}

// TestKeyInUseAfterAGap: an entry with a key left in a gap of the feed, and the key is used again
// before all reasons are reported. The feed does not report an end of the new entry.
func TestKeyInUseAfterAGap(t *testing.T) {
	s := newStore(&Conn{}, Config{})
	defer s.leases.grants.Close()
	defer s.commits.Close()
	g := newGaps(s.feed, &leaving{})
	before, now := reusable("e", true), reusable("e", true)
	before.Number, now.Number = restsAt, restsAt+2
	g.Reset(store.Snapshot{Number: restsAt, Entries: []*lock.Entry{before}})
	g.Lost(errors.New("it stood still"))
	g.Reset(store.Snapshot{Number: restsAt + 1})
	g.Apply(now.Number, []store.Change{{Joined: now}})
	g.Recall(nil, true)
	if told := s.feed.unrecorded.ends(); len(told) > 0 {
		t.Errorf("put down: %+v", told)
	}
}

// TestFloorKnownBeforeItsFeed: this replica learns of a fence floor during a list, and an entry
// of that list is released in a gap. The record of its end matches it, so the feed does not
// report an expiry.
func TestFloorKnownBeforeItsFeed(t *testing.T) {
	s := newStore(&Conn{}, Config{})
	defer s.leases.grants.Close()
	defer s.commits.Close()
	g := newGaps(s.feed, &leaving{})
	e := reusable("e", true)
	e.Number = restsAt
	raised := func(context.Context) (store.Records, error) {
		return store.Records{Floor: 1 << 40}, nil
	}
	if _, err := s.trust.Reread(t.Context(), 0, raised); err != nil {
		t.Fatal(err)
	}
	g.Reset(store.Snapshot{Number: restsAt, Entries: []*lock.Entry{e}}) // by the floor of before
	g.Lost(errMetaChanged)
	g.Reset(store.Snapshot{Number: restsAt + 1})
	g.Recall(
		[]store.Ended{{ID: e.ID, Reason: lock.Released, Was: store.Past{Text: store.PlaceOf(restsAt)}}},
		true,
	)
	if told := s.feed.unrecorded.ends(); len(told) > 0 {
		t.Errorf("put down: %+v", told)
	}
	if err := s.feed.hand(g, watchMessage{revision: restsAt + 2}); !errors.Is(err, errMetaChanged) {
		t.Errorf("what comes after by another floor: %v", err)
	}
}

// silentHistory does not answer what is asked of the past.
type silentHistory struct {
	kvClient
	asked int
}

func (h *silentHistory) Txn(
	ctx context.Context, r *pb.TxnRequest, _ ...grpc.CallOption,
) (*pb.TxnResponse, error) {
	if r.Success[0].GetRequestRange().GetRevision() == 0 {
		return &pb.TxnResponse{Header: &pb.ResponseHeader{Revision: restsAt}, Succeeded: true}, nil
	}
	h.asked++
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestEndsDoNotWaitForThePast: many entries expire at once, and their data cannot be read in
// time. The expiries are still recorded, without a new read for each hundred of them.
func TestEndsDoNotWaitForThePast(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newStore(&Conn{leases: &countedLeases{}}, Config{})
		defer s.leases.grants.Close()
		defer s.commits.Close()
		h := &silentHistory{}
		s.kv.kv = h
		for i := range 10 * maxEndsPerKey {
			s.feed.unrecorded.saw(
				store.Key{Tenant: "acme", Lock: "a", ID: lock.ID(fmt.Sprint("e", i))}, restsAt, lock.Expired,
				true,
			)
		}
		began := time.Now()
		s.ends.recordEnds()
		if left := len(
			s.feed.unrecorded.ends(),
		); left > 0 || h.asked != 1 || time.Since(began) > attemptTimeout {
			t.Errorf(
				"after %v %d ends are left, and the past was asked for %d times", time.Since(began), left,
				h.asked,
			)
		}
	})
}

// meanwhile has something done when a transaction was executed, before that is known.
type meanwhile struct {
	kvClient
	do func()
}

func (m *meanwhile) Txn(
	_ context.Context, r *pb.TxnRequest, _ ...grpc.CallOption,
) (*pb.TxnResponse, error) {
	if r.Success[0].GetRequestRange() != nil {
		return nil, rpctypes.ErrGRPCCompacted
	}
	m.do()
	return &pb.TxnResponse{Header: &pb.ResponseHeader{Revision: restsAt}, Succeeded: true}, nil
}

// TestExpiryBesideARecord: while the expiry of an entry is put down, the next one of its key
// expires. That has to be put down too.
func TestExpiryBesideARecord(t *testing.T) {
	s := newStore(&Conn{leases: &countedLeases{}}, Config{})
	defer s.leases.grants.Close()
	defer s.commits.Close()
	k := store.Key{Tenant: "acme", Lock: "a", ID: "e"}
	for _, e := range []*unrecordedEnd{{key: k, revision: restsAt}, {}} { // seen to go, and missed
		e.End, e.marked = store.End{ID: k.ID, Tenant: k.Tenant, Reason: lock.Expired, At: 1}, true
		s.feed.unrecorded.add(*e)
		again := true
		s.kv.kv = &meanwhile{do: func() {
			if again {
				s.feed.unrecorded.saw(k, restsAt+2, lock.Expired, true)
			}
		}}
		s.ends.recordEnds()
		if left := s.feed.unrecorded.ends(); len(left) != 1 || left[0].revision != restsAt+2 {
			t.Errorf("%+v is to be put down", left)
		}
		again = false
		if s.ends.recordEnds(); len(s.feed.unrecorded.ends()) > 0 {
			t.Errorf("%+v stays", s.feed.unrecorded.ends())
		}
	}
}
