package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost/fencepost/auth/certtest"
	"github.com/fencepost/fencepost/test/poll"
)

// pemFiles puts a certificate of the authority into files.
func pemFiles(
	t *testing.T, a *certtest.Authority, dir string, change func(*x509.Certificate),
) (args []string) {
	t.Helper()
	cert, key := a.Issue(t, change)
	certFile, keyFile := certtest.Write(t, dir, cert, key)
	return []string{"--tls-cert", certFile, "--tls-key", keyFile}
}

// seen is when the certificate ends that a new connection is shown.
func (s *server) seen(config *tls.Config) string {
	s.t.Helper()
	conn, err := (&tls.Dialer{Config: config}).DialContext(
		s.t.Context(), "tcp", strings.TrimPrefix(s.url, "https://"),
	)
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0].NotAfter.UTC().Format(time.RFC3339)
}

// TestTLS: a server with a certificate speaks TLS alone, with HTTP/2 for those who ask for it.
func TestTLS(t *testing.T) {
	t.Parallel()
	a, secretFile := certtest.NewAuthority(t, "a"), file(t, secret)
	token := bearer(t, secretFile)
	args := pemFiles(t, a, t.TempDir(), nil)
	config := &tls.Config{RootCAs: a.Pool(), MinVersion: tls.VersionTLS12}
	s := startWith(
		t, config,
		append(
			args, "--jwt-secret-file", secretFile, "--data-dir", t.TempDir(), "--drain-seconds", "20",
		)...,
	)
	address := strings.TrimPrefix(s.url, "https://")
	held := s.acquired(token, "orders:1", "")
	told := make(chan reply, 1)
	var asked sync.WaitGroup
	defer asked.Wait()
	asked.Go(func() {
		r, err := s.try(token, "POST", "/locks/orders:1", `{"wait_seconds":60}`, "Idempotency-Key", "k")
		if err != nil {
			t.Errorf("a long poll: %v", err)
		}
		told <- r
	})
	poll.Until(t, "one waits", func() bool {
		waiters, _ := s.call(token, "GET", "/locks/orders:1", "").body["waiters"].([]any)
		return len(waiters) == 1
	})
	if r := s.call(
		token, "DELETE", "/locks/orders:1", "", "Lock-Token", held.text("token"),
	); r.status != http.StatusNoContent {
		t.Errorf("release: %d %v", r.status, r.body)
	}
	if r := <-told; r.status != http.StatusCreated || r.proto != "HTTP/2.0" {
		t.Errorf("a long poll: %d %s %v", r.status, r.proto, r.body)
	}
	resp, err := http.Get("http://" + address + "/healthz") //nolint:noctx // it ends at once
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(resp.Body)
	if resp.Body.Close(); resp.StatusCode != http.StatusBadRequest ||
		!bytes.Contains(text, []byte("HTTPS server")) {
		t.Errorf("plain text is answered %d %s", resp.StatusCode, text)
	}
	old := &tls.Config{RootCAs: a.Pool(), MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11} //nolint:gosec // what must be refused
	if conn, err := tls.Dial("tcp", address, old); err == nil {
		t.Error("it speaks TLS 1.1")
		_ = conn.Close()
	}
	if r := command(
		t, environment{"FENCEPOST_TLS_CERT": args[1]}, "health", "--listen", address,
	); r.code != 0 || !strings.Contains(r.out, "https://"+address+"/healthz answers 200") {
		t.Errorf("%+v", r)
	}
	fails(t, 1, nil, []string{"health", "--listen", address}, "400")
	fails(t, 1, nil, []string{"health", "--url", s.url + "/healthz"}, "certificate")
	if code := s.end(); code != 0 || !strings.Contains(s.log.String(), `"msg":"stopped"`) {
		t.Errorf("exit code %d: %s", code, s.log)
	}
}

// TestTLSInDevelopment: the links that are printed are those of a server with TLS.
func TestTLSInDevelopment(t *testing.T) {
	t.Parallel()
	a := certtest.NewAuthority(t, "a")
	config := &tls.Config{RootCAs: a.Pool(), MinVersion: tls.VersionTLS12}
	s := startWith(
		t, config,
		append(
			pemFiles(t, a, t.TempDir(), nil), "--dev", "--data-dir", filepath.Join(t.TempDir(), "data"),
		)...,
	)
	if at := printed(t, s, `The dashboard: (\S+)/dashboard/#code=`); at != s.url {
		t.Errorf("it prints %s", at)
	}
}

