package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/test/poll"
)

// server is one that serves, until it is stopped or the test ends.
type server struct {
	t        *testing.T
	url      string
	out, log *output
	stop     context.CancelFunc // what SIGTERM does
	ended    chan struct{}
	code     int // when it has ended
	client   *http.Client
}

// listening finds the address in the log, in either format.
var listening = regexp.MustCompile(`"?msg"?[=:]"?listening"?.*?"?address"?[=:]"?([0-9.]+:[0-9]+)`)

// start runs a server on a free port.
func start(t *testing.T, args ...string) *server { return startWith(t, nil, args...) }

// startWith runs a server that speaks TLS with a certificate that the client trusts, if
// config is not nil.
func startWith(t *testing.T, config *tls.Config, args ...string) *server {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	// A transport puts HTTP/2 into its configuration; Clone of nil is nil.
	client := &http.Client{
		Transport: &http.Transport{TLSClientConfig: config.Clone(), ForceAttemptHTTP2: true},
	}
	s := &server{
		t: t, out: &output{}, log: &output{}, stop: cancel, ended: make(chan struct{}), client: client,
	}
	go func() {
		defer close(s.ended)
		s.code = run(
			ctx, append([]string{"--listen", "127.0.0.1:0"}, args...), environment{}, s.out, s.log,
		)
	}()
	t.Cleanup(func() { s.end() })
	var address []string
	poll.Until(t, "the server listens", func() bool {
		select {
		case <-s.ended:
			t.Fatalf("it ended with %d: %s", s.code, s.log)
		default:
		}
		address = listening.FindStringSubmatch(s.log.String())
		return address != nil
	})
	s.url = "http://" + address[1]
	if config != nil {
		s.url = "https://" + address[1]
	}
	poll.Until(
		t, "it is ready", func() bool { return s.call("", "GET", "/readyz", "").status == http.StatusOK },
	)
	return s
}

// end stops the server and returns its exit code.
func (s *server) end() int {
	s.t.Helper()
	s.stop()
	s.client.CloseIdleConnections()
	select {
	case <-s.ended:
	case <-time.After(30 * time.Second):
		s.t.Fatalf("it does not end: %s", s.log)
	}
	return s.code
}

// reply is what the server answered.
type reply struct {
	proto  string
	status int
	header http.Header
	body   map[string]any
}

func (r reply) text(field string) string { text, _ := r.body[field].(string); return text }

func (r reply) number(field string) float64 { n, _ := r.body[field].(float64); return n }

// call sends a request with a bearer token, and headers as name and value.
func (s *server) call(token, method, path, body string, headers ...string) reply {
	s.t.Helper()
	r, err := s.try(token, method, path, body, headers...)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	return r
}

