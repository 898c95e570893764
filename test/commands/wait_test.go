package commands_test

import (
	"strings"
	"testing"

	"github.com/fencepost/fencepost/test/poll"
)

// TestLogSaysThatNoServerAnswers: cron and CI see why run waits, unless they ask for quiet.
func TestLogSaysThatNoServerAnswers(t *testing.T) {
	t.Parallel()
	u := userOf(t, "http://127.0.0.1:1", "token")
	start := func(flag string) *process {
		return u.program("/bin/sh", "-c", `exec "$0" run `+flag+` x -- true 2>"err$1"`,
			programs.fencepost, flag).start()
	}
	quiet := start("--quiet")
	start("--ttl=30s")
	poll.Until(t, "the reason", func() bool {
		return strings.Contains(strings.Join(u.lines("err--ttl=30s"), " "), "does not answer")
	})
	if said := u.lines("err--quiet"); len(said) > 0 {
		t.Errorf("with --quiet it says %q, in %v", said, quiet.ProcessState)
	}
}
