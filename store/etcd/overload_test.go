package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/test/bubble"
)

// slowKV takes a second for each transaction. The answer to the first one with the text
// in it is lost.
type slowKV struct {
	loses string

	mu   sync.Mutex
	lost bool
}

func (s *slowKV) Range(
	_ context.Context, _ *pb.RangeRequest, _ ...grpc.CallOption,
) (*pb.RangeResponse, error) {
	return &pb.RangeResponse{Header: &pb.ResponseHeader{Revision: 1}}, nil
}

func (s *slowKV) Txn(
	_ context.Context, r *pb.TxnRequest, _ ...grpc.CallOption,
) (*pb.TxnResponse, error) {
	<-time.After(time.Second)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.lost && strings.Contains(r.String(), s.loses) {
		s.lost = true
		return nil, context.DeadlineExceeded
	}
	return &pb.TxnResponse{Succeeded: true, Header: &pb.ResponseHeader{Revision: 1}}, nil
}

// TestOverloadAfterALostAnswer: the answer to the write of an entry with a key is lost, and there
// are so many others before its repetition that it comes to nothing. The first write was shut out,
// so the answer is certain, and its lease ends.
func TestOverloadAfterALostAnswer(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		kv, fake := &slowKV{loses: "lost"}, &countedLeases{}
		s := newStore(&Conn{kv: kv, leases: fake, renewer: fake}, Config{})
		s.meta.known.Store(&meta{keys: map[string]metaKey{}})
		s.writer.revision.Store(1)
		cleaned := make(chan *orphan, 1)
		s.orphans = store.NewCleaner(
			s.log, func(_ context.Context, x *orphan) error { cleaned <- x; return nil },
		)
		defer s.Close()

		e := testEntry("a", "lost")
		e.Request = "the parameters"
		var others sync.WaitGroup
		defer others.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		others.Go(func() {
			<-time.After(500 * time.Millisecond) // the first attempt is under way
			for i := range 4000 {
				w := s.putWrite(testEntry("a", fmt.Sprint("other-", i)), nil, 0)
				w.Must = true
				others.Go(func() { _, _ = s.commits.Do(ctx, w) })
			}
		})
		_, _, err := s.Enqueue(t.Context(), e)
		var why *lock.Error
		if !errors.As(err, &why) || why.Code != lock.Overloaded || why.OutcomeUnknown {
			t.Errorf("Enqueue = %#v", err)
		}
		synctest.Wait()
		select {
		case x := <-cleaned:
			if x.entry != nil || len(x.leases) != 1 {
				t.Errorf("looked after: %+v", x)
			}
		default:
			t.Error("nothing is looked after")
		}
	})
}
