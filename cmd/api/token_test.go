package main

import (
	"encoding/base64"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/auth"
)

// minted runs the token command and returns what a server makes of its token.
func minted(
	t *testing.T, env environment, verify auth.Config, args ...string,
) (*auth.Principal, map[string]any) {
	t.Helper()
	r := command(t, env, append([]string{"token"}, args...)...)
	token, newline := strings.CutSuffix(r.out, "\n")
	if r.code != 0 || r.errOut != "" || !newline || strings.ContainsAny(token, " \n") {
		t.Fatalf("%+v", r)
	}
	v, err := auth.New(t.Context(), verify)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	p, err := v.Verify(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	payload, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
	if err != nil {
		t.Fatal(err)
	}
	var claims map[string]any
	if err := json.Unmarshal(payload, &claims); err != nil {
		t.Fatal(err)
	}
	return p, claims
}

func lasts(claims map[string]any) time.Duration {
	return time.Duration(claims["exp"].(float64)-claims["iat"].(float64)) * time.Second
}

func TestTokenDefaults(t *testing.T) {
	p, claims := minted(
		t, nil, auth.Config{Secret: []byte(secret)}, "--jwt-secret-file", file(t, secret+"\n"),
		"--tenant", "acme",
	)
	if p.Tenant != "acme" || p.Subject != "cli" || !p.MayUse("anything") ||
		lasts(claims) != time.Hour {
		t.Errorf("%+v, %v", p, claims)
	}
	if diff := cmp.Diff([]auth.Scope{auth.LocksRead, auth.LocksWrite}, p.Scopes); diff != "" {
		t.Errorf("scopes (-want +got):\n%s", diff)
	}
	for _, member := range []string{"locks", "iss", "aud"} {
		if v, ok := claims[member]; ok {
			t.Errorf("%s is %v", member, v)
		}
	}
}

// TestTokenOptions: each one, by flag and by environment.
func TestTokenOptions(t *testing.T) {
	options := map[string]string{
		"tenant": "acme", "scope": "  locks:read admin ", "subject": "worker-1", "locks": "orders:*,one",
		"ttl":        "90m",
		"jwt-issuer": "us", "jwt-audience": "them", "jwt-secret-file": file(t, secret),
		"jwt-tenant-claim": "org", "jwt-scope-claim": "scp", "jwt-scope-prefix": "a/",
		"jwt-locks-claim": "may",
	}
	env, args := environment{}, []string{}
	for name, value := range options {
		args = append(args, "--"+name, value)
		env["FENCEPOST_"+strings.ToUpper(strings.ReplaceAll(name, "-", "_"))] = value
	}
	verify := auth.Config{Secret: []byte(secret), Issuer: "us", Audience: "them"}
	verify.Names = auth.ClaimNames{Tenant: "org", Scope: "scp", ScopePrefix: "a/", Locks: "may"}
	byFlags, claims := minted(t, nil, verify, args...)
	byEnv, _ := minted(t, env, verify)
	for _, p := range []*auth.Principal{byFlags, byEnv} {
		if p.Tenant != "acme" || p.Subject != "worker-1" || !p.MayUse("orders:1") || !p.MayUse("one") ||
			p.MayUse("two") {
			t.Errorf("%+v", p)
		}
		if !p.Allows(auth.Admin) || !p.Allows(auth.LocksRead) || p.Allows(auth.LocksWrite) {
			t.Errorf("scopes %v", p.Scopes)
		}
	}
	if lasts(claims) != 90*time.Minute || claims["iss"] != "us" || claims["aud"] != "them" {
		t.Errorf("%v", claims)
	}
}

// TestTokenSecrets: where the secret can come from, and which one counts.
func TestTokenSecrets(t *testing.T) {
	dir := t.TempDir()
	made, err := (&config{dataDir: dir}).devSecret()
	if err != nil {
		t.Fatal(err)
	}
	minted(t, nil, auth.Config{Secret: made}, "--tenant", "acme", "--dev", "--data-dir", dir)
	inline := environment{"FENCEPOST_JWT_SECRET": secret}
	minted(t, inline, auth.Config{Secret: []byte(secret)}, "--tenant", "acme")
	other := secret + " and another"
	minted(
		t, inline, auth.Config{Secret: []byte(other)}, "--tenant", "acme", "--jwt-secret-file",
		file(t, other),
	)

	none := filepath.Join(dir, "none")
	fails(
		t, exitConfig, nil, []string{"token", "--tenant", "acme"}, "no secret", "--jwt-secret-file",
		"FENCEPOST_JWT_SECRET", "--dev",
	)
	fails(
		t, 1, nil, []string{"token", "--tenant", "acme", "--dev", "--data-dir", none}, "--dev", none,
		"no such file",
	)
	fails(
		t, 1, nil, []string{"token", "--tenant", "acme", "--jwt-secret-file", none}, "--jwt-secret-file",
		none, "no such file",
	)
	fails(
		t, 1, nil, []string{"token", "--tenant", "acme", "--jwt-secret-file", file(t, secret[:31])},
		"31 bytes", "at least 32",
	)
	fails(
		t, 1, environment{"FENCEPOST_JWT_SECRET": secret[:31]}, []string{"token", "--tenant", "acme"},
		"FENCEPOST_JWT_SECRET", "31 bytes", "at least 32",
	)
}

// TestTokenRefuses: a token that a server would refuse is not made.
func TestTokenRefuses(t *testing.T) {
	env := environment{"FENCEPOST_JWT_SECRET": secret}
	for _, c := range []struct {
		args []string
		says []string
	}{
		{nil, []string{"tenant"}},
		{[]string{"--tenant", "ACME"}, []string{"tenant"}},
		{[]string{"--tenant", "acme", "--scope", "locks:raed"}, []string{"locks:raed", "locks:read"}},
		{[]string{"--tenant", "acme", "--subject", ""}, []string{"sub"}},
		{[]string{"--tenant", "acme", "--ttl", "0s"}, []string{"one second"}},
		{[]string{"--tenant", "acme", "--ttl", "-1h"}, []string{"one second"}},
		{[]string{"--tenant", "acme", "--ttl", "soon"}, []string{"-ttl"}},
		{[]string{"--tenant", "acme", "--locks", ","}, []string{"pattern"}},
	} {
		fails(t, exitConfig, env, append([]string{"token"}, c.args...), c.says...)
	}
}
