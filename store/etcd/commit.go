package etcd

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/batch"
)

const (
	// maxTxnOps is etcd's default bound on operations and comparisons in one transaction. For a
	// nested transaction it is what the outer one leaves.
	maxTxnOps = 128

	// batchOps bounds the operations of a batch. The rest is for the record of ends and for the
	// comparisons of the outer transaction.
	batchOps = maxTxnOps - 8

	// batchBytes stays far below etcd's limit of 1.5 MiB for a request.
	batchBytes = 512 << 10

	// linger bounds the delay of a write that is not urgent. A client that queues behind the holder
	// of a busy lock loses nothing by it. The holder's release, for which all wait, then need not
	// queue behind the flush of that write.
	linger = time.Millisecond

	// maxInFlight bounds the concurrent transactions, because a cluster takes a while to answer. The
	// embedded store has one. mostInFlight is the bound while entries of one lock are pending, which
	// cannot share a transaction: etcd flushes concurrent ones together.
	maxInFlight  = 3
	mostInFlight = 64
)

// mostStale bounds how often a put is sent again because what all puts compare has changed. Its
// call has to end in time.
const mostStale = 2

// part is one request's part of a transaction.
type part struct {
	stale       int  // how often it was sent again, see mostStale
	again       bool // an earlier attempt may have run
	compares    []*pb.Compare
	ops         []*pb.RequestOp
	end         *store.End // recorded together with a delete
	memory      int64      // the lease of that record
	puts        bool       // it puts an entry
	admitted    admission  // of the new entry that it puts
	conditional bool       // the removal depends on other entries
}

type write = batch.Write[*part, outcome]

// outcome is a write's result: applied, or not applied because a comparison failed. If it is
// unknown, there is also an error.
type outcome struct {
	applied  bool
	again    bool // it was sent before, and may have been applied then
	revision int64
	endKey   []byte // the key that records the end, if the write was applied
	writer   int64  // the revision of the writer's key with which it was sent
}

// committer writes batches as transactions, plain ones first. If one write of a batch fails its
// comparison, each write, or all removals together, becomes a nested transaction with its own
// comparisons. So the failed one does not fail the others.
type committer struct {
	*batch.Committer[*part, outcome]
	kv      kvClient
	prefix  string
	observe func(writes int, took time.Duration, err error)
	ctx     context.Context // ends when the store is closed
	pending batch.Backlog
	trusted trusted
	own     *ownWrites
	writer  *writer
}

// sending is a batch on its way.
type sending struct {
	groups []*group
	puts   bool  // one of them puts an entry
	writer int64 // the revision that the writer's key must have
}

func sendingOf(writes []*write, writer int64) sending {
	groups := grouped(writes)
	return sending{groups, slices.ContainsFunc(groups, (*group).puts), writer}
}

// over completes a committer over kv. local means that the store is in this process: its calls do
// not depend on a network.
func (c *committer) over(kv kvClient, local bool) *committer {
	c.kv = kv
	c.Committer = batch.NewCommitter(batch.Limits{
		Ops: batchOps, Bytes: batchBytes, InFlight: maxInFlight, Most: mostInFlight, Linger: linger,
		Inline: local, Pending: c.pending,
	}, c.send, nil)
	return c
}

// group holds writes that succeed or fail together: one, or several removals.
type group struct {
	writes []*write
	endKey []byte
}

// send writes a batch. If one of its writes fails all of it, send divides the batch until that
// one is alone.
func (c *committer) send(writes []*write) (again [][]*write) {
	writer := c.writer.current()
	writes = attended(writes)
	b := sendingOf(writes, writer)
	switch {
	case len(writes) == 0:
		return nil
	case b.puts && writer == 0:
		return c.stale(writes, 0)
	}
	start := time.Now()
	resp, err := c.transact(b)
	c.observe(len(writes), time.Since(start), err)
	switch {
	case err == nil && !resp.Succeeded:
		return c.stale(writes, writer)
	case err == nil:
		for i, g := range b.groups {
			again = append(again, g.settle(resp.Responses[i].GetResponseTxn(), resp.Header.Revision)...)
		}
		return again
	case len(writes) > 1 && (isLeaseNotFound(err) || isTooLarge(err)):
		return batch.Halves(writes)
	}
	return c.failed(b, err)
}

