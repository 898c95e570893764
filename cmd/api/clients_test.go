package main

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/auth/certtest"
	"github.com/fencepost/fencepost/test/poll"
)

const (
	ofWorker    = "spiffe://example/worker"
	someWorkers = `{"principals":[{"uri":"` + ofWorker +
		`","tenant":"acme","subject":"worker-7","scopes":["locks:read","locks:write"],"locks":["orders:*"]}]}`
)

// shows is the configuration of a client with a certificate that the authority signed.
func shows(t *testing.T, server, client *certtest.Authority, uri string) *tls.Config {
	t.Helper()
	cert, key := client.Issue(t, func(c *x509.Certificate) {
		u, err := url.Parse(uri)
		if err != nil {
			t.Fatal(err)
		}
		c.URIs = []*url.URL{u}
	})
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{
		RootCAs: server.Pool(), Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12,
	}
}

// as is the server asked by another client, without a bearer token unless one is named.
func (s *server) as(config *tls.Config) *server {
	other := *s
	other.client = &http.Client{
		Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true},
	}
	s.t.Cleanup(other.client.CloseIdleConnections)
	return &other
}

// TestClientCertificates: a certificate stands for its principal in the file, a bearer token goes
// before it, and a connection outlives neither the file's line nor the authority.
func TestClientCertificates(t *testing.T) {
	t.Parallel()
	a, ca, stranger := certtest.NewAuthority(t, "a"), certtest.NewAuthority(
		t, "clients",
	), certtest.NewAuthority(t, "clients")
	dir, secretFile := t.TempDir(), file(t, secret)
	caFile, principals := file(t, string(ca.PEM())), filepath.Join(dir, "principals.json")
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(principals, someWorkers)
	plain := &tls.Config{RootCAs: a.Pool(), MinVersion: tls.VersionTLS12}
	s := startWith(
		t, plain,
		append(
			pemFiles(t, a, dir, nil), "--jwt-secret-file", secretFile, "--data-dir", t.TempDir(),
			"--client-ca", caFile, "--principals", principals,
		)...,
	)
	worker := s.as(shows(t, a, ca, ofWorker))
	held := worker.acquired("", "orders:1", "")
	if held.text("holder") != "worker-7" {
		t.Errorf("held by %v", held.body)
	}
	if got := s.call("", "GET", "/locks", ""); !strings.HasSuffix(
		got.text("detail"), "or a client certificate",
	) {
		t.Errorf("who shows nothing is asked for %v", got.body)
	}
	status := func(of *server, token, method, path string, headers ...string) int {
		t.Helper()
		return of.call(token, method, path, "", headers...).status
	}
	other := strings.TrimSpace(
		command(t, nil, "token", "--jwt-secret-file", secretFile, "--tenant", "other").out,
	)
	for name, c := range map[string]struct{ got, want int }{
		"another lock":  {status(worker, "", "POST", "/locks/jobs:1"), http.StatusForbidden},
		"no scope":      {status(worker, "", "GET", "/webhooks"), http.StatusForbidden},
		"nothing shown": {status(s, "", "GET", "/locks"), http.StatusUnauthorized},
		"a stranger": {
			status(s.as(shows(t, a, ca, ofWorker+"/x")), "", "GET", "/locks"), http.StatusUnauthorized,
		},
		"a token's tenant": {status(worker, other, "POST", "/locks/orders:1"), http.StatusCreated},
		"a bad token":      {status(worker, "nonsense", "GET", "/locks"), http.StatusUnauthorized},
		"a page of another site": {
			status(worker, "", "GET", "/locks", "Sec-Fetch-Site", "cross-site"), http.StatusForbidden,
		},
		"health": {status(worker, "", "GET", "/healthz"), http.StatusOK},
		"the same tenant's token": {
			status(s, bearer(t, secretFile), "GET", "/locks/orders:1"), http.StatusOK,
		},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d, want %d", name, c.got, c.want)
		}
	}
	for _, path := range []string{"/webhooks", "/locks/jobs:1", "/admin/overview"} {
		if r := worker.call("", "GET", path, ""); r.status != http.StatusForbidden ||
			strings.Contains(r.text("detail")+r.text("title"), "token") {
			t.Errorf("who showed a certificate is told of a token he did not send: %v", r.body)
		}
	}
	if _, err := s.as(shows(t, a, stranger, ofWorker)).try("", "GET", "/locks", ""); err == nil {
		t.Error("a certificate of another authority is taken")
	}
	write(principals, "nonsense")
	poll.Until(
		t, "nonsense is logged",
		func() bool { return strings.Contains(s.log.String(), `"flags":"--principals","error"`) },
	)
	if got := status(worker, "", "GET", "/locks/orders:1"); got != http.StatusOK {
		t.Errorf("with nonsense in the file: %d", got)
	}
	poll.Until(
		t, "it is in the metrics",
		func() bool { return worker.figure(`fencepost_principals_refused{file="principals"}`) == "1" },
	)
	if got := worker.figure("fencepost_tls_files_refused"); got != "0" {
		t.Errorf("the files of certificates are called refused: %s", got)
	}
	write(principals, `{"principals":[]}`)
	poll.Until(
		t, "nothing is refused",
		func() bool { return worker.figure(`fencepost_principals_refused{file="principals"}`) == "0" },
	)
	poll.Until(
		t, "the line is gone",
		func() bool { return status(worker, "", "GET", "/locks") == http.StatusUnauthorized },
	)
	write(principals, someWorkers)
	poll.Until(
		t, "the line is there",
		func() bool { return status(worker, "", "GET", "/locks") == http.StatusOK },
	)
	write(caFile, string(stranger.PEM()))
	poll.Until(t, "the authority is gone", func() bool {
		r := worker.call("", "GET", "/locks", "")
		return r.status == http.StatusUnauthorized &&
			strings.Contains(r.text("detail"), "not trusted any more")
	})
	if got := s.as(shows(t, a, stranger, ofWorker)).acquired("", "orders:2", ""); got.text("holder") !=
		"worker-7" {
		t.Errorf("by the other authority: %v", got.body)
	}
}

