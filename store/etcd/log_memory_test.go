package etcd

import (
	"bytes"
	"runtime"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// TestMemoryOfWrites: writes are on disk, and not kept in memory for other members, which do not
// exist. It measures the whole heap, so it runs alone.
func TestMemoryOfWrites(t *testing.T) {
	conn, err := StartEmbedded(t.Context(), EmbeddedConfig{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	put := func(n, size int) {
		t.Helper()
		for range n {
			op := putOp([]byte("/key"), bytes.Repeat([]byte("x"), size), 0)
			if _, err := conn.kv.Txn(t.Context(), &pb.TxnRequest{Success: []*pb.RequestOp{op}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	put(200, 1)
	before := heapInUse()
	const writes, size = 800, 64 << 10
	put(writes, size)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for range 20 { // not for so long that any log would be over
		if heapInUse()-before < writes*size/4 {
			return
		}
		<-tick.C
		put(110, 1) // what was read and written last stays for a moment
	}
	t.Errorf(
		"%d MiB of %d MiB that were written are in memory", (heapInUse()-before)>>20, writes*size>>20,
	)
}

func heapInUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
