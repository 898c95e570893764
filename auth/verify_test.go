package auth_test

import (
	"bytes"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fencepost/fencepost/auth"
)

// strict has both families of keys and checks everything there is to check.
func strict(t testing.TB) *auth.Verifier {
	t.Helper()
	return newVerifier(t, auth.Config{
		Secret: secret, JWKS: write(t, publicSet()),
		Issuer: "https://issuer.example", Audience: "fencepost", Now: newClock().Now,
	})
}

func TestAllAlgorithms(t *testing.T) {
	v := strict(t)
	for _, s := range allSigners() {
		t.Run(s.alg, func(t *testing.T) {
			got := accept(t, v, s.token(nil))
			want := &auth.Principal{
				Tenant: "acme", Subject: "worker-1", Scopes: []auth.Scope{auth.LocksRead, auth.LocksWrite},
				Expires: start.Add(time.Hour),
			}
			if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(auth.Principal{})); diff != "" {
				t.Errorf("Verify() differs (-want +got):\n%s", diff)
			}
			if !got.Allows(auth.LocksWrite) || got.Allows(auth.Admin) || got.Allows("openid") {
				t.Errorf("Allows: scopes = %v, want locks:read and locks:write only", got.Scopes)
			}
		})
	}
}

// TestBadTokens has a case for each way a token can be bad. No error may quote
// the token: the values of all its claims, its segments and its kid.
func TestBadTokens(t *testing.T) {
	v := strict(t)
	for _, c := range slices.Concat(
		badShapes(), badAlgorithms(), badKeys(), badTimes(), badOrigins(), badIdentities(), badLocks(),
	) {
		t.Run(c.name, func(t *testing.T) {
			fault := refusal(t, v, c.raw, c.want)
			if fault.Detail == "" {
				t.Error("Detail is empty")
			}
			checkQuotesNothing(t, fault.Error(), c.raw)
		})
	}
	if n := v.Cached(); n != 0 {
		t.Errorf("%d bad tokens are remembered", n)
	}
}

func checkQuotesNothing(t *testing.T, text, raw string) {
	t.Helper()
	if strings.Contains(text, "marker") {
		t.Errorf("%q quotes a claim or a header", text)
	}
	for part := range strings.SplitSeq(raw, ".") {
		if len(part) > 4 && strings.Contains(text, part) {
			t.Errorf("%q quotes the token", text)
		}
	}
}

type badToken struct {
	name string
	raw  string
	want auth.Reason
}

func badShapes() []badToken {
	good := hs().token(nil)
	parts := strings.Split(good, ".")
	// The last character of a 32-byte signature carries two unused bits.
	loose := good[:len(good)-1] + string(rune(good[len(good)-1]+1))
	return []badToken{
		{"Missing", "", auth.Missing},
		{"Garbage", "marker", auth.Malformed},
		{"Dots", "..", auth.Malformed},
		{"TwoParts", parts[0] + "." + parts[1], auth.Malformed},
		{"FourParts", good + ".marker", auth.Malformed},
		{"FiveParts/JWE", "a.b.c.d.e", auth.Malformed},
		{"WithScheme", "Bearer " + good, auth.Malformed},
		{"NotBase64", parts[0] + ".!!!!." + parts[2], auth.Malformed},
		{"Padded", good + "=", auth.Malformed},
		{
			"LineBreakInSignature", parts[0] + "." + parts[1] + "." + parts[2][:9] + "\r\n" + parts[2][9:],
			auth.Malformed,
		},
		{"LooseBits", loose, auth.Malformed},
		{"Truncated/Signature", good[:len(good)-3], auth.BadSignature},
		{"Truncated/NoSignature", parts[0] + "." + parts[1] + ".", auth.BadSignature},
		{
			"Truncated/Claims", parts[0] + "." + parts[1][:len(parts[1])/8*4] + "." + parts[2],
			auth.Malformed,
		},
		{"Enormous", hs().token(map[string]any{"x": strings.Repeat("marker", 4000)}), auth.Malformed},
		{"EnormousGarbage", strings.Repeat("A", 10<<20), auth.Malformed},
		{"HeaderNotJSON", hs().sign("marker", claims(nil)), auth.Malformed},
		{"HeaderNull", hs().sign("null", claims(nil)), auth.UnsupportedAlgorithm},
		{"HeaderArray", hs().sign("[]", claims(nil)), auth.Malformed},
		{"ClaimsNotJSON", hs().sign(hs().named(), "marker"), auth.Malformed},
		{"ClaimsArray", hs().sign(hs().named(), `["marker"]`), auth.Malformed},
		{"ClaimsNull", hs().sign(hs().named(), "null"), auth.NoExpiry},
		{"ClaimsEmpty", hs().sign(hs().named(), "{}"), auth.NoExpiry},
		{"ClaimsTrailing", hs().sign(hs().named(), `{"sub":"marker"}{}`), auth.Malformed},
		{"ClaimsNotUTF8", hs().sign(hs().named(), "{\"sub\":\"marker\xff\"}"), auth.Malformed},
		{"DeepNesting", hs().sign(hs().named(), strings.Repeat("[", 5000)), auth.Malformed},
		{
			"DuplicateClaim", hs().sign(hs().named(), `{"tenant":"acme","tenant":"marker"}`), auth.Malformed,
		},
		{"DuplicateUnknownClaim", hs().sign(hs().named(), `{"x":"acme","x":"marker"}`), auth.Malformed},
	}
}

