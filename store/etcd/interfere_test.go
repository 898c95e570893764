package etcd

import (
	"bytes"
	"context"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
)

// Do sends a transaction.
type Do = func() (*pb.TxnResponse, error)

// Transact stands for a call of etcd's that do makes.
type Transact func(ctx context.Context, r *pb.TxnRequest, do Do) (*pb.TxnResponse, error)

// Interfere has every transaction of the stores that are opened on the connection
// from now on made by way of f, whose calls may hang as those to a cluster do.
func (c *Conn) Interfere(f Transact) { c.kv, c.local = interfered{c.kv, f}, false }

type interfered struct {
	kvClient
	by Transact
}

func (i interfered) Txn(
	ctx context.Context, r *pb.TxnRequest, _ ...grpc.CallOption,
) (*pb.TxnResponse, error) {
	return i.by(ctx, r, func() (*pb.TxnResponse, error) { return i.kvClient.Txn(ctx, r) })
}

// PutsIn returns the entries that a transaction writes, in transactions inside it too.
func PutsIn(r *pb.TxnRequest) []*pb.PutRequest {
	var puts []*pb.PutRequest
	for _, op := range slices.Concat(r.Success, r.Failure) {
		if p := op.GetRequestPut(); p != nil && bytes.Contains(p.Key, []byte("/"+entriesDir)) {
			puts = append(puts, p)
		} else if inner := op.GetRequestTxn(); inner != nil {
			puts = append(puts, PutsIn(inner)...)
		}
	}
	return puts
}

// Mute has the watches that begin from now on stay open and tell nothing for as
// long as muted says so.
func (c *Conn) Mute(muted func() bool) {
	loud := c.watch
	c.watch = func(ctx context.Context, first, end string, from int64) watch {
		w := loud(ctx, first, end, from)
		told := make(chan watchMessage)
		go func() {
			defer close(told)
			for m := range w.messages {
				if muted() {
					continue
				}
				select {
				case told <- m:
				case <-ctx.Done():
				}
			}
		}()
		return watch{messages: told, ask: w.ask}
	}
}

// Watch begins a watch as the feed does.
func (c *Conn) Watch(ctx context.Context) {
	c.watch(ctx, defaultPrefix, string(prefixEnd(defaultPrefix)), 1)
}

// Version is that of the first server.
func (c *Conn) Version(ctx context.Context) (string, error) {
	return c.version(ctx, c.endpoints[0])
}
