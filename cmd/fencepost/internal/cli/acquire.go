package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fencepost/fencepost/client"
	"github.com/fencepost/fencepost/cmd/fencepost/internal/child"
)

// claim is what the flags of run and acquire ask for.
type claim struct {
	client.Options
	shared, quiet bool
	any           []string // anyCount of these locks suffice
	anyCount      int
}

const (
	leastTTL = 2 * time.Second
	mostWait = 24 * time.Hour
)

func (c *claim) bind(command *cobra.Command) {
	flags := command.Flags()
	c.bindLease(flags)
	flags.BoolVar(&c.shared, "shared", false, "share the lock with others that share it")
	flags.IntVar(&c.Limit, "semaphore", 0, "let up to `N` hold the lock at once")
	flags.IntVar(&c.Permits, "permits", 0, "take `K` of the N of --semaphore; 1 by default")
	flags.BoolVar(&c.OnlyNewest, "only-newest", false,
		"stop waiting, with exit code 79, when a later request with this flag waits")
}

// bindLease binds the flags of a lock that cannot be shared.
func (c *claim) bindLease(flags *pflag.FlagSet) {
	flags.SortFlags = false
	spanVar(flags, &c.Wait, "wait", time.Minute,
		"how long to queue; if 0, fail at once unless the lock is free")
	spanVar(flags, &c.TTL, "ttl", 30*time.Second,
		"lease: how long a dead holder blocks the lock")
	flags.StringVar(&c.Holder, "holder", "",
		"`name` for people and for the detection of deadlocks ($FENCEPOST_HOLDER, host-pid)")
	flags.BoolVar(&c.quiet, "quiet", false, "do not say why the wait goes on")
}

// check returns what is wrong with the flags, and completes the options.
func (c *claim) check(flags *pflag.FlagSet) error {
	semaphore := flags.Changed("semaphore")
	switch {
	case c.shared && semaphore:
		return usage("--shared and --semaphore exclude each other")
	case c.TTL < leastTTL:
		return usage("--ttl must be 2s or more")
	case c.Wait < 0 || c.Wait > mostWait:
		return usage("--wait must be 0 to 24h")
	case semaphore && c.Limit < 1:
		return usage("--semaphore must be 1 or more")
	case flags.Changed("permits") && (c.Permits < 1 || c.Permits > c.Limit):
		return usage("--permits must be 1 to N of --semaphore")
	case semaphore:
		c.Mode = client.Semaphore
	case c.shared:
		c.Mode = client.Shared
	}
	host, _ := os.Hostname()
	c.Holder = cmp.Or(c.Holder, os.Getenv("FENCEPOST_HOLDER"),
		fmt.Sprintf("%s-%d", host, os.Getpid()))
	return nil
}

// acquire takes the lock, or all locks at once, or any of them.
func (c *claim) acquire(
	ctx context.Context, to *client.Client, names []string,
) (*client.Held, error) {
	lock, lockSet, lockAny := to.Lock, to.LockSet, to.LockAny
	if c.Wait == 0 {
		lock, lockSet, lockAny = to.TryLock, to.TryLockSet, to.TryLockAny
	}
	if len(names) == 1 && c.any == nil {
		return lock(ctx, names[0], c.Options)
	}
	claims := []client.Claim{}
	for _, name := range names {
		claims = append(claims, client.Claim{
			Name: name, Mode: c.Mode, Limit: c.Limit, Permits: c.Permits,
		})
	}
	if c.any != nil {
		return lockAny(ctx, claims, c.anyCount, c.Options)
	}
	return lockSet(ctx, claims, c.Options)
}

// holding acquires the locks and calls work with them, and with the signals of this process.
func (a *app) holding(
	c *claim, names []string, work func(*client.Held, <-chan os.Signal) error,
) error {
	to, err := a.settings.Client(0)
	if err != nil {
		return err
	}
	defer func() { _ = to.Close() }() // which releases nothing
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, child.Signals()...)
	held, err := c.obtain(ctx, cancel, to, names, signals)
	if err != nil {
		return fmt.Errorf("%s: %w", strings.Join(names, ", "), err)
	}
	return work(held, signals)
}

// seek acquires, and shows the queue meanwhile. The context is that of the held lock as well.
func (c *claim) seek(
	ctx context.Context, to *client.Client, names []string,
) (*client.Held, error) {
	waiting, granted := context.WithCancel(ctx)
	shown := make(chan struct{})
	go func() {
		defer close(shown)
		switch {
		case c.quiet:
		case isTerminal(os.Stderr):
			showQueue(waiting, to, names, c.Holder)
		default:
			logQueue(waiting, to, names, c.Holder, say)
		}
	}()
	defer func() { <-shown }()
	defer granted()
	return c.acquire(ctx, to, names)
}

// obtain acquires, and leaves the queue at a signal.
func (c *claim) obtain(
	ctx context.Context, cancel context.CancelFunc, to *client.Client, names []string,
	signals <-chan os.Signal,
) (*client.Held, error) {
	var held *client.Held
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		held, err = c.seek(ctx, to, names)
	}()
	for {
		select {
		case <-done:
			return held, err
		case s := <-signals:
			if !child.Ends(s) {
				continue
			}
			cancel()
			<-done
			if held != nil {
				release(held) // it was granted when the signal came
			}
			_ = to.Close() // leaves the queue
			return nil, &exit{codeSignal + child.Number(s), &killed{s}}
		}
	}
}
