package auth_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/golang-jwt/jwt/v5"
	"go.uber.org/goleak"

	"github.com/fencepost/fencepost/auth"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var secret = []byte("0123456789abcdef0123456789abcdef")

// start is where the tests' clocks begin.
var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

type clock struct{ nanos atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.nanos.Store(start.UnixNano())
	return c
}

func (c *clock) Now() time.Time          { return time.Unix(0, c.nanos.Load()) }
func (c *clock) Advance(d time.Duration) { c.nanos.Add(int64(d)) }

// signer is a private key with the algorithm and kid that its tokens name.
type signer struct {
	alg, kid string
	private  any
}

// Keys are made once: an RSA key takes a while, above all with -race.
var (
	rsaKey = sync.OnceValue(func() *rsa.PrivateKey { return must(rsa.GenerateKey(rand.Reader, 2048)) })
	ecKey  = sync.OnceValue(func() *ecdsa.PrivateKey { return newEC(elliptic.P256()) })
	edKey  = sync.OnceValue(newEd)
)

func newEC(curve elliptic.Curve) *ecdsa.PrivateKey {
	return must(ecdsa.GenerateKey(curve, rand.Reader))
}

func newEd() ed25519.PrivateKey {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	return must(private, err)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func hs() signer           { return signer{"HS256", "", secret} }
func rs() signer           { return signer{"RS256", "rsa-1", rsaKey()} }
func es() signer           { return signer{"ES256", "ec-1", ecKey()} }
func ed() signer           { return signer{"EdDSA", "ed-1", edKey()} }
func ec(kid string) signer { return signer{"ES256", kid, newEC(elliptic.P256())} }
func allSigners() []signer { return []signer{hs(), rs(), es(), ed()} }
func publicSet() []byte    { return keySet(rs(), es(), ed()) }
func (s signer) jwk() any {
	return must(jwkset.NewJWKFromKey(s.public(), s.jwkOptions())).Marshal()
}
func (s signer) named() any { return map[string]any{"alg": s.alg, "typ": "JWT", "kid": s.kid} }

func (s signer) jwkOptions() jwkset.JWKOptions {
	return jwkset.JWKOptions{Metadata: jwkset.JWKMetadataOptions{
		ALG: jwkset.ALG(s.alg), KID: s.kid, USE: jwkset.UseSig,
	}}
}

func (s signer) public() any {
	switch k := s.private.(type) {
	case *rsa.PrivateKey:
		return &k.PublicKey
	case *ecdsa.PrivateKey:
		return &k.PublicKey
	case ed25519.PrivateKey:
		return k.Public()
	}
	panic("bug: a key without a public half")
}

// keySet renders the public keys as a JWK Set.
func keySet(signers ...signer) []byte {
	keys := []any{}
	for _, s := range signers {
		keys = append(keys, s.jwk())
	}
	return must(json.Marshal(map[string]any{"keys": keys}))
}

// sign signs a header and claims just as they are given, however odd.
func (s signer) sign(header, claims any) string {
	text := segment(header) + "." + segment(claims)
	signature := must(jwt.GetSigningMethod(s.alg).Sign(text, s.private))
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

func segment(v any) string {
	text, isText := v.(string)
	if !isText {
		text = string(must(json.Marshal(v)))
	}
	return base64.RawURLEncoding.EncodeToString([]byte(text))
}

// token returns a token with good claims, changed by changes: nil removes one.
func (s signer) token(changes map[string]any) string {
	return s.sign(s.named(), claims(changes))
}

func claims(changes map[string]any) map[string]any {
	c := map[string]any{
		"iss": "https://issuer.example", "aud": []string{"other", "fencepost"},
		"sub": "worker-1", "tenant": "acme", "scope": "locks:read locks:write openid",
		"iat": start.Unix(), "nbf": start.Unix(), "exp": start.Add(time.Hour).Unix(),
		"jti": "marker-of-the-token",
	}
	maps.Copy(c, changes)
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	return c
}

// issuer serves a JWK Set that can be changed, and counts how often it is read.
type issuer struct {
	*httptest.Server
	reads atomic.Int64

	mu      sync.Mutex
	handler http.HandlerFunc
}

func newIssuer(t *testing.T, document []byte) *issuer {
	t.Helper()
	i := &issuer{}
	i.serve(document)
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.reads.Add(1)
		i.mu.Lock()
		handler := i.handler
		i.mu.Unlock()
		handler(w, r)
	}))
	t.Cleanup(i.Close)
	return i
}

func (i *issuer) serve(document []byte) {
	i.answer(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/jwk-set+json")
		_, _ = w.Write(document) // the client may have gone
	})
}

func (i *issuer) answer(handler http.HandlerFunc) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.handler = handler
}

func newVerifier(t testing.TB, c auth.Config) *auth.Verifier {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	v, err := auth.New(ctx, c)
	cancel() // bounds only the start
	if err != nil {
		t.Fatalf("New() = %v", err)
	}
	t.Cleanup(v.Close)
	return v
}

func accept(t testing.TB, v *auth.Verifier, raw string) *auth.Principal {
	t.Helper()
	p, err := v.Verify(t.Context(), raw)
	if err != nil {
		t.Fatalf("Verify() = %v, want a principal", err)
	}
	return p
}

func reject(t testing.TB, v *auth.Verifier, raw string, want auth.Reason) {
	t.Helper()
	_ = refusal(t, v, raw, want) // it has failed the test if it is not as wanted
}

// refusal is reject for those who look at the error.
func refusal(t testing.TB, v *auth.Verifier, raw string, want auth.Reason) *auth.Error {
	t.Helper()
	p, err := v.Verify(t.Context(), raw)
	fault, ok := errors.AsType[*auth.Error](err)
	if !ok || p != nil {
		t.Fatalf("Verify() = %v, %v, want an *auth.Error", p, err)
	}
	if fault.Reason != want || !errors.Is(err, want) {
		t.Fatalf("Verify() = %v, want reason %q", err, want)
	}
	return fault
}

// journal is a log that may be read while it is written.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) count(text string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Count(j.text.String(), text)
}

func newJWK(key any, options jwkset.JWKOptions) ([]byte, error) {
	jwk, err := jwkset.NewJWKFromKey(key, options)
	if err != nil {
		return nil, err
	}
	return json.Marshal(jwk.Marshal())
}