// TestWorkEndsWithTheLineOfItsCertificate: a waiting request and a stream end within a second or
// two of the change of a file, and those of other certificates go on.
func TestWorkEndsWithTheLineOfItsCertificate(t *testing.T) {
	t.Parallel()
	a, ca, dir, secretFile := certtest.NewAuthority(t, "a"), certtest.NewAuthority(
		t, "clients",
	), t.TempDir(), file(t, secret)
	principals := filepath.Join(dir, "principals.json")
	line := func(who string) string {
		return `{"uri":"` + ofWorker + who + `","tenant":"acme","subject":"w` + who +
			`","scopes":["locks:read","locks:write"]}`
	}
	write := func(lines ...string) {
		t.Helper()
		if err := os.WriteFile(
			principals, []byte(`{"principals":[`+strings.Join(lines, ",")+`]}`), 0o600,
		); err != nil {
			t.Fatal(err)
		}
	}
	write(line("1"), line("2"))
	plain := &tls.Config{RootCAs: a.Pool(), MinVersion: tls.VersionTLS12}
	s := startWith(t, plain, append(pemFiles(
		t, a, dir, nil,
	), "--jwt-secret-file", secretFile, "--data-dir", t.TempDir(),
		"--client-ca", file(t, string(ca.PEM())), "--principals", principals)...)
	held := s.acquired(bearer(t, secretFile), "orders:1", "")
	answers := map[string]chan reply{}
	for _, who := range []string{"1", "2"} {
		worker, told := s.as(shows(t, a, ca, ofWorker+who)), make(chan reply, 1)
		answers[who] = told
		go func() {
			r, err := worker.try("", "POST", "/locks/orders:1", `{"wait_seconds":40}`)
			if err != nil {
				t.Errorf("worker %s: %v", who, err)
			}
			told <- r
		}()
	}
	poll.Until(t, "both wait", func() bool {
		waiters, _ := s.call(bearer(t, secretFile), "GET", "/locks/orders:1", "").body["waiters"].([]any)
		return len(waiters) == 2
	})
	write(line("2"))
	if r := <-answers["1"]; r.status != http.StatusUnauthorized ||
		r.text("code") != "unauthenticated" {
		t.Errorf("without its line: %d %v", r.status, r.body)
	}
	s.call(bearer(t, secretFile), "DELETE", "/locks/orders:1", "", "Lock-Token", held.text("token"))
	if r := <-answers["2"]; r.status != http.StatusCreated {
		t.Errorf("with its line: %d %v", r.status, r.body)
	}
}

