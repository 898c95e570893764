package etcd

import (
	"context"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// TestHistoryIsKept: the embedded store keeps a minute, or as much as a feed may resume from, and
// always what a list that is being read needs.
func TestHistoryIsKept(t *testing.T) {
	const intervals = int64(keepHistory / compactInterval)
	for name, c := range map[string]struct {
		rate int64 // revisions in an interval
		full bool
		kept int64 // intervals
	}{
		"a quiet store":      {rate: keptRevisions, kept: intervals},
		"a busy one":         {rate: maxResumed/5 + 1, kept: 5},
		"a very busy one":    {rate: maxResumed, kept: 3},
		"one that is full":   {rate: keptRevisions, full: true, kept: 3},
		"a nearly idle one":  {rate: 1, kept: keptRevisions},
		"one that is silent": {rate: 0, kept: 0},
	} {
		t.Run(name, func(t *testing.T) {
			var h history
			start := time.Now()
			for i := int64(1); i <= 50; i++ {
				at := start.Add(time.Duration(i) * compactInterval)
				upTo := h.advance(moment{at, i * c.rate}, c.full)
				if want := max(0, i-c.kept) * c.rate; max(0, upTo) != want {
					t.Errorf("interval %d: forgotten up to %d, want %d", i, upTo, want)
				}
				if len(h.marks) > int(intervals)+1 {
					t.Errorf("interval %d: %d moments are known", i, len(h.marks))
				}
			}
		})
	}
}

// TestLargeStoreIsCompactedSeldom: etcd walks through all that it stores for each compaction.
func TestLargeStoreIsCompactedSeldom(t *testing.T) {
	if got, want := (Size{Used: 10 * compactPace}).compaction(), 10*time.Second; got != want {
		t.Errorf("a compaction is expected to take %v, want %v", got, want)
	}
}

// TestHistoryIsForgotten: etcd is asked to forget, again though nothing was written since.
func TestHistoryIsForgotten(t *testing.T) {
	s, m := testStore(t, EmbeddedConfig{}, func(*Conn) {})
	for i := range keptRevisions {
		put(t, m, "something", []byte{byte(i)})
	}
	upTo := s.revision(s.newestNumber(t))
	for range 2 {
		if err := m.compact(upTo); err != nil {
			t.Fatal(err)
		}
	}
	_, err := m.kv.Range(context.Background(), &pb.RangeRequest{Key: []byte("something"), Revision: upTo - 1})
	if !isCompacted(err) {
		t.Errorf("the past is there still: %v", err)
	}
}
