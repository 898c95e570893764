package etcd

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// atRest is a store in which nothing happens any more.
type atRest struct{ kvClient }

const restsAt = 7

func (atRest) Range(context.Context, *pb.RangeRequest) (*pb.RangeResponse, error) {
	return &pb.RangeResponse{Header: &pb.ResponseHeader{Revision: restsAt}}, nil
}

// TestEndsOfALongPause: an entry with a key went while a replica stood still, or was cut
// off. After a pause for which the store does not remember reasons nobody can say that it
// expired. A feed that has had nothing to tell for long is none.
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
			synctest.Test(t, func(t *testing.T) {
				s := newStore(&Conn{}, Config{})
				defer s.leases.grants.Close()
				defer s.commits.Close()
				s.kv.kv = atRest{}
				g := newGaps(s, &ends{})
				e := reusable("e", true)
				e.Number = restsAt
				g.Reset(store.Snapshot{Number: restsAt, Entries: []*lock.Entry{e}})
				guard := feedGuard{store: s, gaps: g, at: restsAt}
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
				if told := len(s.unrecorded.ends()); told != c.told {
					t.Errorf("%d ends are put down, want %d", told, c.told)
				}
			})
		})
	}
}

// TestKeyInUseAfterAGap: an entry with a key went in a gap of the feed, and the key is
// taken again before all reasons are told. Nobody is told that what has the key now ended.
func TestKeyInUseAfterAGap(t *testing.T) {
	s := newStore(&Conn{}, Config{})
	defer s.leases.grants.Close()
	defer s.commits.Close()
	g := newGaps(s, &ends{})
	before, now := reusable("e", true), reusable("e", true)
	before.Number, now.Number = restsAt, restsAt+2
	g.Reset(store.Snapshot{Number: restsAt, Entries: []*lock.Entry{before}})
	g.Lost(errors.New("it stood still"))
	g.Reset(store.Snapshot{Number: restsAt + 1})
	g.Apply(now.Number, []store.Change{{Joined: now}})
	g.Recall(nil, true)
	if told := s.unrecorded.ends(); len(told) > 0 {
		t.Errorf("put down: %+v", told)
	}
}
