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
	// maxTxnOps is how many operations and comparisons etcd takes in one transaction
	// by default. Those of a nested one are bounded by what the outer one leaves.
	maxTxnOps = 128

	// batchOps bounds the operations of all writes of a batch. The rest is for the
	// record of ends and for what the outer transaction compares.
	batchOps = maxTxnOps - 8

	// batchBytes stays far below etcd's limit of 1.5 MiB for a request.
	batchBytes = 512 << 10

	// linger is how long a write that is not urgent is held back at most. Somebody
	// who queues behind the holder of a busy lock loses nothing by it, and the
	// holder's release, which all wait for, need not queue behind his flush to disk.
	linger = time.Millisecond

	// maxInFlight is how many transactions are under way at once as a rule, as a cluster
	// answers after a while; of the embedded store only while full ones are pending.
	// mostInFlight are while entries of one lock are to be written, which cannot share
	// one: etcd flushes what is under way together.
	maxInFlight  = 3
	mostInFlight = 64
)

// part is one request's part of a transaction.
type part struct {
	again       bool // an attempt before this one may have been executed
	compares    []*pb.Compare
	ops         []*pb.RequestOp
	end         *store.End // remembered together with a delete
	memory      int64      // the lease under which it is
	puts        bool       // an entry
	conditional bool       // a removal that depends on other entries
}

type write = batch.Write[*part, outcome]

// outcome of a write: applied, or not applied because a comparison failed. If it is
// not known, there is an error beside it.
type outcome struct {
	applied  bool
	again    bool // it was sent before, and may have been applied then
	revision int64
	endKey   []byte // where the write's end is recorded if it was applied
}

// committer writes batches as transactions, plain ones first. If one of a batch's writes cannot
// be done, each of them, or the removals together, becomes a nested transaction with comparisons
// of its own, so that one that fails does not fail the others.
type committer struct {
	*batch.Committer[*part, outcome]
	kv      kvClient
	prefix  string
	observe func(writes int, took time.Duration, err error)
	ctx     context.Context // ends when the store is closed
	pending batch.Backlog
	trusted trusted
	own     *ownWrites
}

// over finishes a committer over kv. local says that the store is in this process:
// its calls do not hang on a network.
func (c *committer) over(kv kvClient, local bool) *committer {
	c.kv = kv
	c.Committer = batch.NewCommitter(batch.Limits{
		Ops: batchOps, Bytes: batchBytes, InFlight: maxInFlight, Most: mostInFlight, Linger: linger,
		Inline: local, Pending: c.pending,
	}, c.send, nil)
	return c
}

// group is writes that stand or fall together: one, or several removals.
type group struct {
	writes []*write
	endKey []byte
}

// send writes a batch. When it fails as a whole because of one of its writes, it is
// divided until that one stands alone.
func (c *committer) send(writes []*write) (again [][]*write) {
	groups := grouped(writes)
	start := time.Now()
	resp, err := c.transact(groups)
	c.observe(len(writes), time.Since(start), err)
	switch {
	case err == nil && !resp.Succeeded:
		return c.stale(writes)
	case err == nil:
		for i, g := range groups {
			again = append(again, g.settle(resp.Responses[i].GetResponseTxn(), resp.Header.Revision)...)
		}
		return again
	case len(writes) > 1 && (isLeaseNotFound(err) || isTooLarge(err)):
		return batch.Halves(writes)
	}
	return c.failed(groups, err)
}

// failed tells the writes of a batch that it failed. A full store must not take down the
// removals that need no room, so they are sent again without the others. Those are not:
// etcd may have executed the batch, and who made a write knows how to look.
func (c *committer) failed(groups []*group, err error) (again [][]*write) {
	var withoutRoom []*write
	mixed := slices.ContainsFunc(groups, (*group).needsRoom)
	for _, g := range groups {
		for _, w := range g.writes {
			if isNoSpace(err) && mixed && !w.Payload.needsRoom() {
				w.Payload.again = true
				w.OutcomeUnknown = true
				withoutRoom = append(withoutRoom, w)
				continue
			}
			w.Settle(outcome{again: w.Payload.again, endKey: g.endKey}, err)
		}
	}
	return [][]*write{withoutRoom}
}

// needsRoom reports whether something is put.
func (p *part) needsRoom() bool { return p.puts || p.end != nil }

// puts reports whether the group is a write of an entry.
func (g *group) puts() bool { return g.writes[0].Payload.puts }

func (g *group) needsRoom() bool {
	return slices.ContainsFunc(g.writes, func(w *write) bool { return w.Payload.needsRoom() })
}

// transact makes the transaction. Nearly always all that the writes compare is as it should
// be, and a plain transaction costs etcd less than one of nested ones; the answer is as if
// there had been those. If it is not, nothing was written, and nested ones tell whose it was.
func (c *committer) transact(groups []*group) (*pb.TxnResponse, error) {
	all, puts := together(groups), slices.ContainsFunc(groups, (*group).puts)
	txn := c.plain(all)
	if puts {
		txn.Compare = append(txn.Compare, c.trusted.unchanged()...)
	}
	resp, err := c.try(txn)
	if err == nil && !resp.Succeeded && (puts || len(groups) > 1) {
		return c.try(c.transaction(groups))
	}
	for _, g := range groups {
		g.endKey = all.endKey
	}
	return nest(resp, len(groups)), err
}

// try makes one transaction, which has all of an attempt's time.
func (c *committer) try(txn *pb.TxnRequest) (*pb.TxnResponse, error) {
	ctx, cancel := context.WithTimeout(c.ctx, attemptTimeout)
	defer cancel()
	return c.kv.Txn(ctx, txn)
}

