package etcd

import (
	"context"
	"fmt"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// raising has something done before each page of a list but the first.
type raising struct {
	kvClient
	between func()
}

func (r *raising) Range(
	ctx context.Context, req *pb.RangeRequest, _ ...grpc.CallOption,
) (*pb.RangeResponse, error) {
	if req.Revision != 0 {
		r.between()
	}
	return r.kvClient.Range(ctx, req)
}

// heads keeps the first entry of the first view.
type heads struct {
	store.Watcher
	first chan *lock.Entry
}

func (h heads) Reset(s store.Snapshot) {
	select {
	case h.first <- s.Entries[0]:
	default:
	}
}

// TestFloorRisesDuringAList: another replica is given a floor while entries are listed, and
// this one learns of it between two pages. The list is in order all the same: who came
// first is the first of its queue.
func TestFloorRisesDuringAList(t *testing.T) {
	s, _ := testStore(t, EmbeddedConfig{}, func(*Conn) {})
	holder := s.mustEnqueue(t, testEntry("a", "z-holds")) // its key is on the second page
	for i := range 2 * firstPage {
		s.mustEnqueue(t, testEntry("a", fmt.Sprintf("waits-%03d", i)))
	}
	s.kv.kv = &raising{s.kv.kv, func() {
		other, err := Open(t.Context(), s.conn, Config{FenceFloor: 1 << 40})
		if err == nil {
			err = other.Close()
		}
		if err == nil {
			err = s.meta.Reread(t.Context())
		}
		if err != nil {
			t.Error(err)
		}
	}}
	h := heads{first: make(chan *lock.Entry, 1)}
	if _, err := s.feed.list(t.Context(), newGaps(s.feed, h)); err != nil {
		t.Fatal(err)
	}
	if first := <-h.first; first.ID != holder.ID {
		t.Errorf("the first is %s at %d, want %s", first.ID, first.Number, holder.ID)
	}
}

func (s *Store) mustEnqueue(t *testing.T, e *lock.Entry) *lock.Entry {
	t.Helper()
	placed, _, err := s.Enqueue(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	return placed
}
