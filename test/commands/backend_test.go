package commands_test

import (
	"encoding/json"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fencepost/fencepost/test/poll"
)

// requests are those of Terraform's HTTP backend. Each prints the status, and keeps the body.
const requests = `
ask() { curl -s -o body -w '%{http_code}\n' -u "$TF_HTTP_USERNAME:$TF_HTTP_PASSWORD" "$@"; }
lock() { ask -X "$TF_HTTP_LOCK_METHOD" "$TF_HTTP_LOCK_ADDRESS" \
  -d '{"ID":"'$1'","Operation":"OperationTypeApply","Who":"me@here"}'; }
unlock() { ask -X "$TF_HTTP_UNLOCK_METHOD" "$TF_HTTP_UNLOCK_ADDRESS" -d '{"ID":"'$1'"}'; }
force_unlock() { ask -X "$TF_HTTP_UNLOCK_METHOD" "$TF_HTTP_UNLOCK_ADDRESS"; }
post() { id=$1; body=$2; shift 2
  ask -X "$TF_HTTP_UPDATE_METHOD" "$TF_HTTP_ADDRESS?ID=$id" --data-binary "$body" "$@"; }
put() { post "$1" '{"version":"'"$2"'"}'; }
get() { ask "$TF_HTTP_ADDRESS"; echo "$(sed 's/^{"version":"\(.*\)"}$/\1/' body)"; }
delete() { ask -X DELETE "$TF_HTTP_ADDRESS"; }
`

// backend runs a script of these requests.
func (u *user) backend(state, lock, script string, flags ...string) *process {
	args := append([]string{"terraform-backend", "--state", state}, flags...)
	return u.command(append(args, lock, "--", "sh", "-c", requests+script)...)
}

func TestBackendOfFiles(t *testing.T) {
	t.Parallel()
	keepsAState(t, "files", "file:state")
	refusesLateWrites(t, "files", "file:state")
}

// keepsAState: a command reads what an earlier one wrote under the lock, and writes nothing without
// it.
func keepsAState(t *testing.T, kind, state string, env ...string) {
	t.Helper()
	t.Run("keeps", func(t *testing.T) {
		t.Parallel()
		u, lock := newUser(t), kind
		u.env = append(u.env, env...)
		u.backend(state, lock, "get; put a 0; lock a; put a 1; put b 2; get; unlock a; put a 3").
			prints("204", "", "409", "200", "200", "409", "200", "1", "200", "409")
		u.backend(state, lock, "get; lock b; put b '$'; get; delete; get; unlock b").
			prints("200", "1", "200", "200", "200", "$", "200", "204", "", "200")
	})
}

// refusesLateWrites: a command that has lost its lock cannot write after a later one has locked the
// state, whether that one only reads it or deletes it.
func refusesLateWrites(t *testing.T, kind, state string, env ...string) {
	t.Helper()
	for next, left := range map[string]string{"get": "200\n1", "delete": "204\n"} {
		t.Run(next, func(t *testing.T) {
			t.Parallel()
			u, lock := newUser(t), kind+":"+next
			u.env = append(u.env, env...)
			state := strings.Replace(state, "KEY", lock, 1)
			late := u.backend(state, lock, `lock a; put a 1; touch begun
				while [ ! -e over ]; do sleep 0.01; done; put a 2; unlock a
				echo ended >&2`, "--ttl", "2s", "--no-kill")
			late.start()
			poll.Until(t, "the first lock", func() bool { return u.exists("begun") })
			late.signal(syscall.SIGSTOP)
			u.backend(state, lock, "lock b; "+next+" >answer; unlock b").prints("200", "200")
			u.touch("over")
			late.signal(syscall.SIGCONT)
			code, text := late.code(), late.stdout.String()
			if code != 76 || text != "200\n200\n409\n200\n" {
				t.Errorf("the late command ends with %d and prints %q: %s", code, text, &late.stderr)
			}
			_, hint, _ := strings.Cut(late.stderr.String(), "ended\n")
			if !strings.Contains(hint, "do not push errored.tfstate") {
				t.Errorf("after the end it says %q", hint)
			}
			u.backend(state, lock, "get").prints(left)
		})
	}
}

// prints runs a command that succeeds, and compares the lines that it prints.
func (p *process) prints(want ...string) {
	p.t.Helper()
	if got := p.expect(0); got != strings.Join(want, "\n")+"\n" {
		p.t.Errorf("it prints %q, not %q: %s", got, want, &p.stderr)
	}
}

// TestBackendShowsTheHolder: a lock that is held is described as Terraform expects it, also if the
// holder is another program.
func TestBackendShowsTheHolder(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.command("run", "shows:run", "--", "sh", "-c", "touch run; exec sleep 60").start()
	u.backend("file:state", "shows:backend", "lock a; touch backend; exec sleep 60").start()
	for _, name := range []string{"run", "backend"} {
		poll.Until(t, name, func() bool { return u.exists(name) })
		u.backend("file:state", "shows:"+name, "lock b; mv body "+name, "--wait", "0").prints("423")
		text, err := os.ReadFile(u.path(name))
		if err != nil {
			t.Fatal(err)
		}
		var info struct {
			ID, Operation, Who, Path string
			Created                  time.Time
		}
		if err := json.Unmarshal(text, &info); err != nil || info.ID == "" || info.Created.IsZero() ||
			info.Path != "shows:"+name {
			t.Errorf("the holder is %s: %v", text, err)
		}
		if name == "backend" && (info.ID != "a" || info.Who != "me@here" || info.Operation == "") {
			t.Errorf("the lock is %s", text)
		}
	}
}

