package etcd

import (
	"fmt"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/lock"
)

// TestSetIsStoredOnce: the largest set takes little more than its value and its keys,
// and is found by each of its locks all the same.
func TestSetIsStoredOnce(t *testing.T) {
	s, _ := testStore(t, EmbeddedConfig{}, func(*Conn) {})
	e := testEntry("", "set")
	e.Set, e.Claims = true, nil
	for i := range lock.MaxSetSize {
		e.Claims = append(
			e.Claims,
			lock.Claim{Name: fmt.Sprintf("lock-%02d-%s", i, strings.Repeat("n", 150)), Mode: lock.Exclusive},
		)
	}
	e.Metadata = map[string]string{"filler": strings.Repeat("x", lock.MaxMetadataSize-6)}
	placed, _, err := s.Enqueue(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	prefix := s.prefix + entriesDir
	resp, err := s.kv.Range(
		t.Context(), &pb.RangeRequest{Key: []byte(prefix), RangeEnd: prefixEnd(prefix)},
	)
	if err != nil {
		t.Fatal(err)
	}
	size, largest := 0, 0
	for _, kv := range resp.Kvs {
		size += len(kv.Value)
		largest = max(largest, len(kv.Value))
	}
	if len(resp.Kvs) != lock.MaxSetSize || size > 2*largest {
		t.Errorf("%d keys with %d bytes, the largest value has %d", len(resp.Kvs), size, largest)
	}
	for _, c := range e.Claims {
		queue, _, err := s.Queue(t.Context(), lock.Ref{Tenant: e.Tenant, Name: c.Name})
		if err != nil || len(queue) != 1 || queue[0].Number != placed.Number ||
			cmp.Diff(placed.Claims, queue[0].Claims) != "" {
			t.Fatalf("the queue of %s is %v, %v", c.Name, queue, err)
		}
	}
}
