// Package controllerruntime has no code: managers of sigs.k8s.io/controller-runtime take the lock
// of contrib/k8s-leaderelection as it is. Its test runs managers.
package controllerruntime_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/fencepost/fencepost/client"
	leaderlock "github.com/fencepost/fencepost/contrib/k8s-leaderelection"
)

// TestMain runs a manager if the process is a candidate of the test.
func TestMain(m *testing.M) {
	identity := os.Getenv("CANDIDATE")
	if identity == "" {
		os.Exit(m.Run())
	}
	fmt.Println("ends:", run(context.Background(), identity))
	os.Exit(1)
}

// run runs a manager that prints its fence when it leads. No API server is at its address: it has
// no controllers, and the election needs none.
func run(ctx context.Context, identity string) error {
	log.SetLogger(logr.Discard())
	c, err := client.New(client.Config{
		URLs: []string{os.Getenv("FENCEPOST_URL")}, Token: client.Bearer(os.Getenv("FENCEPOST_TOKEN")),
	})
	if err != nil {
		return err
	}
	defer c.Close()
	lock := leaderlock.New(c, "operator", identity)
	m, err := manager.New(&rest.Config{Host: "127.0.0.1:1"}, manager.Options{
		LeaderElection: true, LeaderElectionResourceLockInterface: lock,
		LeaseDuration: new(5 * time.Second), RenewDeadline: new(3 * time.Second),
		RetryPeriod: new(500 * time.Millisecond),
		Metrics:     server.Options{BindAddress: "0"},
	})
	if err != nil {
		return err
	}
	if err := m.Add(manager.RunnableFunc(func(ctx context.Context) error {
		fmt.Println("leads:", lock.Fence())
		<-ctx.Done()
		return nil
	})); err != nil {
		return err
	}
	fmt.Println("campaigns")
	return m.Start(ctx)
}

// TestManagersHandOver: of two managers one leads. If it is stopped past its lease, the other
// leads with a greater fence, and the first ends when it continues. If the leader is killed, a
// third one leads.
func TestManagersHandOver(t *testing.T) {
	a := start(t, "a")
	first := a.leads(t)
	b := start(t, "b")
	a.signal(t, syscall.SIGSTOP)
	second := b.leads(t)
	a.signal(t, syscall.SIGCONT)
	a.await(t, "ends: leader election lost")
	c := start(t, "c")
	b.signal(t, syscall.SIGKILL)
	if third := c.leads(t); first >= second || second >= third {
		t.Errorf("the fences are %d, %d and %d", first, second, third)
	}
}

// candidate is a process with a manager.
type candidate struct {
	process *os.Process
	lines   chan string
}

// start returns when the manager is about to campaign.
func start(t *testing.T, identity string) *candidate {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "CANDIDATE="+identity)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	c := &candidate{process: cmd.Process, lines: make(chan string, 10)}
	go func() {
		defer close(c.lines)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			c.lines <- lines.Text()
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		for range c.lines {
		}
		_ = cmd.Wait()
	})
	c.await(t, "campaigns")
	return c
}

// leads returns the fence once the manager leads.
func (c *candidate) leads(t *testing.T) (fence uint64) {
	t.Helper()
	if _, err := fmt.Sscan(c.await(t, "leads: "), &fence); err != nil {
		t.Fatal(err)
	}
	return fence
}

// await returns the rest of the next line, which begins with text.
func (c *candidate) await(t *testing.T, text string) string {
	t.Helper()
	select {
	case line := <-c.lines:
		rest, ok := strings.CutPrefix(line, text)
		if !ok {
			t.Fatalf("the manager prints %q, not %q", line, text)
		}
		return rest
	case <-time.After(time.Minute):
		t.Fatalf("the manager does not print %q", text)
		return ""
	}
}

func (c *candidate) signal(t *testing.T, signal syscall.Signal) {
	t.Helper()
	if err := c.process.Signal(signal); err != nil {
		t.Fatal(err)
	}
}
