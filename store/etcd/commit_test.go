package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"

	"github.com/fencepost/fencepost/store/batch"
	"github.com/fencepost/fencepost/test/bubble"
)

// ledger is a KV service that remembers how many removals each transaction has and takes
// a while for it.
type ledger struct {
	kvClient
	took time.Duration

	mu     sync.Mutex
	sizes  []int
	full   int // so many of the next ones do not fit
	refuse int // so many later ones are not applied
}

func (l *ledger) Txn(
	_ context.Context, r *pb.TxnRequest, _ ...grpc.CallOption,
) (*pb.TxnResponse, error) {
	l.mu.Lock()
	l.sizes = append(l.sizes, len(r.Success))
	full, refused := l.full > 0, l.full <= 0 && l.refuse > 0
	if l.full--; refused {
		l.refuse--
	}
	l.mu.Unlock()
	<-time.After(l.took)
	if full {
		return nil, rpctypes.ErrGRPCNoSpace
	}
	return &pb.TxnResponse{Succeeded: !refused, Header: &pb.ResponseHeader{Revision: 1}}, nil
}

func (l *ledger) seen() []int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.sizes)
}

// book is a committer in a bubble, with what was handed to it.
type book struct {
	*ledger
	commits *committer
	done    sync.WaitGroup
	n       int
}

func newBook(t *testing.T, local bool) *book {
	l := &ledger{took: 10 * time.Microsecond}
	b := &book{
		ledger: l,
		commits: (&committer{
			own: &ownWrites{}, writer: knownWriter(),
			ctx: t.Context(), observe: func(int, time.Duration, error) {},
		}).over(l, local),
	}
	t.Cleanup(b.commits.Close)
	return b
}

func (b *book) write(t *testing.T, patient bool) {
	b.n++
	key := fmt.Sprint("key-", b.n)
	w := removal(key, patient)
	b.done.Go(func() {
		if out, err := b.commits.Do(t.Context(), w); !out.applied {
			t.Errorf("a write was not applied: %v", err)
		}
	})
	synctest.Wait()
}

// removal is a write that shares its nested transaction with its like.
func removal(key string, patient bool) *write {
	p := &part{ops: []*pb.RequestOp{deleteOp([]byte(key))}}
	return p.sized(&write{Lingers: patient, Keys: []string{key}, Payload: p})
}

func (b *book) want(t *testing.T, sizes ...int) {
	t.Helper()
	if got := b.seen(); !slices.Equal(got, sizes) {
		t.Errorf("transactions of %v writes, want %v", got, sizes)
	}
}

// TestPatience: a write that is not urgent goes with the next one that is, or
// alone when its time has come.
func TestPatience(t *testing.T) {
	for _, local := range []bool{false, true} {
		bubble.Test(t, func(t *testing.T) {
			b := newBook(t, local)
			b.write(t, true)
			b.write(t, true)
			b.want(t)
			b.write(t, false)
			b.want(t, 3)
			b.done.Wait()

			began := time.Now()
			<-time.After(linger / 2) // what was held back before has no say any more
			b.write(t, true)
			<-time.After(linger - time.Nanosecond)
			b.want(t, 3)
			b.done.Wait()
			b.want(t, 3, 1)
			if took := time.Since(began); took != linger/2+linger+b.took {
				t.Errorf("a patient write alone took %v", took-linger/2)
			}
		})
	}
}

// TestWithdrawn: a write that is held back is not made when its request ends.
func TestWithdrawn(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		b := newBook(t, true)
		ctx, cancel := context.WithTimeout(t.Context(), linger/2)
		defer cancel()
		if _, err := b.commits.Do(ctx, removal("key", true)); !errors.Is(err, batch.ErrNotSent) {
			t.Errorf("the outcome is %v, want %v", err, batch.ErrNotSent)
		}
		<-time.After(2 * linger)
		b.want(t)
	})
}

// TestAbandoned: who gives up on a write may repeat it at another replica, and may
// have removed the entry there. What shared a transaction that was refused is not
// sent again then.
func TestAbandoned(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		b := newBook(t, true)
		b.took, b.refuse = time.Second, 1
		ctx, cancel := context.WithTimeout(t.Context(), b.took/2)
		defer cancel()
		b.done.Go(func() {
			if _, err := b.commits.Do(ctx, removal("key", true)); !errors.Is(err, batch.ErrUnknown) {
				t.Errorf("the outcome is %v, want unknown", err)
			}
		})
		synctest.Wait()
		b.write(t, false)
		b.done.Wait()
		b.want(t, 2, 1)
	})
}

// removeThree has three entries removed in one batch, each on a condition of its own, and wants all
// of it done but the removal of the one that is missing.
func removeThree(t *testing.T, kv kvClient, missing string) {
	t.Helper()
	commits := (&committer{
		own: &ownWrites{}, writer: knownWriter(),
		ctx: t.Context(), observe: func(int, time.Duration, error) {},
	}).over(kv, false)
	defer commits.Close()
	var done sync.WaitGroup
	for i := range 3 {
		key := fmt.Sprint("key-", i+1)
		w := removal(key, true)
		w.Payload.conditional, w.Payload.compares = true, []*pb.Compare{created([]byte(key), 7)}
		done.Go(func() {
			if out, err := commits.Do(t.Context(), w); err != nil || out.applied != (key != missing) {
				t.Errorf("%s of three of which %q cannot be done: %+v, %v", key, missing, out, err)
			}
		})
	}
	done.Wait()
}

// TestOneOfABatchFails: a batch is a plain transaction, and another with nested ones only if
// one of its writes cannot be done, which is that one's matter alone.
func TestOneOfABatchFails(t *testing.T) {
	for _, missing := range []string{"", "key-2"} {
		bubble.Test(t, func(t *testing.T) {
			kv := &present{missing: missing}
			removeThree(t, kv, missing)
			want := []int{3}
			if missing != "" {
				want = []int{3, 0} // the outer one of nested ones compares nothing itself
			}
			if !slices.Equal(kv.compared, want) {
				t.Errorf("transactions that compare %v, want %v", kv.compared, want)
			}
		})
	}
}

// present is a KV service in which a comparison with a key fails. It remembers how many each
// transaction has, those of nested ones aside.
type present struct {
	kvClient
	missing  string
	compared []int
}

func (p *present) Txn(
	_ context.Context, r *pb.TxnRequest, _ ...grpc.CallOption,
) (*pb.TxnResponse, error) {
	p.compared = append(p.compared, len(r.Compare))
	return p.answer(r), nil
}

func (p *present) answer(r *pb.TxnRequest) *pb.TxnResponse {
	resp := &pb.TxnResponse{Header: &pb.ResponseHeader{Revision: 9}}
	resp.Succeeded = !slices.ContainsFunc(
		r.Compare, func(c *pb.Compare) bool { return string(c.Key) == p.missing },
	)
	for _, op := range r.Success {
		if inner := op.GetRequestTxn(); inner != nil {
			resp.Responses = append(
				resp.Responses,
				&pb.ResponseOp{Response: &pb.ResponseOp_ResponseTxn{ResponseTxn: p.answer(inner)}},
			)
		}
	}
	return resp
}