func (s *server) try(token, method, path, body string, headers ...string) (reply, error) {
	req, err := http.NewRequest(method, s.url+path, strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	r := reply{proto: resp.Proto, status: resp.StatusCode, header: resp.Header, body: map[string]any{}}
	if len(text) > 0 && strings.Contains(resp.Header.Get("Content-Type"), "json") {
		err = json.Unmarshal(text, &r.body)
	}
	return r, err
}

// acquired is a grant of the lock, which must be given.
func (s *server) acquired(token, name, body string) reply {
	s.t.Helper()
	r := s.call(token, "POST", "/locks/"+name, body)
	if r.status != http.StatusCreated || r.text("state") != "held" || r.number("fence") < 1 {
		s.t.Fatalf("acquire %s: %d %v", name, r.status, r.body)
	}
	return r
}

// bearer returns a token for the tenant acme, made by the token command.
func bearer(t *testing.T, secretFile string) string {
	t.Helper()
	r := command(
		t, nil, "token", "--jwt-secret-file", secretFile, "--tenant", "acme", "--subject", "worker-1",
	)
	if r.code != 0 {
		t.Fatalf("%+v", r)
	}
	return strings.TrimSpace(r.out)
}

// TestDevelopment is the first thing that anybody sees: one flag, and the lines
// that it prints work.
func TestDevelopment(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o755); err != nil { //nolint:gosec // as careless as a user
		t.Fatal(err)
	}
	s := start(t, "--dev", "--data-dir", dir, "--max-hold-seconds", "0.2")
	token := printed(t, s, `(?m)^ *export FENCEPOST_TOKEN=(\S+)$`)
	if url := printed(t, s, `(?m)^ *export FENCEPOST_URL=(\S+)$`); url != s.url {
		t.Errorf("it prints the URL %s of a server at %s", url, s.url)
	}
	path := printed(
		t, s, `curl -X POST \$FENCEPOST_URL(/locks/\S+) -H "Authorization: Bearer \$FENCEPOST_TOKEN"`,
	)
	held := s.acquired(token, strings.TrimPrefix(path, "/locks/"), "")
	waiting := s.call(token, "POST", path, `{"wait_seconds":60}`)
	if waiting.status != http.StatusAccepted || waiting.number("position") != 1 {
		t.Fatalf("%d %v", waiting.status, waiting.body)
	}
	closedToOthers(t, dir)
	if code := s.end(); code != 0 {
		t.Errorf("exit code %d: %s", code, s.log)
	}

	again := start(t, "--dev", "--data-dir", dir)
	if printed(t, again, `(?m)^ *export FENCEPOST_TOKEN=(\S+)$`) == "" || again.url == s.url {
		t.Error("it did not start anew")
	}
	if r := again.call(
		token, "PUT", path+"/renew", "", "Lock-Token", held.text("token"),
	); r.status != http.StatusOK || r.number("fence") != held.number("fence") {
		t.Errorf("renew what was held before: %d %v", r.status, r.body)
	}
	place := "/locks/orders:42/entries/" + waiting.text("id")
	if r := again.call(
		token, "GET", place, "", "Lock-Token", waiting.text("token"),
	); r.status != http.StatusOK || r.text("state") != "waiting" || r.number("position") != 1 {
		t.Errorf("look at what waited before: %d %v", r.status, r.body)
	}
	if r := again.call(
		token, "DELETE", path, "", "Lock-Token", held.text("token"),
	); r.status != http.StatusNoContent {
		t.Errorf("release what was held before: %d %v", r.status, r.body)
	}
	r := again.call(token, "GET", place+"?wait_seconds=10", "", "Lock-Token", waiting.text("token"))
	if r.status != http.StatusOK || r.text("state") != "held" ||
		r.number("fence") <= held.number("fence") {
		t.Errorf("the next in line: %d %v", r.status, r.body)
	}
}

// TestDevelopmentWithAnIssuer: the token that is printed is one that the server takes.
func TestDevelopmentWithAnIssuer(t *testing.T) {
	t.Parallel()
	s := start(
		t, "--dev", "--data-dir", filepath.Join(t.TempDir(), "data"), "--jwt-issuer", "us",
		"--jwt-audience", "them",
	)
	if r := s.call(
		printed(t, s, `(?m)^ *export FENCEPOST_TOKEN=(\S+)$`), "GET", "/locks", "",
	); r.status != http.StatusOK {
		t.Errorf("%d %v", r.status, r.body)
	}
}

// TestTokenOfSixteenKiB: the longest token passes with headers of its own size next to it, also
// with the claims under the names that the settings say.
func TestTokenOfSixteenKiB(t *testing.T) {
	t.Parallel()
	key := file(t, secret)
	names := auth.ClaimNames{Tenant: "https://a.example/org", Scope: "scp"}
	s := start(t, "--jwt-secret-file", key, "--data-dir", filepath.Join(t.TempDir(), "data"),
		"--jwt-tenant-claim", names.Tenant, "--jwt-scope-claim", names.Scope)
	claims := auth.Claims{
		Tenant: "acme", Subject: "w", Scopes: []auth.Scope{auth.LocksRead}, Names: names,
	}
	for len(claims.Locks) < 59 {
		claims.Locks = append(claims.Locks, strings.Repeat("x", 200))
	}
	token, err := auth.Sign([]byte(secret), claims, time.Now(), time.Hour)
	if err != nil || len(token) < 15<<10 {
		t.Fatalf("Sign() has %d bytes, %v", len(token), err)
	}
	r := s.call(token, "GET", "/locks", "", "Tracestate", strings.Repeat("a=b,", 4000))
	if r.status != http.StatusOK {
		t.Errorf("%d %v", r.status, r.body)
	}
}

