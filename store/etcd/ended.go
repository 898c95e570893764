package etcd

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

const (
	// endedRetention is how long reasons stay in the store. The contract says 10
	// minutes; the rest allows for clocks that differ between replicas.
	endedRetention = 11 * time.Minute
	forgetInterval = 30 * time.Second

	// maxEndsPerKey keeps a record of many expiries far below etcd's limit for a
	// request.
	maxEndsPerKey = 1000
)

// unrecorded are ends that the store does not know the reason of yet: expiries,
// because etcd removes the entries of a dead lease without a word, and releases for
// whose record a full store had no room. Every replica sees them in its feed and
// writes them down at its next upkeep, unless another one was faster; a replica
// that starts later can then still tell the reason.
type unrecorded struct {
	mu   sync.Mutex
	open map[lock.ID]store.End
}

func (x *unrecorded) saw(id lock.ID, why lock.Reason) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.open == nil {
		x.open = map[lock.ID]store.End{}
	}
	x.open[id] = store.End{ID: id, Reason: why, At: time.Now().UnixMilli()}
}

// recorded forgets an end that is in the store.
func (x *unrecorded) recorded(id lock.ID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.open, id)
}

func (x *unrecorded) ends() []store.End {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Collect(maps.Values(x.open))
}

// recordEnds writes down what is open. What fails is tried again with the
// next upkeep.
func (s *Store) recordEnds() {
	for batch := range slices.Chunk(s.unrecorded.ends(), maxEndsPerKey) {
		ctx, cancel := context.WithTimeout(s.closing, attemptTimeout)
		_, err := s.kv.Txn(ctx, &pb.TxnRequest{
			Success: []*pb.RequestOp{putOp(endedKey(s.prefix, time.Now()), store.Encode(batch), 0)},
		})
		cancel()
		if err != nil {
			return
		}
		for _, e := range batch {
			s.unrecorded.recorded(e.ID)
		}
	}
}

// forgetEnds deletes the reasons recorded before the time. They are few unless
// the store was never tidied: one key for the removals of a whole transaction.
func (s *Store) forgetEnds(before time.Time) {
	ctx, cancel := context.WithTimeout(s.closing, operationTimeout)
	defer cancel()
	prefix := s.prefix + endedDir
	_, err := s.kv.DeleteRange(ctx, &pb.DeleteRangeRequest{
		Key: []byte(prefix), RangeEnd: []byte(prefix + bucket(before)),
	})
	if err != nil && ctx.Err() == nil {
		s.log.Warn("old reasons could not be deleted", "error", err)
	}
}

func (s *Store) decodeEnds(key, val []byte) []store.End {
	var ends []store.End
	if err := json.Unmarshal(val, &ends); err != nil {
		s.log.Error("a record of ended entries cannot be read", "key", string(key), "error", err)
	}
	return ends
}
