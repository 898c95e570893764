// Package etcd has the check of fences in etcd: one transaction, in one round trip.
package etcd

import (
	"context"
	"fmt"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Stale is the error of operations that the check refused.
type Stale struct {
	Known string // the greatest fence that etcd has seen
}

func (s *Stale) Error() string { return "stale fence: etcd has seen " + s.Known }

// Do runs operations, and stores the fence in the key, unless the key has a greater one.
func Do(
	ctx context.Context, kv clientv3.KV, key string, fence uint64, ops ...clientv3.Op,
) (*clientv3.TxnResponse, error) {
	mine := fmt.Sprintf("%016d", fence) // etcd compares bytes: "9" is greater than "10"
	answer, err := kv.Txn(ctx).
		If(clientv3.Compare(clientv3.Value(key), ">", mine)). // false if the key does not exist
		Then(clientv3.OpGet(key)).
		Else(append(slices.Clip(ops), clientv3.OpPut(key, mine))...).
		Commit()
	if err == nil && answer.Succeeded {
		err = &Stale{string(answer.Responses[0].GetResponseRange().Kvs[0].Value)}
	}
	return answer, err
}