// printed finds what the server wrote for people.
func printed(t *testing.T, s *server, pattern string) string {
	t.Helper()
	var found []string
	poll.Until(t, "it prints "+pattern, func() bool {
		found = regexp.MustCompile(pattern).FindStringSubmatch(s.out.String())
		return found != nil && strings.Contains(s.out.String(), "/docs/")
	})
	return found[1]
}

// closedToOthers fails if anybody but the owner can see what is in the folder.
func closedToOthers(t *testing.T, dir string) {
	t.Helper()
	files := map[string]bool{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && path != dir && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		files[filepath.Base(path)] = true
		return err
	})
	if err != nil || !files[devSecretFile] || !files[devTokenFile] || !files["db"] {
		t.Errorf("%v in %v", err, files)
	}
}

// TestDrain: on SIGTERM a waiting request gets 503 with its entry, and the
// place is there when it comes back.
func TestDrain(t *testing.T) {
	t.Parallel()
	dir, secretFile := filepath.Join(t.TempDir(), "new"), file(t, secret)
	token := bearer(t, secretFile)
	s := start(t, "--jwt-secret-file", secretFile, "--data-dir", dir)
	held := s.acquired(token, "orders:1", "")
	told := make(chan reply, 1)
	var asked sync.WaitGroup
	asked.Go(func() {
		r, err := s.try(token, "POST", "/locks/orders:1", `{"wait_seconds":60}`)
		if err != nil {
			t.Errorf("the waiting request: %v", err)
		}
		told <- r
	})
	defer asked.Wait()
	poll.Until(t, "one waits", func() bool {
		waiters, _ := s.call(token, "GET", "/locks/orders:1", "").body["waiters"].([]any)
		return len(waiters) == 1
	})
	began := time.Now()
	if code := s.end(); code != 0 {
		t.Errorf("exit code %d: %s", code, s.log)
	}
	if d := time.Since(began); d > 20*time.Second || strings.Contains(s.log.String(), "cut off") {
		t.Errorf("it took %v to end: %s", d, s.log)
	}
	r := <-told
	entry, _ := r.body["entry"].(map[string]any)
	if r.status != http.StatusServiceUnavailable || r.text("code") != "draining" ||
		r.header.Get("Retry-After") == "" || entry == nil || r.header.Get("Location") == "" {
		t.Fatalf("the waiting request: %d %v %v", r.status, r.header, r.body)
	}
	for _, msg := range []string{`"msg":"draining"`, `"msg":"stopped"`} {
		if !strings.Contains(s.log.String(), msg) {
			t.Errorf("%s is not in the log: %s", msg, s.log)
		}
	}

	again := start(t, "--jwt-secret-file", secretFile, "--data-dir", dir)
	if r := again.call(
		token, "DELETE", "/locks/orders:1", "", "Lock-Token", held.text("token"),
	); r.status != http.StatusNoContent {
		t.Errorf("release: %d %v", r.status, r.body)
	}
	lockToken, _ := entry["token"].(string)
	got := again.call(
		token, "GET", r.header.Get("Location")+"?wait_seconds=10", "", "Lock-Token", lockToken,
	)
	if got.status != http.StatusOK || got.text("state") != "held" || got.text("id") != entry["id"] {
		t.Errorf("resumed: %d %v", got.status, got.body)
	}
}

// TestDrainDelay: a load balancer can see that the server is about to stop, and
// what it still sends is answered.
func TestDrainDelay(t *testing.T) {
	t.Parallel()
	secretFile := file(t, secret)
	token := bearer(t, secretFile)
	s := start(
		t, "--jwt-secret-file", secretFile, "--data-dir", t.TempDir(), "--drain-delay-seconds", "6",
	)
	held := s.call(token, "POST", "/locks/orders:1", "{}")
	began := time.Now()
	s.stop()
	poll.Until(t, "it is not ready", func() bool {
		return s.call("", "GET", "/readyz", "").status == http.StatusServiceUnavailable
	})
	if r := s.call(
		token, "POST", "/locks/orders:2", "{}",
	); r.status != http.StatusServiceUnavailable || r.text("code") != "draining" {
		t.Errorf("acquire: %d %v", r.status, r.body)
	}
	if r := s.call(
		token, "DELETE", "/locks/orders:1", "", "Lock-Token", held.text("token"),
	); r.status != http.StatusNoContent {
		t.Errorf("release: %d %v", r.status, r.body)
	}
	if code := s.end(); code != 0 {
		t.Errorf("exit code %d: %s", code, s.log)
	}
	if d := time.Since(began); d < 6*time.Second {
		t.Errorf("it went on listening for %v, want 6 s", d)
	}
}

