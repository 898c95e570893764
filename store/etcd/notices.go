package etcd

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// Notify implements store.Store. A notice that belongs to an entry hangs on the entry's
// lease, and is deleted soon after it was told that the entry went: the lease may be used
// again. Others are remembered as long as ends are.
func (s *Store) Notify(ctx context.Context, n *lock.Notice, of *lock.Entry) error {
	if err := store.CheckNotice(n, of); err != nil {
		return err
	}
	val := store.Encode(store.NoticeOf(n))
	if !s.conn.hasRoom(len(val) + keyRoom) {
		return unavailable(rpctypes.ErrGRPCNoSpace, "notify", false)
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	for unknown := false; ; {
		if refusal := s.trust.Refusal(); refusal != nil {
			refusal.OutcomeUnknown = unknown
			return refusal
		}
		err := s.tryNotify(ctx, n, of, val)
		var final *lock.Error
		switch {
		case err == nil:
			return s.trust.Believe()
		case errors.As(err, &final):
			final.OutcomeUnknown = final.OutcomeUnknown || unknown && final.Code != lock.Lost
			return final
		case isNoSpace(err), refused(err) && !isLeaseNotFound(err):
			return unavailable(err, "notify", unknown)
		}
		unknown = unknown || !certain(err) && !errors.Is(err, errNotTried)
		if store.Pause(ctx, 20*time.Millisecond) != nil {
			return unavailable(err, "notify", unknown)
		}
	}
}

// tryNotify makes one attempt. A *lock.Error is final; after any other one the next attempt
// may fare better.
func (s *Store) tryNotify(ctx context.Context, n *lock.Notice, of *lock.Entry, val []byte) error {
	w, err := s.noticeWrite(ctx, n, of, val)
	if err != nil {
		return errors.Join(errNotTried, err)
	}
	out, err := s.commits.Do(ctx, w)
	switch {
	case out.applied || errors.Is(err, lock.Overloaded):
		return err
	case isLeaseNotFound(err) && of != nil:
		if gone := s.proveLeased(ctx, of); errors.Is(gone, lock.Lost) {
			return gone
		}
		return err
	case isLeaseNotFound(err):
		s.memory.drop(w.Payload.ops[0].GetRequestPut().Lease)
		return err
	case err != nil && !isNoSpace(err):
		return err
	}
	return s.noticed(ctx, n, of, err)
}

// noticed finds out whether a notice is there, which was not written, or may have been into
// a store that is full. If it is not, the error says why.
func (s *Store) noticed(ctx context.Context, n *lock.Notice, of *lock.Entry, full error) error {
	resp, err := s.read(ctx, "find notice", &pb.RangeRequest{Key: s.noticeKey(n), CountOnly: true})
	switch {
	case err != nil:
		return errors.Join(errNotTried, err)
	case resp.Count > 0:
		return nil
	case full != nil:
		return full
	case of == nil:
		return errors.Join(errNotTried, errGoneMeanwhile)
	}
	if gone := s.prove(ctx, of); errors.Is(gone, lock.Lost) {
		return gone
	}
	return errors.Join(errNotTried, errGoneMeanwhile)
}

// noticeWrite writes the notice if there is none with its id, and the entry is there that
// it belongs to.
func (s *Store) noticeWrite(
	ctx context.Context, n *lock.Notice, of *lock.Entry, val []byte,
) (*write, error) {
	key := s.noticeKey(n)
	p := &part{puts: true, compares: []*pb.Compare{created(key, 0)}}
	w := &write{Tenant: n.Tenant, Payload: p, Keys: []string{string(key)}}
	lease, err := int64(0), error(nil)
	if of == nil {
		lease, err = s.memory.lease(ctx, 1)
	} else {
		lease = of.Handle
		p.compares = append(p.compares, created(s.primaryKey(of), s.revision(of.Number)))
		w.Keys = append(w.Keys, string(s.primaryKey(of)))
	}
	p.ops = []*pb.RequestOp{putOp(key, val, lease)}
	return p.sized(w), err
}

func (ks *keyspace) noticeKey(n *lock.Notice) []byte {
	dir := noticesDir
	if n.Of != "" {
		dir = attachedDir
	}
	return []byte(ks.prefix + dir + n.Tenant + "/" + n.ID)
}

// noticeAt reads a notice; nil is none that any replica can have written, which is reported.
func (ks *keyspace) noticeAt(kv *mvccpb.KeyValue, floor uint64) *lock.Notice {
	_, rest, _ := strings.Cut(string(kv.Key[len(ks.prefix):]), "/")
	tenant, id, _ := strings.Cut(rest, "/")
	var v store.NoticeValue
	err := json.Unmarshal(kv.Value, &v)
	if err == nil {
		n, bad := v.Notice(tenant, id, uint64(kv.ModRevision)+floor)
		if bad == nil {
			return n
		}
		err = bad
	}
	ks.log.Error("a notice cannot be read and is passed over", "key", string(kv.Key), "error", err)
	return nil
}

// listNotices reads the notices that belong to the entries, as of the same revision. What
// belongs to none of them any more is to be deleted.
func (fd *feed) listNotices(
	ctx context.Context, revision int64,
) (kvs []*mvccpb.KeyValue, err error) {
	page := newPager(fd.prefix + attachedDir)
	page.request.Revision = revision
	err = fd.eachKey(ctx, page, func(kv *mvccpb.KeyValue) { kvs = append(kvs, kv) })
	return kvs, err
}

func (fd *feed) attachedTo(
	entries []*lock.Entry, kvs []*mvccpb.KeyValue, floor uint64,
) []*lock.Notice {
	var all []*lock.Notice
	for _, kv := range kvs {
		if n := fd.noticeAt(kv, floor); n != nil {
			all = append(all, n)
		}
	}
	there, gone := store.Belonging(all, entries)
	fd.spent.add(fd.noticeKeys(gone))
	return there
}

func (ks *keyspace) noticeKeys(notices []*lock.Notice) (keys [][]byte) {
	for _, n := range notices {
		keys = append(keys, ks.noticeKey(n))
	}
	return keys
}

// maxSpentNotices bounds the notices that are yet to be deleted. Those beyond are deleted
// when they are listed next, or go with their lease.
const maxSpentNotices = 10_000

// spentNotices are the keys of notices whose entries went. Each replica deletes them; none
// is ever written again, as what would write it is compared with its entry.
type spentNotices struct {
	mu   sync.Mutex
	keys [][]byte
}

func (x *spentNotices) add(keys [][]byte) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.keys = append(x.keys, keys[:min(len(keys), maxSpentNotices-len(x.keys))]...)
}

