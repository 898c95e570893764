package commands_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fencepost/fencepost/test/poll"
	"github.com/fencepost/fencepost/test/rig"
)

const (
	lease = 6 * time.Second

	// stubborn ignores SIGTERM, as does the process that it starts. Both write to the file log.
	stubborn = `trap '' TERM
(while :; do echo beat >>log; sleep 0.02; done) &
while :; do echo beat >>log; sleep 0.02; done`

	// next writes that it has the lock, and keeps the lock for a time in which others could write.
	next = "echo granted >>log; sleep 0.5"
)

// holds starts a stubborn command under a lock with a short lease, and a command that waits for
// the lock as another user of the same folder.
func (u *user) holds(lock string, other *user) (holder, waiter *process) {
	u.t.Helper()
	holder = u.command("run", "--ttl", lease.String(), lock, "--", "sh", "-c", stubborn)
	holder.Stdout, holder.Stderr = nil, nil // which the command could keep open
	holder.start()
	poll.Until(u.t, "the command", func() bool { return len(u.lines("log")) > 5 })
	waiter = other.command("run", "--wait", "5m", lock, "--", "sh", "-c", next).start()
	poll.Until(u.t, "a waiter", func() bool {
		return strings.Contains(u.command("status", lock).expect(0), "1 waiting")
	})
	return holder, waiter
}

// alone waits until the waiter is done. It fails the test if the holder's command, or a process
// that it started, wrote to the log after the waiter had the lock.
func (u *user) alone(waiter *process) {
	u.t.Helper()
	if code := waiter.code(); code != 0 {
		u.t.Fatalf("the waiter ends with %d: %s", code, &waiter.stderr)
	}
	log := u.lines("log")
	granted := slices.Index(log, "granted")
	if late := len(log) - 1 - granted; granted < 0 || late > 0 {
		u.t.Errorf("%d beats after the lock was granted to another", late)
	}
}