// TestDrainEnds: a request that does not end is cut off when the time is over.
func TestDrainEnds(t *testing.T) {
	t.Parallel()
	secretFile := file(t, secret)
	token := bearer(t, secretFile)
	s := start(t, "--jwt-secret-file", secretFile, "--data-dir", t.TempDir(), "--drain-seconds", "0.3")
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	request := "POST /locks/orders:1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + token +
		"\r\nContent-Type: application/json\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n"
	if _, err := conn.Write([]byte(request)); err != nil {
		t.Fatal(err)
	}
	begun := make([]byte, 8)
	// now the body is awaited
	if _, err := io.ReadFull(conn, begun); err != nil || string(begun) != "HTTP/1.1" {
		t.Fatalf("%q, %v", begun, err)
	}
	began := time.Now()
	if code := s.end(); code != 0 || !strings.Contains(s.log.String(), "cut off") {
		t.Errorf("exit code %d: %s", code, s.log)
	}
	if d := time.Since(began); d < 300*time.Millisecond || d > 20*time.Second {
		t.Errorf("it took %v to end", d)
	}
}

// TestSettingsReachTheServer: what the flags say is what the server does.
func TestSettingsReachTheServer(t *testing.T) {
	t.Parallel()
	dir, secretFile, tokenKey := t.TempDir(), file(t, secret), file(t, strings.Repeat("k", 32))
	token := bearer(t, secretFile)
	common := []string{"--jwt-secret-file", secretFile, "--data-dir", dir}
	s := start(t, append(common, "--max-ttl-seconds", "60", "--max-hold-seconds", "0.2",
		"--fence-floor", "5000", "--token-key-file", tokenKey, "--log-format", "text",
		"--log-level", "debug", "--debug-listen", "127.0.0.1:0")...)
	if r := s.call(
		token, "POST", "/locks/orders:1", `{"ttl_seconds":60.5}`,
	); r.status != http.StatusBadRequest || !strings.Contains(r.text("detail"), "60") {
		t.Errorf("a longer lease than allowed: %d %v", r.status, r.body)
	}
	held := s.acquired(token, "orders:1", `{"ttl_seconds":60}`)
	if held.number("fence") <= 5000 {
		t.Errorf("fence %v is not above the floor", held.body["fence"])
	}
	if r := s.call(
		token, "POST", "/locks/orders:1", `{"wait_seconds":20}`,
	); r.status != http.StatusAccepted {
		t.Errorf("held open for longer than allowed: %d %v", r.status, r.body)
	}
	if strings.HasPrefix(s.log.String(), "{") {
		t.Errorf("the log is not text: %s", s.log)
	}
	profiler := regexp.MustCompile(`profiler" address=(\S+)`).FindStringSubmatch(s.log.String())
	if profiler == nil {
		t.Fatalf("the profiler's address is not in the log: %s", s.log)
	}
	for address, status := range map[string]int{
		"http://" + profiler[1]: http.StatusOK, s.url: http.StatusNotFound,
	} {
		resp, err := s.client.Get(address + "/debug/pprof/")
		if err != nil {
			t.Fatal(err)
		}
		if resp.Body.Close(); resp.StatusCode != status {
			t.Errorf("%s/debug/pprof/ answers %d", address, resp.StatusCode)
		}
	}
	s.end()

	// Without the key, its tokens are invalid; the floor is kept.
	other := start(t, common...)
	if r := other.call(
		token, "PUT", "/locks/orders:1/renew", "", "Lock-Token", held.text("token"),
	); r.status != http.StatusForbidden || r.text("code") != "token_mismatch" {
		t.Errorf("a token of another key: %d %v", r.status, r.body)
	}
	if fence := other.acquired(token, "orders:2", "").number("fence"); fence <= held.number("fence") {
		t.Errorf("fence %v after %v", fence, held.body["fence"])
	}
	other.end()
	fails(
		t, 1, nil, append(common, "--listen", "127.0.0.1:0", "--fence-floor", "4000"), "fence floor 4000",
		"5000",
	)

	same := start(t, append(common, "--token-key-file", tokenKey)...)
	if r := same.call(
		token, "PUT", "/locks/orders:1/renew", "", "Lock-Token", held.text("token"),
	); r.status != http.StatusOK {
		t.Errorf("a token of the same key: %d %v", r.status, r.body)
	}
}

