// Command redislock takes locks of bsm/redislock, as its README and its examples show.
package main

import (
	"context"
	"errors"
	"log"
	"os"
	"time"

	"github.com/bsm/redislock"
	"github.com/fencepost/fencepost/fencetest/systems/protocol"
	"github.com/redis/go-redis/v9"
)

func main() {
	client := redis.NewClient(&redis.Options{Network: "tcp", Addr: os.Getenv("FENCETEST_SERVER")})
	if err := client.Ping(context.Background()).Err(); err != nil {
		log.Fatal(err)
	}
	locker := redislock.New(client)
	retry := &redislock.Options{RetryStrategy: redislock.LinearBackoff(100 * time.Millisecond)}
	protocol.Run(func(ctx context.Context, want protocol.Request) (*protocol.Held, error) {
		lock, err := locker.Obtain(ctx, want.Name, want.TTL, retry)
		if err != nil {
			return nil, err
		}
		lost, stop := protocol.Renew(want.TTL, func(ctx context.Context) error {
			return verdict(lock.Refresh(ctx, want.TTL, nil))
		})
		return &protocol.Held{Lost: lost, Check: func(ctx context.Context) error {
			left, err := lock.TTL(ctx)
			if err == nil && left == 0 {
				return protocol.ErrLost
			}
			return err
		}, Release: func(ctx context.Context) error {
			stop()
			return verdict(lock.Release(ctx))
		}}, nil
	})
}

func verdict(err error) error {
	if errors.Is(err, redislock.ErrNotObtained) || errors.Is(err, redislock.ErrLockNotHeld) {
		return protocol.ErrLost
	}
	return err
}
