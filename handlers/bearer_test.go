package handlers_test

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/fencepost/fencepost/auth"
)

func unauthenticated(detail string) problem { return problem{code: "unauthenticated", detail: detail} }

// TestGoodBearers: every kind of key, and every way to write the header.
func TestGoodBearers(t *testing.T) {
	t.Parallel()
	hour := time.Now().Add(time.Hour).Unix()
	cases := map[string]func(tenant string) string{
		"HS256":       func(n string) string { return hs(n, nil) },
		"RS256":       func(n string) string { return sign(n, jwt.SigningMethodRS256, "rsa-1", rsaKey(), nil) },
		"ES256":       func(n string) string { return sign(n, jwt.SigningMethodES256, "ec-1", ecKey(), nil) },
		"EdDSA":       func(n string) string { return sign(n, jwt.SigningMethodEdDSA, "ed-1", edKey(), nil) },
		"Audiences":   func(n string) string { return hs(n, map[string]any{"aud": []string{"other", audience}}) },
		"OtherScopes": func(n string) string { return hs(n, map[string]any{"scope": "openid locks:write x locks:read"}) },
		"AllNames":    func(n string) string { return hs(n, map[string]any{"locks": []string{"*"}}) },
		"OtherClaims": func(n string) string {
			return hs(n, map[string]any{"Tenant": "other", "name": "x", "nbf": hour - 7200})
		},
		"FractionOfS":  func(n string) string { return hs(n, map[string]any{"exp": float64(hour) + 0.5}) },
		"SmallLeeway":  func(n string) string { return hs(n, map[string]any{"nbf": time.Now().Unix() + 2}) },
		"LongTenant":   func(n string) string { return hs(n+strings.Repeat("x", 63-len(n)), nil) },
		"DigitsTenant": func(n string) string { return hs("0-"+n, nil) },
	}
	for name, make := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newTenant(t)
			token := make(c.claims.Tenant)
			for _, value := range []string{"Bearer " + token, "bearer " + token, "BEARER " + token, "Bearer  " + token + " "} {
				e := c.acquire("orders:42", header("Authorization", value))
				if e.Holder != "worker-1" {
					t.Errorf("holder = %q, want the subject", e.Holder)
				}
				c.delete("/locks/orders:42", header("Authorization", value), lockToken(e.Token)).wantNoContent()
			}
		})
	}
}