// TestOneKeyFileInTwoDeployments: a lock token, a session and the id of an Idempotency-Key count in
// one of them, though both have one --token-key-file.
func TestOneKeyFileInTwoDeployments(t *testing.T) {
	t.Parallel()
	secretFile, tokenKey := file(t, secret), file(t, strings.Repeat("k", 32))
	token := strings.TrimSpace(
		command(
			t, nil, "token", "--jwt-secret-file", secretFile, "--tenant", "acme", "--scope",
			"locks:write admin",
		).out,
	)
	var here, there *server
	for _, s := range []**server{&here, &there} {
		jar, err := cookiejar.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		*s = start(
			t, "--jwt-secret-file", secretFile, "--token-key-file", tokenKey, "--data-dir", t.TempDir(),
		)
		(*s).client.Jar = jar
	}
	var last, first reply
	for i := range 20 {
		last = here.acquired(token, fmt.Sprintf("orders:%d", i), "")
	}
	if r := there.call(
		token, "PUT", "/locks/orders:19/renew", "", "Lock-Token", last.text("token"),
	); r.text("code") != "token_mismatch" {
		t.Errorf("a lock token of the other: %d %v", r.status, r.body)
	}
	there.acquired(token, "orders:19", "")
	last = here.call(token, "POST", "/locks/keyed", "", "Idempotency-Key", "deploy-48213")
	first = there.call(token, "POST", "/locks/keyed", "", "Idempotency-Key", "deploy-48213")
	if last.text("id") == first.text("id") || last.status != http.StatusCreated ||
		first.status != http.StatusCreated {
		t.Errorf("one key: %d %q, %d %q", last.status, last.text("id"), first.status, first.text("id"))
	}
	if r := here.call(
		"", "POST", "/dashboard/session", `{"bearer_token":"`+token+`"}`,
	); r.status != http.StatusOK {
		t.Fatalf("sign in: %d %v", r.status, r.body)
	}
	at, err := url.Parse(there.url)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range here.client.Jar.Cookies(at) { // a cookie's host has no port
		c.Name = "fencepost-session" + at.Port()
		there.client.Jar.SetCookies(at, []*http.Cookie{c})
	}
	for s, want := range map[*server]int{here: http.StatusOK, there: http.StatusUnauthorized} {
		if r := s.call("", "GET", "/dashboard/session", ""); r.status != want ||
			want != http.StatusOK && !strings.Contains(r.text("detail"), "not one of this server's") {
			t.Errorf("the session: %d %v, want %d", r.status, r.body, want)
		}
	}
}

