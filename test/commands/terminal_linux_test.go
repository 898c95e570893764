package commands_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fencepost/fencepost/test/poll"
)

// terminal is what a user at a terminal sees and types.
type terminal struct {
	*process
	keys *os.File
	read chan string // what it showed, at its end
}

// terminal starts the command of a shell in a terminal of its own.
func (u *user) terminal(shell, script string) *terminal {
	u.t.Helper()
	keys, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		u.t.Fatal(err)
	}
	u.t.Cleanup(func() { _ = keys.Close() })
	number, err := unix.IoctlGetInt(int(keys.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(keys.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		u.t.Fatal(err)
	}
	side, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		u.t.Fatal(err)
	}
	defer func() { _ = side.Close() }()
	p := u.program(shell, "-c", script, programs.fencepost)
	p.Stdin, p.Stdout, p.Stderr = side, side, side
	p.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	t := &terminal{p.start(), keys, make(chan string, 1)}
	go func() {
		var shown bytes.Buffer
		_, _ = io.Copy(&shown, keys) // which fails when the last process has closed the terminal
		t.read <- shown.String()
	}()
	return t
}

func (t *terminal) press(key byte) {
	t.t.Helper()
	if _, err := t.keys.Write([]byte{key}); err != nil {
		t.t.Fatal(err)
	}
}

// TestKeysEndTheScript: Ctrl-C and Ctrl-\ end the script around run as they end one around another
// command.
func TestKeysEndTheScript(t *testing.T) {
	t.Parallel()
	const begun, quit = `touch begun; exec sleep 60`, `trap "echo ended; exit 1" QUIT; `
	for name, c := range map[string]struct {
		shell, before, command string
		key                    byte
		next                   bool
	}{
		"sh":      {"/bin/sh", "", begun, 3, false},
		"bash":    {"/bin/bash", "", begun, 3, false},
		"Ctrl-\\": {"/bin/sh", quit, begun, 28, false},
		"handles": {
			"/bin/bash", "", `trap "exit 0" INT; touch begun; while :; do sleep 0.01; done`, 3, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newUser(t)
			run := `"$0" run "keys-$$" -- sh -c '` + c.command + `'; echo NEXT`
			p := u.terminal(c.shell, c.before+run)
			poll.Until(t, "the command", func() bool { return u.exists("begun") })
			p.press(c.key)
			p.code()
			if shown := <-p.read; strings.Contains(shown, "NEXT") != c.next {
				t.Errorf("it shows %q", shown)
			}
		})
	}
}

// TestKeyEndsTheScriptOfAWaiter: the same, while run waits.
func TestKeyEndsTheScriptOfAWaiter(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.command("run", "waiter", "--", "sleep", "60").start()
	poll.Until(t, "the holder", func() bool {
		return strings.Contains(u.command("status", "waiter").expect(0), "is held")
	})
	p := u.terminal("/bin/bash", `"$0" run waiter -- true; echo NEXT`)
	poll.Until(t, "a waiter", func() bool {
		return strings.Contains(u.command("status", "waiter").expect(0), "1 waiting")
	})
	p.press(3)
	p.code()
	if shown := <-p.read; strings.Contains(shown, "NEXT") {
		t.Errorf("it shows %q", shown)
	}
}

// TestRevokeChecksBeforeItAsks: an operator does not confirm what the server refuses.
func TestRevokeChecksBeforeItAsks(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.command("acquire", "asked").expect(0)
	p := u.terminal("/bin/sh", `"$0" revoke asked --reason short`)
	_, _ = p.keys.WriteString("y\r")
	code := p.code()
	if shown := <-p.read; code != 64 || strings.Contains(shown, "[y/N]") {
		t.Errorf("it ends with %d and shows %q", code, shown)
	}
}
