package etcd

import (
	"fmt"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// TestClosuresAreComparedOncePerTenant: the puts of a tenant in a batch share a comparison. A batch
// of more tenants than etcd takes comparisons is nested at once.
func TestClosuresAreComparedOncePerTenant(t *testing.T) {
	for tenants, want := range map[int]int{1: 1, 5: 5, batchOps: 0} {
		kv := &asked{}
		commits := &committer{
			own: &ownWrites{}, ctx: t.Context(), kv: kv, prefix: "/", trusted: floored{},
			writer: knownWriter(),
		}
		var groups []*group
		for i := range batchOps {
			p := &part{
				puts: true, ops: []*pb.RequestOp{putOp([]byte("e"), nil, 0)},
				compares: []*pb.Compare{created([]byte("e"), 0)},
				admitted: admission{key: fmt.Sprint("closures of ", i%tenants)},
			}
			groups = append(groups, &group{writes: []*write{{Payload: p}}})
		}
		_, err := commits.transact(sending{groups: groups, puts: true})
		if err != nil || len(kv.all) != 1 {
			t.Fatalf("%d transactions, %v", len(kv.all), err)
		}
		txn, compared := kv.all[0], 0
		for _, c := range txn.Compare {
			if strings.HasPrefix(string(c.Key), "closures of ") {
				compared++
			}
		}
		if len(txn.Compare) > maxTxnOps || compared != want {
			t.Errorf("of %d tenants %d closures are compared, among %d comparisons",
				tenants, compared, len(txn.Compare))
		}
		for _, op := range txn.Success {
			if nested := op.GetRequestTxn(); (nested != nil) != (want == 0) ||
				nested != nil && len(nested.Compare) != 2 {
				t.Fatalf("a put of %d tenants is sent as %v", tenants, op)
			}
		}
	}
}
