package cli

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fencepost/fencepost/client"
	"github.com/fencepost/fencepost/cmd/fencepost/internal/child"
)

// claim is what the flags of run and acquire ask for.
type claim struct {
	wait, ttl time.Duration
	shared    bool
	semaphore int
	holder    string
	metadata  map[string]string
}

const (
	leastTTL = 2 * time.Second
	mostWait = 24 * time.Hour
)

func (c *claim) bind(command *cobra.Command) {
	flags := command.Flags()
	flags.SortFlags = false
	flags.DurationVar(&c.wait, "wait", time.Minute,
		"how long to queue at most; 0 fails at once if the lock is not free")
	flags.DurationVar(&c.ttl, "ttl", 30*time.Second,
		"lease: how long a holder that died blocks the lock")
	flags.BoolVar(&c.shared, "shared", false, "share the lock with others that share it")
	flags.IntVar(&c.semaphore, "semaphore", 0, "let up to `N` hold the lock at once")
	flags.StringVar(&c.holder, "holder", "",
		"`name` for people and for the detection of deadlocks ($FENCEPOST_HOLDER, host-pid)")
}

// check returns what is wrong with the flags.
func (c *claim) check(flags *pflag.FlagSet) error {
	switch {
	case c.shared && flags.Changed("semaphore"):
		return usage("--shared and --semaphore exclude each other")
	case c.ttl < leastTTL:
		return usage("--ttl is 2s at least")
	case c.wait < 0 || c.wait > mostWait:
		return usage("--wait is from 0 to 24h")
	case c.semaphore < 0 || c.semaphore == 0 && flags.Changed("semaphore"):
		return usage("--semaphore is 1 at least")
	}
	if c.holder == "" {
		c.holder = os.Getenv("FENCEPOST_HOLDER")
	}
	if c.holder == "" {
		host, _ := os.Hostname()
		c.holder = fmt.Sprintf("%s-%d", host, os.Getpid())
	}
	return nil
}

func (c *claim) options() client.Options {
	mode := client.Exclusive
	switch {
	case c.shared:
		mode = client.Shared
	case c.semaphore > 0:
		mode = client.Semaphore
	}
	return client.Options{
		TTL: c.ttl, Wait: c.wait, Mode: mode, Limit: c.semaphore, Holder: c.holder,
		Metadata: c.metadata,
	}
}

// acquire takes the lock, or all locks at once.
func (c *claim) acquire(
	ctx context.Context, to *client.Client, names []string,
) (*client.Held, error) {
	options := c.options()
	if len(names) == 1 && c.wait == 0 {
		return to.TryLock(ctx, names[0], options)
	} else if len(names) == 1 {
		return to.Lock(ctx, names[0], options)
	}
	claims := make([]client.Claim, 0, len(names))
	for _, name := range names {
		claims = append(claims, client.Claim{Name: name, Mode: options.Mode, Limit: options.Limit})
	}
	if c.wait == 0 {
		return to.TryLockSet(ctx, claims, options)
	}
	return to.LockSet(ctx, claims, options)
}

// obtain acquires, shows a person the queue meanwhile, and leaves it at a signal. The context is
// that of the held lock as well.
func (c *claim) obtain(
	ctx context.Context, cancel context.CancelFunc, to *client.Client, names []string,
	signals <-chan os.Signal,
) (*client.Held, error) {
	var held *client.Held
	var err error
	done, shown := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		held, err = c.acquire(ctx, to, names)
	}()
	go func() {
		defer close(shown)
		showQueue(done, to, names, c.holder)
	}()
	for {
		select {
		case <-done:
			<-shown
			return held, err
		case s := <-signals:
			if !child.Ends(s) {
				continue
			}
			cancel()
			<-done
			<-shown
			if held != nil {
				release(held) // it was granted when the signal came
			}
			_ = to.Close() // leaves the queue
			return nil, &exit{code: codeSignal + child.Number(s)}
		}
	}
}