// TestReplicaFails: when the replica of the holder is stopped or dies, and another replica grants
// the lock at the end of the lease, the command is dead.
func TestReplicaFails(t *testing.T) {
	t.Parallel()
	binary, err := rig.BuildEtcd(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	store, err := rig.StartEtcd(t.Context(), rig.EtcdConfig{Binary: binary, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	for name, fail := range map[string]func(*rig.Replica) error{
		"stop": (*rig.Replica).Stop, "kill": (*rig.Replica).Kill,
	} {
		t.Run(name, func(t *testing.T) {
			first, token := serverOn(t, store.Store())
			second, _ := serverOn(t, store.Store())
			u, other := userOf(t, first.URL(), token), userOf(t, second.URL(), token)
			other.dir = u.dir
			holder, waiter := u.holds(name, other)
			if err := fail(first); err != nil {
				t.Fatal(err)
			}
			u.alone(waiter)
			if code := holder.code(); code != 76 {
				t.Errorf("it ends with %d", code)
			}
		})
	}
}

// TestGrace: a command that heeds SIGTERM has time to end before SIGKILL.
func TestGrace(t *testing.T) {
	t.Parallel()
	r, token := server(t)
	u := userOf(t, r.URL(), token)
	p := u.heeds("grace")
	if err := r.Stop(); err != nil {
		t.Fatal(err)
	}
	if code := p.code(); code != 76 || !u.exists("tidy") {
		t.Errorf("it ends with %d, tidy: %v: %s", code, u.exists("tidy"), &p.stderr)
	}
}

// heeds starts a command that cleans up at SIGTERM, and writes each one to a file.
func (u *user) heeds(lock string) *process {
	u.t.Helper()
	p := u.command("run", "--ttl", "12s", lock, "--", "sh", "-c",
		"trap 'echo term >>terms; sleep 0.2; touch tidy; exit 0' TERM; touch begun\n"+
			"while :; do sleep 0.01; done").start()
	poll.Until(u.t, "the command", func() bool { return u.exists("begun") })
	return p
}

// TestGuardTerminates: the guard sends SIGTERM before SIGKILL if the process that renews is
// stopped, and fencepost does not repeat it.
func TestGuardTerminates(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	p := u.heeds("guard")
	p.signal(syscall.SIGSTOP)
	poll.Until(t, "the end of the command", func() bool { return u.exists("tidy") })
	p.signal(syscall.SIGCONT)
	if code := p.code(); code != 76 {
		t.Errorf("it ends with %d: %s", code, &p.stderr)
	}
	if terms := u.lines("terms"); len(terms) != 1 {
		t.Errorf("the command got SIGTERM %d times", len(terms))
	}
}

// TestNoKill: with --no-kill the command goes on, and the exit code says that the lock was lost.
func TestNoKill(t *testing.T) {
	t.Parallel()
	r, token := server(t)
	u := userOf(t, r.URL(), token)
	p := u.command("run", "--ttl", "2s", "--no-kill", "warns", "--", "sh", "-c",
		"touch begun; sleep 4; touch finished").start()
	poll.Until(t, "the command", func() bool { return u.exists("begun") })
	if err := r.Stop(); err != nil {
		t.Fatal(err)
	}
	if code := p.code(); code != 76 || !u.exists("finished") {
		t.Errorf("it ends with %d, finished: %v", code, u.exists("finished"))
	}
	if !strings.Contains(p.stderr.String(), "is lost") {
		t.Errorf("it warns %q", &p.stderr)
	}
}

// TestWrapperStops: the guard kills the command before its lease can end if the process that
// renews is stopped.
func TestWrapperStops(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	holder, waiter := u.holds("wrapper", u)
	holder.signal(syscall.SIGSTOP)
	u.alone(waiter)
	holder.signal(syscall.SIGCONT)
	if code := holder.code(); code != 76 {
		t.Errorf("it ends with %d", code)
	}
}

// TestMachineStops: when all processes of the holder are stopped for longer than the lease, its
// command is killed as they wake. How soon depends on the scheduler: a second's work is too much.
func TestMachineStops(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	holder, waiter := u.holds("machine", u)
	family := familyOf(t, holder.Process.Pid)
	if len(family) < 4 { // with the guard, the command, and what that started
		t.Fatalf("the processes %v", family)
	}
	each(family, syscall.SIGSTOP)
	u.alone(waiter)
	before := len(u.lines("log"))
	each(family, syscall.SIGCONT)
	if code := holder.code(); code != 76 {
		t.Errorf("it ends with %d", code)
	}
	beats := len(u.lines("log")) - before
	t.Logf("%d beats after it woke", beats)
	if beats > 100 {
		t.Errorf("%d beats after it woke", beats)
	}
}

// TestWrapperDies: a command, and all of its group, die with the process that renews.
func TestWrapperDies(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	holder, waiter := u.holds("dies", u)
	holder.signal(syscall.SIGKILL)
	u.alone(waiter)
}

// TestAllProgramsDie: a command dies with the process that renews and its guard, as after
// pkill -KILL fencepost.
func TestAllProgramsDie(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	holder := u.command("run", "--ttl", lease.String(), "die", "--", "sh", "-c",
		"while :; do echo beat >>log; sleep 0.02; done")
	holder.Stdout, holder.Stderr = nil, nil // which the command could keep open
	holder.start()
	poll.Until(t, "the command", func() bool { return len(u.lines("log")) > 5 })
	programsOf := slices.DeleteFunc(familyOf(t, holder.Process.Pid), func(pid int) bool {
		program, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)) // a child of the script may be gone
		return program != programs.fencepost
	})
	if len(programsOf) != 2 {
		t.Fatalf("the processes %v", programsOf)
	}
	slices.Reverse(programsOf) // the guard first, or else it kills the command
	each(programsOf, syscall.SIGKILL)
	u.alone(u.command("run", "--wait", "5m", "die", "--", "sh", "-c", next).start())
}

// TestRevoked: a command is killed when an operator revokes its lock.
func TestRevoked(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	holder, waiter := u.holds("revoked", u)
	u.command("revoke", "--yes", "--reason", "the tests need it", "revoked").expect(0)
	if code := holder.code(); code != 76 {
		t.Errorf("it ends with %d", code)
	}
	if code := waiter.code(); code != 0 {
		t.Errorf("the waiter ends with %d: %s", code, &waiter.stderr)
	}
}

// TestReleasesAtTheEnd: the lock is free as soon as the command has ended, long before its TTL,
// also when a signal ended it.
func TestReleasesAtTheEnd(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.command("run", "--ttl", "10m", "ends", "--", "true").expect(0)
	p := u.command("run", "--wait", "0", "--ttl", "10m", "ends", "--", "sh", "-c",
		"touch begun; exec sleep 60").start()
	poll.Until(t, "the command", func() bool { return u.exists("begun") })
	p.signal(syscall.SIGTERM)
	if code := p.code(); code != 128+15 {
		t.Errorf("it ends with %d: %s", code, &p.stderr)
	}
	u.command("run", "--wait", "0", "ends", "--", "true").expect(0)
}

// TestAtLeast: the lock is kept, beyond its first lease, until the time has passed since the grant.
// The code is that of the command.
func TestAtLeast(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	begun := time.Now()
	p := u.command("run", "--ttl", lease.String(), "--at-least", "8s", "least", "--", "false").start()
	waits := u.command("run", "least", "--", "true")
	poll.Until(t, "the lock", func() bool {
		return strings.Contains(u.command("status", "least").expect(0), "is held")
	})
	waits.expect(0)
	if kept := time.Since(begun); kept < 8*time.Second {
		t.Errorf("another holder has the lock after %s", kept)
	}
	if code := p.code(); code != 1 {
		t.Errorf("it ends with %d: %s", code, &p.stderr)
	}
}

// TestSignalEndsAtLeast: a signal ends the wait after the command and the one after it was sent to
// the command, and the lock stays for its lease.
func TestSignalEndsAtLeast(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"after": "touch begun", "during": "touch begun; exec sleep 60",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u, lock := newUser(t), "least:"+name
			p := u.command(
				"run", "--ttl", "10m", "--at-least", "10m", lock, "--", "sh", "-c", script,
			).start()
			poll.Until(t, "the command", func() bool { return u.exists("begun") })
			p.signal(syscall.SIGTERM)
			if code := p.code(); code != 0 && code != 128+15 {
				t.Errorf("it ends with %d: %s", code, &p.stderr)
			}
			if out := u.command("status", lock).expect(0); !strings.Contains(out, "is held") {
				t.Errorf("the lock is released: %s", out)
			}
		})
	}
}

