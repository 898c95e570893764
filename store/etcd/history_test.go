package etcd

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
)

// TestHistoryIsKept: what the embedded store keeps is a minute, or so many bytes, but always
// what was written since the last but one interval began.
func TestHistoryIsKept(t *testing.T) {
	start := time.Now()
	for name, c := range map[string]struct {
		most, rate int64 // bytes, and bytes in an interval
		intervals  int64 // that are kept
	}{
		"a quiet store":      {most: 100, rate: 1, intervals: 12},
		"a busy one":         {most: 100, rate: 25, intervals: 4},
		"a very busy one":    {most: 100, rate: 1000, intervals: 1},
		"one without room":   {most: -1, rate: 0, intervals: 1},
		"one that is silent": {most: 100, rate: 0, intervals: 12},
	} {
		t.Run(name, func(t *testing.T) {
			var h history
			for i := int64(1); i <= 50; i++ {
				upTo := h.advance(moment{start.Add(time.Duration(i) * compactInterval), i, i * c.rate}, c.most)
				if want := max(0, i-c.intervals); upTo != want {
					t.Errorf("interval %d: forgotten up to %d, want %d", i, upTo, want)
				}
				if len(h.marks) > int(c.intervals)+1 {
					t.Errorf("interval %d: %d moments are known", i, len(h.marks))
				}
			}
		})
	}
}

// TestHistoryGivesWay: history takes a share of the quota, and none that entries need.
func TestHistoryGivesWay(t *testing.T) {
	for _, c := range []struct{ used, quota, want int64 }{
		{0, DefaultQuota, historyBytes},
		{0, 16 << 20, 1 << 20},
		{12_000_000, 16 << 20, 1 << 20},
		{13 << 20, 16 << 20, -1},
	} {
		if got := mostHistory(c.used, c.quota); got != c.want {
			t.Errorf("with %d of %d in use %d bytes are kept, want %d", c.used, c.quota, got, c.want)
		}
	}
}

// TestHistoryIsCounted: what is written is counted as about what it takes.
func TestHistoryIsCounted(t *testing.T) {
	t.Parallel()
	s, m := testStore(t, EmbeddedConfig{}, func(*Conn) {})
	size := func() int64 {
		m.server.Backend().ForceCommit()
		return m.server.Backend().SizeInUse()
	}
	before, counted := size(), m.written.Load()
	for range 2000 {
		e := s.mustEnqueue(t, testEntry("a", "01JABCDEFG000000000000000"))
		if err := answered(func() error { return s.Remove(t.Context(), e, "released") }); err != nil {
			t.Fatal(err)
		}
	}
	took, counted := size()-before, m.written.Load()-counted
	if counted < took*2/3 || counted > 2*took {
		t.Errorf("%d bytes were counted, of %d that it took", counted, took)
	}
	one := []*pb.RequestOp{putOp(make([]byte, 1000), make([]byte, 1000), 1)}
	if got := historyOf(one); got < 3000 || got > 5000 {
		t.Errorf("a put of 3000 bytes counts as %d", got)
	}
	nested := []*pb.RequestOp{{Request: &pb.RequestOp_RequestTxn{RequestTxn: &pb.TxnRequest{Success: one, Failure: one}}}}
	if got := historyOf(nested); got != 2*historyOf(one) {
		t.Errorf("two in a nested transaction count as %d", got)
	}
}

// answers answers every transaction alike.
type answers struct {
	pb.KVServer
	resp *pb.TxnResponse
	err  error
}

func (a answers) Txn(context.Context, *pb.TxnRequest) (*pb.TxnResponse, error) { return a.resp, a.err }

