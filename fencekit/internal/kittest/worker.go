package kittest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/fencepost/fencepost/client"
)

// What the worker prints, each followed by a space and a value.
const (
	saysFence   = "A-HAS-FENCE"   // before it stops
	saysOutcome = "A-WRITE-ENDED" // written, stale or broken
)

// work is holder A. It does all that a client can do against a late write: it checks its lease
// right before. Then its process is stopped.
func work(ctx context.Context, way Way) {
	c, err := connect(os.Getenv("FENCEPOST_URL"), os.Getenv("FENCEPOST_TOKEN"))
	check(err)
	held, err := c.TryLock(ctx, way.lock(), client.Options{TTL: ttl, Holder: "A"})
	check(err)
	account, err := way.Open(ctx, os.Getenv("FENCEKIT_ADDRESS"))
	check(err)
	balance, err := account.Read(ctx, held.Fence())
	check(err)
	check(held.Check())
	fmt.Println(saysFence, held.Fence())
	check(pause())
	outcome := "written"
	if err := account.Write(ctx, held.Fence(), balance-takesOfA); err != nil {
		fmt.Println(err)
		outcome = "broken"
		if stale := new(Stale); errors.As(err, &stale) {
			outcome = "stale"
			check(c.StaleWrite(ctx, way.lock(), held.Fence(), stale.Known, "account 7"))
		}
	}
	fmt.Println(saysOutcome, outcome)
}

// pause stops this process until the test sends SIGCONT.
func pause() error {
	woken := make(chan os.Signal, 1)
	signal.Notify(woken, syscall.SIGCONT)
	if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err != nil {
		return err
	}
	<-woken
	return nil
}

func check(err error) {
	if err != nil {
		fmt.Println("A failed:", err)
		os.Exit(1)
	}
}