func badAlgorithms() []badToken {
	unsigned := segment(map[string]string{"alg": "none"}) + "." + segment(claims(nil)) + "."
	with := func(header string) string { return hs().sign(header, claims(nil)) }
	return []badToken{
		{"None", unsigned, auth.UnsupportedAlgorithm},
		{"None/Capitals", with(`{"alg":"NONE"}`), auth.UnsupportedAlgorithm},
		{"None/WithSignature", with(`{"alg":"none"}`), auth.UnsupportedAlgorithm},
		{"NoAlgorithm", with(`{"typ":"JWT"}`), auth.UnsupportedAlgorithm},
		{"AlgorithmEmpty", with(`{"alg":""}`), auth.UnsupportedAlgorithm},
		{"AlgorithmNumber", with(`{"alg":256}`), auth.UnsupportedAlgorithm},
		{"AlgorithmList", with(`{"alg":["HS256"]}`), auth.UnsupportedAlgorithm},
		{"AlgorithmLowerCase", with(`{"alg":"hs256"}`), auth.UnsupportedAlgorithm},
		{"AlgorithmUnknown", with(`{"alg":"marker"}`), auth.UnsupportedAlgorithm},
		{"HS384", signer{"HS384", "", secret}.token(nil), auth.UnsupportedAlgorithm},
		{"HS512", signer{"HS512", "", secret}.token(nil), auth.UnsupportedAlgorithm},
		{"RS384", signer{"RS384", "rsa-1", rsaKey()}.token(nil), auth.UnsupportedAlgorithm},
		{"RS512", signer{"RS512", "rsa-1", rsaKey()}.token(nil), auth.UnsupportedAlgorithm},
		{"PS256", signer{"PS256", "rsa-1", rsaKey()}.token(nil), auth.UnsupportedAlgorithm},
		{"ES384", signer{"ES384", "ec-1", newEC(elliptic.P384())}.token(nil), auth.UnsupportedAlgorithm},
		{"Critical", with(`{"alg":"HS256","crit":["marker"],"marker":1}`), auth.Malformed},
		{"CriticalEmpty", with(`{"alg":"HS256","crit":[]}`), auth.Malformed},
	}
}