// attended leaves out the puts whose callers have given up since the batch was chosen. They may
// have shut out what they sent, which the revision of the writer's key would not show: it is read
// before. For the same reason [joining.Put] reads it after it gave up.
func attended(writes []*write) []*write {
	left := func(w *write) bool { return w.Payload.puts && w.Abandoned() }
	if !slices.ContainsFunc(writes, left) {
		return writes
	}
	rest := writes[:0:0]
	for _, w := range writes {
		if left(w) {
			w.Settle(outcome{}, batch.ErrNotSent)
			continue
		}
		rest = append(rest, w)
	}
	return rest
}

// failed handles a batch that failed as a whole. A full store must still accept the removals that
// need no space, so failed sends them again without the others. It does not repeat the others:
// etcd may have run the batch, and their callers know how to find out.
func (c *committer) failed(b sending, err error) (again [][]*write) {
	var withoutRoom []*write
	mixed := slices.ContainsFunc(b.groups, (*group).needsRoom)
	for _, g := range b.groups {
		for _, w := range g.writes {
			if isNoSpace(err) && mixed && !w.Payload.needsRoom() {
				w.Payload.again = true
				w.OutcomeUnknown = true
				withoutRoom = append(withoutRoom, w)
				continue
			}
			w.Settle(outcome{again: w.Payload.again, endKey: g.endKey, writer: b.writer}, err)
		}
	}
	return [][]*write{withoutRoom}
}

// needsRoom reports whether the part puts anything.
func (p *part) needsRoom() bool { return p.puts || p.end != nil }

// puts reports whether the group is a write of an entry.
func (g *group) puts() bool { return g.writes[0].Payload.puts }

func (g *group) needsRoom() bool {
	return slices.ContainsFunc(g.writes, func(w *write) bool { return w.Payload.needsRoom() })
}

// transact runs the transaction. Almost always all comparisons hold, and a plain transaction
// costs etcd less than nested ones. The answer has the form of nested ones. If a comparison
// fails, nothing was written, and nested transactions show which one it was.
func (c *committer) transact(b sending) (*pb.TxnResponse, error) {
	all := together(b.groups)
	txn := c.plain(all)
	txn.Compare = append(txn.Compare, c.unchanged(b)...)
	var resp *pb.TxnResponse
	var err error
	fits := len(txn.Compare) <= maxTxnOps // it does not with puts of very many tenants
	if fits {
		resp, err = c.try(txn)
	}
	if !fits || err == nil && !resp.Succeeded && (b.puts || len(b.groups) > 1) {
		return c.try(c.transaction(b))
	}
	for _, g := range b.groups {
		g.endKey = all.endKey
	}
	return nest(resp, len(b.groups)), err
}

// unchanged compares what all puts of a batch depend on.
func (c *committer) unchanged(b sending) []*pb.Compare {
	if !b.puts {
		return nil
	}
	return append(c.trusted.unchanged(), c.writer.unchanged(b.writer))
}

// try makes one transaction with one attempt's timeout.
func (c *committer) try(txn *pb.TxnRequest) (*pb.TxnResponse, error) {
	ctx, cancel := context.WithTimeout(c.ctx, attemptTimeout)
	defer cancel()
	return c.kv.Txn(ctx, txn)
}

// together merges all writes into one group, in the order of the nested transactions.
func together(groups []*group) *group {
	if len(groups) == 1 {
		return groups[0]
	}
	all := &group{}
	for _, g := range groups {
		all.writes = append(all.writes, g.writes...)
	}
	return all
}

// nest converts the answer of a plain transaction to that of equivalent nested ones.
func nest(inner *pb.TxnResponse, groups int) *pb.TxnResponse {
	if inner == nil {
		return nil
	}
	each := &pb.ResponseOp{Response: &pb.ResponseOp_ResponseTxn{ResponseTxn: inner}}
	return &pb.TxnResponse{
		Header: inner.Header, Succeeded: true, Responses: slices.Repeat([]*pb.ResponseOp{each}, groups),
	}
}

// grouped merges the unconditional removals into one group, which saves records of ends. They
// nearly always all succeed; an exception is an entry that has just expired.
func grouped(writes []*write) []*group {
	groups := make([]*group, 0, len(writes))
	var removals *group
	for _, w := range writes {
		switch p := w.Payload; {
		case p.puts || p.conditional:
			groups = append(groups, &group{writes: []*write{w}})
		case removals == nil:
			removals = &group{writes: []*write{w}}
			groups = append(groups, removals)
		default:
			removals.writes = append(removals.writes, w)
		}
	}
	return groups
}

