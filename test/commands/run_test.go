package commands_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/fencepost/fencepost/test/poll"
)

// TestExitCodes: run ends with the code of the command, or says why there was none.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		code int
		args []string
	}{
		{0, []string{"run", "codes", "--", "true"}},
		{7, []string{"run", "codes", "--", "sh", "-c", "exit 7"}},
		{128 + 9, []string{"run", "codes", "--", "sh", "-c", "kill -9 $$"}},
		{128 + 15, []string{"run", "codes", "--", "sh", "-c", "kill $$"}},
		{64, []string{"run", "codes"}},
		{64, []string{"run", "--", "true"}},
		{64, []string{"run", "--ttl", "1s", "codes", "--", "true"}},
		{64, []string{"run", "--shared", "--semaphore", "2", "codes", "--", "true"}},
		{64, []string{"run", "--semaphore", "2", "--permits", "3", "codes", "--", "true"}},
		{64, []string{"run", "--any", "codes:a", "codes", "--", "true"}},
		{64, []string{"run", "--any", "codes:a", "--any-count", "2", "--", "true"}},
		{64, []string{"run", "no/name", "--", "true"}},
		{124, []string{"run", "--timeout", "50ms", "codes", "--", "sleep", "60"}},
		{124, []string{"run", "--timeout", "1", "--wait", "30", "codes", "--", "sleep", "60"}},
		{64, []string{"run", "--wait", "30 s", "codes", "--", "true"}},
		{126, []string{"run", "codes", "--", "/"}},
		{127, []string{"run", "codes", "--", "there-is-no-such-command"}},
		{77, []string{"run", "--token", "bad", "codes", "--", "true"}},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			newUser(t).command(c.args...).expect(c.code)
		})
	}
}

// TestEnvironment: the command learns its lock and its fence, and the fence grows.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	var last int
	for range 3 {
		text := u.command("run", "--holder", "me", "environment", "--",
			"sh", "-c", "echo $FENCEPOST_LOCK $FENCEPOST_ENTRY $FENCEPOST_HOLDER $FENCEPOST_FENCE").expect(0)
		words := strings.Fields(text)
		if len(words) != 4 || words[0] != "environment" || words[2] != "me" {
			t.Fatalf("the command gets %q", words)
		}
		fence, err := strconv.Atoi(words[3])
		if err != nil || fence <= last {
			t.Errorf("the fence %q follows %d", words[3], last)
		}
		last = fence
	}
}

// TestHeldLock: another command waits, does not wait, or is skipped.
func TestHeldLock(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.command("run", "held", "--", "sh", "-c", "touch begun; while [ ! -e over ]; do sleep 0.01; done; echo one >>order").start()
	poll.Until(t, "the first command", func() bool { return u.exists("begun") })

	if out := u.command("run", "--wait", "0", "held", "--", "echo", "ran").expect(75); out != "" {
		t.Errorf("a command without the lock printed %q", out)
	}
	if out := u.command("run", "--wait", "1s", "held", "--", "echo", "ran").expect(75); out != "" {
		t.Errorf("a command whose wait is over printed %q", out)
	}
	skipped := u.command("run", "--skip-if-held", "held", "--", "echo", "ran")
	if out := skipped.expect(0); out+skipped.stderr.String() != "" {
		t.Errorf("cron would mail %q", out+skipped.stderr.String())
	}
	waits := u.command("run", "held", "--", "sh", "-c", "echo two >>order").start()
	poll.Until(t, "a waiter", func() bool {
		return strings.Contains(u.command("status", "held").expect(0), "1 waiting")
	})
	u.touch("over")
	if code := waits.code(); code != 0 {
		t.Errorf("the waiter ends with %d", code)
	}
	if order := u.lines("order"); !slices.Equal(order, []string{"one", "two"}) {
		t.Errorf("they ran in the order %q", order)
	}
}

func (u *user) exists(name string) bool {
	_, err := os.Stat(u.path(name))
	return err == nil
}

func (u *user) touch(name string) {
	u.t.Helper()
	if err := os.WriteFile(u.path(name), nil, 0o600); err != nil {
		u.t.Fatal(err)
	}
}

// TestWaiterLeaves: a signal ends the wait, and nothing stays in the queue.
func TestWaiterLeaves(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.command("run", "left", "--", "sleep", "60").start()
	poll.Until(t, "the holder", func() bool {
		return strings.Contains(u.command("status", "left").expect(0), "is held")
	})
	waits := u.command("run", "left", "--", "true").start()
	poll.Until(t, "a waiter", func() bool {
		return strings.Contains(u.command("status", "left").expect(0), "1 waiting")
	})
	waits.signal(syscall.SIGINT)
	waits.code()
	if status, ok := waits.ProcessState.Sys().(syscall.WaitStatus); !ok ||
		status.Signal() != syscall.SIGINT {
		t.Errorf("it ends with %v: %s", waits.ProcessState, &waits.stderr)
	}
	poll.Until(t, "the end of its entry", func() bool { // the server sees the end of a connection
		return !strings.Contains(u.command("status", "left").expect(0), "waiting")
	})
}

