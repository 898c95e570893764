package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/fencepost/fencepost/lock"
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
	s := openStore(t, conn, etcd.Config{})
	var all sync.WaitGroup
	first := sync.OnceFunc(func() { close(refused) })
	defer first()
	for k := range 1200 {
		all.Go(func() {
			e := newEntry("", fmt.Sprint("many-", k))
			e.Set, e.Claims = true, nil
			e.Metadata = map[string]string{"text": strings.Repeat("m", 1900)}
			for i := range 32 {
				e.Claims = append(
					e.Claims,
					lock.Claim{Name: fmt.Sprintf("%s-%02d", strings.Repeat("n", 190), i), Mode: lock.Exclusive},
				)
			}
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