// badKeys are the confusions: what anybody can get hold of must not sign.
func badKeys() []badToken {
	der := must(x509.MarshalPKIXPublicKey(&rsaKey().PublicKey))
	block := func(kind string, der []byte) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	}
	public := block("PUBLIC KEY", der)
	pkcs1 := block("RSA PUBLIC KEY", x509.MarshalPKCS1PublicKey(&rsaKey().PublicKey))
	other := signer{"HS256", "", []byte(strings.Repeat("marker", 6))}
	tampered := strings.Split(es().token(nil), ".")
	tampered[1] = segment(claims(map[string]any{"tenant": "marker"}))
	signWith := func(key []byte) string { return signer{"HS256", "rsa-1", key}.token(nil) }
	return []badToken{
		{"HMACWithPublicKey/PEM", signWith(public), auth.BadSignature},
		{"HMACWithPublicKey/TrimmedPEM", signWith(bytes.TrimSpace(public)), auth.BadSignature},
		{"HMACWithPublicKey/PKCS1", signWith(pkcs1), auth.BadSignature},
		{"HMACWithPublicKey/DER", signWith(der), auth.BadSignature},
		{"HMACWithPublicKey/Modulus", signWith(rsaKey().N.Bytes()), auth.BadSignature},
		{"HMACWithKeySet", signWith(publicSet()), auth.BadSignature},
		{"HMACEmptyKey", signWith([]byte{}), auth.BadSignature},
		{"OtherSecret", other.token(nil), auth.BadSignature},
		{
			"OtherKeyOfTheKid", signer{"ES256", "ec-1", newEC(elliptic.P256())}.token(nil),
			auth.BadSignature,
		},
		{"Tampered", strings.Join(tampered, "."), auth.BadSignature},
		{"WrongKind/RS256NamesECKey", signer{"RS256", "ec-1", rsaKey()}.token(nil), auth.UnknownKey},
		{"WrongKind/ES256NamesRSAKey", signer{"ES256", "rsa-1", ecKey()}.token(nil), auth.UnknownKey},
		{"WrongKind/EdDSANamesRSAKey", signer{"EdDSA", "rsa-1", edKey()}.token(nil), auth.UnknownKey},
		{"UnknownKid", signer{"ES256", "marker", ecKey()}.token(nil), auth.UnknownKey},
		{"KidOfAPath", signer{"ES256", "../../dev/null", ecKey()}.token(nil), auth.UnknownKey},
		{
			"KidTooLong", signer{"ES256", strings.Repeat("marker", 100), ecKey()}.token(nil), auth.Malformed,
		},
		{"KidNumber", es().sign(`{"alg":"ES256","kid":1}`, claims(nil)), auth.Malformed},
		{"KidNull", es().sign(`{"alg":"ES256","kid":null}`, claims(nil)), auth.Malformed},
	}
}

func badTimes() []badToken {
	at := func(name string, v any) string { return hs().token(map[string]any{name: v}) }
	return []badToken{
		{"NoExpiry", at("exp", nil), auth.NoExpiry},
		{"Expired", at("exp", start.Add(-5*time.Second).Unix()), auth.Expired},
		{"ExpiryZero", at("exp", 0), auth.Expired},
		{"ExpiryText", at("exp", fmt.Sprint(start.Add(time.Hour).Unix())), auth.Malformed},
		{"ExpiryNegative", at("exp", -1), auth.Malformed},
		{"ExpiryBeyondAllDates", at("exp", 1e18), auth.Malformed},
		{
			"ExpiryOverflow", hs().sign(hs().named(), `{"sub":"a","tenant":"b","exp":1e300}`),
			auth.Malformed,
		},
		{
			"ExpiryNoFloat", hs().sign(hs().named(), `{"sub":"a","tenant":"b","exp":1e400}`), auth.Malformed,
		},
		{"ExpiryNull", hs().sign(hs().named(), `{"sub":"a","tenant":"b","exp":null}`), auth.Malformed},
		{
			"ExpiryOtherCase", hs().sign(hs().named(), `{"sub":"a","tenant":"b","EXP":9999999999}`),
			auth.NoExpiry,
		},
		{"NotYetValid", at("nbf", start.Add(6*time.Second).Unix()), auth.NotYetValid},
		{"NotBeforeText", at("nbf", "marker"), auth.Malformed},
	}
}

