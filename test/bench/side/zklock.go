package side

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/fencepost/fencepost/test/bench/load"
)

// ZooKeeperUser and ZooKeeperPassword are shown by both sides.
const (
	ZooKeeperUser     = "bench"
	ZooKeeperPassword = "the password of the benchmark"
)

// ZKLocks are go-zookeeper's own locks, each client on a connection of its own.
type ZKLocks struct{ conns []*zk.Conn }

// NewZKLocks connects n clients. As a session is on its connection, and a lock
// on its session, that is how go-zookeeper is used by n programs.
func NewZKLocks(ctx context.Context, servers []string, n int) (*ZKLocks, error) {
	z := &ZKLocks{}
	for range n {
		conn, events, err := zk.Connect(servers, ttlSeconds*time.Second, zk.WithLogInfo(false))
		if err != nil {
			return z, err
		}
		z.conns = append(z.conns, conn)
		if err := awaitSession(ctx, events); err != nil {
			return z, err
		}
		if err := conn.AddAuth("digest", []byte(ZooKeeperUser+":"+ZooKeeperPassword)); err != nil {
			return z, fmt.Errorf("authenticate: %w", err)
		}
	}
	return z, nil
}

func awaitSession(ctx context.Context, events <-chan zk.Event) error {
	for {
		select {
		case e := <-events:
			if e.State == zk.StateHasSession {
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Workers returns the clients.
func (z *ZKLocks) Workers() []load.Worker {
	workers := make([]load.Worker, len(z.conns))
	for i, conn := range z.conns {
		workers[i] = &zkWorker{conn: conn}
	}
	return workers
}

// Close ends the sessions.
func (z *ZKLocks) Close() error {
	for _, c := range z.conns {
		c.Close()
	}
	return nil
}

type zkWorker struct {
	conn *zk.Conn
	lock *zk.Lock
}

// Acquire cannot be cancelled: go-zookeeper knows no contexts.
func (w *zkWorker) Acquire(_ context.Context, name string) (int64, error) {
	w.lock = zk.NewLock(w.conn, "/peer/"+strings.ReplaceAll(name, ":", "-"), zk.AuthACL(zk.PermAll))
	return 0, w.lock.Lock()
}

func (w *zkWorker) Release(context.Context) error { return w.lock.Unlock() }
