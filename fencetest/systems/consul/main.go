// Command consul takes locks of Consul's Go client.
package main

import (
	"context"
	"log"
	"os"
	"strconv"
	"time"

	"github.com/fencepost/fencepost/fencetest/systems/protocol"
	"github.com/hashicorp/consul/api"
)

func main() {
	client, err := api.NewClient(&api.Config{Address: os.Getenv("FENCETEST_SERVER")})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := client.Status().Leader(); err != nil {
		log.Fatal(err)
	}
	protocol.Run(func(ctx context.Context, want protocol.Request) (*protocol.Held, error) {
		lock, err := client.LockOpts(&api.LockOptions{
			Key: want.Name, SessionTTL: want.TTL.String(), LockWaitTime: time.Second,
		})
		if err != nil {
			return nil, err
		}
		lost, err := lock.Lock(ctx.Done())
		if err == nil && lost == nil {
			return nil, protocol.ErrNotHeld
		} else if err != nil {
			return nil, err
		}
		pair, _, err := client.KV().Get(want.Name, &api.QueryOptions{RequireConsistent: true})
		if err != nil {
			return nil, err
		}
		go func() {
			<-lost
			_ = lock.Unlock() // the session is renewed until then; an error if it was released
		}()
		check := protocol.HeldUntil(lost)
		return &protocol.Held{
			Fence: strconv.FormatUint(pair.LockIndex, 10), Lost: lost, Check: check,
			Release: func(ctx context.Context) error {
				if err := check(ctx); err != nil {
					return err
				}
				return lock.Unlock()
			},
		}, nil
	})
}
