package etcd

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/test/bubble"
)

// asked is a KV service that remembers what it is asked, and refuses the first few.
type asked struct {
	kvClient
	refuses int
	all     []*pb.TxnRequest
}

func (a *asked) Txn(
	_ context.Context, r *pb.TxnRequest, _ ...grpc.CallOption,
) (*pb.TxnResponse, error) {
	a.all = append(a.all, r)
	ok := len(a.all) > a.refuses
	resp := &pb.TxnResponse{Header: &pb.ResponseHeader{Revision: 9}, Succeeded: ok}
	for range r.Success {
		inner := &pb.TxnResponse{Succeeded: ok}
		resp.Responses = append(
			resp.Responses, &pb.ResponseOp{Response: &pb.ResponseOp_ResponseTxn{ResponseTxn: inner}},
		)
	}
	return resp, nil
}

// floored compares the floor.
type floored struct{ trusted }

func (floored) unchanged() []*pb.Compare {
	return []*pb.Compare{modified([]byte("floor"), 7)}
}

// TestFloorIsComparedInEachBatch: each transaction that puts an entry, plain or nested, compares
// the floor, wherever in the batch the entry is.
func TestFloorIsComparedInEachBatch(t *testing.T) {
	put := &part{puts: true, ops: []*pb.RequestOp{putOp([]byte("e"), nil, 0)}}
	removal := &part{conditional: true, ops: []*pb.RequestOp{deleteOp([]byte("d"))}}
	for name, c := range map[string]struct {
		parts []*part
		want  int
	}{
		"alone": {[]*part{put}, 1}, "first": {[]*part{put, removal}, 1},
		"last":    {[]*part{removal, put}, 1},
		"between": {[]*part{removal, put, removal}, 1}, "none": {[]*part{removal, removal}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			kv := &asked{refuses: 1}
			commits := &committer{
				own: &ownWrites{}, ctx: t.Context(), kv: kv, prefix: "/", trusted: floored{},
				writer: knownWriter(),
			}
			var groups []*group
			for _, p := range c.parts {
				groups = append(groups, &group{writes: []*write{{Payload: p}}})
			}
			some := sending{groups: groups, puts: c.want > 0}
			if _, err := commits.transact(some); err != nil || len(kv.all) != 2 {
				t.Fatalf("%d transactions, %v", len(kv.all), err)
			}
			for i, r := range kv.all {
				floors := slices.DeleteFunc(
					r.Compare, func(c *pb.Compare) bool { return string(c.Key) != "floor" },
				)
				if len(floors) != c.want {
					t.Errorf("transaction %d compares the floor %d times, want %d", i+1, len(floors), c.want)
				}
			}
		})
	}
}

// TestEndsOfABatch: each write learns where its end is recorded, also of a plain transaction, in
// which all have one record. A removal with an unknown outcome looks there.
func TestEndsOfABatch(t *testing.T) {
	for name, refuses := range map[string]int{"plain": 0, "nested": 1} {
		t.Run(name, func(t *testing.T) {
			kv := &asked{refuses: refuses}
			commits := &committer{
				own: &ownWrites{}, ctx: t.Context(), kv: kv, prefix: "/", trusted: floored{},
				writer: knownWriter(),
			}
			var groups []*group
			for i := range batchOps {
				p := &part{
					conditional: true, ops: []*pb.RequestOp{deleteOp([]byte("d"))}, memory: 5,
					end: &store.End{ID: lock.ID(fmt.Sprint(i)), Reason: lock.Released},
				}
				groups = append(groups, &group{writes: []*write{{Payload: p}}})
			}
			if _, err := commits.transact(sending{groups: groups}); err != nil {
				t.Fatal(err)
			}
			kept := endsIn(kv.all[len(kv.all)-1].Success)
			for i, g := range groups {
				if where := kept[lock.ID(fmt.Sprint(i))]; where == "" || where != string(g.endKey) {
					t.Errorf("the end of %d is at %q, and it is told %q", i, where, g.endKey)
				}
			}
		})
	}
}

// endsIn returns under which key operations record ends.
func endsIn(ops []*pb.RequestOp) map[lock.ID]string {
	at := map[lock.ID]string{}
	for _, op := range ops {
		if put := op.GetRequestPut(); put != nil {
			for _, end := range (&ends{}).decodeEnds(put.Key, put.Value) {
				at[end.ID] = string(put.Key)
			}
		}
		maps.Copy(at, endsIn(op.GetRequestTxn().GetSuccess()))
	}
	return at
}

// TestLargestBatch: etcd takes a batch of the most operations, plain and nested.
func TestLargestBatch(t *testing.T) {
	s, _ := testStore(t, EmbeddedConfig{}, func(*Conn) {})
	commits := &committer{
		own: &ownWrites{}, ctx: t.Context(), kv: s.kv, prefix: s.prefix,
		trusted: ownRecord{s.driver, s.meta}, writer: s.writer,
	}
	if err := s.writer.ready(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	for _, nested := range []bool{false, true} {
		var groups []*group
		for i := range batchOps / 2 {
			if nested && i == 0 {
				i = 1000 // the others are there already
			}
			e := testEntry(fmt.Sprint("l", i), fmt.Sprintf("%026d", i))
			e.Request = "of-mine"
			groups = append(groups, &group{writes: []*write{s.putWrite(e, []byte("{}"), 0)}})
		}
		resp, err := commits.transact(sending{groups, true, s.writer.current()})
		if err != nil {
			t.Fatal(err)
		}
		for i := range groups {
			if put := resp.Responses[i].GetResponseTxn().Succeeded; put != (!nested || i == 0) {
				t.Errorf("nested %v: entry %d is put: %v", nested, i, put)
			}
		}
	}
}

// slowPresent is [present], and takes a while for each transaction.
type slowPresent struct {
	present
	took time.Duration
}

func (s *slowPresent) Txn(
	ctx context.Context, r *pb.TxnRequest, _ ...grpc.CallOption,
) (*pb.TxnResponse, error) {
	select {
	case <-time.After(s.took):
		return s.present.Txn(ctx, r)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// TestSlowAndOneFails: where etcd is slow, a write of a batch that cannot be done does not have the
// outcome of the others unknown: the second transaction has as long as the first.
func TestSlowAndOneFails(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		removeThree(t, &slowPresent{present{missing: "key-2"}, attemptTimeout * 6 / 10}, "key-2")
	})
}
