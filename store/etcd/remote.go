package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// remoteSlack is added to leases in a remote etcd, where renewing a pooled lease
// costs a round trip, forwarded to the leader by every other member.
const remoteSlack = time.Second

// RemoteConfig says how to reach an etcd cluster.
type RemoteConfig struct {
	Endpoints []string // host:port
	TLS       *tls.Config
	Username  string
	Password  string
}

// Dial connects to an etcd cluster. It returns before anything answers; [Open]
// finds out whether something does.
//
// The feed has a connection of its own, so that large reads beside it cannot
// starve it (etcd #15402).
func Dial(cfg RemoteConfig) (*Conn, error) {
	if len(cfg.Endpoints) == 0 {
		return nil, errors.New("no etcd endpoint is given")
	}
	calls, err := dial(cfg)
	if err != nil {
		return nil, err
	}
	feed, err := dial(cfg)
	if err != nil {
		return nil, errors.Join(err, calls.Close())
	}
	ctx, cancel := context.WithCancel(context.Background())
	leases := clientv3.RetryLeaseClient(calls)
	renewer := newStreamRenewer(ctx, func(ctx context.Context) (keepAliveStream, error) {
		return leases.LeaseKeepAlive(ctx)
	})
	return &Conn{
		kv:      remoteKV{clientv3.RetryKVClient(calls)},
		leases:  remoteLeases{leases},
		renewer: renewer,
		watch: func(ctx context.Context, prefix string, from int64) watch {
			return watchRemote(ctx, feed, prefix, string(prefixEnd(prefix)), from)
		},
		watchPast: func(ctx context.Context, first, end string, from int64) watch {
			return watchRemote(ctx, calls, first, end, from)
		},
		endpoints: cfg.Endpoints,
		version: func(ctx context.Context, endpoint string) (string, error) {
			status, err := calls.Status(ctx, endpoint)
			if err != nil {
				return "", err
			}
			return status.Version, nil
		},
		slack: remoteSlack,
		close: func() error {
			cancel()
			renewer.close()
			return errors.Join(feed.Close(), calls.Close())
		},
	}, nil
}

func dial(cfg RemoteConfig) (*clientv3.Client, error) {
	c, err := clientv3.New(clientv3.Config{
		Endpoints: cfg.Endpoints, TLS: cfg.TLS, Username: cfg.Username, Password: cfg.Password,
		DialTimeout: attemptTimeout,
		// A member that is frozen or cut off is noticed by its silence. More
		// frequent pings than every 5 s would be refused (too_many_pings), and so
		// would pings without a stream.
		DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: 3 * time.Second,
		Logger: zap.NewNop(),
	})
	if err != nil {
		return nil, fmt.Errorf("connect to etcd: %w", err)
	}
	return c, nil
}

// remoteKV and remoteLeases adapt gRPC clients. clientv3 repeats reads, and
// grants by itself when a member is unavailable, and never a write.
type remoteKV struct{ c pb.KVClient }

func (r remoteKV) Range(ctx context.Context, in *pb.RangeRequest) (*pb.RangeResponse, error) {
	return r.c.Range(ctx, in)
}

func (r remoteKV) Txn(ctx context.Context, in *pb.TxnRequest) (*pb.TxnResponse, error) {
	return r.c.Txn(ctx, in)
}

func (r remoteKV) DeleteRange(ctx context.Context, in *pb.DeleteRangeRequest) (*pb.DeleteRangeResponse, error) {
	return r.c.DeleteRange(ctx, in)
}

type remoteLeases struct{ c pb.LeaseClient }

func (r remoteLeases) LeaseGrant(ctx context.Context, in *pb.LeaseGrantRequest) (*pb.LeaseGrantResponse, error) {
	return r.c.LeaseGrant(ctx, in)
}

func (r remoteLeases) LeaseRevoke(ctx context.Context, in *pb.LeaseRevokeRequest) (*pb.LeaseRevokeResponse, error) {
	return r.c.LeaseRevoke(ctx, in)
}

func (r remoteLeases) LeaseTimeToLive(ctx context.Context, in *pb.LeaseTimeToLiveRequest) (*pb.LeaseTimeToLiveResponse, error) {
	return r.c.LeaseTimeToLive(ctx, in)
}

// watchRemote follows a range of keys. The member must have a leader, or it would
// report nothing for as long as it is cut off. It does not wait for the member to
// say that the watch has begun, as the client does: over a connection that is silent
// nobody would find out meanwhile that the feed is late.
//
// It has a stream of its own: etcd tells all watches of a stream together that they have had everything, and
// perhaps after it has said that another one has begun, which has had nothing yet. That one would miss what
// happened until then.
func watchRemote(ctx context.Context, c *clientv3.Client, first, end string, from int64) watch {
	ctx = clientv3.WithRequireLeader(ctx)
	out, own := make(chan watchMessage), clientv3.NewWatcher(c)
	go func() { // ends with the responses, which end with ctx
		defer func() { _ = own.Close() }()
		defer close(out)
		for r := range own.Watch(ctx, first, clientv3.WithRange(end), clientv3.WithRev(from), clientv3.WithProgressNotify()) {
			m := watchMessage{events: r.Events, revision: r.Header.Revision, err: r.Err()}
			if len(r.Events) > 0 {
				m.revision = r.Events[len(r.Events)-1].Kv.ModRevision
			}
			select {
			case out <- m:
			case <-ctx.Done():
				return
			}
		}
	}()
	ask := func() {
		// It could wait for a stream that is being opened. An answer that does not
		// come is the feed's concern, not this call's.
		ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		_ = own.RequestProgress(ctx)
	}
	return watch{messages: out, ask: ask}
}
