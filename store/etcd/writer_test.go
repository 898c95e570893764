package etcd

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.opentelemetry.io/otel/trace"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store/batch"
	"github.com/fencepost/fencepost/test/bubble"
)

// knownWriter returns a writer whose key has been put.
func knownWriter() *writer {
	w := &writer{}
	w.revision.Store(1)
	return w
}

// TestFullStoreShutsOut: etcd takes no put of the writer's key, and shuts a late write out all the
// same. When it has space again, entries are written.
func TestFullStoreShutsOut(t *testing.T) {
	var full, held atomic.Bool
	late := make(chan *pb.TxnRequest, 1)
	var etcd kvClient
	s, _ := testStore(t, EmbeddedConfig{}, func(c *Conn) {
		etcd = c.kv
		c.Interfere(func(_ context.Context, r *pb.TxnRequest, do Do) (*pb.TxnResponse, error) {
			switch {
			case len(PutsIn(r)) > 0 && held.CompareAndSwap(false, true):
				full.Store(true)
				late <- r
				return nil, rpctypes.ErrGRPCTimeout
			case full.Load() && slices.ContainsFunc(r.Success, isPut):
				return nil, rpctypes.ErrGRPCNoSpace
			}
			return do()
		})
	})
	if placed, _, err := s.Enqueue(t.Context(), lateEntry()); !takenBack(err) {
		t.Errorf("Enqueue: %+v, %v, want that nothing of it is left", placed, err)
	}
	if _, err := etcd.Txn(t.Context(), <-late); err != nil {
		t.Error(err)
	}
	if found := s.mustFind(t, lateEntry()); found != nil {
		t.Errorf("a late write brought it: %+v", found)
	}
	e := reusable("next", false)
	if _, _, err := s.Enqueue(t.Context(), e); !isNoSpace(err) {
		t.Errorf("Enqueue to a full store = %v", err)
	}
	full.Store(false)
	s.mustEnqueue(t, e)
}

func isPut(op *pb.RequestOp) bool { return op.GetRequestPut() != nil }

// TestWritersKeyEnds: the lease of the writer's key ends. Entries are written all the same.
func TestWritersKeyEnds(t *testing.T) {
	s, _ := testStore(t, EmbeddedConfig{}, func(*Conn) {})
	for _, id := range []lock.ID{"first", "second"} {
		gone := &pb.TxnRequest{Success: []*pb.RequestOp{deleteOp(s.writer.key)}}
		if _, err := s.conn.kv.Txn(t.Context(), gone); err != nil {
			t.Fatal(err)
		}
		s.mustEnqueue(t, reusable(id, false))
	}
}

// TestGivenUpBeforeItIsSent: a caller gives up when its write has been taken for a batch, but not
// sent. It may shut out what it sent, so the write is not sent after that.
func TestGivenUpBeforeItIsSent(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		kv := &asked{}
		commits := (&committer{
			own: &ownWrites{}, writer: knownWriter(), ctx: t.Context(), trusted: floored{},
			observe: func(int, time.Duration, error) {},
		}).over(kv, false)
		defer commits.Close()
		ctx, giveUp := context.WithCancel(trace.ContextWithSpanContext(t.Context(), sampled()))
		var err error
		over := make(chan struct{})
		commits.Sending = func([]trace.SpanContext) func() {
			giveUp()
			<-over
			return func() {}
		}
		go func() {
			defer close(over)
			_, err = commits.Do(ctx, &write{Payload: &part{puts: true}, Tenant: "acme", Ops: 1})
		}()
		if <-over; !errors.Is(err, batch.ErrUnknown) {
			t.Errorf("Do = %v, want that the outcome is unknown", err)
		}
		synctest.Wait()
		if len(kv.all) > 0 {
			t.Errorf("it was sent: %v", kv.all)
		}
	})
}

func sampled() trace.SpanContext {
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}, TraceFlags: trace.FlagsSampled,
	})
}

// TestSlowStoreTakesEntries: each transaction takes longer than the time after which another one is
// sent beside it. What comes late of the writer's own requests makes no entry fail again and again.
func TestSlowStoreTakesEntries(t *testing.T) {
	var slow atomic.Bool
	s, _ := testStore(t, EmbeddedConfig{}, func(c *Conn) {
		c.Interfere(func(_ context.Context, _ *pb.TxnRequest, do Do) (*pb.TxnResponse, error) {
			if slow.Load() {
				<-time.After(hedgeAfter * 4 / 3)
			}
			return do()
		})
	})
	slow.Store(true)
	if err := s.writer.shutOut(t.Context(), s.writer.current()); err != nil {
		t.Fatal(err)
	}
	for _, id := range []lock.ID{"first", "second"} {
		s.mustEnqueue(t, reusable(id, false))
	}
}
