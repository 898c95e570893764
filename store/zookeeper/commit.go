package zookeeper

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

const (
	// parallelCommits is how many transactions are in flight as a rule: one that is
	// flushed and one that is on its way. More would be smaller and cost both
	// sides more. Up to mostCommits are for writes that one transaction cannot take
	// together, as those that join one lock.
	parallelCommits = 2
	mostCommits     = 8

	// A transaction has at most this many writes, and bytes, which stays far from
	// the server's limit of 1 MiB.
	maxBatch     = 64
	maxBatchSize = 256 << 10

	// A write that nobody waits for joins the transaction of one that somebody does,
	// unless none comes for this long.
	gather = 5 * time.Millisecond

	// maxInline is the size up to which a record is also the log's data, where
	// followers find it with one read.
	maxInline = 4 << 10
)

// write is what one call wants to have written.
type write struct {
	ops    []any
	change change // what the log says of it
	joins  []lock.Ref
	size   int

	patient bool // it makes no difference if it is written a little later
	due     time.Time

	result    chan outcome
	abandoned atomic.Bool // the caller has given up and may have gone elsewhere
}

// outcome of a write.
type outcome struct {
	zxid  int64 // of the transaction, if err is nil
	err   error
	op    int  // the op that failed, if the server refused it
	maybe bool // it may have happened, or may still
}

// committer turns writes into transactions. Those that arrive while others are
// in flight share the next one. On a busy lock an entry that joins the queue so
// shares one with the release that lets the next holder in, instead of making it
// wait for a flush of its own. ZooKeeper refuses a transaction as a whole: the
// write that is at fault is answered, and the others try again without it.
type committer struct {
	store *Store

	mu      sync.Mutex
	pending []*write
	running int
	later   *time.Timer // starts workers for writes that are patient; nil if none is pending
	workers sync.WaitGroup
}

// do hands in a write and waits for its outcome.
func (c *committer) do(ctx context.Context, w *write) outcome {
	if ctx.Err() != nil {
		return outcome{err: &notSent{ctx.Err()}}
	}
	w.result = make(chan outcome, 1)
	c.hand(w)
	select {
	case out := <-w.result:
		return out
	case <-ctx.Done():
	case <-c.store.closing.Done():
	}
	err := errors.Join(ctx.Err(), c.store.closing.Err())
	if c.withdraw(w) {
		return outcome{err: &notSent{err}}
	}
	w.abandoned.Store(true)
	select {
	case out := <-w.result:
		return out
	default:
		return outcome{err: err, maybe: true}
	}
}

// hand makes a write pending and sees to it that it is taken.
func (c *committer) hand(w *write) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending = append(c.pending, w)
	if w.patient {
		w.due = time.Now().Add(gather)
		c.plan()
		return
	}
	c.start(parallelCommits)
}

// start has one more worker work, unless as many as limit do. The caller holds mu.
func (c *committer) start(limit int) {
	if c.running < limit {
		c.running++
		c.workers.Go(c.work)
	}
}

// plan has somebody look after the patient writes when they are due. The caller
// holds mu.
func (c *committer) plan() {
	if c.later != nil || c.store.closing.Err() != nil {
		return
	}
	c.later = time.AfterFunc(gather, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.later = nil; c.store.closing.Err() != nil {
			return // their callers see that too
		}
		if c.ready(time.Now()) > 0 {
			c.start(parallelCommits)
		}
		if len(c.pending) > 0 {
			c.plan()
		}
	})
}

// close waits for the workers, once the store is closing.
func (c *committer) close() {
	c.mu.Lock()
	if c.later != nil {
		c.later.Stop()
	}
	c.mu.Unlock()
	c.workers.Wait()
}

// ready counts the writes that are not to wait any longer. The caller holds mu.
func (c *committer) ready(now time.Time) (n int) {
	for _, w := range c.pending {
		if !w.due.After(now) {
			n++
		}
	}
	return n
}

// withdraw takes back a write that no transaction has.
func (c *committer) withdraw(w *write) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.Index(c.pending, w)
	if i < 0 {
		return false
	}
	c.pending = slices.Delete(c.pending, i, i+1)
	return true
}

// work makes transactions until nothing is pending. It waits for a connection
// before it takes writes, so that these can be withdrawn as long as there is none.
func (c *committer) work() {
	for {
		ctx, cancel := context.WithTimeout(c.store.closing, attemptTimeout)
		l, _ := c.store.calls.get(ctx)
		cancel()
		batch, end := c.take(l != nil)
		if end {
			return
		}
		if len(batch) > 0 {
			c.commit(l, batch)
		}
	}
}

// take picks the writes of one transaction: in order, no two that join one lock,
// as their entries would share a number, and no two of one entry.
func (c *committer) take(connected bool) (batch []*write, end bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.store.closing.Err() != nil || c.ready(time.Now()) == 0 {
		c.running--
		return nil, true
	}
	if !connected {
		return nil, false
	}
	joined, touched := map[lock.Ref]bool{}, map[key]bool{}
	size, left := 0, c.pending[:0]
	for _, w := range c.pending {
		fits := len(batch) < maxBatch && (len(batch) == 0 || size+w.size < maxBatchSize)
		fits = fits && !slices.ContainsFunc(w.joins, func(r lock.Ref) bool { return joined[r] })
		fits = fits && !touched[w.change.key()]
		for _, r := range w.joins {
			joined[r] = true // also if it does not fit: those behind it must not overtake it
		}
		touched[w.change.key()] = true
		if fits {
			batch, size = append(batch, w), size+w.size
		} else {
			left = append(left, w)
		}
	}
	clear(c.pending[len(left):])
	c.pending = left
	if c.ready(time.Now()) > 0 {
		c.start(mostCommits)
	}
	return batch, false
}

