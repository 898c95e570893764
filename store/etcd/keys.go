package etcd

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// mark shows that the id of a resumable entry is or was in use. It is written with the entry,
// under the entry's lease, only if there is none. The removal replaces it with the reason, under
// a lease of the memory. So an idempotency key is used once, whatever replicas know.
//
// A withdrawn entry also leaves its mark, although its key was not used. The next entry replaces
// exactly the version of the mark that its call has read. So a late attempt from before finds
// that it was not the last. An expired entry takes its mark along, since they share a lease. The
// record of its end puts the mark again, unless the key is in use again by then.
type mark struct {
	Lock   string      `json:"lock,omitempty"`   // while the entry exists: its home
	Reason lock.Reason `json:"reason,omitempty"` // afterwards: why it ended
	At     int64       `json:"at_ms,omitempty"`

	revision int64 // of the last put of the mark
}

func (ks *keyspace) markKey(tenant string, id lock.ID) string {
	return ks.prefix + keysDir + tenant + "/" + string(id)
}

// splitMarkKey parses the part of a mark's key after keysDir.
func splitMarkKey(rest string) (id lock.ID, ok bool) {
	_, last, ok := strings.Cut(rest, "/")
	return lock.ID(last), ok
}

// putMark makes w conditional: it writes e only if its id is neither in use nor used up. There
// must be no mark, or that of a withdrawn entry which was put at the revision.
func putMark(ks *keyspace, w *write, e *lock.Entry, withdrawn int64) {
	if !e.Resumable() {
		return
	}
	key := ks.markKey(e.Tenant, e.ID)
	w.Keys = append(w.Keys, key)
	w.Payload.compares = append(w.Payload.compares, modified([]byte(key), withdrawn))
	w.Payload.ops = append(w.Payload.ops, putOp([]byte(key), store.Encode(mark{Lock: e.Home()}), 0))
}

// endMark makes w replace the mark of e with the reason, or delete it without a lease. The mark
// of a withdrawal without a record is removed before its entry: that is how the feeds of others
// recognize it, see [departures.left].
func endMark(ks *keyspace, w *write, e *lock.Entry, why lock.Reason, at, lease int64) {
	if !e.Resumable() {
		return
	}
	key := ks.markKey(e.Tenant, e.ID)
	w.Keys = append(w.Keys, key)
	switch {
	case lease != 0:
		put := putOp([]byte(key), store.Encode(mark{Reason: why, At: at}), lease)
		w.Payload.ops = append(w.Payload.ops, put)
	case why == lock.Withdrawn:
		w.Payload.ops = slices.Insert(w.Payload.ops, 0, deleteOp([]byte(key)))
	default:
		w.Payload.ops = append(w.Payload.ops, deleteOp([]byte(key)))
	}
}

// markEnded adds to txn the mark of an entry that expired, unless its key is in use again. It
// replaces the mark of a withdrawal, which was put since.
func (x *ends) markEnded(txn *pb.TxnRequest, end store.End, lease int64) {
	key := []byte(x.markKey(end.Tenant, end.ID))
	put := []*pb.RequestOp{putOp(key, store.Encode(mark{Reason: end.Reason, At: end.At}), lease)}
	unlessThere := &pb.TxnRequest{Compare: []*pb.Compare{created(key, 0)}, Success: put}
	if end.Reason != lock.Withdrawn { // from a full store: it has not used up the key
		unlessThere.Failure = []*pb.RequestOp{txnOp(&pb.TxnRequest{
			Compare: goesOn(key, mark{Reason: lock.Withdrawn}), Success: put,
		})}
	}
	txn.Success = append(txn.Success, txnOp(unlessThere))
}

// goesOn compares whether the mark at key begins with m's encoding: etcd compares whole values
// only.
func goesOn(key []byte, m mark) []*pb.Compare {
	from, to := valuesOf(m)
	is := func(how pb.Compare_CompareResult, value string) *pb.Compare {
		return &pb.Compare{
			Key: key, Target: pb.Compare_VALUE, Result: how,
			TargetUnion: &pb.Compare_Value{Value: []byte(value)},
		}
	}
	return []*pb.Compare{is(pb.Compare_GREATER, from), is(pb.Compare_LESS, to)}
}

// valuesOf returns the bounds of the values that begin with a mark's encoding.
func valuesOf(m mark) (from, to string) {
	begin := strings.TrimSuffix(string(store.Encode(m)), "}")
	return begin + ",", begin + "-"
}

// look is the result of a search for an entry.
type look struct {
	found *lock.Entry // nil if there is none
	// the revision of the mark to replace if there is no entry: that of a withdrawn entry, or 0
	withdrawn int64
}

// lookFor searches for the entry with e's id. If e is resumable and its key is used up, the error
// is [lock.Lost] with the reason.
func (ks *keyspace) lookFor(ctx context.Context, e *lock.Entry) (l look, err error) {
	if e.Resumable() {
		m, err := ks.readMark(ctx, e)
		switch {
		case err != nil || m == nil:
			return look{}, err
		case m.Reason == lock.Withdrawn:
			return look{withdrawn: m.revision}, nil
		case m.Reason != "":
			return look{}, lock.LostBecause(m.Reason)
		}
		l.found, err = ks.findAt(ctx, []byte(ks.entryKey(e.Tenant, m.Lock, e.ID)))
		return l, err
	}
	l.found, err = ks.findAt(ctx, ks.primaryKey(e))
	return l, err
}

func (ks *keyspace) readMark(ctx context.Context, e *lock.Entry) (*mark, error) {
	key := ks.markKey(e.Tenant, e.ID)
	resp, err := ks.read(ctx, "read mark", &pb.RangeRequest{Key: []byte(key)})
	if err != nil || len(resp.Kvs) == 0 {
		return nil, err
	}
	m := mark{revision: resp.Kvs[0].ModRevision}
	err = json.Unmarshal(resp.Kvs[0].Value, &m)
	if err == nil && m.Reason == "" && !isHome(m.Lock) {
		err = errors.New("it names no lock")
	}
	if err != nil {
		ks.log.Error(
			"the mark of an idempotency key cannot be read; the key counts as used up", "key", key, "error",
			err,
		)
		return &mark{Reason: lock.Unknown}, nil //nolint:nilerr // it says that there was an entry
	}
	return &m, nil
}

func (ks *keyspace) findAt(ctx context.Context, key []byte) (*lock.Entry, error) {
	resp, err := ks.read(ctx, "find", &pb.RangeRequest{Key: key})
	if err != nil || len(resp.Kvs) == 0 {
		return nil, err
	}
	return ks.decode(resp.Kvs[0])
}