// familyOf lists a process and all below it. The order is that in which they are stopped.
func familyOf(t *testing.T, pid int) []int {
	t.Helper()
	out, err := exec.Command("ps", "-e", "-o", "pid=,ppid=").Output()
	if err != nil {
		t.Fatal(err)
	}
	family := []int{pid}
	for i := 0; i < len(family); i++ {
		for line := range strings.Lines(string(out)) {
			ids := strings.Fields(line)
			if child, err := strconv.Atoi(ids[0]); err == nil && ids[1] == strconv.Itoa(family[i]) {
				family = append(family, child)
			}
		}
	}
	return family
}

func each(pids []int, s syscall.Signal) {
	for _, pid := range pids {
		if p, err := os.FindProcess(pid); err == nil {
			_ = p.Signal(s) // a child of the script may have ended
		}
	}
}

// serverOn starts a server on a store.
func serverOn(t *testing.T, store string, args ...string) (r *rig.Replica, token string) {
	t.Helper()
	r, err := rig.StartReplica(t.Context(), rig.ReplicaConfig{
		Binary: programs.api, DataDir: filepath.Join(t.TempDir(), "data"), Secret: secret, Store: store,
		Args: args,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	if token, err = r.Token("acme", scopes, "tester"); err != nil {
		t.Fatal(err)
	}
	return r, token
}
