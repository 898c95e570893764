// Command fencepost-etcd takes locks of Fencepost with its Go client.
package main

import (
	"context"
	"errors"
	"log"
	"os"
	"path/filepath"
	"strconv"

	"github.com/fencepost/fencepost/client"
	"github.com/fencepost/fencepost/fencetest/systems/protocol"
)

func main() {
	cache, err := os.UserCacheDir()
	if err != nil {
		log.Fatal(err)
	}
	// The script that installs the server makes the token.
	token, err := os.ReadFile(filepath.Join(cache, "fencetest", "fencepost", "token"))
	if err != nil {
		log.Fatal(err)
	}
	c, err := client.New(client.Config{
		URLs:  []string{"http://" + os.Getenv("FENCETEST_SERVER")},
		Token: client.Bearer(string(token)),
	})
	if err != nil {
		log.Fatal(err)
	}
	protocol.Run(func(_ context.Context, want protocol.Request) (*protocol.Held, error) {
		options := client.Options{TTL: want.TTL, Wait: want.Wait}
		held, err := c.Lock(context.Background(), want.Name, options)
		if client.CodeOf(err) == "wait_timeout" {
			return nil, protocol.ErrNotHeld
		} else if err != nil {
			return nil, err
		}
		return &protocol.Held{
			Fence: strconv.FormatUint(held.Fence(), 10), Lost: held.Context().Done(),
			Check:   func(context.Context) error { return verdict(held.Check()) },
			Release: func(ctx context.Context) error { return verdict(held.Release(ctx)) },
		}, nil
	})
}

func verdict(err error) error {
	if lost := new(client.LostError); errors.As(err, &lost) {
		return protocol.ErrLost
	}
	return err
}
