package etcd

import (
	"context"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// leaseSlack is added to each lease's TTL: a pooled lease that was renewed less than this ago
// needs no renewal before it carries another entry.
const leaseSlack = time.Second

// clients reach one etcd: a cluster by gRPC, or the member in this process by function calls.
type clients struct {
	kv     pb.KVClient
	leases pb.LeaseClient

	// watcher returns a new watcher, which has a stream of its own: etcd reports progress to all
	// watches of a stream together, perhaps before a new one has had its events. pastWatcher is
	// watcher over another connection than the feed's, for short looks at what was written.
	watcher, pastWatcher func() clientv3.Watcher

	close func() error
}

// newConn returns the connection over clients.
func newConn(c clients) *Conn {
	ctx, cancel := context.WithCancel(context.Background())
	watches := &watches{ctx: ctx}
	open := func(ctx context.Context) (keepAliveStream, error) { return c.leases.LeaseKeepAlive(ctx) }
	renewer := newStreamRenewer(ctx, open)
	return &Conn{
		kv: callKV{c.kv}, leases: callLeases{c.leases}, renewer: renewer, slack: leaseSlack,
		watch: func(ctx context.Context, prefix string, from int64) watch {
			return watches.open(ctx, c.watcher(), prefix, string(prefixEnd(prefix)), from)
		},
		watchPast: func(ctx context.Context, first, end string, from int64) watch {
			return watches.open(ctx, c.pastWatcher(), first, end, from)
		},
		close: func() error {
			cancel()
			renewer.close()
			watches.tasks.Wait()
			return c.close()
		},
	}
}

// callKV and callLeases leave out the options of gRPC calls. clientv3 repeats reads, and grants
// when a member is unavailable, and never a write.
type callKV struct{ c pb.KVClient }

func (k callKV) Range(ctx context.Context, r *pb.RangeRequest) (*pb.RangeResponse, error) {
	return k.c.Range(ctx, r)
}

func (k callKV) Txn(ctx context.Context, r *pb.TxnRequest) (*pb.TxnResponse, error) {
	return k.c.Txn(ctx, r)
}

func (k callKV) DeleteRange(
	ctx context.Context, r *pb.DeleteRangeRequest,
) (*pb.DeleteRangeResponse, error) {
	return k.c.DeleteRange(ctx, r)
}

type callLeases struct{ c pb.LeaseClient }

func (l callLeases) LeaseGrant(
	ctx context.Context, r *pb.LeaseGrantRequest,
) (*pb.LeaseGrantResponse, error) {
	return l.c.LeaseGrant(ctx, r)
}

func (l callLeases) LeaseRevoke(
	ctx context.Context, r *pb.LeaseRevokeRequest,
) (*pb.LeaseRevokeResponse, error) {
	return l.c.LeaseRevoke(ctx, r)
}

func (l callLeases) LeaseTimeToLive(
	ctx context.Context, r *pb.LeaseTimeToLiveRequest,
) (*pb.LeaseTimeToLiveResponse, error) {
	return l.c.LeaseTimeToLive(ctx, r)
}

// watches are the open watches of a connection, whose Close waits for their end.
type watches struct {
	ctx   context.Context //nolint:containedctx // ends with the connection
	tasks sync.WaitGroup
}

// open follows a range of keys. The member must have a leader, or it would report nothing while
// it is cut off. open does not wait until the member confirms the watch: over a silent connection
// the feed would not notice that it is late.
func (w *watches) open(
	ctx context.Context, own clientv3.Watcher, first, end string, from int64,
) watch {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	stop := context.AfterFunc(w.ctx, cancel)
	out := make(chan watchMessage)
	w.tasks.Go(func() { // ends with the responses, which end with ctx
		defer func() { stop(); cancel(); _ = own.Close() }()
		defer close(out)
		told := own.Watch(ctx, first,
			clientv3.WithRange(end), clientv3.WithRev(from), clientv3.WithProgressNotify())
		for r := range told {
			select {
			case out <- message(r):
			case <-ctx.Done():
				return
			}
		}
	})
	ask := func() {
		// The call could wait for a stream that is being opened. The feed notices an answer that
		// does not come.
		ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		_ = own.RequestProgress(ctx)
	}
	return watch{messages: out, ask: ask}
}

func message(r clientv3.WatchResponse) watchMessage {
	m := watchMessage{events: r.Events, revision: r.Header.Revision, err: r.Err()}
	if len(r.Events) > 0 {
		m.revision = r.Events[len(r.Events)-1].Kv.ModRevision
	}
	return m
}
