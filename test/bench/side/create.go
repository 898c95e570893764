package side

import (
	"context"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/fencepost/fencepost/test/bench/load"
)

// Creates returns n workers whose acquire creates a node, the least that a durable and
// replicated change can cost. They share the first connection, and their release does
// nothing.
func (z *ZKLocks) Creates(n int) []load.Worker {
	workers := make([]load.Worker, n)
	data := []byte(strings.Repeat("v", putBytes))
	for i := range workers {
		workers[i] = createWorker{z.conns[0], data}
	}
	return workers
}

type createWorker struct {
	conn *zk.Conn
	data []byte
}

func (w createWorker) Acquire(context.Context, string) (int64, error) {
	_, err := w.conn.Create("/bare-", w.data, zk.FlagSequence, zk.WorldACL(zk.PermAll))
	return 0, err
}

func (createWorker) Release(context.Context) error { return nil }