// TestBadClients: what cannot be used is refused before anything starts.
func TestBadClients(t *testing.T) {
	t.Parallel()
	a, secretFile := certtest.NewAuthority(t, "a"), file(t, secret)
	pair := pemFiles(t, a, t.TempDir(), nil)
	caFile, principals := file(t, string(a.PEM())), file(t, someWorkers)
	for _, c := range []struct {
		code int
		args []string
		says string
	}{
		{exitConfig, append(pair, "--client-ca", caFile), "need each other"},
		{exitConfig, append(pair, "--principals", principals), "need each other"},
		{exitConfig, []string{"--client-ca", caFile, "--principals", principals}, "needs --tls-cert"},
		{1, append(pair, "--client-ca", pair[1], "--principals", principals), "not that of an authority"},
		{1, append(pair, "--client-ca", pair[3], "--principals", principals), "PRIVATE KEY"},
		{1, append(pair, "--client-ca", file(t, ""), "--principals", principals), "no certificate"},
		{1, append(pair, "--client-ca", caFile, "--principals", file(t, "{}")), "no list of principals"},
		{exitConfig, []string{"--ops-listen", "9090"}, "not host:port"},
	} {
		fails(
			t, c.code, nil,
			append(
				[]string{"--jwt-secret-file", secretFile, "--data-dir", t.TempDir(), "--listen", "127.0.0.1:0"},
				c.args...,
			),
			c.says,
		)
	}
}

var opsAddress = regexp.MustCompile(`"serving operations","address":"([^"]+)"`)

// TestOps: metrics are where operations are, and nowhere else; health is at both, and the
// profiler only where it was asked for.
func TestOps(t *testing.T) {
	t.Parallel()
	a, secretFile := certtest.NewAuthority(t, "a"), file(t, secret)
	config := &tls.Config{RootCAs: a.Pool(), MinVersion: tls.VersionTLS12}
	for name, c := range map[string]struct {
		args []string
		want map[string]int // below /debug/pprof/ and so on, of the address for operations
	}{
		"Plain": {
			nil,
			map[string]int{
				"/metrics": 200, "/healthz": 200, "/readyz": 200, "/debug/pprof/": 404, "/locks": 404,
				"/admin/overview": 404, "/dashboard/": 404, "/openapi.json": 404,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := append(
				pemFiles(t, a, t.TempDir(), nil), "--jwt-secret-file", secretFile, "--data-dir", t.TempDir(),
				"--ops-listen", "127.0.0.1:0",
			)
			s := startWith(t, config, append(args, c.args...)...)
			ops := *s
			ops.url = "http://" + opsAddress.FindStringSubmatch(s.log.String())[1]
			for path, want := range c.want {
				if r := ops.call(bearer(t, secretFile), "GET", path, ""); r.status != want {
					t.Errorf("%s: %d, want %d", path, r.status, want)
				}
			}
			for path, want := range map[string]int{
				"/metrics": 404, "/healthz": 200, "/readyz": 200, "/debug/pprof/": 404,
			} {
				if r := s.call("", "GET", path, ""); r.status != want {
					t.Errorf("where clients are, %s: %d, want %d", path, r.status, want)
				}
			}
			if ops.figure("fencepost_tls_files_refused") != "0" {
				t.Error("the figures are not there")
			}
		})
	}
	taken := start(t, "--jwt-secret-file", secretFile, "--data-dir", t.TempDir())
	fails(
		t, 1, nil,
		[]string{
			"--jwt-secret-file", secretFile, "--data-dir", t.TempDir(), "--listen", "127.0.0.1:0",
			"--ops-listen", strings.TrimPrefix(taken.url, "http://"),
		},
		"--ops-listen", "in use",
	)
}
