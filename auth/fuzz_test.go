package auth_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/auth"
)

// FuzzVerify: Verify rejects any unauthenticated input with a reason. The only
// tokens that pass are the four that were signed here.
func FuzzVerify(f *testing.F) {
	v := strict(f)
	signed := map[string]bool{}
	for _, s := range allSigners() {
		raw := s.token(nil)
		signed[raw] = true
		f.Add(raw)
		parts := strings.Split(raw, ".")
		f.Add(segment(`{"alg":"none"}`) + "." + parts[1] + ".")
		f.Add(parts[0] + "." + segment(`{"tenant":"acme","exp":1e300}`) + "." + parts[2])
	}
	f.Add(ec("ec-1").token(nil))
	f.Add(ec("stranger").token(nil))
	f.Add("..")
	f.Fuzz(func(t *testing.T, raw string) {
		p, err := v.Verify(t.Context(), raw)
		if err == nil && p != nil && signed[raw] {
			return
		}
		fault, ok := errors.AsType[*auth.Error](err)
		if !ok || p != nil || fault.Reason == "" || fault.Detail == "" {
			t.Fatalf("Verify(%q) = %v, %v, want an error with a reason", raw, p, err)
		}
	})
}

// FuzzClaims: whatever an issuer signs yields either an error or a principal
// that keeps the rules.
func FuzzClaims(f *testing.F) {
	v := newVerifier(f, auth.Config{Secret: secret, Now: newClock().Now})
	f.Add(`{"alg":"HS256"}`, string(must(json.Marshal(claims(nil)))))
	f.Add(
		`{"alg":"HS256","crit":["b64"],"b64":false}`,
		`{"sub":"a","tenant":"b","exp":9e9,"locks":["*"],"scope":"admin"}`,
	)
	f.Add(`{"alg":"none","kid":1}`, `{"sub":"a","sub":"b","tenant":null,"exp":"9"}`)
	f.Fuzz(func(t *testing.T, header, text string) {
		p, err := v.Verify(t.Context(), hs().sign(header, text))
		if err != nil {
			if fault, ok := errors.AsType[*auth.Error](err); !ok || p != nil || fault.Reason == "" {
				t.Fatalf("Verify() = %v, %v", p, err)
			}
			return
		}
		if p.Subject == "" || p.Tenant == "" || strings.ToLower(p.Tenant) != p.Tenant ||
			strings.ContainsAny(p.Tenant, "/\\.:\x00 ") || !p.Expires.After(start.Add(-6e9)) {
			t.Fatalf("Verify() = %+v", p)
		}
	})
}

// FuzzKeySet: whatever a key set says, the server does not fall over it.
func FuzzKeySet(f *testing.F) {
	f.Add(string(publicSet()))
	f.Add(
		`{"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB","kid":"a"},{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}]}`,
	)
	f.Add(`{"keys":[null,1,{"kty":"OKP","crv":"Ed25519","x":""},{"kty":"oct","k":"AA"}]}`)
	f.Fuzz(func(t *testing.T, document string) {
		v, err := auth.New(
			t.Context(), auth.Config{JWKS: write(t, []byte(document)), Now: newClock().Now},
		)
		if err != nil {
			return
		}
		defer v.Close()
		for _, s := range []signer{rs(), es(), ed()} {
			if _, err := v.Verify(t.Context(), s.token(nil)); err != nil &&
				errors.Is(err, auth.UnsupportedAlgorithm) {
				t.Fatalf("Verify() = %v", err)
			}
		}
	})
}