func badOrigins() []badToken {
	with := func(name string, v any) string { return rs().token(map[string]any{name: v}) }
	return []badToken{
		{"WrongIssuer", with("iss", "https://marker.example"), auth.WrongIssuer},
		{"IssuerWithSlash", with("iss", "https://issuer.example/"), auth.WrongIssuer},
		{"NoIssuer", with("iss", nil), auth.WrongIssuer},
		{"IssuerEmpty", with("iss", ""), auth.WrongIssuer},
		{"IssuerList", with("iss", []string{"https://issuer.example"}), auth.WrongIssuer},
		{"WrongAudience", with("aud", "marker"), auth.WrongAudience},
		{"WrongAudiences", with("aud", []string{"marker", "fencepos"}), auth.WrongAudience},
		{"NoAudience", with("aud", nil), auth.WrongAudience},
		{"AudienceEmpty", with("aud", []string{}), auth.WrongAudience},
		{"AudienceNumber", with("aud", 7), auth.WrongAudience},
		{"AudienceMixed", with("aud", []any{"fencepost", 7}), auth.WrongAudience},
	}
}

func badIdentities() []badToken {
	with := func(name string, v any) string { return ed().token(map[string]any{name: v}) }
	return []badToken{
		{"NoSubject", with("sub", nil), auth.NoSubject},
		{"SubjectEmpty", with("sub", ""), auth.NoSubject},
		{"SubjectNumber", with("sub", 42), auth.BadSubject},
		{"SubjectTooLong", with("sub", strings.Repeat("ä", 201)), auth.BadSubject},
		{"SubjectWithLineBreak", with("sub", "marker\nmarker"), auth.BadSubject},
		{"NoTenant", with("tenant", nil), auth.NoTenant},
		{"TenantEmpty", with("tenant", ""), auth.NoTenant},
		{"TenantOtherCase", ed().token(map[string]any{"tenant": nil, "Tenant": "marker"}), auth.NoTenant},
		{"TenantUpperCase", with("tenant", "Marker"), auth.BadTenant},
		{"TenantHyphenFirst", with("tenant", "-marker"), auth.BadTenant},
		{"TenantSlash", with("tenant", "marker/../acme"), auth.BadTenant},
		{"TenantLineBreak", with("tenant", "marker\n"), auth.BadTenant},
		{"TenantOfOurOwn", with("tenant", "fencepost-internal"), auth.BadTenant},
		{"TenantNUL", with("tenant", "marker\x00"), auth.BadTenant},
		{"TenantTooLong", with("tenant", strings.Repeat("a", 64)), auth.BadTenant},
		{"TenantNumber", with("tenant", 1), auth.BadTenant},
		{"TenantList", with("tenant", []string{"marker"}), auth.BadTenant},
		{"ScopeListOfNumbers", with("scope", []any{"admin", 1}), auth.BadScope},
		{"ScopeListWithNull", with("scope", []any{"admin", nil}), auth.BadScope},
		{"ScopeObject", with("scope", map[string]any{"admin": true}), auth.BadScope},
		{"ScopeNumber", with("scope", 1), auth.BadScope},
	}
}

func badLocks() []badToken {
	with := func(v any) string { return es().token(map[string]any{"locks": v}) }
	return []badToken{
		{"Locks/Text", with("marker:*"), auth.BadLocks},
		{"Locks/Object", with(map[string]any{"marker": true}), auth.BadLocks},
		{"Locks/True", with(true), auth.BadLocks},
		{"Locks/Number", with([]any{"marker:*", 1}), auth.BadLocks},
		{"Locks/NullInside", with([]any{"marker:*", nil}), auth.BadLocks},
		{"Locks/EmptyPattern", with([]string{""}), auth.BadLocks},
		{"Locks/TwoStars", with([]string{"marker:*:*"}), auth.BadLocks},
		{"Locks/LongPattern", with([]string{strings.Repeat("marker", 50)}), auth.BadLocks},
		{"Locks/TooMany", with(slices.Repeat([]string{"marker"}, 101)), auth.BadLocks},
		{"Locks/Null", es().sign(es().named(), fmt.Sprintf(
			`{"iss":"https://issuer.example","aud":"fencepost","sub":"a","tenant":"b","exp":%d,"locks":null}`,
			start.Add(time.Hour).Unix())), auth.BadLocks},
	}
}

