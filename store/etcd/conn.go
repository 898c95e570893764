package etcd

import (
	"context"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// Deadlines of the calls to etcd. An HTTP request must be answered within 5 s
// when the store is lost, so all attempts of one operation fit into operation. Joining a
// queue may take up to batch.MostPending longer for as long as others are being written.
const (
	attemptTimeout   = 1500 * time.Millisecond
	operationTimeout = 4 * time.Second
)

// Conn is how a [Store] reaches an etcd; [StartEmbedded] and [Dial] make one. It
// may serve several stores.
type Conn struct {
	kv      kvClient
	leases  leaseClient
	renewer renewer
	watch   watchFunc
	// watchPast is for who reads what was written for a moment, and not over the stream of the feed:
	// to the keys from the first one up to another, without that.
	watchPast func(ctx context.Context, first, end string, from int64) watch
	// admit reports whether there is room for a new entry of so many bytes, and then wants
	// to be told when its writing has ended; nil where others keep the quota.
	admit func(bytes int) (answered func(), ok bool)
	size  func() Size // of the embedded store; nil for others
	local bool        // the store is in this process: its calls do not hang on a network

	// version asks one of the endpoints which etcd it is; nil where it is our own.
	version   func(ctx context.Context, endpoint string) (string, error)
	endpoints []string

	slack time.Duration // of each lease, see leaseSlack

	close func() error
}

// Close ends the connection, or stops the embedded member.
func (c *Conn) Close() error { return c.close() }

func (c *Conn) takeRoom(bytes int) (answered func(), ok bool) {
	if c.admit == nil {
		return func() {}, true
	}
	return c.admit(bytes)
}

// kvClient is the part of etcd's KV service that the store uses.
type kvClient interface {
	Range(context.Context, *pb.RangeRequest) (*pb.RangeResponse, error)
	Txn(context.Context, *pb.TxnRequest) (*pb.TxnResponse, error)
	DeleteRange(context.Context, *pb.DeleteRangeRequest) (*pb.DeleteRangeResponse, error)
}

// leaseClient is the part of etcd's lease service that the store uses, besides
// renewal. Lease ids are always chosen by the caller: a retried grant without
// one would leave a second lease behind.
type leaseClient interface {
	LeaseGrant(context.Context, *pb.LeaseGrantRequest) (*pb.LeaseGrantResponse, error)
	LeaseRevoke(context.Context, *pb.LeaseRevokeRequest) (*pb.LeaseRevokeResponse, error)
	LeaseTimeToLive(context.Context, *pb.LeaseTimeToLiveRequest) (*pb.LeaseTimeToLiveResponse, error)
}

// renewer restarts a lease for its full TTL. It returns errLeaseGone when etcd has no such lease.
// It says nothing about keys (etcd #14758).
type renewer interface {
	renew(ctx context.Context, lease int64) error
}

// watchFunc watches the keys under prefix from the revision on, without gaps,
// until ctx ends or the watch breaks; the channel is then closed after a last
// message with err set. ask makes etcd report its progress, if it can.
type watchFunc func(ctx context.Context, prefix string, from int64) watch

type watch struct {
	messages <-chan watchMessage
	ask      func()
}

// watchMessage is a run of events, or progress up to revision without any.
type watchMessage struct {
	events   []*mvccpb.Event
	revision int64 // of the last event, or of the progress report
	err      error
}

// prefixEnd returns the end of the key range that starts with prefix. No prefix
// of ours ends in 0xff.
func prefixEnd(prefix string) []byte {
	end := []byte(prefix)
	end[len(end)-1]++
	return end
}
