package etcd

import (
	"context"
	"net"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// TestWatchOverASilentConnection: a watch that gets no answer is available at once, so that its
// reader notices the lag, and it ends with its context.
func TestWatchOverASilentConnection(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	client, err := dial(RemoteConfig{Endpoints: []string{silent.Addr().String()}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	begun := make(chan watch, 1)
	watches := &watches{ctx: ctx}
	defer watches.tasks.Wait()
	go func() {
		begun <- watches.over(func() clientv3.Watcher { return clientv3.NewWatcher(client) })(
			ctx, "prefix/", "prefix0", 1,
		)
	}()
	var w watch
	select {
	case w = <-begun:
	case <-time.After(20 * time.Second):
		t.Fatal("it waits for an answer")
	}
	cancel()
	select {
	case m, ok := <-w.messages:
		if ok {
			t.Errorf("%+v, from nobody", m)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("it outlives its context")
	}
}
