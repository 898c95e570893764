package handlers_test

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/fencepost/fencepost/auth"
)

// badBearer is what is wrong with a bearer token.
func badBearer(detail string) problem {
	return unauthenticated(detail + "; get another token from its issuer")
}

func unauthenticated(detail string) problem {
	return problem{code: "unauthenticated", detail: detail}
}

// TestSchemeOfABearerTokenIsWrittenInAnyCase: and spaces around the token do not count.
func TestSchemeOfABearerTokenIsWrittenInAnyCase(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	token := sign(c.claims.Tenant, jwt.SigningMethodRS256, "rsa-1", rsaKey(), nil)
	for _, value := range []string{
		"Bearer " + token, "bearer " + token, "BEARER " + token, "Bearer  " + token + " ",
	} {
		e := c.acquire("orders:42", header("Authorization", value))
		if e.Holder != "worker-1" {
			t.Errorf("holder = %q, want the subject", e.Holder)
		}
		c.delete("/locks/orders:42", header("Authorization", value), lockToken(e.Token)).wantNoContent()
	}
}

// TestBadBearersAreUnauthenticatedOnEveryRoute: what else is wrong with a token, package auth
// tests.
func TestBadBearersAreUnauthenticatedOnEveryRoute(t *testing.T) {
	t.Parallel()
	const (
		oneHeader = "the request has no credential; send one Authorization header with a bearer token"
		form      = "the Authorization header must be of the form Bearer <token>"
		shape     = "not a JSON Web Token: three parts with a dot between each two"
	)
	now := time.Now().Unix()
	claim := func(name string, value any) []string {
		return bearer(hs("acme", map[string]any{name: value}))
	}
	cases := map[string]struct {
		values []string
		detail string
	}{
		"Missing":    {nil, oneHeader},
		"Twice":      {append(bearer(hs("acme", nil)), bearer(hs("acme", nil))...), oneHeader},
		"Empty":      {[]string{""}, form},
		"Basic":      {[]string{"Basic dXNlcjpwYXNzd29yZA=="}, form},
		"OnlyScheme": {[]string{"Bearer"}, "no token; get another token from its issuer"},
		"OnlySpaces": {[]string{"Bearer   "}, "no token; get another token from its issuer"},
		"Garbage":    {bearer("garbage"), shape + "; get another token from its issuer"},

		"OtherClaims": {
			bearer(swapped(hs("acme", nil), hs("other", nil))), "the signature does not fit; get another token from its issuer",
		},
		"Expired":       {claim("exp", now-60), "it has expired; get another token from its issuer"},
		"WrongAudience": {claim("aud", "other"), "aud does not name this service; get another token from its issuer"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newTenant(t)
			for _, v := range tc.values {
				shared.secrets.add(strings.TrimPrefix(v, "Bearer "))
			}
			for _, r := range routes("orders:42", "x") {
				a := c.do(r.method, r.path, header("Authorization", tc.values...))
				a.wantProblem(unauthenticated(tc.detail))
				if got := a.header.Get("WWW-Authenticate"); got != `Bearer realm="fencepost"` {
					t.Errorf("%v: WWW-Authenticate = %q", a, got)
				}
			}
		})
	}
}

func bearer(token string) []string { return []string{"Bearer " + token} }

func parts(token string) []string { return strings.Split(token, ".") }

