package commands_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fencepost/fencepost/test/poll"
	"github.com/fencepost/fencepost/test/rig"
)

// requests are those of Terraform's HTTP backend. Each prints the status, and keeps the body.
const requests = `
ask() { curl -s -o body -w '%{http_code}\n' -u "$TF_HTTP_USERNAME:$TF_HTTP_PASSWORD" "$@"; }
lock() { ask -X "$TF_HTTP_LOCK_METHOD" "$TF_HTTP_LOCK_ADDRESS" \
  -d '{"ID":"'$1'","Operation":"OperationTypeApply","Who":"me@here"}'; }
unlock() { ask -X "$TF_HTTP_UNLOCK_METHOD" "$TF_HTTP_UNLOCK_ADDRESS" -d '{"ID":"'$1'"}'; }
force_unlock() { ask -X "$TF_HTTP_UNLOCK_METHOD" "$TF_HTTP_UNLOCK_ADDRESS"; }
put() { ask -X "$TF_HTTP_UPDATE_METHOD" "$TF_HTTP_ADDRESS?ID=$1" --data-binary "$2"; }
get() { ask "$TF_HTTP_ADDRESS"; cat body; echo; }
delete() { ask -X DELETE "$TF_HTTP_ADDRESS"; }
`

// backend runs a script of these requests.
func (u *user) backend(state, lock, script string, flags ...string) *process {
	args := append([]string{"terraform-backend", "--state", state}, flags...)
	return u.command(append(args, lock, "--", "sh", "-c", requests+script)...)
}

// database is one server of PostgreSQL for all tests.
var database = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp(programs.dir, "postgresql-")
	if err != nil {
		return "", err
	}
	server, err := rig.StartPostgreSQL(context.Background(), dir) // it dies with this process
	if err != nil {
		return "", err
	}
	address := url.URL{
		Scheme: "postgres", User: url.User("postgres"), Host: server.Address(), Path: "postgres",
		RawQuery: "sslmode=disable",
	}
	return address.String(), nil
})

// objects is one server of S3 with a bucket, for all tests. It is that of fencekit.
var objects = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp(programs.dir, "s3-")
	if err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-o", dir, "github.com/versity/versitygw/cmd/versitygw")
	build.Dir = filepath.Join("..", "..", "fencekit", "s3", "versitygw")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build versitygw: %w: %s", err, out)
	}
	if err := os.MkdirAll(filepath.Join(dir, "data", "states"), 0o700); err != nil {
		return "", err
	}
	server, err := rig.StartServer(context.Background(), filepath.Join(dir, "log"),
		func(port int) rig.ProgramConfig {
			return rig.ProgramConfig{
				Binary: filepath.Join(dir, "versitygw"),
				Args: []string{
					"--port", "127.0.0.1:" + strconv.Itoa(port), "posix", filepath.Join(dir, "data"),
				},
				Env: []string{"ROOT_ACCESS_KEY=" + accessKey, "ROOT_SECRET_KEY=" + secretKey},
			}
		})
	if err != nil {
		return "", err
	}
	return "http://" + server.Address(), nil // it dies with this process
})

const accessKey, secretKey = "commands", "not a secret"

// states are the addresses of states, by name, and the environment that they need.
func states(t *testing.T) (addresses map[string]string, env []string) {
	t.Helper()
	sql, err := database()
	if err != nil {
		t.Fatal(err)
	}
	endpoint, err := objects()
	if err != nil {
		t.Fatal(err)
	}
	addresses = map[string]string{
		"file": "file:state", "postgresql": sql, "s3": "s3://states/a b+c/KEY",
	}
	return addresses, []string{
		"AWS_ENDPOINT_URL=" + endpoint, "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=" + accessKey,
		"AWS_SECRET_ACCESS_KEY=" + secretKey,
	}
}

// TestBackendKeepsAState: a command reads what an earlier one wrote under the lock, and writes
// nothing without it.
func TestBackendKeepsAState(t *testing.T) {
	t.Parallel()
	addresses, env := states(t)
	for name, state := range addresses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u, lock := newUser(t), "keeps:"+name
			u.env = append(u.env, env...)
			state := strings.Replace(state, "KEY", lock, 1)
			u.backend(state, lock, "get; put a 0; lock a; put a 1; put b 2; get; unlock a; put a 3").
				prints("204", "", "409", "200", "200", "409", "200", "1", "200", "409")
			u.backend(state, lock, "get; lock b; put b '$'; get; delete; get; unlock b").
				prints("200", "1", "200", "200", "200", "$", "200", "204", "", "200")
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

// TestBackendRefusesALateWrite: a command that has lost its lock cannot write after a later one has
// locked the state, whether that one only reads it or deletes it.
func TestBackendRefusesALateWrite(t *testing.T) {
	t.Parallel()
	addresses, env := states(t)
	for name, state := range addresses {
		for next, left := range map[string]string{"get": "200\n1", "delete": "204\n"} {
			t.Run(name+" "+next, func(t *testing.T) {
				t.Parallel()
				u, lock := newUser(t), "late:"+name+":"+next
				u.env = append(u.env, env...)
				state := strings.Replace(state, "KEY", lock, 1)
				late := u.backend(state, lock, `lock a; put a 1; touch begun
					while [ ! -e over ]; do sleep 0.01; done; put a 2; unlock a`, "--ttl", "2s", "--no-kill")
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
				u.backend(state, lock, "get").prints(left)
			})
		}
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
		"lock a; unlock a; touch begun; while [ ! -e over ]; do sleep 0.01; done", "--ttl", "2s").start()
	poll.Until(t, "the end of the lock", func() bool { return u.exists("begun") })
	unlocked := time.Now()
	poll.Until(t, "a look of the process", func() bool { return time.Since(unlocked) > time.Second })
	p.signal(syscall.SIGSTOP)
	poll.Until(t, "the end of a lease", func() bool { return time.Since(unlocked) > 4*time.Second })
	u.touch("over")
	p.signal(syscall.SIGCONT)
	if code := p.code(); code != 0 {
		t.Errorf("it ends with %d: %s", code, &p.stderr)
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
		"lock a; head -c 67108865 /dev/zero >large; put a @large; put a 1; get; unlock a").
		prints("200", "413", "200", "200", "1", "200")
}

// TestBackendOfNothing: a wrong state is refused before the command runs.
func TestBackendOfNothing(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"", "file:", "state", "ftp://127.0.0.1/state"} {
		newUser(t).backend(state, "nothing", "touch ran").expect(64)
	}
}
