// Command seed fills a running server with lively traffic, so that its pages have
// something to show: a lock that many want, a pool of three places, readers and a writer,
// a worker that dies with its lock, workers that take two locks in opposite orders, and
// locks that are quietly held. It goes on until it is interrupted, or for -for, and then
// gives back what it holds.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "seed:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	f := flag.NewFlagSet("seed", flag.ContinueOnError)
	url := f.String("url", "http://127.0.0.1:8080", "server")
	tokenFile := f.String(
		"token-file", "data/dev-token", "`file` with a bearer token that has locks:write",
	)
	lasts := f.Duration("for", 0, "how long to go on; 0 is until interrupted")
	crowd := f.Int("crowd", 12, "how many want the lock that many want")
	quiet := f.Int("quiet", 60, "how many locks are quietly held")
	if err := f.Parse(args); err != nil {
		return err
	}
	raw, err := os.ReadFile(*tokenFile)
	if err != nil {
		return fmt.Errorf("a token is needed, as `make run` leaves one: %w", err)
	}
	if *lasts > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, *lasts)
		defer cancel()
	}
	everybody := workers(*crowd, *quiet, rand.N(uint16(1<<16-1)))
	c := newClient(strings.TrimRight(*url, "/"), strings.TrimSpace(string(raw)), len(everybody))
	if err := c.ready(ctx); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "Filling %s; Ctrl-C ends it.\n", *url)
	var all sync.WaitGroup
	for _, w := range everybody {
		all.Go(func() { w.work(ctx, c) })
	}
	report(ctx, c, stdout)
	all.Wait()
	fmt.Fprintln(stdout, c.counts())
	return nil
}

// report says every few seconds how it goes.
func report(ctx context.Context, c *client, stdout io.Writer) {
	tick := time.NewTicker(10 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			fmt.Fprintln(stdout, c.counts())
		}
	}
}