func TestOddButGood(t *testing.T) {
	v := strict(t)
	for name, changes := range map[string]map[string]any{
		"ExpiryWithFraction":  {"exp": float64(start.Unix()) + 60.5},
		"WithinLeeway/Exp":    {"exp": start.Add(-4 * time.Second).Unix()},
		"WithinLeeway/Nbf":    {"nbf": start.Add(5 * time.Second).Unix()},
		"IssuedInTheFuture":   {"iat": start.Add(time.Hour).Unix()},
		"IssuedObject":        {"iat": map[string]any{"marker": 1}},
		"NoNbfNoIat":          {"nbf": nil, "iat": nil},
		"AudienceText":        {"aud": "fencepost"},
		"SubjectLong":         {"sub": strings.Repeat("ä", 200)},
		"TenantLong":          {"tenant": strings.Repeat("a", 63)},
		"TenantDigit":         {"tenant": "0-"},
		"OtherClaims":         {"groups": []any{1, nil, map[string]any{"a": "b"}}},
		"TenantInAnotherCase": {"Tenant": "marker", "TENANT": 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := accept(t, v, rs().token(changes))
			if want := claims(changes)["tenant"]; p.Tenant != want {
				t.Errorf("Tenant = %q, want %q", p.Tenant, want)
			}
		})
	}
}

func TestScopes(t *testing.T) {
	v := strict(t)
	for scope, want := range map[any][]auth.Scope{
		nil:                                 nil,
		"":                                  nil,
		"openid profile Admin locks":        nil,
		"admin":                             {auth.Admin},
		"tenant-admin":                      {auth.TenantAdmin},
		"  locks:read   locks:read ":        {auth.LocksRead},
		"webhooks:write\tadmin":             nil,
		"locks:write webhooks:write admin ": {auth.LocksWrite, auth.WebhooksWrite, auth.Admin},
	} {
		p := accept(t, v, hs().token(map[string]any{"scope": scope}))
		if diff := cmp.Diff(want, p.Scopes); diff != "" {
			t.Errorf("scope %q differs (-want +got):\n%s", scope, diff)
		}
	}
}

func TestLocksLimit(t *testing.T) {
	v := strict(t)
	for name, c := range map[string]struct {
		locks any
		may   []string
		not   []string
	}{
		"NoClaim": {nil, []string{"orders:1", "x"}, nil},
		"Empty":   {[]string{}, nil, []string{"orders:1", ""}},
		"Patterns": {
			[]string{"orders:*", "audit"},
			[]string{"orders:1", "orders:", "audit"},
			[]string{"order:1", "audit2", "xorders:1"},
		},
		"Star": {[]string{"*"}, []string{"orders:1", "x"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := accept(t, v, hs().token(map[string]any{"locks": c.locks}))
			for _, lock := range c.may {
				if !p.MayUse(lock) {
					t.Errorf("MayUse(%q) = false, want true", lock)
				}
			}
			for _, lock := range c.not {
				if p.MayUse(lock) {
					t.Errorf("MayUse(%q) = true, want false", lock)
				}
			}
		})
	}
}

// TestHeadersThatPointToKeys: a token cannot bring its own key along.
func TestHeadersThatPointToKeys(t *testing.T) {
	hits := newIssuer(t, keySet(ec("marker")))
	own := ec("ec-1")
	header := map[string]any{
		"alg": "ES256", "kid": "ec-1", "jku": hits.URL, "x5u": hits.URL, "jwk": own.jwk(),
	}
	reject(t, strict(t), own.sign(header, claims(nil)), auth.BadSignature)
	if n := hits.reads.Load(); n != 0 {
		t.Errorf("a URL of the token was read %d times", n)
	}
	accept(
		t, strict(t),
		es().sign(map[string]any{"alg": "ES256", "kid": "ec-1", "jku": hits.URL}, claims(nil)),
	)
}

