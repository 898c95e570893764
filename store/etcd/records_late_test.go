package etcd

import (
	"context"
	"errors"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/engine"
)

// lateTxn keeps the first transaction that puts a record, and says that it got no answer.
type lateTxn struct {
	kvClient
	kept *pb.TxnRequest
}

func (l *lateTxn) Txn(
	ctx context.Context, r *pb.TxnRequest, _ ...grpc.CallOption,
) (*pb.TxnResponse, error) {
	if r.Success[0].GetRequestPut() != nil && l.kept == nil {
		l.kept = r
		return nil, context.DeadlineExceeded
	}
	return l.kvClient.Txn(ctx, r)
}

// TestLateRecord has a write arrive when its record has come and gone.
func TestLateRecord(t *testing.T) {
	conn, err := StartEmbedded(t.Context(), EmbeddedConfig{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	s, err := Open(t.Context(), conn, Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	late := &lateTxn{kvClient: s.kv}
	direct := s.records
	keys := &keyspace{
		conn: s.conn, prefix: s.prefix, observe: s.observe, trust: s.trust, timeout: s.timeout,
		kv: trustedKV{late, s.trust},
	}
	delayed := engine.NewRecords(&driver{keyspace: keys}, s.meta, s.log)
	k := store.RecordKey{Kind: "note", Tenant: "acme", ID: "r"}
	version, err := delayed.Put(t.Context(), store.RecordPut{RecordKey: k})
	if err == nil {
		err = direct.Delete(t.Context(), k, version)
	}
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := s.kv.Txn(t.Context(), late.kept); err != nil || resp.Succeeded {
		t.Errorf("the late write = %v, %v", resp, err)
	}
	if _, err := direct.Get(t.Context(), k); !errors.Is(err, lock.NotFound) {
		t.Errorf("Get = %v, want %s", err, lock.NotFound)
	}
}
