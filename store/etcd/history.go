package etcd

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
)

const (
	// compactInterval is how often the embedded store forgets history. Every entry is a
	// key of its own, so history is all that grows.
	compactInterval = 5 * time.Second

	// keepHistory is for how long it is kept, for who starts after everything stood still,
	// as long as it is no more than historyBytes, a share of the quota, and as there is
	// room: with more than historyUpTo percent of the quota in use only what was written since
	// the last but one interval began is kept, which a list may need that is being read.
	keepHistory  = time.Minute
	historyBytes = 256 << 20
	historyShare = 16
	historyUpTo  = 75

	// keptRevisions are never compacted: they cost little, and who starts after a quiet time
	// finds in them what happened last.
	keptRevisions = 1000

	// opHistory is about what an operation adds to the history besides what its request has:
	// keys of revisions, and what a deletion leaves behind.
	opHistory = 160
)

// history is what the embedded store remembers of the past, as far as that is known: since it
// was started.
type history struct {
	marks []moment
	cut   moment // everything before it may be forgotten
}

// moment is when the store was at a revision.
type moment struct {
	at       time.Time
	revision int64
	written  int64 // bytes, in all
}

// advance takes note of a moment, and returns up to which revision everything may be forgotten.
// Most is how many bytes may be kept from before the moment before it.
func (h *history) advance(now moment, most int64) int64 {
	h.marks = append(h.marks, now)
	for len(h.marks) > 1 && (now.at.Sub(h.marks[0].at) >= keepHistory || now.written-h.cut.written > most) {
		h.cut = h.marks[0]
		h.marks = slices.Delete(h.marks, 0, 1)
	}
	return h.cut.revision
}

// mostHistory is how many bytes of history are kept while so much of the quota is in use.
func mostHistory(used, quota int64) int64 {
	if used > quota/100*historyUpTo {
		return -1
	}
	return min(historyBytes, quota/historyShare)
}

// compactions says when history may be forgotten: one part at a time, and at most for half of the time.
// For each part etcd walks through all that is in the store, with a flush for every thousand
// keys; the parts that it is asked for meanwhile wait in line. With 600 000 entries one takes
// minutes, and a line that grows by one every few seconds would never end.
type compactions struct {
	asked time.Time // when the part that is under way was asked for; zero if none is
	seen  bool      // it was under way when the next one was due
	next  time.Time // when the next one may begin
}

// begin reports whether the next part may begin, and does so now. busy says that one is under way.
func (c *compactions) begin(now time.Time, busy bool) bool {
	if busy {
		c.seen = true
		return false
	}
	if c.seen && !c.asked.IsZero() { // what was over before the next was due is next to nothing
		c.next = now.Add(now.Sub(c.asked))
	}
	c.asked, c.seen = time.Time{}, false
	if now.Before(c.next) {
		return false
	}
	c.asked = now
	return true
}

// compactSome compacts what is not kept any longer.
func (m *member) compactSome(now time.Time) error {
	most := mostHistory(m.server.Backend().SizeInUse(), m.server.Cfg.QuotaBackendBytes)
	upTo := m.history.advance(moment{now, m.server.KV().Rev(), m.written.Load()}, most)
	if !m.compactions.begin(now, m.compacting()) {
		return nil
	}
	return m.forget(upTo)
}

// compacting reports whether etcd still deletes what it was told to forget: a compaction is
// answered before that.
func (m *member) compacting() bool {
	tx := m.server.Backend().ReadTx()
	tx.RLock()
	defer tx.RUnlock()
	scheduled, _ := mvcc.UnsafeReadScheduledCompact(tx) // 0 if there was none
	finished, _ := mvcc.UnsafeReadFinishedCompact(tx)
	return scheduled != finished
}

// forget compacts up to a revision, unless a list is being read.
func (m *member) forget(upTo int64) error {
	if m.holds.any() {
		return nil
	}
	return m.compact(min(upTo, m.server.KV().Rev()-keptRevisions))
}

func (m *member) compact(revision int64) error {
	if revision <= max(0, m.server.KV().FirstRev()) {
		return nil
	}
	ctx, cancel := context.WithTimeout(m.ctx, operationTimeout)
	defer cancel()
	_, err := m.kv.Compact(ctx, &pb.CompactionRequest{Revision: revision})
	return err
}

// counted counts what is written, or may be.
type counted struct {
	pb.KVServer
	written *atomic.Int64
}

// Txn implements kvClient.
func (c counted) Txn(ctx context.Context, r *pb.TxnRequest) (*pb.TxnResponse, error) {
	resp, err := c.KVServer.Txn(ctx, r)
	switch {
	case err != nil:
		c.written.Add(max(historyOf(r.Success), historyOf(r.Failure)))
	case resp.Succeeded:
		c.written.Add(historyOf(r.Success))
	default:
		c.written.Add(historyOf(r.Failure))
	}
	return resp, err
}

// historyOf is about what operations add to the history, in bytes.
func historyOf(ops []*pb.RequestOp) (bytes int64) {
	for _, op := range ops {
		switch r := op.Request.(type) {
		case *pb.RequestOp_RequestPut:
			bytes += opHistory + int64(2*len(r.RequestPut.Key)+len(r.RequestPut.Value))*costOf/100
		case *pb.RequestOp_RequestDeleteRange:
			bytes += opHistory + int64(len(r.RequestDeleteRange.Key))
		case *pb.RequestOp_RequestTxn:
			bytes += historyOf(r.RequestTxn.Success) + historyOf(r.RequestTxn.Failure)
		}
	}
	return bytes
}
