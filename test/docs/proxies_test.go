package docs

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fencepost/fencepost/test/rig"
)

// TestProxies: the configurations of behind-a-proxy.md let requests wait, pass events on at once,
// and keep /metrics to themselves, while one of two replicas does not run.
func TestProxies(t *testing.T) {
	root := repository(t)
	run(t, filepath.Join(root, "test", "docs", "proxies"))
	binary, err := rig.BuildAPI(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	server := replicaBehind(t, binary)
	token := tokenOf(t, server, "demo")
	for name, start := range map[string]func(*testing.T, string, []string) *exec.Cmd{
		"nginx": nginx, "haproxy": haproxy,
	} {
		t.Run(name, func(t *testing.T) {
			c := behind{t: t, url: "http://" + unused(t), token: token}
			proxy := start(t, strings.TrimPrefix(c.url, "http://"), []string{server.Address(), unused(t)})
			begin(t, proxy)
			c.check()
		})
	}
}

// TestProxySplitsTenants: the proxy sends the tenants of its file to a second store, and all others
// to the first.
func TestProxySplitsTenants(t *testing.T) {
	root := repository(t)
	run(t, filepath.Join(root, "test", "docs", "proxies"))
	binary, err := rig.BuildAPI(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	first, second := replicaBehind(t, binary), replicaBehind(t, binary)
	tenants := filepath.Join(t.TempDir(), "tenants")
	if err := os.WriteFile(tenants, []byte("far\nfarther\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	address := unused(t)
	proxy := haproxy(t, address, []string{first.Address(), unused(t)})
	proxy.Env = append(proxy.Env,
		"TENANTS="+tenants, "OTHER_1="+unused(t), "OTHER_2="+second.Address())
	begin(t, proxy)
	for tenant, of := range map[string]*rig.Replica{
		"demo": first, "far": second, "farther": second, "farthest": first,
	} {
		c := behind{t: t, url: "http://" + address, token: tokenOf(t, first, tenant)}
		c.acquired("/locks/" + tenant)
		for _, r := range []*rig.Replica{first, second} {
			want := http.StatusCreated // it is free there
			if r == of {
				want = http.StatusLocked
			}
			at := behind{t: t, url: r.URL(), token: c.token}
			if got := at.status(t.Context(), http.MethodPost, "/locks/"+tenant, ""); got != want {
				t.Errorf("the lock of %s at %s: %d, want %d", tenant, r.Address(), got, want)
			}
		}
	}
}

// replicaBehind starts a replica with a store of its own.
func replicaBehind(t *testing.T, binary string) *rig.Replica {
	t.Helper()
	server, err := rig.StartReplica(t.Context(), rig.ReplicaConfig{
		Binary: binary, DataDir: filepath.Join(t.TempDir(), "data"), Secret: strings.Repeat("d", 32),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return server
}

func tokenOf(t *testing.T, r *rig.Replica, tenant string) string {
	t.Helper()
	token, err := r.Token(tenant, scopes, "reader")
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// begin starts a proxy, and ends it with the test.
func begin(t *testing.T, proxy *exec.Cmd) {
	t.Helper()
	proxy.Stdout, proxy.Stderr = t.Output(), t.Output()
	proxy.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := proxy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-proxy.Process.Pid, syscall.SIGKILL)
		_ = proxy.Wait()
	})
}

// nginx has the page's block listen at an address, in front of replicas.
func nginx(t *testing.T, address string, replicas []string) *exec.Cmd {
	t.Helper()
	found := blocks(read(t, repository(t), "docs/how-to/behind-a-proxy.md"))
	at := slices.IndexFunc(found, func(b *block) bool { return b.lang == "nginx" })
	text := strings.NewReplacer(
		"listen 443 ssl", "listen "+address, "10.0.0.1:8080", replicas[0], "10.0.0.2:8080", replicas[1],
	).Replace(found[at].text())
	dir := t.TempDir()
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		text += fmt.Sprintf("%s_temp_path %s/%s;\n", kind, dir, kind)
	}
	text = "daemon off; pid " + dir + "/pid; error_log stderr; events {}\n" +
		"http { access_log off;\n" + text + "}\n"
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return exec.Command("/usr/sbin/nginx", "-e", "stderr", "-c", file)
}

func haproxy(t *testing.T, address string, replicas []string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/usr/sbin/haproxy", "-f",
		filepath.Join(repository(t), "deploy", "haproxy", "haproxy.cfg"))
	cmd.Env = append(os.Environ(),
		"LISTEN="+address, "REPLICA_1="+replicas[0], "REPLICA_2="+replicas[1])
	return cmd
}

// unused returns an address where no process listens.
func unused(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// behind is a client whose requests pass a proxy.
type behind struct {
	t          *testing.T
	url, token string
}

// acquired takes a lock as soon as the proxy finds a replica.
func (c behind) acquired(lock string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 2*time.Minute)
	defer cancel()
	for c.status(ctx, http.MethodPost, lock, "") != http.StatusCreated {
		select {
		case <-ctx.Done():
			c.t.Fatal("no lock is granted through the proxy")
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (c behind) check() {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 2*time.Minute)
	defer cancel()
	lock := "/locks/" + strings.TrimPrefix(c.t.Name(), "TestProxies/")
	c.acquired(lock)
	for path, want := range map[string]int{"/metrics": 404, "/readyz": 404, "/docs/": 200} {
		if got := c.status(ctx, http.MethodGet, path, ""); got != want {
			c.t.Errorf("%s: %d, want %d", path, got, want)
		}
	}
	if got := c.status(ctx, http.MethodPost, lock, `{"wait_seconds": 1}`); got != http.StatusLocked {
		c.t.Errorf("a wait: %d", got)
	}
	stream, err := c.do(ctx, http.MethodGet, "/events?types=lock.acquired", "")
	if err != nil {
		c.t.Fatal(err)
	}
	defer stream.Body.Close()
	for range 10 { // also to the replica that does not run, which the proxy skips
		if got := c.status(ctx, http.MethodPost, lock+"-2", `{"mode": "shared"}`); got != http.StatusCreated {
			c.t.Errorf("with one replica: %d", got)
		}
	}
	for lines := bufio.NewScanner(stream.Body); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "event: lock.acquired") {
			return
		}
	}
	c.t.Error("no event arrives while the stream is open")
}

func (c behind) do(ctx context.Context, method, path, body string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	return http.DefaultClient.Do(request)
}

// status returns the status of an answer, 0 without one.
func (c behind) status(ctx context.Context, method, path, body string) int {
	answer, err := c.do(ctx, method, path, body)
	if err != nil {
		return 0
	}
	defer answer.Body.Close()
	return answer.StatusCode
}
