package etcd

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// maxTxnOps is the number of operations and of comparisons that the writes of one
// transaction may have: etcd's default limit of 128, less the operation that records
// the ends, and the two comparisons of [Store.unchanged].
const maxTxnOps = 126

// write is one request's part of a transaction.
type write struct {
	// excludes names what no two writes of one transaction may share: the queues
	// that this one joins (their entries would get one number) and the keys that
	// it touches (etcd refuses a key that is written twice).
	excludes []string
	compares []*pb.Compare
	ops      []*pb.RequestOp
	end      *store.End // remembered together with a delete
	joins    bool       // it puts an entry
	patient  bool       // may be held back for a moment, to share another's transaction
	done     chan outcome

	abandoned atomic.Bool // the caller has given up and may have gone elsewhere
}

func (w *write) size() int { return max(len(w.ops), len(w.compares)) }

// outcome of a write: applied, or not applied because a comparison failed, or
// unknown because of err.
type outcome struct {
	applied  bool
	revision int64
	err      error
	endKey   []byte // where the write's end is recorded if it was applied
}

// errWithdrawn says that a write was taken back before it was sent.
var errWithdrawn = errors.New("the request ended before its write was sent")

// committer puts writes that arrive while others are in flight into the next
// transaction (group commit). The writes of one transaction are independent: a
// comparison that fails, or a lease that is gone, fails its own write only.
type committer struct {
	kv      kvClient
	local   bool // the store is in this process
	prefix  string
	observe func(writes int, took time.Duration, err error)
	ctx     context.Context // ends when the store is closed
	trusted trusted

	mu      sync.Mutex
	pending []*write
	held    *time.Timer // runs while a patient write is held back
	running int         // transactions in flight
	workers sync.WaitGroup
}

// patience is how long a write that is not urgent is held back at most. Somebody
// who queues behind the holder of a busy lock loses nothing by it, and the
// holder's release, which all wait for, need not queue behind his flush to disk.
const patience = time.Millisecond

// maxInFlight is how many transactions are under way at once. What comes meanwhile
// gathers for the next, which spends less on each write; with one alone the disk
// would be idle while answers are sent.
const maxInFlight = 3

// do commits w and waits for what became of it.
func (c *committer) do(ctx context.Context, w *write) outcome {
	if ctx.Err() != nil {
		return outcome{err: errWithdrawn}
	}
	w.done = make(chan outcome, 1)
	c.enqueue(w)
	select {
	case out := <-w.done:
		return out
	case <-ctx.Done():
		if c.withdraw(w) {
			return outcome{err: errWithdrawn}
		}
		w.abandoned.Store(true)
		return outcome{err: ctx.Err()}
	}
}

// enqueue adds a write to what is pending, and commits it if it may.
func (c *committer) enqueue(w *write) {
	c.mu.Lock()
	c.pending = append(c.pending, w)
	if w.patient && c.held == nil {
		c.held = time.AfterFunc(patience, c.hurry)
	}
	batch := c.begin()
	c.mu.Unlock()
	switch {
	case batch == nil:
	case c.local:
		c.lead(batch)
	default:
		go c.work(batch)
	}
}

// hurry ends the patience of all writes that are held back.
func (c *committer) hurry() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held = nil
	for _, w := range c.pending {
		w.patient = false
	}
	c.start()
}

// begin takes a batch to commit, if there is an urgent write and a transaction
// may start. The caller holds mu.
func (c *committer) begin() []*write {
	if c.running == maxInFlight || !slices.ContainsFunc(c.pending, urgent) {
		return nil
	}
	c.running++
	c.workers.Add(1)
	return c.next()
}

func urgent(w *write) bool { return !w.patient }

// start is like begin, and has a goroutine of its own commit the batch.
func (c *committer) start() {
	if batch := c.begin(); batch != nil {
		go c.work(batch)
	}
}

// lead commits a batch in the goroutine of one of its requests: the fewer
// goroutines a lone write passes through, the sooner it is done. What came
// meanwhile is not that request's to wait for. It is for a store in the same
// process: another one may leave a call without an answer for longer than the
// request has.
func (c *committer) lead(batch []*write) {
	c.commit(batch)
	if batch = c.finish(); batch != nil {
		go c.work(batch)
	}
}

func (c *committer) withdraw(w *write) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, p := range c.pending {
		if p == w {
			c.pending = append(c.pending[:i], c.pending[i+1:]...)
			return true
		}
	}
	return false
}

// work commits batch after batch for as long as there is something pending.
func (c *committer) work(batch []*write) {
	for batch != nil {
		c.commit(batch)
		batch = c.finish()
	}
}

// finish returns the next batch of a worker that is done with one, or lets it go.
func (c *committer) finish() []*write {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.ContainsFunc(c.pending, urgent) {
		c.running--
		c.workers.Done()
		return nil
	}
	batch := c.next()
	c.start() // what could not share this transaction
	return batch
}

