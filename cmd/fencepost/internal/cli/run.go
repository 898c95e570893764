package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/client"
	"github.com/fencepost/fencepost/cmd/fencepost/internal/child"
)

const runHelp = `Run a command while this process holds a lock, or several at once.

The lock is renewed while the command runs, and released when it ends. If it
cannot be renewed, the command's process group gets SIGTERM, and a sixth of the
TTL later SIGKILL, before the lease can end and another holder can have the
lock. If the lock is lost, the group gets SIGKILL at once.

The command gets FENCEPOST_FENCE, FENCEPOST_LOCK, FENCEPOST_ENTRY and
FENCEPOST_HOLDER. Let what it writes to compare the fence, which grows from each
grant to the next: no lease is a guarantee.

Exit codes: that of the command, or 128 and its signal;
  64  the arguments are not valid      75  the lock was not had
  76  the lock was lost                77  the token may not do this
  124 --timeout passed                 126, 127  the command cannot be run`

const runExample = `  fencepost run reports:nightly -- make report
  fencepost run --skip-if-held --timeout 1h backup:db -- /usr/local/bin/backup
  fencepost run --semaphore 3 --wait 10m builds -- make
  fencepost run db:orders db:stock -- ./migrate`

// running is what the flags of run ask for.
type running struct {
	claim
	skip, noKill bool
	timeout      time.Duration
}

func (a *app) runCommand() *cobra.Command {
	r := &running{}
	command := &cobra.Command{
		Use:   "run [flags] NAME… -- COMMAND [ARG…]",
		Short: "Run a command while holding a lock",
		Long:  runHelp, Example: runExample,
		RunE: func(command *cobra.Command, args []string) error {
			dash := command.ArgsLenAtDash()
			if dash < 1 || dash == len(args) {
				return usage("name a lock, then --, then the command: fencepost run NAME -- COMMAND")
			}
			if err := r.check(command.Flags()); err != nil {
				return err
			}
			return a.run(r, args[:dash], args[dash:])
		},
	}
	r.bind(command)
	flags := command.Flags()
	flags.BoolVar(&r.skip, "skip-if-held", false, "do nothing and exit with 0 if the lock is held")
	flags.DurationVar(&r.timeout, "timeout", 0, "end the command after this time, and exit with 124")
	flags.BoolVar(&r.noKill, "no-kill", false, "if the lock is lost, only warn")
	command.MarkFlagsMutuallyExclusive("skip-if-held", "wait")
	return command
}

// run acquires the locks, and runs the command.
func (a *app) run(r *running, names, command []string) error {
	path, code, err := child.Find(command[0])
	if err != nil {
		return &exit{code, err}
	}
	to, err := a.settings.Client(0)
	if err != nil {
		return err
	}
	defer func() { _ = to.Close() }() // returns nil
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if r.skip {
		r.wait = 0
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, child.Signals()...)
	held, err := a.obtain(ctx, cancel, to, &r.claim, names, signals)
	switch {
	case err != nil && r.skip && client.CodeOf(err) == api.Held:
		if isTerminal(os.Stderr) {
			a.say("skipped: %s", sentence(err))
		}
		return nil
	case err != nil:
		return err
	}
	env := append(os.Environ(),
		"FENCEPOST_FENCE="+strconv.FormatUint(held.Fence(), 10), "FENCEPOST_LOCK="+held.Name(),
		"FENCEPOST_ENTRY="+held.ID(), "FENCEPOST_HOLDER="+r.holder,
	)
	c, err := child.Start(path, command, env)
	if err != nil {
		_ = held.Release()
		return &exit{codeCannotRun, err}
	}
	w := a.watch(r, held, c)
	code = w.untilEnd(signals)
	c.TakeTerminal()
	a.release(held)
	if code == 0 {
		return nil
	}
	return &exit{code: code}
}

const codeCannotRun = 126

// releaseTimeout is how long run waits for a release. The lock expires by itself.
const releaseTimeout = 5 * time.Second

// release releases the lock, and warns if that fails.
func (a *app) release(held *client.Held) {
	if held.Check() != nil {
		return
	}
	released := make(chan error, 1)
	go func() { released <- held.Release() }()
	select {
	case err := <-released:
		if err != nil && client.CodeOf(err) != api.Lost {
			a.say("%s could not be released, and expires: %s", held.Name(), sentence(err))
		}
	case <-time.After(releaseTimeout):
		a.say("%s could not be released, and expires", held.Name())
	}
}

