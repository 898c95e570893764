package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/batch"
)

// recordShards is the number of nodes for the records of a kind.
const recordShards = 16

func (r layout) records() string         { return string(r) + "/records" }
func (r layout) lives() string           { return string(r) + "/lives" }
func (r layout) kind(kind string) string { return r.records() + "/" + kind }
func (r layout) life(id string) string   { return r.lives() + "/" + id }

func (r layout) recordShard(kind string, i int) string {
	return fmt.Sprintf("%s/%x", r.kind(kind), i)
}

func (r layout) shardOfRecord(k store.RecordKey) string {
	return r.recordShard(k.Kind, recordShard(k))
}

func recordShard(k store.RecordKey) int { return int(hash(recordName(k)) % recordShards) }

func (r layout) recordNode(k store.RecordKey) string {
	return r.shardOfRecord(k) + "/" + recordName(k)
}

func recordName(k store.RecordKey) string { return k.Tenant + "," + k.ID }

// boundNode is the node below a life that binds the record to it.
func (r layout) boundNode(life string, k store.RecordKey) string {
	return r.life(life) + "/" + k.Kind + "," + recordName(k)
}

var _ store.RecordStore = (*RecordStore)(nil)

// RecordStore keeps small records in ZooKeeper. It is closed with its [Store].
type RecordStore struct {
	store *Store
	life  *store.Life[string] // of bound records
}

// Records returns the store's small records.
func (s *Store) Records() *RecordStore { return s.small }

// Get implements store.RecordStore.
func (r *RecordStore) Get(ctx context.Context, k store.RecordKey) (store.Record, error) {
	return store.GetRecord(ctx, r, k)
}

// Put implements store.RecordStore.
func (r *RecordStore) Put(ctx context.Context, p store.RecordPut) (uint64, error) {
	return store.PutRecord(ctx, r, p)
}

// Delete implements store.RecordStore.
func (r *RecordStore) Delete(ctx context.Context, k store.RecordKey, version uint64) error {
	return store.DeleteRecord(ctx, r, k, version)
}

// Look implements store.RecordTable. It reads the shard first: if its version is unchanged at the
// write, nothing in it has changed since.
func (r *RecordStore) Look(
	ctx context.Context, k store.RecordKey, fresh bool,
) (s store.RecordState, err error) {
	l, err := r.link(ctx, fresh)
	if err != nil {
		return s, err
	}
	shard, err := do(ctx, l, get(r.store.root.shardOfRecord(k)))
	if errors.Is(err, zk.ErrNoNode) {
		if err = r.makeKind(ctx, k.Kind); err == nil {
			return r.Look(ctx, k, fresh)
		}
	}
	if err != nil {
		return s, err
	}
	s.Guard = int64(shard.stat.Version)
	n, err := do(ctx, l, get(r.store.root.recordNode(k)))
	if errors.Is(err, zk.ErrNoNode) {
		return s, nil
	}
	if err == nil {
		s.Found, s.Version = true, r.store.number(n.stat.Mzxid)
		s.RecordForm = store.ParseRecordForm(n.data)
	}
	return s, err
}

// link returns the connection for calls; with fresh, reads on it are no older than the call.
func (r *RecordStore) link(ctx context.Context, fresh bool) (*link, error) {
	l, err := r.store.calls.get(ctx)
	if err == nil && fresh {
		_, err = r.store.barrierOn(ctx, l)
	}
	return l, err
}

// makeKind makes the parents of a kind's records.
func (r *RecordStore) makeKind(ctx context.Context, kind string) error {
	if err := r.store.ensure(ctx, r.store.calls, r.store.root.kind(kind), nil); err != nil {
		return err
	}
	return inParallel(recordShards, func(i int) error {
		return r.store.ensure(ctx, r.store.calls, r.store.root.recordShard(kind, i), nil)
	})
}

// Swap implements store.RecordTable.
func (r *RecordStore) Swap(
	ctx context.Context, s store.RecordState, w *store.RecordWrite,
) (uint64, error) {
	if refusal := r.store.trust.Refusal(); refusal != nil {
		return 0, refusal
	}
	form, err := w.RecordForm, error(nil)
	if w.Bound {
		if form.Life, err = r.life.Begin(ctx); err != nil {
			return 0, errors.Join(batch.ErrNotSent, err)
		}
	}
	zxid, err := r.multi(ctx, form.Life, w.Kind, r.writeOps(s, w, form))
	if err != nil {
		return 0, err
	}
	if refusal := r.store.trust.Refusal(); refusal != nil {
		refusal.OutcomeUnknown = true
		return 0, refusal
	}
	return r.store.number(zxid), nil
}

