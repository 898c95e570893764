package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"go.uber.org/goleak"

	"github.com/fencepost/fencepost/test/poll"
)

// The tests run the whole program in this process. They are in package main
// because there is no other way to reach it.

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// output is what the program wrote, safe to read while it runs.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// result of a command that ended.
type result struct {
	code        int
	out, errOut string
}

// command runs one command line to its end, and again if a busy machine did not answer it in time.
func command(t *testing.T, env environment, args ...string) result {
	t.Helper()
	r := once(t, env, args...)
	for tries := 1; tries < 3 && strings.Contains(r.errOut, "deadline exceeded"); tries++ {
		r = once(t, env, args...)
	}
	return r
}

// once runs a command line. A server that starts although it should not is ended after a while.
func once(t *testing.T, env environment, args ...string) result {
	t.Helper()
	var out, errOut output
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	code := run(ctx, args, env, &out, &errOut)
	return result{code, out.String(), errOut.String()}
}

// fails runs a command line that must end with the code and say all of the words.
func fails(t *testing.T, code int, env environment, args []string, words ...string) {
	t.Helper()
	r := command(t, env, args...)
	if r.code != code {
		t.Errorf("%q: exit code %d, want %d; it says %q", args, r.code, code, r.errOut)
	}
	for _, w := range words {
		if !strings.Contains(r.errOut, w) {
			t.Errorf("%q does not say %q but %q", args, w, r.errOut)
		}
	}
	if !strings.HasPrefix(lastLine(r.errOut), "fencepost: ") || r.out != "" {
		t.Errorf("%q ends with %q, and prints %q", args, lastLine(r.errOut), r.out)
	}
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// file writes a file of the owner's and returns its path.
func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// secret is one that is long enough.
const secret = "a secret for bearer tokens, of more than 32 bytes"

func TestVersion(t *testing.T) {
	for _, asked := range []string{"version", "--version", "-version"} {
		r := command(t, nil, asked)
		if built := thisBuild(); r.code != 0 || !strings.HasPrefix(r.out, built.version+" (commit ") ||
			r.errOut != "" {
			t.Errorf("%s: %+v", asked, r)
		}
	}
	fails(t, exitConfig, nil, []string{"version", "--json"}, "--json")
}

func TestHelp(t *testing.T) {
	flags := map[string]string{
		"": "--help-all lists all flags", "serve": "--jwt-secret-file", "token": "--tenant",
		"health": "--listen", "help": "--data-dir",
	}
	for name, says := range flags {
		for _, help := range []string{"--help", "-h"} {
			args := []string{help}
			if name != "" {
				args = []string{name, help}
			}
			if r := command(t, nil, args...); r.code != 0 || !strings.Contains(r.out, says) ||
				r.errOut != "" {
				t.Errorf("%q: %+v", args, r)
			}
		}
	}
}

// TestHelpFitsOnTwoScreens: of 25 lines with 100 columns each.
func TestHelpFitsOnTwoScreens(t *testing.T) {
	short, all := command(t, nil, "--help").out, command(t, nil, "--help-all").out
	if n := strings.Count(short, "\n"); n > 50 {
		t.Errorf("--help has %d lines", n)
	}
	for line := range strings.Lines(short + all) {
		if len(line) > 101 {
			t.Errorf("longer than 100 columns: %s", line)
		}
	}
}

// TestEveryFlagIsInTheHelpOnce: --help-all has each flag, under one subject.
func TestEveryFlagIsInTheHelpOnce(t *testing.T) {
	all := command(t, nil, "--help-all").out
	newConfig().flags(io.Discard).VisitAll(func(f *pflag.Flag) {
		if n := strings.Count(all, "\n      --"+f.Name+" "); n != 1 {
			t.Errorf("--%s is there %d times", f.Name, n)
		}
	})
}

func TestUnknownCommand(t *testing.T) {
	fails(t, exitConfig, nil, []string{"sreve"}, `"sreve"`, "token", "health", "version", "--help")
	fails(t, exitConfig, nil, []string{"serve", "now"}, `unexpected argument "now"`)
	fails(
		t, exitConfig, nil, []string{"token", "--tenant", "acme", "now"}, `unexpected argument "now"`,
	)
	fails(t, exitConfig, nil, []string{"--bogus"}, "--bogus", "--help-all lists the flags")
	fails(t, exitConfig, nil, []string{"-listen", ":1"}, "-listen", "begin with two dashes")
	fails(t, exitConfig, nil, []string{"token", "--bogus"}, "--bogus", "--help lists the flags")
	fails(t, exitConfig, nil, []string{"--listen"}, "--listen")
}

func TestHealth(t *testing.T) {
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	status := http.StatusOK
	path := ""
	address := serveTest(t, func(w http.ResponseWriter, r *http.Request) {
		path = r.URL.Path
		w.WriteHeader(status)
		if status != http.StatusOK {
			_, _ = io.WriteString(w, "no\nstore\xff is\tthere\n"+strings.Repeat("x", 1<<20))
		}
	})
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	for _, listen := range []string{address, ":" + port, "0.0.0.0:" + port, "[::]:" + port} {
		if r := command(t, nil, "health", "--listen", listen); r.code != 0 || path != "/healthz" {
			t.Errorf("%s: %+v, asked for %s", listen, r, path)
		}
	}
	if r := command(t, environment{"FENCEPOST_LISTEN": address}, "health"); r.code != 0 {
		t.Errorf("by the environment: %+v", r)
	}
	file := filepath.Join(t.TempDir(), "fencepost.yaml")
	if err := os.WriteFile(
		file, []byte("listen: "+address+"\nmax-ttl-seconds: 60\n"), 0o600,
	); err != nil {
		t.Fatal(err)
	}
	if r := command(t, nil, "health", "--config", file); r.code != 0 {
		t.Errorf("by the server's file: %+v", r)
	}
	if err := os.WriteFile(file, []byte("lisen: "+address+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	fails(t, exitConfig, nil, []string{"health", "--config", file}, "line 1", `"lisen"`)
	ready := "http://" + address + "/readyz"
	if r := command(
		t, nil, "health", "--url", ready,
	); r.code != 0 || path != "/readyz" || r.out != ready+" answers 200 OK\n" {
		t.Errorf("by --url: %+v, asked for %s", r, path)
	}
	status = http.StatusServiceUnavailable
	fails(
		t, 1, nil, []string{"health", "--listen", address},
		"503 Service Unavailable: no store is there xx",
	)
	fails(t, 1, nil, []string{"health", "--listen", closedPort(t)}, "refused")
	fails(t, exitConfig, nil, []string{"health", "--listen", "nowhere"}, `--listen: "nowhere"`)
	fails(t, 1, nil, []string{"health", "--url", ready}, ready, "503")
	for _, bad := range []string{
		"nowhere", "127.0.0.1:8080", "ftp://x/", "http://", "http://user@x/", "http://\x7f/",
	} {
		fails(t, exitConfig, nil, []string{"health", "--url", bad}, "--url")
	}
	fails(t, exitConfig, nil, []string{"health", "--bogus"}, "-bogus")
}

// TestHealthInTime: a server that accepts and says nothing is not healthy.
func TestHealthInTime(t *testing.T) {
	began := time.Now()
	fails(t, 1, nil, []string{"health", "--listen", silentPort(t)}, "deadline exceeded")
	if d := time.Since(began); d > 30*time.Second { // three times 2 s, and what a busy machine adds
		t.Errorf("it took %v", d)
	}
}

// TestBuilt runs the built program once, with what a test in this process cannot
// see: its own exit code, its environment, a real signal.
func TestBuilt(t *testing.T) {
	t.Parallel()
	binary := built(t)
	if out, err := exec.Command(binary, "version").Output(); err != nil ||
		!strings.HasPrefix(string(out), "v1.2.3 (commit 69f4879, go1.") {
		t.Errorf("version: %q, %v", out, err)
	}
	var log output
	server := exec.Command(binary, "--dev", "--data-dir", t.TempDir())
	server.Env = append(os.Environ(), "FENCEPOST_LISTEN=127.0.0.1:0")
	server.Stderr = &log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()
	t.Cleanup(func() { _ = server.Process.Kill() }) // it has ended, unless the test failed
	poll.Until(
		t, "it listens", func() bool { return strings.Contains(log.String(), `"msg":"listening"`) },
	)
	if err := server.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err != nil || !strings.Contains(log.String(), `"msg":"stopped"`) {
			t.Errorf("%v, %s", err, log.String())
		}
	case <-time.After(20 * time.Second):
		t.Fatal("it does not end")
	}
}

func serveTest(t *testing.T, handle http.HandlerFunc) (address string) {
	t.Helper()
	l := listen(t)
	server := &http.Server{Handler: handle, ReadHeaderTimeout: time.Second}
	var served sync.WaitGroup
	served.Go(func() { _ = server.Serve(l) }) // ends with Close
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		served.Wait()
	})
	return l.Addr().String()
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// closedPort is an address where no process listens.
func closedPort(t *testing.T) string {
	t.Helper()
	l := listen(t)
	defer l.Close()
	return l.Addr().String()
}

// silentPort is an address where connections are accepted by the system and
// no process answers.
func silentPort(t *testing.T) string {
	t.Helper()
	l := listen(t)
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}

// TestStartSaysWhatToDo: an error of the system names the cause, and the server adds the remedy.
func TestStartSaysWhatToDo(t *testing.T) {
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	fails(t, 1, nil, []string{
		"--dev", "--data-dir", t.TempDir(), "--listen", taken.Addr().String(),
	}, "--listen", "in use (stop the program that listens there")
	fails(t, 1, nil, []string{"--jwt-secret-file", t.TempDir() + "/none"}, "none", "check the path")
}
