package etcd

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/batch"
	"github.com/fencepost/fencepost/store/engine"
)

const (
	// guardsDir has a key for a part of each directory: guards/<directory>/<shard>. Its revision is
	// that of the last deletion there.
	guardsDir   = "guards/"
	guardShards = 64

	// valuesAtOnce bounds an answer while the values' sizes are unknown: that many of the largest
	// are 2 MiB.
	valuesAtOnce = 32

	// partsOfPage bounds the requests to etcd for one part of a list.
	partsOfPage = 64
)

// driver is the store of the engine.
type driver struct {
	*keyspace
	leases *leasePool
}

var _ engine.Driver = (*driver)(nil)

func (ks *keyspace) keyAt(k engine.Key) []byte {
	if k.Dir == "" {
		return []byte(ks.prefix + k.Name)
	}
	return []byte(ks.prefix + k.Dir + "/" + k.Name)
}

func (d *driver) guardOf(k engine.Key) []byte {
	h := fnv.New32a()
	_, _ = h.Write([]byte(k.Name)) // never fails
	return fmt.Appendf(nil, "%s%s%s/%02x", d.prefix, guardsDir, k.Dir, h.Sum32()%guardShards)
}

// Look implements engine.Driver: it reads the value and the guard of its key at one revision.
func (d *driver) Look(ctx context.Context, k engine.Key, _ bool) (s engine.State, err error) {
	kv, name := kvClient(d.kv), "look at a record"
	if k == engine.MetaKey() {
		kv, name = d.conn.kv, k.Name // what the answer proves is decided with what it says
	}
	if ctx.Err() != nil {
		return s, ctx.Err() // the embedded member would not notice
	}
	resp, err := attempt(ctx, d.keyspace, name, func(ctx context.Context) (*pb.TxnResponse, error) {
		return kv.Txn(ctx, &pb.TxnRequest{Success: lookOps(d.keyAt(k), d.guardOf(k))})
	})
	switch {
	case refused(err):
		return s, unavailable(err, name, false)
	case err != nil:
		return s, err
	}
	s = stateIn(resp.Responses)
	s.At = engine.At{Position: resp.Header.Revision, Cluster: resp.Header.ClusterId}
	return s, nil
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

// stateIn returns the state of the key whose value and guard are the first two answers.
func stateIn(answers []*pb.ResponseOp) (s engine.State) {
	if kvs := answers[0].GetResponseRange().GetKvs(); len(kvs) > 0 {
		s = stateOf(kvs[0])
	}
	if kvs := answers[1].GetResponseRange().GetKvs(); len(kvs) > 0 {
		s.Stamp = kvs[0].ModRevision
	}
	return s
}

func stateOf(kv *mvccpb.KeyValue) engine.State {
	return engine.State{Found: true, Data: kv.Value, Position: kv.ModRevision}
}

// unchanged compares a key with what it was.
func (d *driver) unchanged(c engine.If) []*pb.Compare {
	if c.Was.Found {
		return []*pb.Compare{modified(d.keyAt(c.Key), c.Was.Position)}
	}
	return []*pb.Compare{created(d.keyAt(c.Key), 0), modified(d.guardOf(c.Key), c.Was.Stamp)}
}

// Commit implements engine.Driver.
func (d *driver) Commit(ctx context.Context, t engine.Txn) (int64, error) {
	txn := d.txnOf(t)
	if bytes := bytesPut(t); !t.Frees && !d.conn.hasRoom(bytes) {
		return 0, unavailable(rpctypes.ErrGRPCNoSpace, "write a record", false)
	}
	resp, err := d.tryTxn(ctx, "write a record", txn)
	return d.committed(t, resp, err)
}

func bytesPut(t engine.Txn) (bytes int) {
	for _, p := range t.Put {
		bytes += len(p.Value) + keyRoom
	}
	return bytes
}

// txnOf returns etcd's transaction. If a condition does not hold, it reads the keys of all.
func (d *driver) txnOf(t engine.Txn) *pb.TxnRequest {
	txn := &pb.TxnRequest{}
	for _, c := range t.If {
		txn.Compare = append(txn.Compare, d.unchanged(c)...)
		txn.Failure = append(txn.Failure, lookOps(d.keyAt(c.Key), d.guardOf(c.Key))...)
	}
	for _, p := range t.Put {
		if p.Delete {
			txn.Success = append(txn.Success, deleteOp(d.keyAt(p.Key)), putOp(d.guardOf(p.Key), nil, 0))
			continue
		}
		txn.Success = append(txn.Success, putOp(d.keyAt(p.Key), p.Value, lifeLease(p.Life)))
	}
	return txn
}

// committed returns the result of a transaction.
func (d *driver) committed(t engine.Txn, resp *pb.TxnResponse, err error) (int64, error) {
	switch {
	case isLeaseNotFound(err):
		return 0, errors.Join(batch.ErrNotSent, engine.ErrLifeOver, err)
	case isNoSpace(err):
		return 0, &engine.Full{Cause: unavailable(err, "write a record", false)}
	case err != nil && refused(err):
		return 0, unavailable(err, "write a record", false)
	case err != nil:
		return 0, err
	case !resp.Succeeded:
		return 0, &engine.Raced{If: d.raced(t, resp)}
	}
	return resp.Header.Revision, nil
}

// raced returns the first condition that does not hold, by the answer.
func (d *driver) raced(t engine.Txn, resp *pb.TxnResponse) int {
	for i, c := range t.If {
		now := stateIn(resp.Responses[2*i:])
		if now.Found != c.Was.Found || now.Position != c.Was.Position ||
			!now.Found && now.Stamp != c.Was.Stamp {
			return i
		}
	}
	return -1
}

// List implements engine.Driver. Each part of a page is as of its own read.
func (d *driver) List(ctx context.Context, l engine.Listing) (next string, err error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	dir := d.prefix + l.Dir + "/"
	request := &pb.RangeRequest{
		Key: []byte(dir + l.From), RangeEnd: prefixEnd(dir), Limit: min(int64(l.Limit)+1, valuesAtOnce),
	}
	if l.Until != "" {
		request.RangeEnd = []byte(dir + l.Until)
	}
	if l.Cursor != "" {
		request.Key = []byte(max(string(request.Key), dir+l.Seek(l.Cursor+"\x00")))
	}
	taken, last, largest := 0, l.Cursor, 1
	for range partsOfPage {
		if string(request.Key) >= string(request.RangeEnd) {
			return "", nil
		}
		resp, err := d.read(ctx, "list records", request)
		if err != nil {
			return "", unavailable(err, "list records", false)
		}
		for _, kv := range resp.Kvs {
			name := strings.TrimPrefix(string(kv.Key), dir)
			if l.Wants(name) {
				if !l.Take(name, stateOf(kv)) {
					return last, nil
				}
				taken++
			}
			last, largest = name, max(largest, len(kv.Value))
		}
		if !resp.More {
			return "", nil
		}
		request.Key = []byte(dir + l.Seek(last+"\x00"))
		// etcd counts all following keys for each answer, so a page takes few answers.
		request.Limit = min(
			int64(l.Limit-taken+1), int64(max(valuesAtOnce, store.MaxRecordPageBytes/largest)),
		)
	}
	return last, nil
}

// Follow implements engine.Driver.
func (d *driver) Follow(ctx context.Context, dir string, changed func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	at, err := d.newestOnce(ctx)
	if err != nil {
		return err
	}
	prefix := d.prefix + dir + "/"
	w := d.conn.watch(ctx, prefix, string(prefixEnd(prefix)), at+1)
	changed() // for changes before the watch
	check := time.NewTicker(feedCheck)
	defer check.Stop()
	guard := newGuard(d.keyspace, at, w.ask)
	for {
		select {
		case m, ok := <-w.messages:
			if err := ended(ctx, m, ok); err != nil {
				return err
			}
			guard.saw(m.revision)
			if len(m.events) > 0 {
				changed()
			}
		case <-check.C:
			if err := guard.check(ctx); err != nil {
				return err
			}
		}
	}
}

// Used reports whether the store was used. Earlier versions had several keys for the store's own
// record.
func (d *driver) Used(ctx context.Context) (bool, error) {
	of, err := d.read(ctx, "meta", &pb.RangeRequest{Key: []byte(d.prefix + "meta/form")})
	if err != nil {
		return false, err
	}
	if len(of.Kvs) > 0 {
		form, _ := strconv.Atoi(string(of.Kvs[0].Value))
		return true, store.CheckForm(form)
	}
	all, err := d.read(ctx, "meta", &pb.RangeRequest{
		Key: []byte(d.prefix), RangeEnd: prefixEnd(d.prefix), CountOnly: true,
	})
	return all.GetCount() > 0, err
}

// lifeLease returns the lease that a life is.
func lifeLease(life string) int64 {
	lease, _ := strconv.ParseInt(life, 16, 64) // "" is none
	return lease
}

// BeginLife implements engine.Lives.
func (d *driver) BeginLife(ctx context.Context) (string, error) {
	granted, err := d.leases.grant(ctx, store.RecordLife)
	return strconv.FormatInt(granted.id, 16), err
}

// RenewLife implements engine.Lives.
func (d *driver) RenewLife(ctx context.Context, id string) error {
	start := time.Now()
	err := d.conn.renewer.renew(ctx, lifeLease(id))
	d.observe.Operation("renew", time.Since(start), err)
	if isLeaseNotFound(err) {
		return engine.ErrLifeOver
	}
	return err
}

// EndLife implements engine.Lives.
func (d *driver) EndLife(ctx context.Context, id string) error {
	return d.leases.revoke(ctx, lifeLease(id))
}
