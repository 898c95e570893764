package etcd

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// mark says of the id of a resumable entry that it is in use, or was. It is written
// with the entry, under the entry's lease, if there is none. The removal puts the
// reason in its place, under a lease of the memory. So an idempotency key is used once,
// and what replicas know or do not know has no part in it.
//
// A withdrawn entry takes its mark along: nobody was told of it, so its key was not
// used. An expired one does too, since they share a lease; the record of its end puts
// the mark again.
type mark struct {
	Lock   string      `json:"lock,omitempty"`   // while the entry is there: its first lock
	Reason lock.Reason `json:"reason,omitempty"` // after that: why it ended
	At     int64       `json:"at_ms,omitempty"`
}

func (ks *keyspace) markKey(tenant string, id lock.ID) string {
	return ks.prefix + keysDir + tenant + "/" + string(id)
}

// splitMarkKey reads the part of a mark's key behind keysDir.
func splitMarkKey(rest string) (id lock.ID, ok bool) {
	_, last, ok := strings.Cut(rest, "/")
	return lock.ID(last), ok
}

// putMark has w write e only if its id is neither in use nor used up.
func (s *Store) putMark(w *write, e *lock.Entry) {
	if !e.Resumable() {
		return
	}
	key := s.markKey(e.Tenant, e.ID)
	w.Keys = append(w.Keys, key)
	w.Payload.compares = append(w.Payload.compares, created([]byte(key), 0))
	w.Payload.ops = append(w.Payload.ops, putOp([]byte(key), store.Encode(mark{Lock: e.Name()}), 0))
}

// endMark has w leave the reason in the place of the mark of e, or nothing if e is
// withdrawn or there is no lease for it.
func (s *Store) endMark(w *write, e *lock.Entry, why lock.Reason, at, lease int64) {
	if !e.Resumable() {
		return
	}
	key := s.markKey(e.Tenant, e.ID)
	w.Keys = append(w.Keys, key)
	op := deleteOp([]byte(key))
	if why != lock.Withdrawn && lease != 0 {
		op = putOp([]byte(key), store.Encode(mark{Reason: why, At: at}), lease)
	}
	w.Payload.ops = append(w.Payload.ops, op)
}

// markExpired has txn put the mark of an entry that expired, unless its key is in use
// again.
func (s *Store) markExpired(txn *pb.TxnRequest, end store.End, lease int64) {
	key := []byte(s.markKey(end.Tenant, end.ID))
	txn.Success = append(txn.Success, &pb.RequestOp{Request: &pb.RequestOp_RequestTxn{RequestTxn: &pb.TxnRequest{
		Compare: []*pb.Compare{created(key, 0)},
		Success: []*pb.RequestOp{putOp(key, store.Encode(mark{Reason: end.Reason, At: end.At}), lease)},
	}}})
}

// find reads the entry with e's id, or nil if there is none. If e is resumable and its
// key is used up, the error is [lock.Lost] with the reason.
func (ks *keyspace) find(ctx context.Context, e *lock.Entry) (*lock.Entry, error) {
	if !e.Resumable() {
		return ks.findAt(ctx, ks.primaryKey(e))
	}
	m, err := ks.readMark(ctx, e)
	switch {
	case err != nil || m == nil:
		return nil, err
	case m.Reason != "":
		return nil, lock.LostBecause(m.Reason)
	}
	return ks.findAt(ctx, []byte(ks.entryKey(e.Tenant, m.Lock, e.ID)))
}

func (ks *keyspace) readMark(ctx context.Context, e *lock.Entry) (*mark, error) {
	key := ks.markKey(e.Tenant, e.ID)
	resp, err := ks.read(ctx, "read mark", &pb.RangeRequest{Key: []byte(key)})
	if err != nil || len(resp.Kvs) == 0 {
		return nil, err
	}
	var m mark
	err = json.Unmarshal(resp.Kvs[0].Value, &m)
	if err == nil && m.Reason == "" && !lock.ValidName(m.Lock) {
		err = errors.New("it names no lock")
	}
	if err != nil {
		ks.log.Error("the mark of an idempotency key cannot be read; the key counts as used up", "key", key, "error", err)
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

// usedUp returns the error of an id that cannot be used again, if err is one.
func usedUp(err error) *lock.Error {
	var used *lock.Error
	if errors.As(err, &used) && used.Code == lock.Lost && used.Reason != "" {
		return used
	}
	return nil
}

// errGoneMeanwhile says that the key that stood in the way is gone again.
var errGoneMeanwhile = errors.New("the entry was removed at the same moment")
