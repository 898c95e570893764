package etcd

import (
	"context"
	"strconv"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// SetForm records a form in the store at a prefix, or none for 0, as another version does.
func (c *Conn) SetForm(ctx context.Context, prefix string, form int) error {
	key := []byte(prefix + metaForm)
	op := putOp(key, strconv.AppendInt(nil, int64(form), 10), 0)
	if form == 0 {
		op = deleteOp(key)
	}
	_, err := c.kv.Txn(ctx, &pb.TxnRequest{Success: []*pb.RequestOp{op}})
	return err
}
