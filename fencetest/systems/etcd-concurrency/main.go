// Command etcd-concurrency takes locks of etcd's package concurrency, as its examples show.
package main

import (
	"context"
	"log"
	"os"
	"strconv"
	"time"

	"github.com/fencepost/fencepost/fencetest/systems/protocol"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

func main() {
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{os.Getenv("FENCETEST_SERVER")}, DialTimeout: 5 * time.Second,
	})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := client.Get(context.Background(), "ready"); err != nil {
		log.Fatal(err)
	}
	protocol.Run(func(ctx context.Context, want protocol.Request) (*protocol.Held, error) {
		session, err := concurrency.NewSession(client, concurrency.WithTTL(int(want.TTL.Seconds())))
		if err != nil {
			return nil, err
		}
		m := concurrency.NewMutex(session, "/"+want.Name)
		if err := m.Lock(ctx); err != nil {
			_ = session.Close() // or the lease ends it
			return nil, err
		}
		held := protocol.HeldUntil(session.Done())
		fence := strconv.FormatInt(m.Header().Revision, 10)
		return &protocol.Held{
			Fence: fence, Lost: session.Done(), Check: held,
			Release: func(ctx context.Context) error {
				if err := held(ctx); err != nil {
					return err
				}
				if err := m.Unlock(ctx); err != nil {
					return err
				}
				return session.Close()
			},
		}, nil
	})
}
