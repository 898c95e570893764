package main

import (
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/auth/signin/signintest"
	"github.com/fencepost/fencepost/test/poll"
)

// oidcArgs configures a server for an identity provider.
func oidcArgs(t *testing.T, address, issuer, principals string) []string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"secret": signintest.ClientSecret + "\n", "principals.json": principals,
		"jwt": strings.Repeat("k", 32),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return []string{
		"--listen", address, "--data-dir", filepath.Join(dir, "data"), "--jwt-secret-file",
		filepath.Join(dir, "jwt"),
		"--oidc", "issuer=" + issuer + ",client_id=" + signintest.ClientID +
			",client_secret_file=" + filepath.Join(dir, "secret") +
			",redirect_url=http://" + address + "/dashboard/sign-in/oidc/callback" +
			",name_claim=email,principals=" + filepath.Join(dir, "principals.json"),
	}
}

const operatorsGroup = `{"principals":[{"claim":"groups","value":"operators","tenant":"acme","scopes":["tenant-admin"]}]}`

// TestSignInByProvider goes the way that a browser goes, to a provider and back.
func TestSignInByProvider(t *testing.T) {
	identity := signintest.Start(
		t, map[string]any{"sub": "1", "email": "ann@example.com", "groups": []string{"operators"}},
	)
	s := start(t, oidcArgs(t, closedPort(t), identity.URL, operatorsGroup)...)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	s.client.Jar = jar
	if r := s.call("", "GET", "/dashboard/sign-in", ""); !strings.HasSuffix(
		identity.URL, r.text("provider"),
	) {
		t.Errorf("%+v", r)
	}
	if r := s.call(
		"", "GET", "/dashboard/sign-in/oidc", "",
	); r.status != http.StatusOK || !strings.Contains(r.header.Get("Content-Type"), "html") {
		t.Fatalf("it leads to %+v", r)
	}
	who := s.call("", "GET", "/dashboard/session", "")
	if who.text("subject") != "ann@example.com" || who.text("tenant") != "acme" ||
		fmt.Sprint(who.body["scopes"]) != "[tenant-admin]" {
		t.Errorf("%+v", who)
	}
	if r := s.call("", "GET", "/admin/overview", ""); r.status != http.StatusOK {
		t.Errorf("%+v", r)
	}
	log := s.log.String()
	for _, secret := range []string{"code=", "state=", signintest.ClientSecret} {
		if strings.Contains(log, secret) {
			t.Errorf("%q is in the log", secret)
		}
	}
}

// TestOIDCPrincipalsRefused: that the file of operators cannot be used is in the metrics, also of a
// server without TLS.
func TestOIDCPrincipalsRefused(t *testing.T) {
	t.Parallel()
	identity := signintest.Start(t, map[string]any{"sub": "1"})
	args := oidcArgs(t, "127.0.0.1:0", identity.URL, operatorsGroup)
	_, rights, _ := strings.Cut(args[len(args)-1], ",principals=")
	s := start(t, args...)
	const figure = `fencepost_principals_refused{file="oidc_principals"}`
	for _, c := range []struct{ text, want string }{
		{operatorsGroup, "0"}, {"nonsense", "1"}, {operatorsGroup, "0"},
	} {
		if err := os.WriteFile(rights, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		poll.Until(t, c.text+" makes it "+c.want, func() bool { return s.figure(figure) == c.want })
	}
	if got := s.figure("fencepost_tls_files_refused"); got != "" {
		t.Errorf("without TLS there is a figure of its files: %s", got)
	}
}

// TestOIDCIsChecked: what is wrong is said before anything starts.
func TestOIDCIsChecked(t *testing.T) {
	whole := oidcArgs(t, "127.0.0.1:0", "https://login.example", operatorsGroup)
	if r := command(
		t, nil, append([]string{"--print-config"}, whole...)...,
	); r.code != 0 || strings.Contains(r.out, signintest.ClientSecret) {
		t.Errorf("%+v", r)
	}
	with := func(name, value string) []string {
		var pairs []string
		for pair := range strings.SplitSeq(whole[len(whole)-1], ",") {
			if !strings.HasPrefix(pair, name+"=") {
				pairs = append(pairs, pair)
			}
		}
		if value != "" {
			pairs = append(pairs, name+"="+value)
		}
		return append(slices.Clone(whole), "--oidc", strings.Join(pairs, ","))
	}
	fails(t, exitConfig, nil, with("client_id", ""), "need each other")
	fails(t, exitConfig, nil, with("nothing", "x"), "must be issuer=URL")
	fails(t, exitConfig, nil, with("issuer", "http://login.example"), "issuer", "https")
	fails(t, exitConfig, nil, with("redirect_url", "nowhere"), "redirect URL")
	fails(t, 1, nil, with("client_secret_file", "/nowhere"), "--oidc: client_secret_file")
	fails(t, 1, nil, with("client_secret_file", file(t, "\ufeffx")), "byte order mark")
	fails(t, 1, nil, with("principals", "/nowhere"), "--oidc: principals")
}