// next takes the longest run of pending writes, in order of arrival, that may
// share a transaction. Those that may not stay for another one. The caller holds
// mu.
func (c *committer) next() []*write {
	var batch, rest []*write
	taken := make(map[string]struct{}, 2*len(c.pending))
	ops := 0
	for i, w := range c.pending {
		if ops+w.size() > maxTxnOps && len(batch) > 0 {
			rest = append(rest, c.pending[i:]...)
			break
		}
		if !claim(taken, w.excludes) {
			rest = append(rest, w)
			continue
		}
		ops += w.size()
		batch = append(batch, w)
	}
	c.pending = rest
	if len(rest) == 0 && c.held != nil {
		c.held.Stop()
		c.held = nil
	}
	return batch
}

// claim adds all names to taken unless one of them is there already. A write
// that is put off keeps the queues that it wanted from later ones, so that
// requests for one lock are sent in the order in which they came.
func claim(taken map[string]struct{}, names []string) bool {
	free := true
	for _, n := range names {
		if _, ok := taken[n]; ok {
			free = false
		}
		taken[n] = struct{}{}
	}
	return free
}

// commit sends a batch. When the batch as a whole fails because of one of its
// writes, it is halved until that one stands alone. A full store refuses whatever
// puts something, and must not take the removals beside it down.
func (c *committer) commit(batch []*write) {
	txn, endKey := c.transaction(batch)
	ctx, cancel := context.WithTimeout(c.ctx, attemptTimeout)
	defer cancel()
	start := time.Now()
	resp, err := c.kv.Txn(ctx, txn)
	c.observe(len(batch), time.Since(start), err)
	switch {
	case err == nil && resp.Succeeded:
		settle(batch, outcome{applied: true, revision: resp.Header.Revision, endKey: endKey})
	case err == nil && outdated(txn, resp):
		c.bringUpToDate(ctx, batch)
	case len(batch) > 1 && (err == nil || isLeaseNotFound(err) || isNoSpace(err)):
		half := len(batch) / 2
		c.commitAgain(batch[:half])
		c.commitAgain(batch[half:])
	case err == nil:
		settle(batch, outcome{revision: resp.Header.Revision})
	default:
		settle(batch, outcome{err: err, endKey: endKey})
	}
}

func settle(batch []*write, out outcome) {
	for _, w := range batch {
		w.done <- out
	}
}

// commitAgain commits a part of a batch that was refused. A write whose caller has
// given up is not sent again: it may be repeated at another replica, and even removed
// there, by now.
func (c *committer) commitAgain(batch []*write) {
	wanted := slices.DeleteFunc(slices.Clone(batch), func(w *write) bool { return w.abandoned.Load() })
	if len(wanted) > 0 {
		c.commit(wanted)
	}
}

func (c *committer) transaction(batch []*write) (*pb.TxnRequest, []byte) {
	txn := &pb.TxnRequest{}
	var ends []store.End
	for _, w := range batch {
		txn.Compare = append(txn.Compare, w.compares...)
		txn.Success = append(txn.Success, w.ops...)
		if w.end != nil {
			ends = append(ends, *w.end)
		}
	}
	if slices.ContainsFunc(batch, func(w *write) bool { return w.joins }) {
		bind(txn, c.trusted.unchanged())
	}
	if len(ends) == 0 {
		return txn, nil
	}
	key := endedKey(c.prefix, time.Now())
	txn.Success = append(txn.Success, putOp(key, store.Encode(ends), 0))
	return txn, key
}

func putOp(key, val []byte, lease int64) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{
		RequestPut: &pb.PutRequest{Key: key, Value: val, Lease: lease},
	}}
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

// putWrite writes e under the lease. Unless its id is known to be fresh, it does so
// only if no key of its is there.
func (s *Store) putWrite(e *lock.Entry, val []byte, lease int64, fresh bool) *write {
	w := &write{joins: true, patient: e.Patient, excludes: make([]string, 0, 2*len(e.Claims))}
	for i, c := range e.Claims {
		key := s.entryKey(e.Tenant, c.Name, e.ID)
		w.excludes = append(w.excludes, key[:len(key)-len(e.ID)], key)
		w.ops = append(w.ops, putOp([]byte(key), valueAt(e, i, val), lease))
		if !fresh {
			w.compares = append(w.compares, created([]byte(key), 0))
		}
	}
	return w
}

// deleteWrite removes exactly the entry e, told from a later one with the same
// key by its number, if all of while are there.
func (s *Store) deleteWrite(e *lock.Entry, why lock.Reason, while []*lock.Entry) *write {
	w := &write{compares: []*pb.Compare{created(s.primaryKey(e), s.revision(e.Number))}}
	for _, other := range while {
		w.compares = append(w.compares, created(s.primaryKey(other), s.revision(other.Number)))
	}
	for _, c := range e.Claims {
		key := s.entryKey(e.Tenant, c.Name, e.ID)
		w.excludes = append(w.excludes, key)
		w.ops = append(w.ops, deleteOp([]byte(key)))
	}
	w.end = &store.End{ID: e.ID, Reason: why, At: time.Now().UnixMilli()}
	return w
}
