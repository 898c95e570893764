package auth_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fencepost/fencepost/auth"
)

func TestSign(t *testing.T) {
	v := newVerifier(
		t, auth.Config{Secret: secret, Issuer: "me", Audience: "fencepost", Now: newClock().Now},
	)
	raw, err := auth.Sign(secret, auth.Claims{
		Tenant: "acme", Subject: "worker-1", Scopes: []auth.Scope{auth.LocksRead, auth.LocksWrite},
		Locks: []string{"orders:*"}, Issuer: "me", Audience: "fencepost",
	}, start, time.Hour)
	if err != nil {
		t.Fatalf("Sign() = %v", err)
	}
	p := accept(t, v, raw)
	want := &auth.Principal{
		Tenant: "acme", Subject: "worker-1", Expires: start.Add(time.Hour),
		Scopes: []auth.Scope{auth.LocksRead, auth.LocksWrite},
		Locks:  []auth.Pattern{must(auth.ParsePattern("orders:*"))},
	}
	equal := cmp.Comparer(func(a, b auth.Pattern) bool { return a.String() == b.String() })
	if diff := cmp.Diff(want, p, equal, cmpopts.IgnoreUnexported(auth.Principal{})); diff != "" {
		t.Errorf("Verify(Sign()) differs (-want +got):\n%s", diff)
	}
}

func TestSignWithoutLimits(t *testing.T) {
	v := newVerifier(t, auth.Config{Secret: secret, Now: newClock().Now})
	sign := func(locks []string) *auth.Principal {
		c := auth.Claims{Tenant: "acme", Subject: "worker-1", Locks: locks}
		return accept(t, v, must(auth.Sign(secret, c, start, time.Second)))
	}
	if p := sign(nil); p.Locks != nil || !p.MayUse("orders:1") || len(p.Scopes) != 0 {
		t.Errorf("principal = %+v, want no limit and no scopes", p)
	}
	if p := sign([]string{}); p.Locks == nil || p.MayUse("orders:1") {
		t.Errorf("principal = %+v, want one that may use no lock", p)
	}
}

func TestSignRefuses(t *testing.T) {
	good := auth.Claims{Tenant: "acme", Subject: "worker-1"}
	change := func(f func(*auth.Claims)) auth.Claims {
		c := good
		f(&c)
		return c
	}
	for name, c := range map[string]struct {
		secret []byte
		claims auth.Claims
		ttl    time.Duration
		want   string
	}{
		"ShortSecret": {secret[:31], good, time.Hour, "31 bytes"},
		"NoSecret":    {nil, good, time.Hour, "0 bytes"},
		"ZeroTTL":     {secret, good, 0, "below one second"},
		"NegativeTTL": {secret, good, -time.Hour, "below one second"},
		"NoTenant": {
			secret, change(func(c *auth.Claims) { c.Tenant = "" }), time.Hour, "tenant is missing",
		},
		"BadTenant": {
			secret, change(func(c *auth.Claims) { c.Tenant = "A" }), time.Hour, "tenant is not",
		},
		"NoSubject": {
			secret, change(func(c *auth.Claims) { c.Subject = "" }), time.Hour, "sub is missing",
		},
		"UnknownScope": {
			secret, change(func(c *auth.Claims) { c.Scopes = []auth.Scope{"lock:read"} }), time.Hour,
			"lock:read",
		},
		"EmptyPattern": {
			secret, change(func(c *auth.Claims) { c.Locks = []string{""} }), time.Hour, "empty",
		},
		"ManyPatterns": {
			secret, change(func(c *auth.Claims) { c.Locks = slices.Repeat([]string{"a"}, 101) }), time.Hour,
			"more than 100",
		},
		"TooLong": {
			secret, change(func(c *auth.Claims) { c.Issuer = strings.Repeat("a", 16384) }), time.Hour,
			"longer than",
		},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := auth.Sign(c.secret, c.claims, start, c.ttl)
			if err == nil || raw != "" || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Sign() = %.50q, %v, want an error with %q", raw, err, c.want)
			}
		})
	}
}