// TestBackendForceUnlock: the lock of this command is released. Of another one, the command says
// how an operator takes it.
func TestBackendForceUnlock(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.backend("file:state", "forced", "lock a; lock b; unlock b; force_unlock; lock b").
		prints("200", "423", "409", "200", "200")
	other := u.backend("file:state", "forced", "force_unlock")
	other.prints("409")
	if !strings.Contains(other.stderr.String(), "fencepost revoke") {
		t.Errorf("it says %q", &other.stderr)
	}
}

// TestBackendNeedsItsPassword: the address alone opens nothing.
func TestBackendNeedsItsPassword(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.backend("file:state", "password", "TF_HTTP_PASSWORD=; get; lock a").prints("401", "", "401")
}

// TestBackendWithoutALock: a command that has not locked the state, or has unlocked it, runs for
// longer than a lease, although the process that renews is stopped.
func TestBackendWithoutALock(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	p := u.backend("file:state", "without",
		"lock a; unlock a; touch begun; while [ ! -e over ]; do sleep 0.01; done", "--ttl", lease.String()).start()
	poll.Until(t, "the end of the lock", func() bool { return u.exists("begun") })
	unlocked := time.Now()
	poll.Until(t, "a look of the process", func() bool { return time.Since(unlocked) > time.Second })
	p.signal(syscall.SIGSTOP)
	poll.Until(t, "the end of a lease", func() bool { return time.Since(unlocked) > 4*lease/3 })
	u.touch("over")
	p.signal(syscall.SIGCONT)
	if code := p.code(); code != 0 {
		t.Errorf("it ends with %d: %s", code, &p.stderr)
	}
}

// TestBackendKillsTheRevoked: a command that ignores SIGTERM does not outlive its lease.
func TestBackendKillsTheRevoked(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	p := u.backend("file:state", "revoked", "trap '' TERM; lock a; touch begun; sleep 600",
		"--ttl", lease.String()).start()
	poll.Until(t, "the lock", func() bool { return u.exists("begun") })
	u.command("revoke", "--yes", "--reason", "an operator takes it", "revoked").expect(0)
	if code, said := p.code(), p.stderr.String(); code != 76 ||
		!strings.Contains(said, "got SIGTERM") || !strings.Contains(said, "was killed") {
		t.Errorf("it ends with %d: %s", code, said)
	}
}

// TestBackendLeavesTheQueue: a signal ends the wait for the lock, although the command waits for
// the answer.
func TestBackendLeavesTheQueue(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.command("run", "leaves", "--", "sh", "-c", "touch held; exec sleep 60").start()
	poll.Until(t, "the holder", func() bool { return u.exists("held") })
	p := u.backend("file:state", "leaves", "trap '' TERM; lock a; exit 7", "--wait", "1h").start()
	poll.Until(t, "a waiter", func() bool {
		return strings.Contains(u.command("status", "leaves").expect(0), "1 waiting")
	})
	p.signal(syscall.SIGTERM)
	if code := p.code(); code != 7 {
		t.Errorf("it ends with %d: %s", code, &p.stderr)
	}
}

// TestBackendBoundsAState: a larger state is refused, and the command goes on.
func TestBackendBoundsAState(t *testing.T) {
	t.Parallel()
	newUser(t).backend("file:state", "bounds",
		"lock a; head -c 67108865 /dev/zero >large; post a @large; put a 1; get; unlock a").
		prints("200", "413", "200", "200", "1", "200")
}

// TestBackendTakesStatesAlone: what is no state, or has another checksum, replaces nothing, and an
// empty body deletes nothing. OpenTofu may encrypt a state.
func TestBackendTakesStatesAlone(t *testing.T) {
	t.Parallel()
	newUser(t).backend("file:state", "states", `lock a; put a 1
		for body in '' nonsense null '[]' '{}' '{"version":4}{}' '{"version":'; do post a "$body"; done
		post a '{"version":4}' -H 'Content-MD5: MSdqyWKDhwuOpP5e9KMWaQ=='; get
		post a '{"encrypted_data":"AA=="}'; post a '{"version":4}' -H "Content-MD5: $(
			printf '{"version":4}' | openssl md5 -binary | base64)"`).prints("200", "200",
		"400", "400", "400", "400", "400", "400", "400", "400", "200", "1", "200", "200")
}

// TestBackendBoundsALock: the message names the bound.
func TestBackendBoundsALock(t *testing.T) {
	t.Parallel()
	p := newUser(t).backend("file:state", "bounds:lock",
		`head -c 65537 /dev/zero >large; ask -X LOCK "$TF_HTTP_ADDRESS" --data-binary @large`)
	p.prints("413")
	if !strings.Contains(p.stderr.String(), "at most 64 KiB") {
		t.Errorf("it says %q", &p.stderr)
	}
}

// TestBackendOfNothing: a wrong state is refused before the command runs.
func TestBackendOfNothing(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"", "file:", "state", "ftp://127.0.0.1/state", "file:no/state"} {
		newUser(t).backend(state, "nothing", "touch ran").expect(64)
	}
}