// commit writes the batch, without those that the server refuses. One whose caller
// has given up meanwhile is not sent again: it may be repeated at another replica, and
// even removed there, by now.
func (c *committer) commit(l *link, batch []*write) {
	for len(batch) > 0 {
		at, out := c.try(l, batch)
		switch {
		case errors.Is(out.err, errOutdated):
			batch = c.bringUpToDate(batch)
		case out.err == nil || out.maybe || at < 0:
			for _, w := range batch {
				w.result <- out
			}
			return
		default:
			batch[at].result <- out
			batch = slices.Delete(batch, at, at+1)
			batch = slices.DeleteFunc(batch, func(w *write) bool { return w.abandoned.Load() })
		}
	}
}

// try makes one transaction. If the server refuses one of the writes it returns
// which one; -1 stands for all of them.
func (c *committer) try(l *link, batch []*write) (at int, out outcome) {
	s := c.store
	epoch := s.epoch.Load()
	log := s.root.log(epoch)
	ops := []any{
		&zk.CheckVersionRequest{Path: s.root.epoch(), Version: epoch},
		&zk.CheckVersionRequest{Path: l.node, Version: -1},
	}
	if joining(batch) {
		ops = append(ops, &zk.CheckVersionRequest{Path: s.root.meta(), Version: s.known.Load().version})
	}
	own := len(ops)
	var r record
	for _, w := range batch {
		ops = append(ops, w.ops...)
		r.Changes = append(r.Changes, w.change)
	}
	data := store.Encode(r)
	inline := data
	if len(inline) > maxInline {
		inline = nil
	}
	ops = append(ops,
		&zk.CreateRequest{Path: log + "/", Data: data, Acl: s.acl, Flags: zk.FlagSequence},
		&zk.SetDataRequest{Path: log, Data: inline, Version: -1},
	)
	start, mark := time.Now(), s.trust.Sent()
	results, err := doHere(s.closing, l, func(conn *zk.Conn) ([]zk.MultiResponse, error) { return conn.Multi(ops...) })
	s.observe.Operation("commit", time.Since(start), err)
	s.observe.Batch(len(batch))
	if err != nil {
		return c.explain(l, batch, results, own, err)
	}
	stat := results[len(results)-1].Stat
	s.trust.Received(mark, stat.Mzxid, 0)
	s.feed.wrote(written{epoch: epoch, n: created(stat) - 1, zxid: stat.Mzxid, record: &r, here: true})
	runtime.Gosched() // whoever came to hold is answered first: it is woken, and runs next on this processor
	return -1, outcome{zxid: stat.Mzxid}
}

// created returns how many children a node has ever had. ZooKeeper counts those
// that came and those that went in one.
func created(stat *zk.Stat) int32 { return (stat.Cversion + stat.NumChildren) / 2 }

// joining reports whether a write of the batch puts an entry. Its transaction checks
// that meta is as this replica knows it: none is granted below a floor that another
// one was given, nor in a store that one distrusts.
func joining(batch []*write) bool {
	return slices.ContainsFunc(batch, func(w *write) bool { return len(w.joins) > 0 })
}

// errOutdated says that meta is not as this replica knows it.
var errOutdated = errors.New("the fence floor or the trust in the store has changed")

// bringUpToDate reads meta anew and returns what is to be sent again. An entry is not
// put into a store that is found to have lost its past: its caller sees that.
func (c *committer) bringUpToDate(batch []*write) []*write {
	ctx, cancel := context.WithTimeout(c.store.closing, attemptTimeout)
	defer cancel()
	err := c.store.readAnew(ctx, c.store.calls, 0)
	return slices.DeleteFunc(batch, func(w *write) bool {
		refused := len(w.joins) > 0 && (err != nil || c.store.trust.Refusal() != nil)
		if refused {
			w.result <- outcome{err: &retry{errOutdated}}
		}
		return refused || w.abandoned.Load()
	})
}

// explain finds out whose fault it was. The first own ops are not of any write.
func (c *committer) explain(l *link, batch []*write, results []zk.MultiResponse, own int, err error) (at int, out outcome) {
	if !answered(err) {
		return -1, outcome{err: err, maybe: !harmless(err)}
	}
	failed := slices.IndexFunc(results, func(r zk.MultiResponse) bool { return r.Error != nil })
	if failed == 1 && errors.Is(err, zk.ErrNoNode) {
		l.fail(errFenced) // the session is over, or somebody deleted the node
	}
	if failed == 2 && failed < own && !errors.Is(err, zk.ErrNoAuth) {
		return -1, outcome{err: errOutdated}
	}
	op := failed - own
	if failed >= own {
		for i, w := range batch {
			if op < len(w.ops) {
				return i, outcome{err: err, op: op}
			}
			op -= len(w.ops)
		}
	}
	// One of our own ops: the log was rotated, or damaged by hand.
	if !errors.Is(err, zk.ErrNoAuth) && failed != 1 {
		c.store.mend(errors.Join(errLogGone, err))
	}
	return -1, outcome{err: &retry{err}}
}

// retry marks a refusal that has nothing to do with the write.
type retry struct{ cause error }

func (e *retry) Error() string { return "to be repeated: " + e.cause.Error() }

var (
	errFenced  = errors.New("the connection's node is gone")
	errLogGone = errors.New("the log is gone or another one is in use")
)
