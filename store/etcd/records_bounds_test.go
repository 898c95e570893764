package etcd_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/etcd"
)

// TestListWithinBounds: a list within bounds asks etcd for each tenant about once, however many
// records of it are beyond them.
func TestListWithinBounds(t *testing.T) {
	var asked atomic.Int64
	count := store.Observer{Operation: func(name string, _ time.Duration, _ error) {
		if name == "list records" {
			asked.Add(1)
		}
	}}
	s := openStore(t, startEmbedded(t, etcd.EmbeddedConfig{}), etcd.Config{Observer: count})
	const tenants, each = 4, 500
	var puts errgroup.Group
	puts.SetLimit(100)
	for i := range tenants * each {
		k := store.RecordKey{
			Kind: "note", Tenant: fmt.Sprint("t", i%tenants), ID: fmt.Sprintf("r%03d", i/tenants),
		}
		puts.Go(func() error {
			_, err := s.Records().Put(t.Context(), store.RecordPut{RecordKey: k})
			return err
		})
	}
	if err := puts.Wait(); err != nil {
		t.Fatal(err)
	}
	asked.Store(0)
	if page, err := s.Records().List(t.Context(), store.RecordQuery{Kind: "note"}); err != nil ||
		len(page.Records) != store.MaxRecordPage || asked.Load() > 2 {
		t.Errorf(
			"a page of %d small records took %d answers, want two: %v", len(page.Records), asked.Load(), err,
		)
	}
	for _, q := range []store.RecordQuery{
		{From: "r495"}, {Until: "r005"}, {From: "r250", Until: "r255"},
	} {
		asked.Store(0)
		q.Kind = "note"
		n := 0
		for _, err := range store.EachRecord(t.Context(), s.Records(), q) {
			if n++; err != nil {
				t.Fatal(err)
			}
		}
		if got := asked.Load(); n != tenants*5 || got > 2*tenants {
			t.Errorf("%+v: %d records, and etcd was asked %d times, want %d at most", q, n, got, 2*tenants)
		}
	}
}
