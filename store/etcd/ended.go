package etcd

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/fencepost/fencepost/lock"
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

// expiries are ends that nobody has recorded yet: etcd removes the entries of a
// dead lease without a word. Every replica sees them in its feed and writes them
// down at its next upkeep, unless another one was faster; a replica that starts
// later can then still tell the reason.
type expiries struct {
	mu   sync.Mutex
	open map[lock.ID]time.Time // when it was seen
}

func (x *expiries) saw(id lock.ID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.open == nil {
		x.open = map[lock.ID]time.Time{}
	}
	x.open[id] = time.Now()
}

// recorded forgets an expiry that is in the store.
func (x *expiries) recorded(id lock.ID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.open, id)
}

func (x *expiries) ends() []end {
	x.mu.Lock()
	defer x.mu.Unlock()
	ends := make([]end, 0, len(x.open))
	for id, at := range maps.All(x.open) {
		ends = append(ends, end{ID: id, Reason: lock.Expired, At: at.UnixMilli()})
	}
	return ends
}

// recordExpiries writes down what is open. What fails is tried again with the
// next upkeep.
func (s *Store) recordExpiries() {
	for batch := range slices.Chunk(s.expiries.ends(), maxEndsPerKey) {
		ctx, cancel := context.WithTimeout(s.closing, attemptTimeout)
		_, err := s.conn.kv.Txn(ctx, &pb.TxnRequest{
			Success: []*pb.RequestOp{putOp(endedKey(s.prefix, time.Now()), encodeEnds(batch), 0)},
		})
		cancel()
		if err != nil {
			return
		}
		for _, e := range batch {
			s.expiries.recorded(e.ID)
		}
	}
}

// forgetEnds deletes the reasons recorded before the time. They are few unless
// the store was never tidied: one key for the removals of a whole transaction.
func (s *Store) forgetEnds(before time.Time) {
	ctx, cancel := context.WithTimeout(s.closing, operationTimeout)
	defer cancel()
	prefix := s.prefix + endedDir
	_, err := s.conn.kv.DeleteRange(ctx, &pb.DeleteRangeRequest{
		Key: []byte(prefix), RangeEnd: []byte(prefix + bucket(before)),
	})
	if err != nil && ctx.Err() == nil {
		s.log.Warn("old reasons could not be deleted", "error", err)
	}
}

func (s *Store) decodeEnds(key, val []byte) []end {
	var ends []end
	if err := json.Unmarshal(val, &ends); err != nil {
		s.log.Error("a record of ended entries cannot be read", "key", string(key), "error", err)
	}
	return ends
}

func encodeEnds(ends []end) []byte {
	val, err := json.Marshal(ends)
	if err != nil {
		panic(fmt.Sprintf("bug: ends cannot be encoded: %v", err))
	}
	return val
}