// writeOps returns the operations of a write. The second of them sets the shard.
func (r *RecordStore) writeOps(
	s store.RecordState, w *store.RecordWrite, form store.RecordForm,
) []recordOp {
	ops := []recordOp{{outdated, r.store.meta.check()}}
	ops = append(ops, r.shardOps(s, w.RecordKey)...)
	ops = append(ops, r.recordOps(s, w, form)...)
	return append(ops, r.bindOps(s, w, form.Life)...)
}

// recordOp is an operation, and what its failure means.
type recordOp struct {
	failed func(ctx context.Context, r *RecordStore, life, kind string) error
	op     any
}

// shardOps exclude every other write in the shard since [RecordStore.Look], however late, and
// wake the watchers of the kind.
func (r *RecordStore) shardOps(s store.RecordState, k store.RecordKey) []recordOp {
	return []recordOp{
		{raced, &zk.SetDataRequest{Path: r.store.root.shardOfRecord(k), Version: int32(s.Guard)}},
		{noKind, &zk.SetDataRequest{Path: r.store.root.kind(k.Kind), Version: -1}},
	}
}

func (r *RecordStore) recordOps(
	s store.RecordState, w *store.RecordWrite, form store.RecordForm,
) []recordOp {
	path := r.store.root.recordNode(w.RecordKey)
	switch {
	case w.Delete:
		return []recordOp{{raced, &zk.DeleteRequest{Path: path, Version: -1}}}
	case s.Found:
		return []recordOp{{raced, &zk.SetDataRequest{Path: path, Data: form.Encode(), Version: -1}}}
	}
	return []recordOp{{raced, r.store.create(path, form.Encode())}}
}

// bindOps bind the record to a life, or to none, and unbind it from the old one.
func (r *RecordStore) bindOps(
	s store.RecordState, w *store.RecordWrite, life string,
) (ops []recordOp) {
	if s.Life == life {
		return nil
	}
	if s.Life != "" {
		path := r.store.root.boundNode(s.Life, w.RecordKey)
		ops = append(ops, recordOp{raced, &zk.DeleteRequest{Path: path, Version: anyVersion}})
	}
	if life != "" {
		path := r.store.root.boundNode(life, w.RecordKey)
		ops = append(ops, recordOp{lifeOver, r.store.create(path, nil)})
	}
	return ops
}

// multi makes one transaction and returns its zxid.
func (r *RecordStore) multi(
	ctx context.Context, life, kind string, ops []recordOp,
) (zxid int64, err error) {
	l, err := r.store.calls.get(ctx)
	if err != nil {
		return 0, errors.Join(batch.ErrNotSent, err)
	}
	all := make([]any, len(ops))
	for i, o := range ops {
		all[i] = o.op
	}
	start, mark := time.Now(), r.store.trust.Sent()
	results, err := do(ctx, l, multi(all...))
	r.store.observe.Operation("write a record", time.Since(start), err)
	failed := failedOp(results)
	switch {
	case err == nil:
		zxid = results[1].Stat.Mzxid // of the shard
		r.store.trust.Received(mark, zxid, 0)
		return zxid, nil
	case answered(err) && failed >= 0 && !errors.Is(err, zk.ErrNoAuth):
		return 0, ops[failed].failed(ctx, r, life, kind)
	case harmless(err):
		return 0, errors.Join(batch.ErrNotSent, err)
	}
	return 0, err
}

func raced(context.Context, *RecordStore, string, string) error { return store.ErrRecordRaced }

// outdated reads meta, which has changed.
func outdated(ctx context.Context, r *RecordStore, _, _ string) error {
	return errors.Join(batch.ErrNotSent, r.store.meta.rereadRecords(ctx, r.store.calls, 0))
}

func noKind(ctx context.Context, r *RecordStore, _, kind string) error {
	return errors.Join(batch.ErrNotSent, r.makeKind(ctx, kind))
}

func lifeOver(_ context.Context, r *RecordStore, life, _ string) error {
	r.life.Over(life)
	return batch.ErrNotSent
}

// nameOf parses the name of a record's node.
func nameOf(kind, name string) (k store.RecordKey, ok bool) {
	tenant, id, ok := strings.Cut(name, ",")
	return store.RecordKey{Kind: kind, Tenant: tenant, ID: id}, ok
}