// TestReloadUnderLoad: certificates are replaced, by good ones and by those that are of no
// use, while clients ask and wait: no connection and no request is lost, new connections see
// the newest good one, and log and metrics say what is in use.
func TestReloadUnderLoad(t *testing.T) {
	t.Parallel()
	a, dir, secretFile := certtest.NewAuthority(t, "a"), t.TempDir(), file(t, secret)
	token := bearer(t, secretFile)
	config := &tls.Config{RootCAs: a.Pool(), MinVersion: tls.VersionTLS12}
	s := startWith(
		t, config,
		append(pemFiles(t, a, dir, nil), "--jwt-secret-file", secretFile, "--data-dir", t.TempDir())...,
	)
	var dialed, answered atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	defer load.Wait()
	defer stop()
	for i := range 4 { // two with HTTP/2, two without, each over one connection
		kept := &http.Transport{TLSClientConfig: config.Clone(), ForceAttemptHTTP2: i%2 == 0}
		kept.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			dialed.Add(1)
			return new(net.Dialer).DialContext(ctx, network, address)
		}
		load.Go(func() {
			defer kept.CloseIdleConnections()
			mine := *s
			mine.client = &http.Client{Transport: kept}
			for ctx.Err() == nil {
				r, err := mine.try(token, "POST", fmt.Sprintf("/locks/load:%d", i), `{"wait_seconds":5}`)
				if err != nil || r.status != http.StatusCreated {
					t.Errorf("acquire: %d %v %v", r.status, r.body, err)
					return
				}
				if r, err = mine.try(
					token, "DELETE", fmt.Sprintf("/locks/load:%d", i), "", "Lock-Token", r.text("token"),
				); err != nil || r.status != http.StatusNoContent {
					t.Errorf("release: %d %v %v", r.status, r.body, err)
					return
				}
				answered.Add(1)
			}
		})
	}
	end := time.Now().Add(30 * time.Minute).UTC().Truncate(time.Second)
	pemFiles(t, a, dir, func(c *x509.Certificate) { c.NotAfter = end })
	want := end.Format(time.RFC3339)
	poll.Until(t, "new connections see the new one", func() bool { return s.seen(config) == want })
	pemFiles(t, a, dir, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })
	poll.Until(
		t, "that it has ended is logged",
		func() bool { return strings.Contains(s.log.String(), "ended at") },
	)
	if err := os.WriteFile(filepath.Join(dir, "tls.crt"), []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	poll.Until(
		t, "that it is nonsense is logged",
		func() bool { return strings.Contains(s.log.String(), "failed to find any PEM data") },
	)
	if s.seen(config) != want || s.figure("fencepost_tls_files_refused") != "1" || s.figure(
		"fencepost_tls_certificate_expiry_seconds",
	) != strconv.FormatFloat(float64(end.Unix()), 'e', -1, 64) {
		t.Errorf(
			"it shows one that ends at %s, and says %s, %s", s.seen(config),
			s.figure("fencepost_tls_files_refused"), s.figure("fencepost_tls_certificate_expiry_seconds"),
		)
	}
	pemFiles(t, a, dir, func(c *x509.Certificate) { c.NotAfter = end.Add(time.Minute) })
	poll.Until(
		t, "a good one is in use",
		func() bool { return s.seen(config) == end.Add(time.Minute).Format(time.RFC3339) },
	)
	poll.Until(
		t, "nothing is refused", func() bool { return s.figure("fencepost_tls_files_refused") == "0" },
	)
	was := answered.Load()
	poll.Until(t, "the load goes on", func() bool { return answered.Load() > was+8 })
	if n := dialed.Load(); n != 4 {
		t.Errorf("4 clients needed %d connections", n)
	}
}

// figure is a metric without labels.
func (s *server) figure(name string) string {
	s.t.Helper()
	resp, err := s.client.Get(s.url + "/metrics")
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// TestBadTLS: what cannot be used is refused before anything starts.
func TestBadTLS(t *testing.T) {
	t.Parallel()
	a, secretFile := certtest.NewAuthority(t, "a"), file(t, secret)
	good := pemFiles(t, a, t.TempDir(), nil)
	over := pemFiles(
		t, a, t.TempDir(), func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) },
	)
	for _, c := range []struct {
		code int
		args []string
		says string
	}{
		{exitConfig, good[:2], "--tls-cert and --tls-key need each other"},
		{exitConfig, good[2:], "--tls-cert and --tls-key need each other"},
		{1, []string{"--tls-cert", good[1], "--tls-key", over[3]}, "does not match"},
		{1, over, "ended at"},
		{1, []string{"--tls-cert", "/none", "--tls-key", good[3]}, "no such file"},
	} {
		fails(
			t, c.code, nil,
			append(
				[]string{"--jwt-secret-file", secretFile, "--data-dir", t.TempDir(), "--listen", "127.0.0.1:0"},
				c.args...,
			),
			"--tls-cert", c.says,
		)
	}
}
