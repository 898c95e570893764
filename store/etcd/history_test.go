package etcd

import (
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
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
