package zookeeper

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/batch"
)

const (
	// parallelCommits is the usual bound on transactions in flight: one being flushed and one in
	// transit. More would be smaller and cost more on both sides. mostCommits is the bound while
	// there are writes that cannot share a transaction, such as joins of one lock: a server flushes
	// concurrent ones together.
	parallelCommits = 2
	mostCommits     = 64

	// Bounds of a transaction in operations, and in bytes, far from the server's limit of 1 MiB.
	maxBatch     = 128
	maxBatchSize = 256 << 10

	// gather is how long a lingering write waits for another write's transaction.
	gather = 5 * time.Millisecond

	// maxInline is the size up to which a record is also the log's data, which followers get with
	// one read.
	maxInline = 4 << 10
)

// part is one call's part of a transaction.
type part struct {
	ops []any
	// that the closures are those which admit the entry; nil if it puts none
	admitted *zk.CheckVersionRequest
	change   change // what the log records of it
}

type write = batch.Write[*part, outcome]

// outcome is the result of a write.
type outcome struct {
	zxid    int64 // of the transaction, if err is nil
	err     error
	op      int  // the failed operation, if the server rejected it
	unknown bool // it may have happened, or still may
}

// committer turns writes into transactions. On a busy lock a joining entry shares one with the
// release that grants the next holder, which need not wait for another flush. ZooKeeper rejects a
// transaction as a whole: the committer answers the write at fault and sends the others again.
type committer struct {
	*batch.Committer[*part, outcome]
	journal *journal
	calls   *connector
	meta    *ownRecord
	feed    *feed // receives what was written
	observe store.Observer
	closing context.Context
}

func newCommitter(s *Store, pending batch.Backlog) *committer {
	c := &committer{
		journal: s.reader.journal, calls: s.calls, meta: s.meta, feed: s.feed, observe: s.observe,
		closing: s.closing,
	}
	c.Committer = batch.NewCommitter(batch.Limits{
		Ops: maxBatch, Bytes: maxBatchSize, InFlight: parallelCommits, Most: mostCommits,
		Linger: gather, Pending: pending,
	}, c.send, c.connected)
	c.Sending = s.observe.Sending
	return c
}

// do queues a write and waits for its outcome.
func (c *committer) do(ctx context.Context, w *write) outcome {
	out, err := c.Do(ctx, w)
	return told(out, err)
}

// told returns the outcome of a write, or an unknown outcome.
func told(out outcome, err error) outcome {
	switch {
	case errors.Is(err, batch.ErrUnknown):
		return outcome{err: err, unknown: true}
	case errors.Is(err, batch.ErrNotSent):
		return outcome{err: &notSent{err}}
	case err != nil:
		out.err = err
	}
	return out
}

// connected waits for a connection, so that writes can be withdrawn while there is none.
func (c *committer) connected() bool {
	ctx, cancel := context.WithTimeout(c.closing, attemptTimeout)
	defer cancel()
	l, _ := c.calls.get(ctx)
	return l != nil
}

// send writes the batch, and returns the writes that the server did not reject.
func (c *committer) send(writes []*write) [][]*write {
	ctx, cancel := context.WithTimeout(c.closing, attemptTimeout)
	defer cancel()
	l, err := c.calls.get(ctx)
	at, out := -1, outcome{err: err}
	if err == nil {
		at, out = c.try(l, writes)
	}
	if errors.Is(out.err, errOutdated) {
		return [][]*write{c.bringUpToDate(writes)}
	}
	if moved := (*closuresMoved)(nil); errors.As(out.err, &moved) {
		return [][]*write{refuse(writes, moved)}
	}
	if out.err != nil && !out.unknown && at >= 0 {
		writes[at].Settle(out, out.err)
		return [][]*write{slices.Delete(slices.Clone(writes), at, at+1)}
	}
	for _, w := range writes {
		w.Settle(out, out.err)
	}
	return nil
}