func segment(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

// swapped has one token's signature under the other's claims.
func swapped(a, b string) string {
	return strings.Join([]string{parts(a)[0], parts(b)[1], parts(a)[2]}, ".")
}

// TestBearerElsewhere: only the header counts.
func TestBearerElsewhere(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	token := c.bearer
	c.bearer = ""
	want := unauthenticated("the request has no credential; " +
		"send one Authorization header with a bearer token")
	c.get("/locks?access_token=" + token).wantProblem(want)
	c.get("/locks", header("Cookie", "token="+token)).wantProblem(want)
	c.get("/locks", header("Proxy-Authorization", "Bearer "+token)).wantProblem(want)
	c.get("/locks", header("X-Forwarded-User", "admin"), header("X-Tenant", c.claims.Tenant)).
		wantProblem(want)
}

// TestScopes: what each scope opens; none implies another.
func TestScopes(t *testing.T) {
	t.Parallel()
	allowed := map[string]string{ // route → scopes that open it
		"List": "locks:read", "Look": "locks:read", "Acquire": "locks:write", "Renew": "locks:write",
		"Release": "locks:write",
		"Entry":   "locks:read locks:write",
	}
	for _, scope := range []string{"", "locks:read", "locks:write", "webhooks:write", "admin"} {
		t.Run("Only"+scope, func(t *testing.T) {
			t.Parallel()
			all := newTenant(t)
			e := all.acquire("orders:42")
			c := all.as(func(cl *auth.Claims) { cl.Scopes = nil })
			if scope != "" {
				c = all.as(func(cl *auth.Claims) { cl.Scopes = []auth.Scope{auth.Scope(scope)} })
			}
			for _, r := range routes("orders:42", e.ID) {
				a := c.do(r.method, r.path, lockToken(e.Token))
				if opens := allowed[r.name]; scope != "" && strings.Contains(opens, scope) {
					if strings.Contains(string(a.body), `"forbidden"`) {
						t.Errorf("%v with the scope %s", a, scope)
					}
				} else {
					a.wantProblem(lacks(strings.Join(strings.Fields(opens), " or ")))
				}
			}
		})
	}
}

// TestPatterns: a token that is limited to names cannot do anything with others,
// nor learn of them.
func TestPatterns(t *testing.T) {
	t.Parallel()
	all := newTenant(t)
	e := all.acquire("orders:42")
	for name, patterns := range map[string][]string{
		"Others": {"jobs:*", "orders", "rders:42", "orders:4"}, "None": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := all.in(t).as(func(cl *auth.Claims) { cl.Locks = patterns })
			for _, r := range routes("orders:42", e.ID) {
				if r.name != "List" {
					c.do(r.method, r.path, lockToken(e.Token)).wantProblem(otherNames("orders:42"))
				}
			}
			c.delete("/locks/jobs:1", lockToken(e.Token)).wantProblem(
				map[bool]problem{true: otherNames("jobs:1"), false: tokenMismatch()}[name == "None"],
			)
			if got := c.list("consistent=true").names(); len(got) != 0 {
				t.Errorf("it sees %v", got)
			}
		})
	}
	limited := all.within("jobs:*", "orders:*")
	limited.release(limited.get(entryPath(e), lockToken(e.Token)).held(200))
	limited.acquire("orders:42")
}

// TestFirstObjection: of several faults the answer has the first in the documented order, so
// that no caller learns about names that it may not use.
func TestFirstObjection(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	writer := c.as(func(cl *auth.Claims) { cl.Scopes = []auth.Scope{auth.LocksRead} })
	limited := c.within("jobs:*")
	bad := []option{loose, key(""), body(`[]`), header("Content-Type", "text/plain")}
	c.with("x").post("/locks/-", bad...).
		wantProblem(badBearer("not a JSON Web Token: three parts with a dot between each two"))
	writer.post("/locks/-", bad...).wantProblem(lacks("locks:write"))
	limited.post("/locks/-", bad...).wantProblem(invalidName())
	limited.post("/locks/orders:42", bad...).wantProblem(otherNames("orders:42"))
	c.post("/locks/orders:42", bad[:2]...).
		wantProblem(invalid("Idempotency-Key", "must be 1 to 200 printable characters"))
	c.post("/locks/orders:42", bad...).
		wantProblem(problem{code: "unsupported_media_type", detail: "send the body as application/json"})
	c.post("/locks/orders:42", body(padded(16<<10+1)), header("Content-Type", "text/plain")).
		wantProblem(tooLarge())
}
