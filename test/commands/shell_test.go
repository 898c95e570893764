package commands_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/test/poll"
)

// evaluate runs a shell that evaluates what acquire prints for a lock.
func (u *user) evaluate(lock string) *process {
	return u.program("/bin/sh", "-c",
		`eval "$("$0" acquire --wait 0s `+lock+`)"; code=$?; echo "$FENCEPOST_ENTRY"; exit $code`,
		programs.fencepost)
}

// TestFailedAcquireFailsInEval: eval returns the exit code of acquire, although eval of an empty
// text succeeds.
func TestFailedAcquireFailsInEval(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.evaluate("eval").expect(0)
	u.evaluate("eval").expect(75)
	u.evaluate("--no-such-flag").expect(64)
}

// TestAcquireQuotesAnswers: a hostile server cannot send code to the shell that evaluates acquire.
func TestAcquireQuotesAnswers(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte(`{"id":"e'$(touch first)","state":"held","fence":1,"ttl_seconds":60,` +
			`"token":"t; touch second\ntouch third"}`))
	}))
	t.Cleanup(server.Close)
	u := userOf(t, server.URL, "token")
	if text := u.evaluate("words").expect(0); text != "e'$(touch first)\n" {
		t.Errorf("the entry is %q", text)
	}
	for _, file := range []string{"first", "second", "third"} {
		if u.exists(file) {
			t.Errorf("the shell ran touch %s", file)
		}
	}
}

// TestNohup: a command survives SIGHUP if fencepost was started with SIGHUP ignored.
func TestNohup(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	text := u.program("/bin/sh", "-c", `trap '' HUP
exec "$0" run nohup -- sh -c 'kill -HUP $PPID $$; sleep 0.3; echo alive'`, programs.fencepost).expect(0)
	if text != "alive\n" {
		t.Errorf("it prints %q", text)
	}
}

// TestUpgradeWhileWaiting: run starts its guard from its own file, although an upgrade has removed
// the file while run waited for the lock.
func TestUpgradeWhileWaiting(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	held := u.command("run", "upgrade", "--", "sh", "-c", "until [ -e removed ]; do sleep 0.01; done")
	held.start()
	poll.Until(t, "the holder", func() bool {
		return strings.Contains(u.command("status", "upgrade").expect(0), "is held")
	})
	if err := os.Link(programs.fencepost, u.path("old")); err != nil {
		t.Fatal(err)
	}
	waiter := u.program(u.path("old"), "run", "upgrade", "--", "echo", "works").start()
	poll.Until(t, "the waiter", func() bool {
		return strings.Contains(u.command("status", "upgrade").expect(0), "1 waiting")
	})
	if err := os.Remove(u.path("old")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(u.path("removed"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code := waiter.code(); code != 0 {
		t.Errorf("it ends with %d: %s", code, &waiter.stderr)
	}
}