func TestOneFamilyConfigured(t *testing.T) {
	clock := newClock()
	onlySecret := newVerifier(t, auth.Config{Secret: secret, Now: clock.Now})
	onlyKeys := newVerifier(t, auth.Config{JWKS: write(t, publicSet()), Now: clock.Now})
	accept(t, onlySecret, hs().token(nil))
	for _, s := range []signer{rs(), es(), ed()} {
		reject(t, onlySecret, s.token(nil), auth.UnsupportedAlgorithm)
		accept(t, onlyKeys, s.token(nil))
	}
	reject(t, onlyKeys, hs().token(nil), auth.UnsupportedAlgorithm)
}

// TestOnlyOneOriginChecked: the reason names the claim that is checked.
func TestOnlyOneOriginChecked(t *testing.T) {
	bare := hs().token(map[string]any{"iss": nil, "aud": nil})
	audience := newVerifier(t, auth.Config{Secret: secret, Audience: "fencepost", Now: newClock().Now})
	reject(t, audience, bare, auth.WrongAudience)
	accept(t, audience, hs().token(map[string]any{"iss": 7}))
	issuer := newVerifier(
		t, auth.Config{Secret: secret, Issuer: "https://issuer.example", Now: newClock().Now},
	)
	reject(t, issuer, bare, auth.WrongIssuer)
	accept(t, issuer, hs().token(map[string]any{"aud": 7}))
}

// TestSymmetricKeyInSet: a JWK Set is public, so a symmetric key in it is worth
// nothing.
func TestSymmetricKeyInSet(t *testing.T) {
	oct := fmt.Sprintf(
		`{"kty":"oct","alg":"HS256","kid":"h","k":"%s"}`, base64.RawURLEncoding.EncodeToString(secret),
	)
	set := strings.Replace(string(publicSet()), `{"keys":[`, `{"keys":[`+oct+`,`, 1)
	v := newVerifier(t, auth.Config{JWKS: write(t, []byte(set)), Now: newClock().Now})
	reject(t, v, signer{"HS256", "h", secret}.token(nil), auth.UnsupportedAlgorithm)
	accept(t, v, rs().token(nil))

	other := auth.Config{
		Secret: []byte(strings.Repeat("x", 32)), JWKS: write(t, []byte(set)), Now: newClock().Now,
	}
	reject(t, newVerifier(t, other), signer{"HS256", "h", secret}.token(nil), auth.BadSignature)
}

func TestLeeway(t *testing.T) {
	clock := newClock()
	v := newVerifier(t, auth.Config{Secret: secret, Leeway: time.Minute, Now: clock.Now})
	late := hs().token(map[string]any{"exp": start.Add(-59 * time.Second).Unix()})
	accept(t, v, late)
	clock.Advance(time.Second)
	reject(t, v, late, auth.Expired)
}

// TestRealClock: without Now the machine's clock is used.
func TestRealClock(t *testing.T) {
	v := newVerifier(t, auth.Config{Secret: secret})
	now := time.Now()
	accept(
		t, v,
		hs().token(map[string]any{"iat": now.Unix(), "nbf": nil, "exp": now.Add(time.Minute).Unix()}),
	)
	reject(
		t, v, hs().token(map[string]any{"iat": nil, "nbf": nil, "exp": now.Add(-time.Minute).Unix()}),
		auth.Expired,
	)
}

// TestLibraryKnowsNone guards the guard: the library does have "none", so the
// cases above are refused by our list of algorithms and not for its absence.
func TestLibraryKnowsNone(t *testing.T) {
	if jwt.GetSigningMethod("none") == nil {
		t.Error("the cases about \"none\" prove nothing any more")
	}
}
