package etcd

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// ends records why entries ended, if the removal itself has not.
type ends struct {
	*keyspace
	memory     *memory
	unrecorded unrecorded
	pasts      store.Pasts // of the ends that this replica knows

	// unrecordedReasons holds the reasons of removals that a full store had no space to record. This
	// replica's feed reports them. To other replicas they look like expiries, except for withdrawals
	// of entries with a key.
	unrecordedReasons sync.Map // lock.ID → lock.Reason

	closing context.Context //nolint:containedctx // ends when the store is closed
}

// maxEndsPerKey keeps a record of many expiries far below etcd's limits for a request, which also
// count the marks of resumable entries.
const maxEndsPerKey = 100

// unrecorded holds ends whose reason the store does not have: expiries, because etcd removes the
// entries of an expired lease without a record, and releases for whose record a full store had no
// space. Every replica sees them in its feed and records them in its next maintenance, unless
// another replica already has. A replica that starts later can then still report the reason.
type unrecorded struct {
	mu   sync.Mutex
	open map[lock.ID]unrecordedEnd
	held bool // the feed lags, and may still reach the records of some
}

type unrecordedEnd struct {
	store.End
	marked bool // the entry was resumable, and its mark was removed

	key      store.Key // of its home
	revision int64     // of its removal; 0 if no feed saw it
}

func (x *unrecorded) saw(key store.Key, revision int64, why lock.Reason, marked bool) {
	end := store.End{ID: key.ID, Tenant: key.Tenant, Reason: why, At: time.Now().UnixMilli()}
	x.add(unrecordedEnd{End: end, marked: marked, key: key, revision: revision})
}

func (x *unrecorded) add(e unrecordedEnd) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.open == nil {
		x.open = map[lock.ID]unrecordedEnd{}
	}
	if open := x.open[e.ID].Reason; e.Reason == lock.Withdrawn && open != "" &&
		open != lock.Withdrawn {
		return // an earlier entry of the key has used it up
	}
	x.open[e.ID] = e
}

// recorded drops an end that is in the store. A withdrawal is not the end of an entry that
// expired before it under the same key.
func (x *unrecorded) recorded(e store.End) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if e.Reason != lock.Withdrawn || x.open[e.ID].Reason == lock.Withdrawn {
		delete(x.open, e.ID)
	}
}

// written drops an end that this replica has recorded. Another end of the same key may have
// arrived meanwhile.
func (x *unrecorded) written(e unrecordedEnd) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if open := x.open[e.ID]; open.revision == e.revision && open.At == e.At {
		delete(x.open, e.ID)
	}
}

// hold(true) suspends recording until hold(false).
func (x *unrecorded) hold(held bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.held = held
}

// due returns the ends to record now.
func (x *unrecorded) due() []unrecordedEnd {
	x.mu.Lock()
	held := x.held
	x.mu.Unlock()
	if held {
		return nil
	}
	return x.ends()
}

func (x *unrecorded) ends() []unrecordedEnd {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Collect(maps.Values(x.open))
}

// recordEnds records the open ends. The next maintenance retries what fails.
func (x *ends) recordEnds() {
	answers := true
	for batch := range slices.Chunk(x.unrecorded.due(), maxEndsPerKey) {
		answers = answers && x.lookBack(batch)
		if x.recordSome(batch) != nil {
			return
		}
		for _, e := range batch {
			x.unrecorded.written(e)
		}
	}
}

// recordSome writes a record of ends, and puts the marks that were removed with their entries:
// from then on their keys are used up.
func (x *ends) recordSome(batch []unrecordedEnd) error {
	ctx, cancel := context.WithTimeout(x.closing, attemptTimeout)
	defer cancel()
	memory, err := x.memory.lease(ctx, 1+len(batch))
	if err != nil {
		return err
	}
	txn := &pb.TxnRequest{}
	ends := make([]store.End, 0, len(batch))
	for _, e := range batch {
		ends = append(ends, e.End)
		if e.marked {
			x.markEnded(txn, e.End, memory)
		}
	}
	txn.Success = append(
		txn.Success, putOp(endedKey(x.prefix, time.Now()), store.Encode(ends), memory),
	)
	if _, err = x.kv.Txn(ctx, txn); isLeaseNotFound(err) {
		x.memory.drop(memory)
	}
	return err
}

// lookBack reads the entries as they were before their removal. If etcd has compacted that
// history, the ends are recorded without it. lookBack reports whether etcd answers; if it does
// not, the other expired entries need not wait for it too.
func (x *ends) lookBack(batch []unrecordedEnd) (answers bool) {
	ctx, cancel := context.WithTimeout(x.closing, attemptTimeout/2)
	defer cancel()
	txn, of := &pb.TxnRequest{}, []int(nil)
	for i, e := range batch {
		if e.revision == 0 {
			continue // already known
		}
		of = append(of, i)
		key := []byte(x.entryKey(e.key.Tenant, e.key.Lock, e.key.ID))
		txn.Success = append(txn.Success, &pb.RequestOp{Request: &pb.RequestOp_RequestRange{
			RequestRange: &pb.RangeRequest{Key: key, Revision: e.revision - 1},
		}})
	}
	if len(of) == 0 {
		return true
	}
	resp, err := x.kv.Txn(ctx, txn)
	if err != nil {
		x.log.Debug("what ended entries were could not be read", "ends", len(batch), "error", err)
		return isCompacted(err)
	}
	for n, i := range of {
		for _, kv := range resp.Responses[n].GetResponseRange().Kvs {
			if v, err := store.ParseValue(batch[i].key, kv.Value); err == nil {
				batch[i].Was = x.pasts.Of(v.Entry(batch[i].key, 0), kv.CreateRevision)
			}
		}
	}
	return true
}

// endsAt returns the ends of a record from the feed, without the entries' data.
func (x *ends) endsAt(kv *mvccpb.KeyValue) []store.End {
	if ends, ok := x.own.takeRecord(kv.Key); ok {
		return ends
	}
	ends, err := store.ParseReasons(kv.Value)
	x.unreadable(kv.Key, err)
	return ends
}

func (x *ends) decodeEnds(key, val []byte) []store.End {
	var ends []store.End
	x.unreadable(key, json.Unmarshal(val, &ends))
	return ends
}

func (x *ends) unreadable(key []byte, err error) {
	if err != nil {
		x.log.Error("a record of ended entries cannot be read", "key", string(key), "error", err)
	}
}
