// Command redsync takes locks of redsync, as its README shows.
package main

import (
	"context"
	"errors"
	"log"
	"math"
	"os"
	"sync"
	"time"

	"github.com/fencepost/fencepost/fencetest/systems/protocol"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	goredislib "github.com/redis/go-redis/v9"
)

func main() {
	client := goredislib.NewClient(&goredislib.Options{Addr: os.Getenv("FENCETEST_SERVER")})
	if err := client.Ping(context.Background()).Err(); err != nil {
		log.Fatal(err)
	}
	rs := redsync.New(goredis.NewPool(client))
	protocol.Run(func(ctx context.Context, want protocol.Request) (*protocol.Held, error) {
		m := rs.NewMutex(want.Name, redsync.WithExpiry(want.TTL), redsync.WithTries(math.MaxInt))
		if err := m.LockContext(ctx); err != nil {
			return nil, err
		}
		var mu sync.Mutex // a Mutex of redsync has none
		lost, stop := protocol.Renew(want.TTL, func(ctx context.Context) error {
			mu.Lock()
			defer mu.Unlock()
			_, err := m.ExtendContext(ctx)
			return verdict(err)
		})
		return &protocol.Held{Lost: lost, Check: func(context.Context) error {
			mu.Lock()
			defer mu.Unlock()
			if time.Now().Before(m.Until()) {
				return nil
			}
			return protocol.ErrLost
		}, Release: func(ctx context.Context) error {
			stop()
			_, err := m.UnlockContext(ctx)
			return verdict(err)
		}}, nil
	})
}

func verdict(err error) error {
	taken := new(redsync.ErrTaken)
	if errors.Is(err, redsync.ErrLockAlreadyExpired) || errors.As(err, &taken) {
		return protocol.ErrLost
	}
	return err
}