// try makes one transaction. If the server rejects one of the writes, try returns its index; -1
// means all of them.
func (c *committer) try(l *link, writes []*write) (at int, out outcome) {
	epoch := c.journal.epoch.Load()
	log := c.journal.root.log(epoch)
	ops := []any{
		&zk.CheckVersionRequest{Path: c.journal.root.epoch(), Version: epoch},
		&zk.CheckVersionRequest{Path: l.node, Version: -1},
	}
	if putsEntry(writes) {
		ops = append(ops, c.meta.check())
	}
	for _, check := range admissionsOf(writes) {
		ops = append(ops, check)
	}
	own := len(ops)
	var r record
	for _, w := range writes {
		ops = append(ops, w.Payload.ops...)
		r.Changes = append(r.Changes, w.Payload.change)
	}
	data := store.Encode(r)
	inline := data
	if len(inline) > maxInline {
		inline = nil
	}
	ops = append(ops,
		c.journal.append(epoch, data),
		&zk.SetDataRequest{Path: log, Data: inline, Version: anyVersion},
	)
	start, mark := time.Now(), c.journal.trust.Sent()
	results, err := do(c.closing, l, multi(ops...))
	c.observe.Operation("commit", time.Since(start), err)
	c.observe.Batch(len(writes))
	if err != nil {
		return c.explain(l, writes, results, ops[:own], err)
	}
	stat := results[len(results)-1].Stat
	c.journal.trust.Received(mark, stat.Mzxid, 0)
	c.feed.wrote(written{
		epoch: epoch, n: created(stat) - 1, zxid: stat.Mzxid, record: &r, here: true, size: len(data),
	})
	runtime.Gosched() // the next holder, which is awake now, gets its answer before the callers here
	return -1, outcome{zxid: stat.Mzxid}
}

// failedOp returns the rejected operation of a transaction, or -1.
func failedOp(results []zk.MultiResponse) int {
	return slices.IndexFunc(results, func(r zk.MultiResponse) bool { return r.Error != nil })
}

// created returns how many children a node has ever had. Cversion counts creations and deletions
// together.
func created(stat *zk.Stat) int32 { return (stat.Cversion + stat.NumChildren) / 2 }

// putsEntry reports whether a write of the batch puts an entry. Its transaction checks that meta is
// as this replica knows it. So no entry is granted below a floor that another replica has set, or
// in a distrusted store.
func putsEntry(writes []*write) bool {
	return slices.ContainsFunc(writes, joins)
}

func joins(w *write) bool { return w.Payload.change.Joined != nil }

// errOutdated means that meta is not as this replica knows it.
var errOutdated = errors.New("the fence floor or the trust in the store has changed")

// bringUpToDate reads meta and returns the writes to send again. Entries are not among them: their
// callers see a store that has lost its past, and a new floor that comes with other closures.
func (c *committer) bringUpToDate(writes []*write) (again []*write) {
	ctx, cancel := context.WithTimeout(c.closing, attemptTimeout)
	defer cancel()
	_ = c.meta.Reread(ctx) // after an error the next attempt finds the same
	for _, w := range writes {
		if joins(w) {
			refused := &retry{errOutdated}
			w.Settle(outcome{err: refused}, refused)
			continue
		}
		again = append(again, w)
	}
	return again
}

// explain finds the write at fault. The first operations, the shared ones, belong to no write.
func (c *committer) explain(
	l *link, writes []*write, results []zk.MultiResponse, shared []any, err error,
) (at int, out outcome) {
	if !answered(err) {
		return -1, outcome{err: err, unknown: !harmless(err)}
	}
	failed := failedOp(results)
	if failed == 1 && errors.Is(err, zk.ErrNoNode) {
		l.fail(errNodeGone) // the session is over, or a person deleted the node
	}
	own := len(shared)
	switch {
	case errors.Is(err, zk.ErrNoAuth) || failed < 2 || failed >= own:
	case failed == 2:
		return -1, outcome{err: errOutdated}
	default:
		return -1, outcome{err: &closuresMoved{shared[failed].(*zk.CheckVersionRequest)}}
	}
	op := failed - own
	if failed >= own {
		for i, w := range writes {
			if op < len(w.Payload.ops) {
				return i, outcome{err: err, op: op}
			}
			op -= len(w.Payload.ops)
		}
	}
	if !errors.Is(err, zk.ErrNoAuth) && failed != 1 {
		c.journal.findLog()
	}
	return -1, outcome{err: &retry{err}}
}

// retry marks a rejection that was not caused by the write.
type retry struct{ cause error }

func (e *retry) Error() string { return "to be repeated: " + e.cause.Error() }

var errNodeGone = errors.New("the connection's node is gone")
