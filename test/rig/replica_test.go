package rig_test

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/fencepost/fencepost/test/rig"
	"github.com/golang-jwt/jwt/v5"
)

const secret = "a secret of at least thirty-two bytes"

// The test binary stands in for the server, and for a program that uses the rig.
const (
	roleVariable = "RIG_TEST_ROLE"
	roleServer   = "server"
	roleDeaf     = "server that ignores SIGTERM"
	roleBroken   = "server that cannot start"
	roleParent   = "program that starts a server and is killed"
)

func TestMain(m *testing.M) {
	switch role := os.Getenv(roleVariable); role {
	case "":
		os.Exit(m.Run())
	case roleServer, roleDeaf:
		os.Exit(serve(role == roleDeaf))
	case roleBroken:
		fmt.Fprintln(os.Stderr, `{"level":"ERROR","msg":"store unreachable"}`)
		os.Exit(3)
	case roleParent:
		os.Exit(parent())
	}
}

// serve is a server that becomes ready on the second question.
func serve(deaf bool) int {
	flags := flag.NewFlagSet("server", flag.ContinueOnError)
	listen := flags.String("listen", "", "")
	for _, name := range []string{"store", "data-dir", "jwt-secret-file", "extra"} {
		flags.String(name, "", "")
	}
	if err := flags.Parse(os.Args[1:]); err != nil {
		return 2
	}
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		return 1
	}
	fmt.Fprintf(os.Stderr, "not JSON\n{\"msg\":\"listening\",\"address\":%q}\n", listener.Addr())
	var asked atomic.Int32
	http.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	http.HandleFunc("/args", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, os.Args[1:]) })
	server := &http.Server{}
	go func() {
		for range terminated {
			if !deaf {
				server.Close()
			}
		}
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return 1
	}
	return 0
}

func parent() int {
	config := config(roleServer, os.Getenv("RIG_TEST_DIR"))
	r, err := rig.StartReplica(context.Background(), config)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println(r.PID())
	select {}
}

func config(role, dir string) rig.ReplicaConfig {
	return rig.ReplicaConfig{
		Binary: os.Args[0], DataDir: filepath.Join(dir, "replica"), Secret: secret,
		Env: []string{roleVariable + "=" + role},
	}
}

func start(t *testing.T, config rig.ReplicaConfig) *rig.Replica {
	t.Helper()
	r, err := rig.StartReplica(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if r.Running() {
			t.Error("Running() = true after Close")
		}
	})
	return r
}

func get(t *testing.T, url string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body := make([]byte, 4096)
	n, _ := resp.Body.Read(body)
	return string(body[:n]), nil
}

func TestReplicaKeepsItsAddress(t *testing.T) {
	r := start(t, config(roleServer, t.TempDir()))
	url := r.URL()
	if err := r.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := get(t, url); err == nil {
		t.Error("the server answers after Kill")
	}
	if err := r.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := get(t, url+"/args"); err != nil || r.URL() != url {
		t.Errorf("after Restart: URL() = %s, get = %v, want %s and an answer", r.URL(), err, url)
	}
}

func TestReplicaCommandLine(t *testing.T) {
	for _, test := range []struct{ store, with, without string }{
		{"", "--store embedded --data-dir", "etcd"},
		{"etcd://127.0.0.1:1", "--store etcd://127.0.0.1:1", "--data-dir"},
	} {
		config := config(roleServer, t.TempDir())
		config.Store, config.Args = test.store, []string{"--extra", "x"}
		r := start(t, config)
		args, err := get(t, r.URL()+"/args")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(args, test.with) || strings.Contains(args, test.without) || !strings.Contains(args, "--extra x") {
			t.Errorf("store %q: arguments are %s, want %q, no %q", test.store, args, test.with, test.without)
		}
	}
}

func TestReplicaStopAndContinue(t *testing.T) {
	r := start(t, config(roleServer, t.TempDir()))
	if err := r.Stop(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "no answer after Stop, which takes a moment", func() bool {
		_, err := get(t, r.URL()+"/args")
		return errors.Is(err, context.DeadlineExceeded)
	})
	if err := r.Continue(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "an answer after Continue", func() bool { _, err := get(t, r.URL()+"/args"); return err == nil })
}

func TestReplicaTerminate(t *testing.T) {
	r := start(t, config(roleServer, t.TempDir()))
	if err := r.Terminate(t.Context()); err != nil || r.Running() {
		t.Errorf("Terminate() = %v, running %v, want a clean end", err, r.Running())
	}
	deaf := start(t, config(roleDeaf, t.TempDir()))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := deaf.Terminate(ctx); !errors.Is(err, context.DeadlineExceeded) || deaf.Running() {
		t.Errorf("Terminate() of a deaf server = %v, running %v, want a time-out and a kill", err, deaf.Running())
	}
}

func TestReplicaThatCannotStart(t *testing.T) {
	_, err := rig.StartReplica(t.Context(), config(roleBroken, t.TempDir()))
	if !errors.Is(err, rig.ErrExited) || !strings.Contains(err.Error(), "store unreachable") {
		t.Errorf("StartReplica() = %v, want ErrExited with the end of the log", err)
	}
}

func TestReplicaDiesWithItsParent(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"="+roleParent, "RIG_TEST_DIR="+t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Sscan(line, &pid); err != nil || syscall.Kill(pid, 0) != nil {
		t.Fatalf("the parent printed %q (%v), want the id of a running process", line, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	t.Cleanup(func() {
		if t.Failed() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	eventually(t, "the end of the server", func() bool { return gone(pid) })
}

// gone says whether a process has ended; a zombie that its new parent has not
// collected yet has.
func gone(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(stat), ") Z ")
}

func TestSignToken(t *testing.T) {
	signed, err := rig.SignToken(secret+"\n", "acme", "locks:read locks:write", "worker-1")
	if err != nil {
		t.Fatal(err)
	}
	claims := jwt.MapClaims{}
	key := func(*jwt.Token) (any, error) { return []byte(secret), nil }
	if _, err := jwt.ParseWithClaims(signed, claims, key, jwt.WithValidMethods([]string{"HS256"}), jwt.WithExpirationRequired()); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"tenant": "acme", "scope": "locks:read locks:write", "sub": "worker-1"} {
		if claims[name] != want {
			t.Errorf("claim %s = %v, want %s", name, claims[name], want)
		}
	}
}
