//go:build linux || darwin

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fencepost/fencepost/test/poll"
)

// builtOnce builds the program once for the tests that need a process of their own.
var builtOnce = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "fencepost-api")
	if err != nil {
		return "", err
	}
	binary := filepath.Join(dir, "api")
	out, err := exec.Command(
		"go", "build", "-ldflags", "-X main.version=v1.2.3 -X main.commit=69f4879", "-o", binary, ".",
	).CombinedOutput()
	if err != nil {
		err = errors.Join(err, errors.New(string(out)))
	}
	return binary, err
})

func built(t *testing.T) string {
	t.Helper()
	binary, err := builtOnce()
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

// process is the built server in a process of its own.
type process struct {
	*testing.T
	*exec.Cmd
	url   string
	ended chan struct{}
}

// launch starts the built server with its log in a file.
func launch(t *testing.T, stdout *os.File, args ...string) *process {
	t.Helper()
	stderr, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.Open(stderr.Name())
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	return launchWith(t, log, stdout, stderr, args...)
}

// launchWith starts the built server on a port that the system chose, and waits until it is ready.
// log reads what the server writes to stderr, which it closes here.
func launchWith(t *testing.T, log io.Reader, stdout, stderr *os.File, args ...string) *process {
	t.Helper()
	p := &process{
		T: t, Cmd: exec.Command(built(t), append([]string{"--listen", "127.0.0.1:0"}, args...)...),
		ended: make(chan struct{}),
	}
	p.Stdout, p.Stderr = stdout, stderr
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	_ = stderr.Close()
	go func() { // ends with the process, which the clean-up kills
		defer close(p.ended)
		_ = p.Wait() // the tests look at the state
	}()
	t.Cleanup(func() { _ = p.Process.Kill() })
	var said []byte
	poll.Until(t, "it listens", func() bool {
		part := make([]byte, 4096)
		n, _ := log.Read(part)
		said = append(said, part[:n]...)
		address := listening.FindSubmatch(said[:bytes.LastIndexByte(said, '\n')+1]) // whole lines
		if address != nil {
			p.url = "http://" + string(address[1])
		}
		return address != nil
	})
	poll.Until(t, "it is ready", func() bool { return p.status("/readyz") == http.StatusOK })
	return p
}

// status is that of an answer, or 0 without one.
func (p *process) status(path string) int {
	ctx, cancel := context.WithTimeout(p.Context(), 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+path, http.NoBody)
	if err != nil {
		p.Fatal(err)
	}
	request.Close = true
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}

func (p *process) signal(s os.Signal) {
	p.Helper()
	if err := p.Process.Signal(s); err != nil {
		p.Fatal(err)
	}
}

// exit waits for the end of the process.
func (p *process) exit() syscall.WaitStatus {
	p.Helper()
	select {
	case <-p.ended:
	case <-time.After(30 * time.Second):
		p.Fatal("it does not end")
	}
	return p.ProcessState.Sys().(syscall.WaitStatus)
}

func (p *process) exits(code int) {
	p.Helper()
	if s := p.exit(); s.ExitStatus() != code {
		p.Errorf("exit status %d, signal %v, want %d", s.ExitStatus(), s.Signal(), code)
	}
}

func TestServerOutlivesTheReaderOfItsLog(t *testing.T) {
	t.Parallel()
	for name, connect := range map[string]func(t *testing.T) (ours, its *os.File){
		"pipe": pipe, "socket": socketPair,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ours, its := connect(t)
			p := launchWith(
				t, ours, its, its, "--data-dir", t.TempDir(), "--jwt-secret-file", file(t, secret),
			)
			_ = ours.Close()
			for range 20 { // each request makes a line
				if status := p.status("/locks"); status != http.StatusUnauthorized {
					t.Fatalf("status %d after the reader has gone", status)
				}
			}
			poll.Until(
				t, "it counts the lines", func() bool { return p.counted("fencepost_log_dropped_total") },
			)
			p.signal(syscall.SIGPIPE)
			p.signal(syscall.SIGTERM)
			p.exits(0)
		})
	}
}