func (c *committer) transaction(b sending) *pb.TxnRequest {
	outer := &pb.TxnRequest{Compare: c.unchanged(b), Success: make([]*pb.RequestOp, len(b.groups))}
	for i, g := range b.groups {
		outer.Success[i] = txnOp(c.plain(g))
	}
	return outer
}

// plain returns the transaction of one group.
func (c *committer) plain(g *group) *pb.TxnRequest {
	txn := &pb.TxnRequest{}
	var ends []store.End
	var memory int64
	var admitted []admission
	for _, w := range g.writes {
		txn.Compare = append(txn.Compare, w.Payload.compares...)
		if a := w.Payload.admitted; a.key != "" && !slices.Contains(admitted, a) {
			admitted = append(admitted, a)
			txn.Compare = append(txn.Compare, modified([]byte(a.key), a.revision))
		}
		txn.Success = append(txn.Success, w.Payload.ops...)
		if w.Payload.end != nil {
			ends, memory = append(ends, *w.Payload.end), w.Payload.memory
		}
	}
	if len(ends) > 0 {
		g.endKey = endedKey(c.prefix, time.Now())
		txn.Success = append(txn.Success, putOp(g.endKey, store.Encode(ends), memory))
		c.own.record(g.endKey, ends)
	}
	return txn
}

// settle settles the writes of a group. If a group of several failed, settle returns each alone,
// because the answer does not show which one failed.
func (g *group) settle(resp *pb.TxnResponse, revision int64) (again [][]*write) {
	if !resp.Succeeded && len(g.writes) > 1 {
		return batch.Halves(g.writes)
	}
	for _, w := range g.writes {
		w.Settle(
			outcome{applied: resp.Succeeded, again: w.Payload.again, revision: revision, endKey: g.endKey},
			nil,
		)
	}
	return nil
}

// stale reads the store's own record again, and puts the writer's key, after the comparison with
// both failed, unless the key has changed meanwhile. It returns the writes to send again. Nothing
// of the batch was written. It does not send entries to a store that has lost its past: their
// callers see that.
func (c *committer) stale(writes []*write, writer int64) (again [][]*write) {
	ctx, cancel := context.WithTimeout(c.ctx, attemptTimeout)
	defer cancel()
	var err error
	if writer != 0 && writer == c.writer.current() {
		err = c.trusted.reread(ctx)
	}
	if err == nil && !c.trusted.refuses() {
		err = c.writer.ready(ctx, writer)
	}
	why := batch.ErrNotSent
	if isNoSpace(err) {
		why = err
	}
	var rest []*write
	for _, w := range writes {
		if p := w.Payload; p.puts {
			p.stale++
			if err != nil || c.trusted.refuses() || p.stale > mostStale {
				w.Settle(outcome{}, why)
				continue
			}
		}
		rest = append(rest, w)
	}
	return [][]*write{rest}
}

// modified compares with the revision of a key's last write; 0 means that the key is missing.
func modified(key []byte, revision int64) *pb.Compare {
	return &pb.Compare{
		Key: key, Target: pb.Compare_MOD, Result: pb.Compare_EQUAL,
		TargetUnion: &pb.Compare_ModRevision{ModRevision: revision},
	}
}

func putOp(key, val []byte, lease int64) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{
		RequestPut: &pb.PutRequest{Key: key, Value: val, Lease: lease},
	}}
}

func txnOp(txn *pb.TxnRequest) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestTxn{RequestTxn: txn}}
}

func deleteOp(key []byte) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{
		RequestDeleteRange: &pb.DeleteRangeRequest{Key: key},
	}}
}

// created compares the revision at which key was created; 0 means that the key is missing.
func created(key []byte, revision int64) *pb.Compare {
	return &pb.Compare{
		Key: key, Target: pb.Compare_CREATE, Result: pb.Compare_EQUAL,
		TargetUnion: &pb.Compare_CreateRevision{CreateRevision: revision},
	}
}

// endedKey returns a new key in the bucket of the time. Buckets are deleted whole, so their names
// sort by time.
func endedKey(prefix string, at time.Time) []byte {
	return fmt.Appendf(nil, "%s%s%s/%016x", prefix, endedDir, bucket(at), rand.Uint64())
}

func bucket(at time.Time) string { return fmt.Sprintf("%011d", at.Unix()/10) }

