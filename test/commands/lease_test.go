package commands_test

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const lease = 3 * time.Second

// holds starts a command that ignores SIGTERM under a lock with a short lease, and one that waits
// for the lock and writes when it has it.
func (u *user) holds(lock string) (holder, waiter *process) {
	u.t.Helper()
	args := append([]string{"run", "--ttl", lease.String(), lock, "--"}, beat("beats")...)
	holder = u.command(args...)
	holder.Stdout, holder.Stderr = nil, nil // which the command could keep open
	holder.start()
	u.beats("beats", 5)
	waiter = u.command("run", "--wait", "5m", lock, "--", "sh", "-c", "date +%s%N >granted").start()
	return holder, waiter
}

// alone fails the test unless the command of the holder had ended when the waiter had the lock.
func (u *user) alone(waiter *process) {
	u.t.Helper()
	if code := waiter.code(); code != 0 {
		u.t.Fatalf("the waiter ends with %d: %s", code, &waiter.stderr)
	}
	beats, granted := u.instants("beats"), u.instants("granted")
	last := beats[len(beats)-1]
	u.t.Logf("granted %v after the last beat", granted[0].Sub(last))
	if !last.Before(granted[0]) {
		u.t.Errorf("the command ran for %v after the lock was granted to another", last.Sub(granted[0]))
	}
}

// TestServerStops: a command is dead before its lease can end if no server answers renewals.
func TestServerStops(t *testing.T) {
	t.Parallel()
	r, token := server(t)
	u := userOf(t, r.URL(), token)
	holder, waiter := u.holds("stops")
	stopped := time.Now()
	if err := r.Stop(); err != nil {
		t.Fatal(err)
	}
	if code := holder.code(); code != 76 {
		t.Errorf("it ends with %d", code)
	}
	if took := time.Since(stopped); took > lease {
		t.Errorf("the command lived for %v after the last renewal, longer than its lease", took)
	}
	await(t, "the end of the lease", func() bool { return time.Since(stopped) > lease+time.Second })
	if err := r.Continue(); err != nil {
		t.Fatal(err)
	}
	u.alone(waiter)
}

// TestGrace: a command that heeds SIGTERM has time to end before SIGKILL.
func TestGrace(t *testing.T) {
	t.Parallel()
	r, token := server(t)
	u := userOf(t, r.URL(), token)
	p := u.command("run", "--ttl", lease.String(), "grace", "--", "sh", "-c",
		"trap 'sleep 0.1; touch tidy; exit 0' TERM; touch begun; while :; do sleep 0.01; done").start()
	await(t, "the command", func() bool { return u.exists("begun") })
	if err := r.Stop(); err != nil {
		t.Fatal(err)
	}
	if code := p.code(); code != 76 || !u.exists("tidy") {
		t.Errorf("it ends with %d, tidy: %v: %s", code, u.exists("tidy"), &p.stderr)
	}
}

// TestNoKill: with --no-kill the command goes on, and the exit code says that the lock was lost.
func TestNoKill(t *testing.T) {
	t.Parallel()
	r, token := server(t)
	u := userOf(t, r.URL(), token)
	p := u.command("run", "--ttl", "2s", "--no-kill", "warns", "--", "sh", "-c",
		"touch begun; sleep 4; touch finished").start()
	await(t, "the command", func() bool { return u.exists("begun") })
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

// TestWrapperStops: a command is dead before its lease can end, also if the process that renews is
// stopped and cannot end it.
func TestWrapperStops(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	holder, waiter := u.holds("wrapper")
	holder.signal(syscall.SIGSTOP)
	u.alone(waiter)
	holder.signal(syscall.SIGCONT)
	if code := holder.code(); code != 76 {
		t.Errorf("it ends with %d", code)
	}
}

// TestMachineStops: when all processes of the holder are stopped for longer than the lease, and
// wake again, its command is killed before anything else.
func TestMachineStops(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	holder, waiter := u.holds("machine")
	family := familyOf(t, holder.Process.Pid)
	if len(family) < 3 { // with the command and the guard
		t.Fatalf("the processes %v", family)
	}
	each(t, family, syscall.SIGSTOP)
	if code := waiter.code(); code != 0 {
		t.Fatalf("the waiter ends with %d: %s", code, &waiter.stderr)
	}
	before := len(u.instants("beats"))
	each(t, family, syscall.SIGCONT)
	if code := holder.code(); code != 76 {
		t.Errorf("it ends with %d", code)
	}
	after := u.instants("beats")
	t.Logf("%d beats after it woke", len(after)-before)
	if len(after) > before+1 {
		t.Errorf("%d beats after it woke", len(after)-before)
	}
}

// TestWrapperDies: a command, and all of its group, die with the process that renews.
func TestWrapperDies(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	holder, waiter := u.holds("dies")
	holder.signal(syscall.SIGKILL)
	died := time.Now()
	u.alone(waiter)
	beats := u.instants("beats")
	if late := beats[len(beats)-1].Sub(died); late > time.Second {
		t.Errorf("the command lived for %v longer", late)
	}
}

// TestRevoked: a command is killed when an operator revokes its lock.
func TestRevoked(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	holder, waiter := u.holds("revoked")
	u.command("revoke", "--yes", "--reason", "the tests need it", "revoked").expect(0)
	if code := holder.code(); code != 76 {
		t.Errorf("it ends with %d", code)
	}
	if code := waiter.code(); code != 0 {
		t.Errorf("the waiter ends with %d: %s", code, &waiter.stderr)
	}
}

// familyOf lists a process and all below it. The order is that in which they would be stopped.
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

func each(t *testing.T, pids []int, s syscall.Signal) {
	t.Helper()
	for _, pid := range pids {
		if p, err := os.FindProcess(pid); err == nil {
			_ = p.Signal(s) // a child of the script may have ended
		}
	}
}
