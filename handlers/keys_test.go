package handlers_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"maps"
	"sync"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/golang-jwt/jwt/v5"
)

const (
	issuer   = "https://issuer.example"
	audience = "fencepost"
)

func secret() []byte { return []byte("0123456789abcdef0123456789abcdef") }

// The issuer's keys, made once.
var (
	rsaKey = sync.OnceValue(func() *rsa.PrivateKey { return must(rsa.GenerateKey(rand.Reader, 2048)) })
	ecKey  = sync.OnceValue(
		func() *ecdsa.PrivateKey { return must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)) },
	)
	edKey = sync.OnceValue(func() ed25519.PrivateKey { return ed25519.NewKeyFromSeed(secret()) })
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// publicKeys is the issuer's key set.
func publicKeys() []byte {
	keys := []any{
		jwk(rsaKey().Public(), "RS256", "rsa-1"), jwk(ecKey().Public(), "ES256", "ec-1"),
		jwk(edKey().Public(), "EdDSA", "ed-1"),
	}
	return must(json.Marshal(map[string]any{"keys": keys}))
}

func jwk(public any, alg, kid string) any {
	options := jwkset.JWKOptions{
		Metadata: jwkset.JWKMetadataOptions{ALG: jwkset.ALG(alg), KID: kid, USE: jwkset.UseSig},
	}
	return must(jwkset.NewJWKFromKey(public, options)).Marshal()
}

// sign signs good claims of the tenant, changed by changes: nil removes one. kid
// "" names no key.
func sign(
	tenant string,
	method jwt.SigningMethod,
	kid string,
	key any,
	changes map[string]any,
) string {
	now := time.Now()
	c := jwt.MapClaims{
		"iss": issuer, "aud": audience, "sub": "worker-1", "tenant": tenant,
		"scope": "locks:read locks:write", "iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	}
	maps.Copy(c, changes)
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	t := jwt.NewWithClaims(method, c)
	if kid != "" {
		t.Header["kid"] = kid
	}
	token := must(t.SignedString(key))
	shared.secrets.add(token)
	return token
}

// hs signs with the shared secret.
func hs(tenant string, changes map[string]any) string {
	return sign(tenant, jwt.SigningMethodHS256, "", secret(), changes)
}