// TestSignals: the command gets what its wrapper is sent, and decides.
func TestSignals(t *testing.T) {
	t.Parallel()
	for _, s := range []syscall.Signal{
		syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1,
		syscall.SIGUSR2,
	} {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			u := newUser(t)
			script := fmt.Sprintf("trap 'exit 42' %d; touch begun; while :; do sleep 0.01; done", s)
			p := u.command("run", "signals:"+strconv.Itoa(int(s)), "--", "sh", "-c", script).start()
			poll.Until(t, "the command", func() bool { return u.exists("begun") })
			p.signal(s)
			if code := p.code(); code != 42 {
				t.Errorf("it ends with %d: %s", code, &p.stderr)
			}
		})
	}
}

// TestTimeoutEndsTheGroup: a command that ignores SIGTERM, and what it started, do not outlive it.
func TestTimeoutEndsTheGroup(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.command("run", "--ttl", "12s", "--timeout", "1s", "group", "--", "sh", "-c", stubborn).
		expect(124)
	u.alone(u.command("run", "group", "--", "sh", "-c", next).start())
}

// TestNothingStaysOfTheGroup: what a command started does not outlive it, also if the command ends
// at SIGTERM and what it started does not.
func TestNothingStaysOfTheGroup(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	heir := `(trap '' TERM; while :; do echo beat >>log; sleep 0.02; done) >/dev/null 2>&1 &
exec sleep 600`
	u.command("run", "--ttl", "12s", "--timeout", "1s", "heir", "--", "sh", "-c", heir).expect(124)
	u.alone(u.command("run", "heir", "--", "sh", "-c", next).start())
}

// TestCrowd: of 300 commands at once on one lock each runs, and no two at a time.
func TestCrowd(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.touch("file")
	u.crowd(func(int) []string {
		return []string{
			"crowd", "--", "sh", "-c", "mkdir alone || exit 9; wc -l <file >>file; rmdir alone; exit 7",
		}
	}, 7)
	lines := u.lines("file")
	for i, line := range lines {
		if line != strconv.Itoa(i) {
			t.Fatalf("line %d counts %s before it", i, line)
		}
	}
	if len(lines) != crowd {
		t.Errorf("%d of %d ran", len(lines), crowd)
	}
}

// TestCrowdOfLocks: of 300 commands at once on 300 locks none waits for another.
func TestCrowdOfLocks(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.crowd(func(i int) []string {
		name := "crowd:" + strconv.Itoa(i)
		return []string{"--wait", "0", name, "--", "sh", "-c", "mkdir $FENCEPOST_LOCK"}
	}, 0)
	for i := range crowd {
		if name := "crowd:" + strconv.Itoa(i); !u.exists(name) {
			t.Errorf("%s did not run", name)
		}
	}
}

const crowd = 300

// crowd starts commands at once. Each has to end with the code.
func (u *user) crowd(args func(i int) []string, code int) {
	u.t.Helper()
	all := make([]*process, 0, crowd)
	for i := range crowd {
		all = append(all, u.command(append([]string{"run"}, args(i)...)...).start())
	}
	for _, p := range all {
		if got := p.code(); got != code {
			u.t.Fatalf("%q ends with %d: %s", p.Args, got, &p.stderr)
		}
	}
}

// TestSetOfNames: two names are taken at once, in whatever order they are given.
func TestSetOfNames(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	all := []*process{}
	for i := range 10 {
		names := []string{"set:a", "set:b"}
		if i%2 == 1 {
			slices.Reverse(names)
		}
		args := append(append([]string{"run"}, names...), "--", "sh", "-c",
			`[ "$FENCEPOST_LOCK" = set:a,set:b ] && mkdir alone && sleep 0.02 && rmdir alone`)
		all = append(all, u.command(args...).start())
	}
	for _, p := range all {
		if code := p.code(); code != 0 {
			t.Errorf("one ends with %d: %s", code, &p.stderr)
		}
	}
}

// TestAnyOfAPool: each command has a lock of its own out of the pool, and its name.
func TestAnyOfAPool(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	for _, want := range []string{"pool:b", "pool:a"} {
		u.command("run", "--any", "pool:b,pool:a", "--", "sh", "-c",
			"touch $FENCEPOST_LOCK; exec sleep 60").start()
		poll.Until(t, "the command with "+want, func() bool { return u.exists(want) })
	}
	u.command("run", "--wait", "0", "--any", "pool:b,pool:a", "--", "true").expect(75)
	u.command("run", "--any", "pool:c,pool:a,pool:d", "--any-count", "2", "--",
		"sh", "-c", `[ "$FENCEPOST_LOCK" = pool:c,pool:d ]`).expect(0)
}

// TestOnlyNewestHasACode: a waiter that gives way to a later one ends with a code of its own.
func TestOnlyNewestHasACode(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.command("run", "newest", "--", "sh", "-c", "touch begun; while [ ! -e over ]; do sleep 0.01; done").start()
	poll.Until(t, "the holder", func() bool { return u.exists("begun") })
	older := u.command("run", "--only-newest", "newest", "--", "touch", "older").start()
	poll.Until(t, "a waiter", func() bool {
		return strings.Contains(u.command("status", "newest").expect(0), "1 waiting")
	})
	newer := u.command("run", "--only-newest", "newest", "--", "true").start()
	if code := older.code(); code != 79 || u.exists("older") {
		t.Errorf("the older ends with %d: %s", code, &older.stderr)
	}
	u.touch("over")
	if code := newer.code(); code != 0 {
		t.Errorf("the newer ends with %d: %s", code, &newer.stderr)
	}
}