func TestDevelopmentServerStartsWithoutAReaderOfItsOutput(t *testing.T) {
	t.Parallel()
	ours, its := pipe(t)
	_ = ours.Close()
	p := launch(t, its, "--dev", "--data-dir", t.TempDir())
	p.signal(os.Interrupt)
	p.exits(0)
}

func TestServerIgnoresSignalsThatMeanNothingToIt(t *testing.T) {
	t.Parallel()
	p := launch(t, nil, "--data-dir", t.TempDir(), "--jwt-secret-file", file(t, secret))
	for _, s := range []os.Signal{
		syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGPIPE, syscall.SIGSTOP,
		syscall.SIGCONT,
	} {
		p.signal(s)
	}
	if status := p.status("/readyz"); status != http.StatusOK {
		t.Errorf("status %d", status)
	}
	p.signal(syscall.SIGTERM)
	p.exits(0)
}

func TestSecondInterruptEndsTheDrainAtOnce(t *testing.T) {
	t.Parallel()
	p := launch(
		t, nil, "--data-dir", t.TempDir(), "--jwt-secret-file", file(t, secret),
		"--drain-delay-seconds", "60",
	)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM} { // a supervisor may repeat SIGTERM
		p.signal(s)
		poll.Until(
			t, "it drains", func() bool { return p.status("/readyz") == http.StatusServiceUnavailable },
		)
	}
	// The server drains a moment before it lets the system end it at an interrupt.
	poll.Until(t, "it ends", func() bool {
		_ = p.Process.Signal(os.Interrupt) // it may have ended
		select {
		case <-p.ended:
			return true
		default:
			return false
		}
	})
	if s := p.exit(); s.Signal() != syscall.SIGINT {
		t.Errorf("exit status %d, signal %v, want SIGINT", s.ExitStatus(), s.Signal())
	}
}

func TestQuitPrintsStacks(t *testing.T) {
	t.Parallel()
	p := launch(t, nil, "--data-dir", t.TempDir(), "--jwt-secret-file", file(t, secret))
	p.signal(syscall.SIGQUIT)
	p.exits(2) // the runtime's own status
	text, err := os.ReadFile(p.Stderr.(*os.File).Name())
	if err != nil || !strings.Contains(string(text), "SIGQUIT: quit") {
		t.Errorf("%v, %s", err, text)
	}
}

func TestWrongSettingsExitWith78(t *testing.T) {
	t.Parallel()
	var exit *exec.ExitError
	if err := exec.Command(built(t), "--bogus").Run(); !errors.As(err, &exit) ||
		exit.ExitCode() != 78 {
		t.Errorf("--bogus: %v", err)
	}
	unit, err := os.ReadFile("../../deploy/systemd/fencepost.service")
	if err != nil || !strings.Contains(string(unit), "\nRestartPreventExitStatus=78\n") {
		t.Errorf("the unit does not know the status: %v", err)
	}
}

// counted reports whether a counter is above 0.
func (p *process) counted(metric string) bool {
	answer, err := http.Get(p.url + "/metrics")
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	var text strings.Builder
	if err := answer.Write(&text); err != nil {
		return false
	}
	for line := range strings.Lines(text.String()) {
		if strings.HasPrefix(line, metric) && !strings.HasSuffix(line, " 0\n") {
			return true
		}
	}
	return false
}

func pipe(t *testing.T) (ours, its *os.File) {
	t.Helper()
	ours, its, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	return ours, its
}

func socketPair(t *testing.T) (ours, its *os.File) {
	t.Helper()
	syscall.ForkLock.RLock() // else a process that another test starts keeps our end open
	defer syscall.ForkLock.RUnlock()
	ends, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	syscall.CloseOnExec(ends[0])
	syscall.CloseOnExec(ends[1])
	return os.NewFile(uintptr(ends[0]), "ours"), os.NewFile(uintptr(ends[1]), "its")
}
