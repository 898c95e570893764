package cli

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/client"
	"github.com/fencepost/fencepost/cmd/fencepost/internal/child"
)

const runHelp = `Run a command while this process holds a lock, several at once, or any of several.

fencepost renews the lock while the command runs. It releases the lock when the
command ends, even if processes of the command still run in the background.

With --at-least fencepost then keeps the lock for the rest of that time. A
signal ends that, and the lock expires at the end of its lease.

If fencepost cannot renew the lock, it sends SIGTERM to the command's process
group, and SIGKILL a sixth of the TTL later, before the lease ends and another
holder can acquire the lock. If the lock is lost, it sends SIGKILL at once. The
signals do not reach a process of another user, as under sudo, or one that left
the group, such as a daemon or a command of timeout in a script.

The command gets FENCEPOST_FENCE, FENCEPOST_LOCK (the names, with commas),
FENCEPOST_ENTRY and FENCEPOST_HOLDER. Let the resource compare the fence, which grows with each
grant: no lease is a guarantee.

` + exitCodes

// exitCodes is also a section of the manual.
const exitCodes = `run exits with the code of its command, or 128 + n if signal n ended it. Other
codes:

  1         another error
  64        an argument is not valid
  75        the lock was not acquired: it is held or closed, or no server answered
  76        the lock was lost
  77        the token does not allow it
  79        a later request with --only-newest took its place in the queue
  124       --timeout passed
  126, 127  the command cannot run, or does not exist`

const runExample = `  fencepost run reports:nightly -- make report
  fencepost run --skip-if-held --timeout 1h backup:db -- /usr/local/bin/backup
  fencepost run --semaphore 3 --wait 10m builds -- make
  fencepost run db:orders db:stock -- ./migrate
  fencepost run --any gpu:0,gpu:1,gpu:2 -- ./train`

// running is what the flags of run ask for.
type running struct {
	claim
	skip, noKill     bool
	fenced           bool // late writes are refused: a lost command gets the grace as well
	timeout, atLeast time.Duration
	// changes has what to close after the next look at the lease; nil if it cannot change.
	changes chan chan struct{}
}

func (a *app) runCommand() *cobra.Command {
	r := &running{}
	command := &cobra.Command{
		Use:   "run [flags] NAME… -- COMMAND [ARG…]",
		Short: "Run a command while holding a lock",
		Long:  runHelp, Example: runExample,
		RunE: func(command *cobra.Command, args []string) error {
			dash := command.ArgsLenAtDash()
			if dash < 0 || dash == len(args) || (dash == 0) == (r.any == nil) {
				return usage("name a lock, then --, then the command: fencepost run NAME -- COMMAND")
			}
			if err := r.check(command.Flags()); err != nil {
				return err
			}
			if command.Flags().Changed("any-count") && (r.anyCount < 1 || r.anyCount > len(r.any)) {
				return usage("--any-count must be 1 to the number of names in --any")
			}
			if r.skip && command.Flags().Changed("wait") {
				return usage("--skip-if-held and --wait exclude each other")
			}
			return a.run(r, append(r.any, args[:dash]...), args[dash:])
		},
	}
	r.bind(command)
	flags := command.Flags()
	flags.StringSliceVar(&r.any, "any", nil, "instead of NAME: take the first of these `names` that is free")
	flags.IntVar(&r.anyCount, "any-count", 1, "how many of the names of --any to take")
	flags.BoolVar(&r.skip, "skip-if-held", false, "do nothing and exit with 0 if the lock is held")
	spanVar(flags, &r.atLeast, "at-least", 0,
		"keep the lock until so long after its grant, although the command has ended")
	r.bindEnd(flags)
	return command
}

// bindEnd binds the flags that say when the command ends.
func (r *running) bindEnd(flags *pflag.FlagSet) {
	spanVar(flags, &r.timeout, "timeout", 0, "end the command after this time, and exit with 124")
	flags.BoolVar(&r.noKill, "no-kill", false, "if the lock is lost, only warn")
}

// run acquires the locks, and runs the command.
func (a *app) run(r *running, names, command []string) error {
	path, code, err := child.Find(command[0])
	if err != nil {
		return &exit{code, err}
	}
	if r.skip {
		r.Wait = 0
	}
	r.Metadata = map[string]string{"command": filepath.Base(path)} // arguments may be secret
	err = a.holding(&r.claim, names, func(held *client.Held, signals <-chan os.Signal) error {
		env := append(os.Environ(),
			"FENCEPOST_FENCE="+strconv.FormatUint(held.Fence(), 10), "FENCEPOST_LOCK="+held.Name(),
			"FENCEPOST_ENTRY="+held.ID(), "FENCEPOST_HOLDER="+r.Holder,
		)
		return r.start(path, command, env, held, signals)
	})
	if r.skip && client.CodeOf(err) == api.Held {
		if isTerminal(os.Stderr) {
			say("skipped: %s", sentence(err))
		}
		return nil
	}
	return err
}

// lease is what a command runs under: a held lock, or one that the command takes meanwhile.
type lease interface {
	Name() string
	Check() error
	Left() time.Duration
	Context() context.Context
	Release(ctx context.Context) error
}

// start runs the command until its end, and releases the locks.
func (r *running) start(
	path string, command, env []string, held lease, signals <-chan os.Signal,
) error {
	if err := held.Check(); err != nil { // the process may have been stopped since the grant
		return &exit{codeLost, err}
	}
	c, err := child.Start(path, command, env, !r.noKill)
	if err != nil {
		release(held)
		return &exit{child.NotExecutable, err}
	}
	// If stderr has no reader, messages are lost, but the command continues.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	w := &watch{running: r, held: held, child: c, begun: time.Now()}
	code := w.untilEnd(signals)
	c.Close()
	alone := c.TakeTerminal()
	if w.rest(signals) {
		release(held)
	}
	switch {
	case code == 0:
		return nil
	case c.Key == nil || code != codeSignal+child.Number(c.Key):
		return &exit{code: code}
	case alone:
		child.PassOn(c.Key)
	}
	return &exit{code, &killed{c.Key}}
}

// releaseTimeout is how long run waits for a release. The lock expires by itself.
const releaseTimeout = 5 * time.Second

// release releases the lock, and warns if that fails.
func release(held lease) {
	if held.Check() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
	defer cancel()
	if err := held.Release(ctx); err != nil && client.CodeOf(err) != api.Lost {
		say("%s could not be released, and expires: %s", held.Name(), sentence(err))
	}
}