// together makes one group of all writes, in the order in which nested transactions have them.
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

// nest is the answer to nested transactions of which a plain one did what they would have done.
func nest(inner *pb.TxnResponse, groups int) *pb.TxnResponse {
	if inner == nil {
		return nil
	}
	each := &pb.ResponseOp{Response: &pb.ResponseOp_ResponseTxn{ResponseTxn: inner}}
	return &pb.TxnResponse{
		Header: inner.Header, Succeeded: true, Responses: slices.Repeat([]*pb.ResponseOp{each}, groups),
	}
}

// grouped puts the removals that depend on nothing else together, which saves records
// of ends. They all succeed but for a rare one whose entry expired.
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

func (c *committer) transaction(groups []*group) *pb.TxnRequest {
	outer := &pb.TxnRequest{Success: make([]*pb.RequestOp, len(groups))}
	puts := false
	for i, g := range groups {
		outer.Success[i] = txnOp(c.plain(g))
		puts = puts || g.puts()
	}
	if puts {
		outer.Compare = c.trusted.unchanged()
	}
	return outer
}

// plain is the transaction of a group alone.
func (c *committer) plain(g *group) *pb.TxnRequest {
	txn := &pb.TxnRequest{}
	var ends []store.End
	var memory int64
	for _, w := range g.writes {
		txn.Compare = append(txn.Compare, w.Payload.compares...)
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

// settle tells the writes of a group their outcome. If one of several could not be done,
// nobody knows which.
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

// stale brings the store's records up to date, with which the entries of the batch were
// compared, and returns what is to be sent again. Nothing of it was written. An entry is
// not put into a store that is found to have lost its past: its caller sees that.
func (c *committer) stale(writes []*write) (again [][]*write) {
	ctx, cancel := context.WithTimeout(c.ctx, attemptTimeout)
	defer cancel()
	err := c.trusted.readAnew(ctx, 0)
	var rest []*write
	for _, w := range writes {
		if w.Payload.puts && (err != nil || c.trusted.refuses()) {
			w.Settle(outcome{}, batch.ErrNotSent)
			continue
		}
		rest = append(rest, w)
	}
	return [][]*write{rest}
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

// created compares the revision at which key was created, 0 if it is not there.
func created(key []byte, revision int64) *pb.Compare {
	return &pb.Compare{
		Key: key, Target: pb.Compare_CREATE, Result: pb.Compare_EQUAL,
		TargetUnion: &pb.Compare_CreateRevision{CreateRevision: revision},
	}
}

// endedKey returns a fresh key in the bucket of the time. Buckets are deleted
// whole, so their names sort by time.
func endedKey(prefix string, at time.Time) []byte {
	return fmt.Appendf(nil, "%s%s%s/%016x", prefix, endedDir, bucket(at), rand.Uint64())
}

func bucket(at time.Time) string { return fmt.Sprintf("%011d", at.Unix()/10) }

// putWrite writes e if its primary key is not there, under a lease that is yet to be
// given, see [part.under]. An attempt may commit long after it was given up, and its
// entry was written by the next one, or even removed; then it must not write the key
// again. withdrawn is the revision of the mark that it replaces, see [Store.putMark].
func (s *Store) putWrite(e *lock.Entry, val []byte, withdrawn int64) *write {
	p := &part{puts: true, compares: []*pb.Compare{created(s.primaryKey(e), 0)}}
	w := &write{
		Tenant: e.Tenant, Lingers: e.Lingers, Payload: p, Keys: make([]string, 0, 2*len(e.Claims)),
	}
	for i, c := range e.Claims {
		key := s.entryKey(e.Tenant, c.Name, e.ID)
		w.Keys = append(w.Keys, key[:len(key)-len(e.ID)], key)
		p.ops = append(p.ops, putOp([]byte(key), valueAt(e, i, val), 0))
	}
	s.putMark(w, e, withdrawn)
	return p.sized(w)
}

// under has what is put go with the lease.
func (p *part) under(lease int64) {
	for _, op := range p.ops {
		if put := op.GetRequestPut(); put != nil {
			put.Lease = lease
		}
	}
}

// deleteWrite removes exactly the entry e, told from a later one with the same
// key by its number, if all of while are there. The reason is recorded under the
// lease of the memory; without one it is not recorded.
func (s *Store) deleteWrite(
	e *lock.Entry, why lock.Reason, memory int64, while []*lock.Entry,
) *write {
	p := &part{
		compares:    []*pb.Compare{created(s.primaryKey(e), s.revision(e.Number))},
		conditional: len(while) > 0,
	}
	for _, other := range while {
		p.compares = append(p.compares, created(s.primaryKey(other), s.revision(other.Number)))
	}
	w := &write{Tenant: e.Tenant, Must: true, Payload: p}
	for _, c := range e.Claims {
		key := s.entryKey(e.Tenant, c.Name, e.ID)
		w.Keys = append(w.Keys, key)
		p.ops = append(p.ops, deleteOp([]byte(key)))
	}
	at := time.Now().UnixMilli()
	s.endMark(w, e, why, at, memory)
	if memory != 0 {
		end := store.End{ID: e.ID, Tenant: e.Tenant, Reason: why, At: at}
		switch position := s.revision(e.Number); {
		case why != lock.Withdrawn:
			end.Was = s.pasts.Of(e, position)
		case e.Resumable(): // its key can be taken again
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

// sized fills in how much of a transaction the write takes.
func (p *part) sized(w *write) *write {
	w.Ops = max(len(p.ops), len(p.compares))
	w.Bytes = endOverhead + opOverhead*(len(p.ops)+len(p.compares))
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

// bytesOf is about how long an operation is, besides what each is.
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