// TestHistoryOfWhatIsDone: of a transaction only the branch counts that was executed, and if that is
// not known the larger one.
func TestHistoryOfWhatIsDone(t *testing.T) {
	one := []*pb.RequestOp{putOp([]byte("a"), make([]byte, 1000), 1)}
	small := []*pb.RequestOp{putOp([]byte("a"), nil, 1)}
	for name, c := range map[string]struct {
		answers        answers
		then, or, want []*pb.RequestOp
	}{
		"done":             {answers{resp: &pb.TxnResponse{Succeeded: true}}, one, small, one},
		"the other branch": {answers{resp: &pb.TxnResponse{}}, one, small, small},
		"nothing":          {answers{resp: &pb.TxnResponse{}}, one, nil, nil},
		"unknown":          {answers{err: context.DeadlineExceeded}, one, small, one},
		"neither":          {answers{err: context.DeadlineExceeded}, small, one, one},
	} {
		t.Run(name, func(t *testing.T) {
			var written atomic.Int64
			_, _ = counted{c.answers, &written}.Txn(t.Context(), &pb.TxnRequest{Success: c.then, Failure: c.or})
			if got := written.Load(); got != historyOf(c.want) {
				t.Errorf("counted %d, want %d", got, historyOf(c.want))
			}
		})
	}
}

// TestOneCompactionAtATime: while etcd still deletes what it was told to forget, it is not asked
// for more. Each part walks through the whole store, and they would wait in line.
func TestOneCompactionAtATime(t *testing.T) {
	_, of := testStore(t, EmbeddedConfig{}, func(*Conn) {})
	m := &member{server: of.server, kv: of.kv, ctx: of.ctx} // the other one maintains by the clock
	now := time.Now()
	forget := func() int64 {
		t.Helper()
		for range keptRevisions + 10 {
			if _, err := m.kv.Put(t.Context(), &pb.PutRequest{Key: []byte("something")}); err != nil {
				t.Fatal(err)
			}
		}
		for range 4 { // to note a moment, to rest, and to forget what was before
			now = now.Add(keepHistory)
			if err := m.compactSome(now); err != nil {
				t.Fatal(err)
			}
		}
		return m.server.KV().FirstRev()
	}
	mark := func(set func(tx backend.UnsafeWriter, revision int64), revision int64) {
		tx := m.server.Backend().BatchTx()
		tx.LockOutsideApply()
		defer tx.Unlock()
		set(tx, revision)
	}
	first := forget()
	if first <= 1 {
		t.Fatal("nothing is forgotten")
	}
	soon(t, "it is deleted", func() bool { return !m.compacting() })
	mark(mvcc.UnsafeSetScheduledCompact, first+1)
	if now := forget(); now != first {
		t.Errorf("while it deletes what was before %d it is told to forget up to %d", first, now)
	}
	mark(mvcc.UnsafeSetFinishedCompact, first+1)
	forget()
	if now := forget(); now <= first {
		t.Errorf("then nothing more is forgotten than what was before %d", now)
	}
}

// TestCompactionsNeedNoRest: one that was over when the next was due is no reason to rest, however
// late the ticker is; nor is one that an earlier process had begun.
func TestCompactionsNeedNoRest(t *testing.T) {
	var c compactions
	now := time.Now()
	if c.begin(now, true) || !c.begin(now.Add(compactInterval), false) {
		t.Error("it rests for what an earlier process had begun")
	}
	for i := range 100 {
		now = now.Add(compactInterval + time.Duration(i%3)*50*time.Microsecond)
		if !c.begin(now, false) {
			t.Fatalf("%d is put off though the one before had ended at once", i)
		}
	}
}

// TestCompactionsRest: history is forgotten at most half of the time.
func TestCompactionsRest(t *testing.T) {
	var c compactions
	began := time.Now()
	for at, want := range []bool{true, true, false, false, false, false, false, true} {
		now := began.Add(time.Duration(at) * compactInterval)
		busy := at == 2 || at == 3 // the one that began at 1 is found to have ended at 4
		if begins := c.begin(now, busy); begins != want {
			t.Errorf("at %d: it begins is %v, want %v", at, begins, want)
		}
	}
}
