package etcd

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/batch"
)

// Where small records are, below the store's prefix.
const (
	recordsDir = "records/" // <kind>/<tenant>/<id> → store.RecordForm
	guardsDir  = "guards/"  // <kind>/<shard>: its revision is that of the last deletion there

	guardShards = 64

	// recordsAtOnce bounds an answer while the records' sizes are unknown: that many of the largest
	// are 2 MiB.
	recordsAtOnce = 32

	// partsOfPage bounds the requests to etcd for one page.
	partsOfPage = 64
)

var _ store.RecordStore = (*RecordStore)(nil)

// RecordStore keeps small records in etcd. It is closed with its [Store].
type RecordStore struct {
	store *Store
	life  *store.Life[int64] // the lease of bound records
}

// Records returns the store's small records.
func (s *Store) Records() *RecordStore { return s.records }

// Get implements store.RecordStore.
func (r *RecordStore) Get(ctx context.Context, k store.RecordKey) (store.Record, error) {
	return store.GetRecord(ctx, r, k)
}

// Put implements store.RecordStore.
func (r *RecordStore) Put(ctx context.Context, p store.RecordPut) (uint64, error) {
	if !p.Frees && !r.store.conn.hasRoom(len(p.Value)+keyRoom) {
		return 0, unavailable(rpctypes.ErrGRPCNoSpace, "write a record", false)
	}
	return store.PutRecord(ctx, r, p)
}

// Delete implements store.RecordStore.
func (r *RecordStore) Delete(ctx context.Context, k store.RecordKey, version uint64) error {
	return store.DeleteRecord(ctx, r, k, version)
}

func (r *RecordStore) kindPrefix(kind string) string {
	return r.store.prefix + recordsDir + kind + "/"
}

func (r *RecordStore) key(k store.RecordKey) []byte {
	return []byte(r.kindPrefix(k.Kind) + k.Tenant + "/" + k.ID)
}

func (r *RecordStore) guardKey(k store.RecordKey) []byte {
	h := fnv.New32a()
	_, _ = h.Write([]byte(k.Tenant + "/" + k.ID)) // never fails
	return fmt.Appendf(nil, "%s%s%s/%02x", r.store.prefix, guardsDir, k.Kind, h.Sum32()%guardShards)
}

// keyOf reads a key below the prefix of its kind.
func keyOf(kind, rest string) (k store.RecordKey, ok bool) {
	tenant, id, ok := strings.Cut(rest, "/")
	return store.RecordKey{Kind: kind, Tenant: tenant, ID: id}, ok
}

// Look implements store.RecordTable: it reads the record and the guard of its key at one
// revision, no older than the call.
func (r *RecordStore) Look(
	ctx context.Context, k store.RecordKey, _ bool,
) (store.RecordState, error) {
	read := lookOps(r.key(k), r.guardKey(k))
	resp, err := r.store.tryTxn(ctx, "look at a record", &pb.TxnRequest{Success: read})
	if err != nil {
		return store.RecordState{}, err
	}
	return r.state(resp), nil
}

func lookOps(keys ...[]byte) (ops []*pb.RequestOp) {
	for _, key := range keys {
		ops = append(
			ops,
			&pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: key}}},
		)
	}
	return ops
}

// state returns what an answer to lookOps shows.
func (r *RecordStore) state(resp *pb.TxnResponse) (s store.RecordState) {
	if kvs := resp.Responses[0].GetResponseRange().GetKvs(); len(kvs) > 0 {
		s.Found, s.Version = true, r.store.number(kvs[0].ModRevision)
		s.RecordForm = store.ParseRecordForm(kvs[0].Value)
	}
	if kvs := resp.Responses[1].GetResponseRange().GetKvs(); len(kvs) > 0 {
		s.Guard = kvs[0].ModRevision
	}
	return s
}

// Swap implements store.RecordTable.
func (r *RecordStore) Swap(
	ctx context.Context, s store.RecordState, w *store.RecordWrite,
) (uint64, error) {
	if refusal := r.store.trust.Refusal(); refusal != nil {
		return 0, refusal
	}
	lease, err := int64(0), error(nil)
	if w.Bound {
		if lease, err = r.life.Begin(ctx); err != nil {
			return 0, errors.Join(batch.ErrNotSent, err)
		}
	}
	resp, err := r.store.tryTxn(ctx, "write a record", r.swapTxn(s, w, lease))
	if isLeaseNotFound(err) {
		r.life.Over(lease)
		return 0, errors.Join(batch.ErrNotSent, err)
	}
	return r.swapped(ctx, s, w, resp, err)
}

// swapped returns the result of an attempt at a write.
func (r *RecordStore) swapped(
	ctx context.Context, s store.RecordState, w *store.RecordWrite, resp *pb.TxnResponse, err error,
) (uint64, error) {
	switch {
	case isNoSpace(err):
		return r.beyondQuota(ctx, w, err)
	case err != nil && refused(err):
		return 0, unavailable(err, "write a record", false)
	case err != nil:
		return 0, err
	case !resp.Succeeded:
		return 0, r.raced(ctx, s, resp)
	}
	if refusal := r.store.trust.Refusal(); refusal != nil {
		refusal.OutcomeUnknown = true
		return 0, refusal
	}
	return r.store.number(resp.Header.Revision), nil
}