// putWrite writes e if its primary key is missing, under a lease that is set later, see
// [part.under]. An attempt may commit long after its caller gave up. By then the next attempt may
// have written the entry, or the entry may be removed. So an attempt never overwrites the key.
// withdrawn is the revision of the mark that it replaces, see [putMark].
func (s *Store) putWrite(e *lock.Entry, val []byte, withdrawn int64) *write {
	p := &part{
		puts: true, compares: []*pb.Compare{created(s.primaryKey(e), 0)}, admitted: s.admission(e),
	}
	w := &write{
		Tenant: e.Tenant, Lingers: e.Lingers, Payload: p, Keys: make([]string, 0, 2*len(e.Claims)),
	}
	for i, name := range namesOf(e) {
		key := s.entryKey(e.Tenant, name, e.ID)
		if w.Keys = append(w.Keys, key); name != lock.PoolHome { // it is no queue
			w.Keys = append(w.Keys, key[:len(key)-len(e.ID)])
		}
		if i == 1 {
			val = store.Encode(pointer{e.Home()})
		}
		p.ops = append(p.ops, putOp([]byte(key), val, 0))
	}
	putMark(s.keyspace, w, e, withdrawn)
	return p.sized(w)
}

// under attaches the part's puts to the lease.
func (p *part) under(lease int64) {
	for _, op := range p.ops {
		if put := op.GetRequestPut(); put != nil {
			put.Lease = lease
		}
	}
}

// asKnown compares that exactly the entry e is there; the number distinguishes it from a later
// entry with the same key. A choosing entry must not have been narrowed.
func (ks *keyspace) asKnown(e *lock.Entry) *pb.Compare {
	if e.Choosing() {
		return modified(ks.primaryKey(e), ks.revision(e.Number))
	}
	return created(ks.primaryKey(e), ks.revision(e.Number))
}

// deleteWrite removes the entry e if it and all of while are as known. The reason is recorded under
// the memory's lease. Without a lease it is not recorded.
func (s *Store) deleteWrite(
	e *lock.Entry, why lock.Reason, memory int64, while []*lock.Entry,
) *write {
	p := &part{compares: []*pb.Compare{s.asKnown(e)}, conditional: len(while) > 0}
	for _, other := range while {
		p.compares = append(p.compares, s.asKnown(other))
	}
	w := &write{Tenant: e.Tenant, Must: true, Payload: p}
	for _, name := range namesOf(e) {
		key := s.entryKey(e.Tenant, name, e.ID)
		w.Keys = append(w.Keys, key)
		p.ops = append(p.ops, deleteOp([]byte(key)))
	}
	at := time.Now().UnixMilli()
	endMark(s.keyspace, w, e, why, at, memory)
	if memory != 0 {
		end := store.End{ID: e.ID, Tenant: e.Tenant, Reason: why, At: at}
		switch position := s.revision(e.Number); {
		case why != lock.Withdrawn:
			end.Was = s.ends.pasts.Of(e, position)
		case e.Resumable(): // its key can be used again
			end.Was = store.PlaceOf(position)
		}
		p.end, p.memory = &end, memory
	}
	return p.sized(w)
}

// Bytes of an operation besides its key and value, and of an end in a record.
const (
	opOverhead  = 32
	endOverhead = 192
)

// sized sets how much of a transaction the write takes.
func (p *part) sized(w *write) *write {
	w.Ops = max(len(p.ops), len(p.compares))
	w.Bytes = endOverhead + opOverhead*(len(p.ops)+len(p.compares)+1) + len(p.admitted.key)
	if p.end != nil {
		w.Bytes += len(p.end.Was)
	}
	for _, c := range p.compares {
		w.Bytes += len(c.Key)
	}
	for _, op := range p.ops {
		w.Bytes += bytesOf(op)
	}
	return w
}

// bytesOf estimates the variable length of an operation.
func bytesOf(op *pb.RequestOp) (bytes int) {
	put, del, txn := op.GetRequestPut(), op.GetRequestDeleteRange(), op.GetRequestTxn()
	for _, inner := range slices.Concat(txn.GetSuccess(), txn.GetFailure()) {
		bytes += opOverhead + bytesOf(inner)
	}
	for _, c := range txn.GetCompare() {
		bytes += opOverhead + len(c.Key) + len(c.GetValue())
	}
	return bytes + len(put.GetKey()) + len(put.GetValue()) + len(del.GetKey())
}
