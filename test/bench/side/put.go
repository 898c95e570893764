package side

import (
	"context"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fencepost/fencepost/test/bench/load"
)

// putBytes is the size of a bare put's value, near that of an entry of ours.
const putBytes = 128

// NewPutWorkers returns n workers whose acquire is one put, the least that a
// durable and replicated change can cost. Their release does nothing.
func NewPutWorkers(client *clientv3.Client, n int) []load.Worker {
	workers := make([]load.Worker, n)
	value := strings.Repeat("v", putBytes)
	for i := range workers {
		workers[i] = putWorker{client, value}
	}
	return workers
}

type putWorker struct {
	client *clientv3.Client
	value  string
}

func (w putWorker) Acquire(ctx context.Context, name string) (int64, error) {
	resp, err := w.client.Put(ctx, name, w.value)
	if err != nil {
		return 0, err
	}
	return resp.Header.Revision, nil
}

func (putWorker) Release(context.Context) error { return nil }
