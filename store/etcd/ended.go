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

// maxEndsPerKey keeps a record of many expiries far below etcd's limits for a request,
// which counts the marks of those that were resumable.
const maxEndsPerKey = 100

// unrecorded are ends that the store does not know the reason of yet: expiries,
// because etcd removes the entries of a dead lease without a word, and releases for
// whose record a full store had no room. Every replica sees them in its feed and
// writes them down at its next upkeep, unless another one was faster; a replica
// that starts later can then still tell the reason.
type unrecorded struct {
	mu   sync.Mutex
	open map[lock.ID]unrecordedEnd
}

type unrecordedEnd struct {
	store.End
	marked bool // the entry was resumable, and had a mark
}

func (x *unrecorded) saw(id lock.ID, tenant string, why lock.Reason, marked bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.open == nil {
		x.open = map[lock.ID]unrecordedEnd{}
	}
	x.open[id] = unrecordedEnd{store.End{ID: id, Tenant: tenant, Reason: why, At: time.Now().UnixMilli()}, marked}
}

// recorded forgets an end that is in the store.
func (x *unrecorded) recorded(id lock.ID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.open, id)
}

func (x *unrecorded) ends() []unrecordedEnd {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Collect(maps.Values(x.open))
}

// recordEnds writes down what is open. What fails is tried again with the
// next upkeep.
func (s *Store) recordEnds() {
	for batch := range slices.Chunk(s.unrecorded.ends(), maxEndsPerKey) {
		if s.recordSome(batch) != nil {
			return
		}
		for _, e := range batch {
			s.unrecorded.recorded(e.ID)
		}
	}
}

// recordSome writes a record of ends, and the marks that went with their entries: from
// now on their keys are used up.
func (s *Store) recordSome(batch []unrecordedEnd) error {
	ctx, cancel := context.WithTimeout(s.closing, attemptTimeout)
	defer cancel()
	memory, err := s.memory.lease(ctx, 1+len(batch))
	if err != nil {
		return err
	}
	txn := &pb.TxnRequest{}
	ends := make([]store.End, 0, len(batch))
	for _, e := range batch {
		if ends = append(ends, e.End); e.marked {
			s.markExpired(txn, e.End, memory)
		}
	}
	txn.Success = append(txn.Success, putOp(endedKey(s.prefix, time.Now()), store.Encode(ends), memory))
	if _, err = s.kv.Txn(ctx, txn); isLeaseNotFound(err) {
		s.memory.drop(memory)
	}
	return err
}

func (s *Store) decodeEnds(key, val []byte) []store.End {
	var ends []store.End
	if err := json.Unmarshal(val, &ends); err != nil {
		s.log.Error("a record of ended entries cannot be read", "key", string(key), "error", err)
	}
	return ends
}
