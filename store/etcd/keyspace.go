package etcd

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/batch"
)

// keyspace is the store's own keys: how entries are named and read, and how revisions become
// numbers.
type keyspace struct {
	conn    *Conn
	kv      trustedKV
	prefix  string
	log     *slog.Logger
	observe store.Observer
	trust   *store.Trust
	timeout time.Duration // of every call
	own     ownWrites
}

func newKeyspace(conn *Conn, cfg Config) *keyspace {
	ks := &keyspace{
		conn: conn, prefix: cmp.Or(cfg.Prefix, defaultPrefix), log: cfg.Logger,
		observe: cfg.Observer.OrSilent(),
		trust:   store.NewTrust(), timeout: cmp.Or(cfg.Timeout, operationTimeout),
	}
	ks.kv = trustedKV{conn.kv, ks.trust}
	if ks.log == nil {
		ks.log = slog.New(slog.DiscardHandler)
	}
	return ks
}

func (ks *keyspace) number(revision int64) uint64 { return ks.trust.Number(revision) }

func (ks *keyspace) revision(number uint64) int64 { return ks.trust.Position(number) }

// newest reads a single key for the revision in the header; its value does not matter.
func (ks *keyspace) newest(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, ks.timeout)
	defer cancel()
	return repeated(ctx, func() (int64, error) { return ks.newestOnce(ctx) })
}

// read is a linearizable read. It retries until there is an answer or ctx ends. Each attempt has
// its own deadline, because a frozen member does not answer and the next attempt may reach
// another.
func (ks *keyspace) read(
	ctx context.Context, name string, r *pb.RangeRequest,
) (*pb.RangeResponse, error) {
	return repeated(ctx, func() (*pb.RangeResponse, error) { return ks.tryRead(ctx, name, r) })
}

// repeated calls try until there is an answer, or ctx ends.
func repeated[T any](ctx context.Context, try func() (T, error)) (T, error) {
	for {
		resp, err := try()
		if err == nil || isCompacted(err) || isNoSpace(err) || refused(err) || ctx.Err() != nil ||
			store.Pause(ctx, 20*time.Millisecond) != nil {
			return resp, err
		}
	}
}

func (ks *keyspace) tryRead(
	ctx context.Context, name string, r *pb.RangeRequest,
) (*pb.RangeResponse, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err() // the embedded member would not notice
	}
	return attempt(ctx, ks, name, func(ctx context.Context) (*pb.RangeResponse, error) {
		return ks.kv.Range(ctx, r)
	})
}

// tryTxn makes one attempt at a transaction.
func (ks *keyspace) tryTxn(
	ctx context.Context, name string, txn *pb.TxnRequest,
) (*pb.TxnResponse, error) {
	if ctx.Err() != nil {
		return nil, errors.Join(batch.ErrNotSent, ctx.Err()) // the embedded member would not notice
	}
	return attempt(
		ctx, ks, name, func(ctx context.Context) (*pb.TxnResponse, error) { return ks.kv.Txn(ctx, txn) },
	)
}

// attempt makes one call with a timeout, and reports it to the metrics.
func attempt[T any](
	ctx context.Context, ks *keyspace, name string, call func(context.Context) (T, error),
) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	start := time.Now()
	resp, err := call(ctx)
	ks.observe.Operation(name, time.Since(start), err)
	return resp, err
}