func (x *spentNotices) take() [][]byte {
	x.mu.Lock()
	defer x.mu.Unlock()
	keys := x.keys
	x.keys = nil
	return keys
}

// deleteSpent deletes what is there still of notices whose entries went. What fails is
// tried again with the next upkeep.
func (s *Store) deleteSpent() {
	for some := range slices.Chunk(s.spent.take(), maxEndsPerKey) {
		if err := s.deleteKeys(some); err != nil {
			s.spent.add(some)
		}
	}
}

// deleteKeys deletes keys that are there. Nothing is written if none is, as another replica
// was faster.
func (s *Store) deleteKeys(keys [][]byte) error {
	ctx, cancel := context.WithTimeout(s.closing, attemptTimeout)
	defer cancel()
	there := &pb.TxnRequest{}
	for _, key := range keys {
		there.Success = append(there.Success, &pb.RequestOp{Request: &pb.RequestOp_RequestRange{
			RequestRange: &pb.RangeRequest{Key: key, CountOnly: true},
		}})
	}
	resp, err := s.kv.Txn(ctx, there)
	if err != nil {
		return err
	}
	txn := &pb.TxnRequest{}
	for i, key := range keys {
		if resp.Responses[i].GetResponseRange().Count > 0 {
			txn.Success = append(txn.Success, deleteOp(key))
		}
	}
	if len(txn.Success) > 0 {
		_, err = s.kv.Txn(ctx, txn)
	}
	return err
}