// TestBadBearers: each way in which a bearer token can be bad.
func TestBadBearers(t *testing.T) {
	t.Parallel()
	const (
		oneHeader  = "one Authorization header with a bearer token is needed"
		form       = "the Authorization header must be of the form Bearer <token>"
		shape      = "not a JSON Web Token: three parts with a dot between each two"
		algorithm  = "the algorithm is not one of HS256, RS256, ES256, EdDSA"
		signature  = "the signature does not fit"
		unknownKey = "the key set has no key with this kid and algorithm"
		badTenant  = "tenant is not 1 to 63 lower-case letters, digits and hyphens, with no hyphen first"
	)
	now := time.Now().Unix()
	claim := func(name string, value any) []string { return bearer(hs("acme", map[string]any{name: value})) }
	cases := map[string]struct {
		values []string
		detail string
	}{
		"Missing":       {nil, oneHeader},
		"Twice":         {append(bearer(hs("acme", nil)), bearer(hs("acme", nil))...), oneHeader},
		"Empty":         {[]string{""}, form},
		"Basic":         {[]string{"Basic dXNlcjpwYXNzd29yZA=="}, form},
		"SchemeMissing": {[]string{hs("acme", nil)}, form},
		"SchemeGlued":   {[]string{"Bearer:" + hs("acme", nil)}, form},
		"OnlyScheme":    {[]string{"Bearer"}, "no token"},
		"OnlySpaces":    {[]string{"Bearer   "}, "no token"},
		"Garbage":       {bearer("garbage"), shape},
		"TwoParts":      {bearer("a.b"), shape},
		"FourParts":     {bearer(hs("acme", nil) + ".x"), shape},
		"NotBase64":     {bearer("!.!.!"), shape},
		"HeaderNotJSON": {bearer("eA." + parts(hs("acme", nil))[1] + ".x"), shape},
		"TwoTokens":     {bearer(hs("acme", nil) + " " + hs("acme", nil)), shape},
		"CommaList":     {bearer(hs("acme", nil) + ",Basic x"), shape},
		"TooLong":       {bearer(strings.Repeat("x", 16385)), "longer than 16384 bytes"},

		"AlgNone":          {bearer(sign("acme", jwt.SigningMethodNone, "", jwt.UnsafeAllowNoneSignatureType, nil)), algorithm},
		"AlgNoneInCaps":    {bearer(segment(`{"alg":"NONE","typ":"JWT"}`) + "." + parts(hs("acme", nil))[1] + "."), algorithm},
		"AlgMissing":       {bearer(segment(`{"typ":"JWT"}`) + "." + parts(hs("acme", nil))[1] + ".x"), algorithm},
		"AlgHS512":         {bearer(sign("acme", jwt.SigningMethodHS512, "", secret(), nil)), algorithm},
		"AlgPS256":         {bearer(sign("acme", jwt.SigningMethodPS256, "rsa-1", rsaKey(), nil)), algorithm},
		"PublicKeyAsHMAC":  {bearer(sign("acme", jwt.SigningMethodHS256, "rsa-1", rsaKey().N.Bytes(), nil)), signature},
		"KeySetAsHMAC":     {bearer(sign("acme", jwt.SigningMethodHS256, "rsa-1", publicKeys(), nil)), signature},
		"KeyOfAnotherKind": {bearer(sign("acme", jwt.SigningMethodRS256, "ec-1", rsaKey(), nil)), unknownKey},
		"UnknownKid":       {bearer(sign("acme", jwt.SigningMethodES256, "ec-2", otherKey(), nil)), unknownKey},
		"ForeignKey":       {bearer(sign("acme", jwt.SigningMethodES256, "ec-1", otherKey(), nil)), signature},
		"OtherSecret":      {bearer(sign("acme", jwt.SigningMethodHS256, "", []byte("another secret of thirty-two byte"), nil)), signature},
		"NoSignature":      {bearer(strings.Join(parts(hs("acme", nil))[:2], ".") + "."), signature},
		"OtherClaims":      {bearer(swapped(hs("acme", nil), hs("other", nil))), signature},
		"Critical":         {bearer(critical("acme")), "a critical extension (crit) that is not supported"},

		"Expired":          {claim("exp", now-60), "it has expired"},
		"ExpiredLongAgo":   {claim("exp", 1), "it has expired"},
		"NoExpiry":         {claim("exp", nil), "exp is missing"},
		"ExpiryInText":     {claim("exp", "tomorrow"), "exp is not a number"},
		"NotYetValid":      {claim("nbf", now+86400), "it is not valid yet (nbf)"},
		"WrongIssuer":      {claim("iss", "https://other.example"), "iss is another issuer"},
		"NoIssuer":         {claim("iss", nil), "iss is missing"},
		"WrongAudience":    {claim("aud", "other"), "aud does not name this service"},
		"NoAudience":       {claim("aud", nil), "aud is missing"},
		"NoTenant":         {claim("tenant", nil), "tenant is missing"},
		"EmptyTenant":      {claim("tenant", ""), "tenant is missing"},
		"TenantInCaps":     {claim("tenant", "Acme"), badTenant},
		"TenantWithSlash":  {claim("tenant", "acme/x"), badTenant},
		"TenantWithHyphen": {claim("tenant", "-acme"), badTenant},
		"TenantTooLong":    {claim("tenant", strings.Repeat("a", 64)), badTenant},
		"TenantANumber":    {claim("tenant", 42), "tenant is not a string"},
		"TenantsAList":     {claim("tenant", []string{"acme"}), "tenant is not a string"},
		"NoSubject":        {claim("sub", nil), "sub is missing"},
		"EmptySubject":     {claim("sub", ""), "sub is missing"},
		"SubjectANumber":   {claim("sub", 42), "sub is not a string"},
		"SubjectTooLong":   {claim("sub", strings.Repeat("s", 201)), "sub must not be longer than 200 characters"},
		"SubjectBidi":      {claim("sub", "a\u202eb"), "sub must not have control characters, line breaks or marks that turn the direction of writing"},
		"ScopeOfNumbers":   {claim("scope", []int{1}), "scope is neither a string nor a list of strings"},
		"LocksInText":      {claim("locks", "orders:*"), "locks is not a list of strings"},
		"LocksEmptyText":   {claim("locks", []string{""}), "locks: a pattern is empty"},
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

func critical(tenant string) string {
	t := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{"tenant": tenant})
	t.Header["crit"] = []string{"b64"}
	return must(t.SignedString(secret()))
}

// TestBearerElsewhere: only the header counts.
func TestBearerElsewhere(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	token := c.bearer
	c.bearer = ""
	want := unauthenticated("one Authorization header with a bearer token is needed")
	c.get("/locks?access_token=" + token).wantProblem(want)
	c.get("/locks", header("Cookie", "token="+token)).wantProblem(want)
	c.get("/locks", header("Proxy-Authorization", "Bearer "+token)).wantProblem(want)
	c.get("/locks", header("X-Forwarded-User", "admin"), header("X-Tenant", c.claims.Tenant)).wantProblem(want)
}

// TestScopes: what each scope opens; none implies another.
func TestScopes(t *testing.T) {
	t.Parallel()
	allowed := map[string]string{ // route → scopes that open it
		"List": "locks:read", "Look": "locks:read", "Acquire": "locks:write", "Renew": "locks:write", "Release": "locks:write",
		"Entry": "locks:read locks:write",
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
	for name, patterns := range map[string][]string{"Others": {"jobs:*", "orders", "rders:42", "orders:4"}, "None": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := all.in(t).as(func(cl *auth.Claims) { cl.Locks = patterns })
			for _, r := range routes("orders:42", e.ID) {
				if r.name != "List" {
					c.do(r.method, r.path, lockToken(e.Token)).wantProblem(otherNames("orders:42"))
				}
			}
			c.delete("/locks/jobs:1", lockToken(e.Token)).wantProblem(map[bool]problem{true: otherNames("jobs:1"), false: tokenMismatch()}[name == "None"])
			if got := c.list("consistent=true").names(); len(got) != 0 {
				t.Errorf("it sees %v", got)
			}
		})
	}
	limited := all.as(func(cl *auth.Claims) { cl.Locks = []string{"jobs:*", "orders:*"} })
	limited.release(limited.get(entryPath(e), lockToken(e.Token)).held(200))
	limited.acquire("orders:42")
}

// TestFirstObjection: of several faults the first in the documented order is
// told, so that nobody learns about names who may not use them.
func TestFirstObjection(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	writer := c.as(func(cl *auth.Claims) { cl.Scopes = []auth.Scope{auth.LocksRead} })
	limited := c.as(func(cl *auth.Claims) { cl.Locks = []string{"jobs:*"} })
	bad := []option{loose, key(""), body(`[]`), header("Content-Type", "text/plain")}
	c.with("x").post("/locks/-", bad...).wantProblem(unauthenticated("not a JSON Web Token: three parts with a dot between each two"))
	writer.post("/locks/-", bad...).wantProblem(lacks("locks:write"))
	limited.post("/locks/-", bad...).wantProblem(invalidName())
	limited.post("/locks/orders:42", bad...).wantProblem(otherNames("orders:42"))
	c.post("/locks/orders:42", bad[:2]...).wantProblem(invalid("Idempotency-Key", "must be 1 to 200 printable characters"))
	c.post("/locks/orders:42", bad...).wantProblem(problem{code: "unsupported_media_type", detail: "send the body as application/json"})
	c.post("/locks/orders:42", body(padded(16<<10+1)), header("Content-Type", "text/plain")).wantProblem(tooLarge())
}