// TestCannotStart: what the machine does not allow is said in one line, with the
// flag or the path that it is about.
func TestCannotStart(t *testing.T) {
	t.Parallel()
	secretFile := file(t, secret)
	serving := listen(t)
	t.Cleanup(func() { serving.Close() })
	address := serving.Addr().String()
	notAFolder, damaged := file(t, "not a folder"), t.TempDir()
	if err := os.WriteFile(filepath.Join(damaged, devSecretFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		says []string
	}{
		"PortInUse": {
			[]string{"--jwt-secret-file", secretFile, "--data-dir", t.TempDir(), "--listen", address},
			[]string{"--listen", address, "in use"},
		},
		"DebugPortInUse": {
			[]string{"--jwt-secret-file", secretFile, "--data-dir", t.TempDir(), "--debug-listen", address},
			[]string{"--debug-listen", address, "in use"},
		},
		"NotAFolder": {
			[]string{"--jwt-secret-file", secretFile, "--data-dir", notAFolder},
			[]string{"data folder", notAFolder, "not a directory"},
		},
		"BelowAFile": {
			[]string{"--jwt-secret-file", secretFile, "--data-dir", notAFolder + "/x"},
			[]string{"data folder", notAFolder, "not a directory"},
		},
		"DevNotAFolder": {
			[]string{"--dev", "--data-dir", notAFolder},
			[]string{"--data-dir", notAFolder, "not a directory"},
		},
		"DevBelowAFile": {
			[]string{"--dev", "--data-dir", notAFolder + "/x"},
			[]string{"--data-dir", notAFolder, "not a directory"},
		},
		"DevSecretDamaged": {
			[]string{"--dev", "--data-dir", damaged}, []string{devSecretFile, "0 bytes", "at least 32"},
		},
		"KeysUnreadable": {
			[]string{"--jwks", "/none", "--data-dir", t.TempDir()}, []string{"--jwks", "no such file"},
		},
		"NobodyAtTheStore": {
			[]string{"--jwt-secret-file", secretFile, "--store", "etcd://" + closedPort(t)},
			[]string{"etcd://127.0.0.1", "cannot be used"},
		},
		"SilenceAtTheStore": {
			[]string{"--jwt-secret-file", secretFile, "--store", "etcd://" + silentPort(t)},
			[]string{"etcd://127.0.0.1", "cannot be used"},
		},
		"NobodyAtZooKeeper": {
			[]string{"--jwt-secret-file", secretFile, "--store", "zookeeper://" + closedPort(t)},
			[]string{"zookeeper://127.0.0.1", "cannot be used"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			fails(t, 1, nil, append([]string{"--listen", "127.0.0.1:0"}, c.args...), c.says...)
			if d := time.Since(began); d > 30*time.Second { // 8 s, and what a busy machine adds
				t.Errorf("it took %v", d)
			}
		})
	}
}

// TestDataFolderInUse: two servers never meet in one folder.
func TestDataFolderInUse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, "--dev", "--data-dir", dir)
	token := printed(t, s, `(?m)^ *export FENCEPOST_TOKEN=(\S+)$`)
	fails(
		t, 1, nil, []string{"--dev", "--data-dir", dir, "--listen", "127.0.0.1:0"}, dir,
		"in use by another process",
	)
	s.acquired(token, "orders:1", "") // the first one did not notice
	s.end()
	start(t, "--dev", "--data-dir", dir)
}

// TestStopBeforeTheStart: a signal that comes early is not missed.
func TestStopBeforeTheStart(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var log bytes.Buffer
	began := time.Now()
	run(
		ctx, []string{"--dev", "--data-dir", t.TempDir(), "--listen", "127.0.0.1:0"}, environment{},
		io.Discard, &log,
	)
	if d := time.Since(began); d > 30*time.Second { // 8 s, and what a busy machine adds
		t.Errorf("it took %v: %s", d, log.String())
	}
}

// TestServerStartsBeforeItsIssuer: it is not ready until the key set could be read once.
func TestServerStartsBeforeItsIssuer(t *testing.T) {
	t.Parallel()
	var reads atomic.Int32
	issuer := serveTest(t, func(w http.ResponseWriter, _ *http.Request) {
		if reads.Add(1) == 1 {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		_, _ = io.WriteString(
			w,
			`{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"k","alg":"EdDSA","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`,
		)
	})
	s := start(t, "--jwks", "http://"+issuer+"/keys", "--data-dir", t.TempDir())
	if log := s.log.String(); reads.Load() < 2 || !strings.Contains(log, "key set cannot be read") ||
		!strings.Contains(log, `"status":503`) {
		t.Errorf("after %d reads it is ready: %s", reads.Load(), log)
	}
}

// TestIdleConnections: the server closes them after the time that is set, and not before.
func TestIdleConnections(t *testing.T) {
	t.Parallel()
	s := start(
		t, "--jwt-secret-file", file(t, secret), "--data-dir", t.TempDir(), "--idle-timeout-seconds",
		"0.3",
	)
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "HEAD /healthz HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if _, err := io.Copy(
		io.Discard, conn,
	); err != nil || time.Since(began) < 300*time.Millisecond || time.Since(began) > 30*time.Second {
		t.Errorf("closed after %v, %v", time.Since(began), err)
	}
	if c := parsed(t, environment{envSecret: secret}); time.Duration(c.idleTimeout) !=
		620*time.Second {
		t.Errorf("by default %v", time.Duration(c.idleTimeout))
	}
}
