package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/fencepost/fencepost/cmd/fencepost/internal/child"
)

// watch is what looks after a command while it runs.
type watch struct {
	*running
	held  lease
	child *child.Child
	begun time.Time

	guarded    time.Time // until when the guard lets the command live
	terminated time.Time // when the command was asked to end
	killed     bool
	gone       bool
	ends       bool  // this process was asked to end
	lost       error // why the lock is not held any more, or cannot be renewed
	timedOut   bool
}

const (
	// lookEvery bounds how long a machine that was suspended runs a command without its lock: timers
	// stand still meanwhile, and the clocks of the held lock do not.
	lookEvery = 250 * time.Millisecond
	// guardAfter lets this process end the command before the guard does. It is less than the margin
	// of each held lock, so both are before the lease can end.
	guardAfter = 100 * time.Millisecond
	// stopPause is the time for the shell to stop this process after the command was stopped.
	stopPause = 100 * time.Millisecond
)

// grace is the time between SIGTERM and SIGKILL.
func (w *watch) grace() time.Duration { return w.TTL / 6 }

// untilEnd returns the exit code when the command has ended.
func (w *watch) untilEnd(signals <-chan os.Signal) int {
	var resume <-chan time.Time
	for {
		select { // the lock comes before everything else
		case code := <-w.child.Done:
			return w.end(code)
		case <-time.After(w.look()):
		case <-w.ended():
		case looked := <-w.changes:
			w.look()
			close(looked)
		case <-w.child.Stopped:
			w.child.Suspend()
			resume = time.After(stopPause)
		case <-w.child.Blocked:
			w.child.Unblock()
		case <-resume:
			w.look()
			w.child.Resume()
			resume = nil
		case s := <-signals:
			w.look()
			w.ends = w.ends || child.Ends(s)
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

// look ends the command if it must not continue. It returns the time until the next look.
func (w *watch) look() time.Duration {
	err, left := w.held.Check(), w.held.Left()
	w.gone = err != nil
	w.extend(left)
	switch {
	case w.noKill && err != nil && w.lost == nil:
		w.lost = err
		say("%s; the command continues (--no-kill)", sentence(err))
	case w.noKill:
	case err != nil && w.fenced && w.terminated.IsZero() && left > 0:
		w.lost = err
		w.terminate()
		say("%s: the command got SIGTERM, SIGKILL follows", sentence(err))
	case err != nil && !w.killed && !w.spared(left):
		w.lost = err
		w.kill()
		say("%s: the command was killed", sentence(err))
	case left <= w.grace() && w.lost == nil:
		w.lost = errors.New("it cannot be renewed")
		w.terminate()
		say("%s cannot be renewed: the command got SIGTERM, SIGKILL follows in %s",
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

// spared reports whether a lost command may still end by itself. It never outlives the lease.
func (w *watch) spared(left time.Duration) bool {
	return w.fenced && left > 0 && time.Since(w.terminated) < w.grace()
}

// extend moves the deadline of the guard after a renewal, or after the command took a lock.
func (w *watch) extend(left time.Duration) {
	until := time.Now().Add(left)
	if !w.gone && until.Sub(w.guarded).Abs() > guardAfter/2 {
		w.guarded = until
		w.child.Extend(left+guardAfter, w.grace())
	}
}

// next returns the time until look must act.
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
	err := w.held.Check()
	if err == nil && w.child.Overdue() {
		err = fmt.Errorf("%s was not renewed in time: the command got SIGTERM", w.held.Name())
	}
	if w.lost == nil && err != nil {
		w.lost = err
		say("%s", sentence(err))
	}
	switch {
	case w.lost != nil:
		return codeLost
	case w.timedOut:
		say("the command ran for longer than %s", w.timeout)
		return codeTimeout
	}
	return code
}

// rest keeps the lock until --at-least has passed since the grant. It reports false if a signal
// came before: the lease is then the limit.
func (w *watch) rest(signals <-chan os.Signal) bool {
	left := w.atLeast - time.Since(w.begun)
	if left <= 0 {
		return true
	}
	w.ends = w.ends || w.child.Key != nil
	if isTerminal(os.Stderr) && !w.ends {
		say("%s is kept for %s (--at-least)", w.held.Name(), rounded(left))
	}
	for over := time.After(left); !w.ends; {
		select {
		case <-over:
			return true
		case <-w.held.Context().Done():
			return true
		case s := <-signals:
			w.ends = child.Ends(s)
		}
	}
	return false
}