// beyondQuota finds out what became of a write to which etcd answered that it is full: etcd may
// have run it. For a deletion the outcome stays unknown, because the record does not show which
// caller deleted it.
func (r *RecordStore) beyondQuota(
	ctx context.Context, w *store.RecordWrite, full error,
) (uint64, error) {
	now, err := r.Look(ctx, w.RecordKey, true)
	switch {
	case err == nil && !w.Delete && now.Found && now.Mark == w.Mark:
		return now.Version, nil
	case err == nil && now.Found && now.Version == w.Version, err == nil && !w.Delete &&
		!now.Found && w.Version == 0:
		return 0, unavailable(full, "write a record", false)
	}
	return 0, unavailable(full, "write a record", true)
}

// swapTxn writes w if nothing has changed. Otherwise it reads the present state.
func (r *RecordStore) swapTxn(
	s store.RecordState, w *store.RecordWrite, lease int64,
) *pb.TxnRequest {
	key, guard := r.key(w.RecordKey), r.guardKey(w.RecordKey)
	txn := &pb.TxnRequest{Compare: r.store.meta.unchanged(), Failure: lookOps(key, guard)}
	if s.Found {
		txn.Compare = append(txn.Compare, modified(key, r.store.revision(s.Version)))
	} else {
		txn.Compare = append(txn.Compare, created(key, 0), modified(guard, s.Guard))
	}
	if w.Delete {
		txn.Success = []*pb.RequestOp{deleteOp(key), putOp(guard, nil, 0)}
	} else {
		txn.Success = []*pb.RequestOp{putOp(key, w.Encode(), lease)}
	}
	return txn
}

// raced returns why a swap was rejected. If the reason was not the record, the store's own
// records have changed, and raced reads them again.
func (r *RecordStore) raced(ctx context.Context, s store.RecordState, resp *pb.TxnResponse) error {
	now := r.state(resp)
	if now.Found == s.Found && now.Version == s.Version && (s.Found || now.Guard == s.Guard) {
		if err := r.store.meta.rereadRecords(ctx, 0); err != nil {
			return errors.Join(batch.ErrNotSent, err)
		}
	}
	return store.ErrRecordRaced
}

// List implements store.RecordStore. Each part of a page is as of its own read.
func (r *RecordStore) List(
	ctx context.Context, q store.RecordQuery,
) (page store.RecordPage, err error) {
	if err := q.Check(); err != nil {
		return page, err
	}
	ctx, cancel := context.WithTimeout(ctx, r.store.timeout)
	defer cancel()
	request, last, largest := r.rangeOf(&q), q.After, 1
	for range partsOfPage {
		if string(request.Key) >= string(request.RangeEnd) {
			return page, nil
		}
		resp, err := r.store.read(ctx, "list records", request)
		if err != nil {
			return store.RecordPage{}, unavailable(err, "list records", false)
		}
		for _, kv := range resp.Kvs {
			rec, ok := r.record(&q, kv)
			if ok && !page.Add(&q, rec) {
				page.Next = last
				return page, nil
			}
			last, largest = strings.TrimPrefix(string(kv.Key), r.kindPrefix(q.Kind)), max(
				largest, len(kv.Value),
			)
		}
		if !resp.More {
			return page, nil
		}
		request.Key = []byte(r.behind(&q, last))
		// etcd counts all following keys for each answer, so a page takes few answers.
		request.Limit = min(
			int64(q.Limit-len(page.Records)+1), int64(max(recordsAtOnce, store.MaxRecordPageBytes/largest)),
		)
	}
	page.Next = last
	return page, nil
}

// rangeOf returns the request for the records after the query's last page.
func (r *RecordStore) rangeOf(q *store.RecordQuery) *pb.RangeRequest {
	prefix, first := r.kindPrefix(q.Kind), ""
	end := string(prefixEnd(prefix))
	if q.Tenant != "" {
		prefix += q.Tenant + "/"
		first, end = q.From, string(prefixEnd(prefix))
		if q.Until != "" {
			end = prefix + q.Until
		}
	}
	start := prefix + first
	if q.After != "" {
		start = max(start, r.behind(q, q.After))
	}
	return &pb.RangeRequest{
		Key: []byte(start), RangeEnd: []byte(end), Limit: min(int64(q.Limit)+1, recordsAtOnce),
	}
}

// behind returns where a list continues after a key of the kind. A tenant's ids are in order, so
// behind skips those that the query does not want.
func (r *RecordStore) behind(q *store.RecordQuery, last string) string {
	next := r.kindPrefix(q.Kind) + last + "\x00"
	k, ok := keyOf(q.Kind, last)
	switch {
	case !ok:
		return next
	case k.ID < q.From:
		return r.kindPrefix(q.Kind) + k.Tenant + "/" + q.From
	case q.Until != "" && k.ID >= q.Until:
		return string(prefixEnd(r.kindPrefix(q.Kind) + k.Tenant + "/"))
	}
	return next
}

// record decodes one record of a list.
func (r *RecordStore) record(
	q *store.RecordQuery, kv *mvccpb.KeyValue,
) (rec store.Record, ok bool) {
	k, ok := keyOf(q.Kind, strings.TrimPrefix(string(kv.Key), r.kindPrefix(q.Kind)))
	if !ok || !q.Wants(k) {
		return rec, false
	}
	return store.Record{
		RecordKey: k, Value: store.ParseRecordForm(kv.Value).Value,
		Version: r.store.number(kv.ModRevision),
	}, true
}
