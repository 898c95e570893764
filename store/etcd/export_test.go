package etcd

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/fencepost/fencepost/store/engine"
	"github.com/fencepost/fencepost/store/storetest"
)

// SetForm records a form in the store at a prefix, as another version does.
func (c *Conn) SetForm(ctx context.Context, prefix string, form int) error {
	key := []byte(prefix + engine.MetaKey().Name)
	own, err := c.kv.Range(ctx, &pb.RangeRequest{Key: key})
	if err != nil {
		return err
	}
	put := putOp(key, storetest.WithForm(own.Kvs[0].Value, form), 0)
	_, err = c.kv.Txn(ctx, &pb.TxnRequest{Success: []*pb.RequestOp{put}})
	return err
}
