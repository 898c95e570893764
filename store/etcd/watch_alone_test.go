package etcd

import (
	"context"
	"net"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
)

// slowToSend is a server of watches that is at newest and sends in an order in which etcd can: that
// all watches of a stream have had everything, after it has said that another one has begun, whose
// events follow.
type slowToSend struct {
	pb.UnimplementedWatchServer
	asked chan struct{} // is sent to when it is asked that
}

const newestToSend = 10

func (s *slowToSend) Watch(stream pb.Watch_WatchServer) error {
	send := func(r *pb.WatchResponse) error {
		r.Header = &pb.ResponseHeader{Revision: newestToSend}
		return stream.Send(r)
	}
	var had *pb.WatchResponse // yet to be sent
	for begun := int64(0); ; {
		r, err := stream.Recv()
		switch {
		case err != nil:
			return nil //nolint:nilerr // the client has left
		case r.GetProgressRequest() != nil && begun > 0 && had == nil:
			had = &pb.WatchResponse{WatchId: clientv3.InvalidWatchID}
			s.asked <- struct{}{}
		case r.GetCreateRequest() != nil:
			all := []*pb.WatchResponse{{WatchId: begun, Created: true}}
			if had != nil {
				all = append(all, had)
			}
			event := &mvccpb.Event{Kv: &mvccpb.KeyValue{Key: []byte("a"), ModRevision: newestToSend}}
			all = append(all, &pb.WatchResponse{WatchId: begun, Events: []*mvccpb.Event{event}})
			for _, one := range all {
				if err := send(one); err != nil {
					return err
				}
			}
			begun, had = begun+1, nil
		}
	}
}

// TestWatchIsNotToldOfAnothersProgress: what other watches have had says nothing of one that has
// just begun.
func TestWatchIsNotToldOfAnothersProgress(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, sends := grpc.NewServer(), &slowToSend{asked: make(chan struct{}, 1)}
	pb.RegisterWatchServer(server, sends)
	go func() { _ = server.Serve(listener) }() // ends with Stop
	defer server.Stop()
	client, err := dial(RemoteConfig{Endpoints: []string{listener.Addr().String()}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	watches := &watches{ctx: ctx}
	watched := func() watch {
		w := watches.over(func() clientv3.Watcher { return clientv3.NewWatcher(client) })(
			ctx, "a", "b", 1,
		)
		if m := <-w.messages; len(m.events) == 0 {
			t.Errorf("a watch has had all up to %d, and was told nothing of it", m.revision)
		}
		return w
	}
	watched().ask()
	select {
	case <-sends.asked:
	case <-ctx.Done():
		t.Fatal("it is not asked how far its watches are")
	}
	watched()
}
