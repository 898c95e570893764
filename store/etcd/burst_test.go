package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store/batch"
	"github.com/fencepost/fencepost/store/etcd"
)

// TestRefusedBeforeALeaseIsAsked: of more entries than may wait to be written, those that
// are too many are refused on arrival, while nothing is written.
func TestRefusedBeforeALeaseIsAsked(t *testing.T) {
	conn := startEmbedded(t, etcd.EmbeddedConfig{})
	refused := make(chan struct{})
	conn.Interfere(func(ctx context.Context, r *pb.TxnRequest, do etcd.Do) (*pb.TxnResponse, error) {
		if len(etcd.PutsIn(r)) > 0 {
			select {
			case <-refused:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		return do()
	})
	few := batch.Backlog{PerKey: batch.Size{Writes: 50, Bytes: 1 << 20}}
	s := openStore(t, conn, etcd.Config{Pending: few})
	var all sync.WaitGroup
	first := sync.OnceFunc(func() { close(refused) })
	defer first()
	for k := range 200 { // one lock's are written each alone, 64 at once
		all.Go(func() {
			e := newEntry("hot", fmt.Sprint("many-", k))
			if _, _, err := s.Enqueue(t.Context(), e); errors.Is(err, lock.Overloaded) {
				first()
			}
		})
	}
	all.Wait() // each call ends within its time
	select {
	case <-refused:
	default:
		t.Error("nobody was refused")
	}
}
