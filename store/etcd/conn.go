package etcd

import (
	"context"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
)

// Deadlines of the calls to etcd. A request must be answered within 5 s when the store is lost,
// so all attempts of one operation fit into operationTimeout. Joining a queue may take up to
// batch.MostPending longer while other writes proceed.
const (
	attemptTimeout   = 1500 * time.Millisecond
	operationTimeout = 4 * time.Second
)

// leaseSlack is added to each lease's TTL: a pooled lease that was renewed more recently than
// that can carry another entry without a renewal.
const leaseSlack = time.Second

// Conn is a connection to an etcd, made by [StartEmbedded] or [Dial]. It may serve several
// stores.
type Conn struct {
	kv      kvClient
	leases  leaseClient
	renewer renewer

	watch watchFunc // follows a range of keys on the feed's connection

	// admit reports whether a new entry of that many bytes fits; nil if another process enforces the
	// quota.
	admit func(bytes int) bool
	size  func() Size // of the embedded store; nil for a cluster
	local bool        // the store is in this process: its calls do not depend on a network

	// version asks one endpoint for its etcd version; nil for the embedded store.
	version   func(ctx context.Context, endpoint string) (string, error)
	endpoints []string

	slack time.Duration // of each lease, see leaseSlack
	close func() error
}

// Close ends the connection, or stops the embedded member.
func (c *Conn) Close() error { return c.close() }

// Size returns how full the embedded store is; ok is false for a cluster.
func (c *Conn) Size() (s Size, ok bool) {
	if c.size == nil {
		return Size{}, false
	}
	return c.size(), true
}

// hasRoom reports whether a new entry or record of that many bytes fits.
func (c *Conn) hasRoom(bytes int) bool { return c.admit == nil || c.admit(bytes) }

// kvClient is the part of etcd's KV service that the store uses. clientv3 repeats reads, and
// never a write.
type kvClient interface {
	Range(context.Context, *pb.RangeRequest, ...grpc.CallOption) (*pb.RangeResponse, error)
	Txn(context.Context, *pb.TxnRequest, ...grpc.CallOption) (*pb.TxnResponse, error)
}

// leaseClient is the part of etcd's lease service that the store uses, besides renewal. The
// caller always chooses the lease id, because a retried grant without one would leave a second
// lease behind.
type leaseClient interface {
	LeaseGrant(
		context.Context, *pb.LeaseGrantRequest, ...grpc.CallOption,
	) (*pb.LeaseGrantResponse, error)
	LeaseRevoke(
		context.Context, *pb.LeaseRevokeRequest, ...grpc.CallOption,
	) (*pb.LeaseRevokeResponse, error)
	LeaseTimeToLive(
		context.Context, *pb.LeaseTimeToLiveRequest, ...grpc.CallOption,
	) (*pb.LeaseTimeToLiveResponse, error)
}

// renewer restarts a lease for its full TTL. It returns errLeaseGone if etcd has no such lease.
// Success proves nothing about keys (etcd #14758).
type renewer interface {
	renew(ctx context.Context, lease int64) error
}

// clients reach one etcd: a cluster by gRPC, or the member in this process by function calls.
type clients struct {
	kv     pb.KVClient
	leases pb.LeaseClient

	// watcher returns a new watcher with its own stream. etcd reports progress to all watches of a
	// stream together, perhaps before a new one has received its events.
	watcher func() clientv3.Watcher

	close func() error
}

// newConn returns the connection over clients.
func newConn(c clients) *Conn {
	ctx, cancel := context.WithCancel(context.Background())
	watches := &watches{ctx: ctx}
	renewer := newStreamRenewer(ctx, func(ctx context.Context) (keepAliveStream, error) {
		return c.leases.LeaseKeepAlive(ctx)
	})
	return &Conn{
		kv: c.kv, leases: c.leases, renewer: renewer, slack: leaseSlack,
		watch: watches.over(c.watcher),
		close: func() error {
			cancel()
			renewer.close()
			watches.tasks.Wait()
			return c.close()
		},
	}
}

// watchFunc watches the keys from first up to end, from the revision on, without gaps. If ctx
// ends or the watch breaks, it sends a last message with err set and closes the channel.
type watchFunc func(ctx context.Context, first, end string, from int64) watch

type watch struct {
	messages <-chan watchMessage
	ask      func() // makes etcd report its progress, if it can
}

// watchMessage is a run of events, or the progress up to revision without any.
type watchMessage struct {
	events   []*mvccpb.Event
	revision int64 // of the last event or of the progress report
	err      error
}

// watches are a connection's open watches. Its Close waits for their end.
type watches struct {
	ctx   context.Context //nolint:containedctx // ends with the connection
	tasks sync.WaitGroup
}

// over returns a watchFunc. It requires a leader; otherwise a member that is cut off would report
// nothing. A watch does not wait until the member confirms it, because over a silent connection
// the feed would not notice that it lags.
func (w *watches) over(watcher func() clientv3.Watcher) watchFunc {
	return func(ctx context.Context, first, end string, from int64) watch {
		ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
		stop := context.AfterFunc(w.ctx, cancel)
		own, out := watcher(), make(chan watchMessage)
		w.tasks.Go(func() { // ends with the responses, which end with ctx
			defer func() { stop(); cancel(); _ = own.Close() }()
			defer close(out)
			responses := own.Watch(ctx, first,
				clientv3.WithRange(end), clientv3.WithRev(from), clientv3.WithProgressNotify())
			for r := range responses {
				select {
				case out <- message(r):
				case <-ctx.Done():
					return
				}
			}
		})
		ask := func() {
			// The call could wait for a stream that is being opened. The feed notices a missing answer.
			ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			defer cancel()
			_ = own.RequestProgress(ctx)
		}
		return watch{messages: out, ask: ask}
	}
}

func message(r clientv3.WatchResponse) watchMessage {
	m := watchMessage{events: r.Events, revision: r.Header.Revision, err: r.Err()}
	if len(r.Events) > 0 {
		m.revision = r.Events[len(r.Events)-1].Kv.ModRevision
	}
	return m
}

// prefixEnd returns the end of the key range with the prefix. No prefix of Fencepost ends in
// 0xff.
func prefixEnd(prefix string) []byte {
	end := []byte(prefix)
	end[len(end)-1]++
	return end
}