// watch is what looks after a command while it runs.
type watch struct {
	*running
	app   *app
	held  *client.Held
	child *child.Child
	begun time.Time

	terminated time.Time // when the command was asked to end
	killed     bool
	gone       bool
	lost       error // why the lock is not held any more, or cannot be renewed
	timedOut   bool
}

func (a *app) watch(r *running, held *client.Held, c *child.Child) *watch {
	return &watch{running: r, app: a, held: held, child: c, begun: time.Now()}
}

const (
	// lookEvery bounds how long a machine that was suspended runs a command without its lock: timers
	// stand still meanwhile, and the clocks of the held lock do not.
	lookEvery = 250 * time.Millisecond
	// stopPause is how long the shell has to stop this process after the command was stopped.
	stopPause = 100 * time.Millisecond
)

// grace is the time between SIGTERM and SIGKILL.
func (w *watch) grace() time.Duration { return w.ttl / 6 }

// untilEnd returns the exit code when the command has ended.
func (w *watch) untilEnd(signals <-chan os.Signal) int {
	var resume <-chan time.Time
	for {
		select { // the lock comes before everything else
		case code := <-w.child.Done:
			return w.end(code)
		case <-time.After(w.look()):
		case <-w.ended():
		case <-w.child.Stopped:
			w.child.Suspend()
			resume = time.After(stopPause)
		case <-resume:
			w.look()
			w.child.Resume()
			resume = nil
		case s := <-signals:
			w.look()
			if child.IsContinue(s) {
				w.child.Resume()
			} else {
				w.child.Signal(s)
			}
		}
	}
}

// ended ends when the lock is lost, and look does not know it yet.
func (w *watch) ended() <-chan struct{} {
	if w.gone {
		return nil
	}
	return w.held.Context().Done()
}

// look ends the command if it has to. It returns when to look again.
func (w *watch) look() time.Duration {
	err, left := w.held.Check(), w.held.Left()
	w.gone = err != nil
	switch {
	case w.noKill && err != nil && w.lost == nil:
		w.lost = err
		w.app.say("%s; the command goes on (--no-kill)", sentence(err))
	case w.noKill:
	case err != nil && !w.killed:
		w.lost = err
		w.kill()
		w.app.say("%s: the command was killed", sentence(err))
	case left <= w.grace() && w.lost == nil:
		w.lost = errors.New("it cannot be renewed")
		w.terminate()
		w.app.say("%s cannot be renewed: the command got SIGTERM, SIGKILL follows in %s",
			w.held.Name(), rounded(left))
	}
	if w.timeout > 0 && !w.timedOut && time.Since(w.begun) >= w.timeout {
		w.timedOut = true
		w.terminate()
	}
	if w.timedOut && !w.killed && time.Since(w.terminated) >= w.grace() {
		w.kill()
	}
	return w.next(left)
}

// next is the time until the next instant at which look has to do something.
func (w *watch) next(left time.Duration) time.Duration {
	all := []time.Duration{lookEvery}
	if !w.noKill && w.lost == nil {
		all = append(all, left-w.grace())
	} else if !w.noKill && !w.killed {
		all = append(all, left)
	}
	if w.timeout > 0 && !w.timedOut {
		all = append(all, w.timeout-time.Since(w.begun))
	} else if w.timedOut && !w.killed {
		all = append(all, w.grace()-time.Since(w.terminated))
	}
	return max(slices.Min(all), time.Millisecond)
}

func (w *watch) terminate() {
	w.terminated = time.Now()
	w.child.Terminate()
}

func (w *watch) kill() {
	w.killed = true
	w.child.Kill()
}

// end returns the exit code. If the command was asked to end, nothing of its group stays.
func (w *watch) end(code int) int {
	if !w.terminated.IsZero() {
		w.child.Kill()
	}
	if err := w.held.Check(); w.lost == nil && err != nil {
		w.lost = err
		w.app.say("%s", sentence(err))
	}
	switch {
	case w.lost != nil:
		return codeLost
	case w.timedOut:
		w.app.say("the command ran for longer than %s", w.timeout)
		return codeTimeout
	}
	return code
}
