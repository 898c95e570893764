package auth

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/golang-jwt/jwt/v5"
)

const (
	// maxTokenLength is in bytes. It bounds what an unauthenticated client can make us
	// hash and decode. A token of Entra ID that lists 200 groups has 11.4 KB.
	maxTokenLength = 16 << 10

	// maxTried bounds the signatures that one token can make us compute: with how many
	// keys of its kid, or of its algorithm if it names no kid.
	maxTried = 8
)

func newParser(c Config, algs []string) *jwt.Parser {
	options := []jwt.ParserOption{
		jwt.WithValidMethods(algs),
		jwt.WithStrictDecoding(),
		jwt.WithExpirationRequired(),
		jwt.WithLeeway(c.Leeway),
		jwt.WithTimeFunc(c.Now),
	}
	if c.Issuer != "" {
		options = append(options, jwt.WithIssuer(c.Issuer))
	}
	if c.Audience != "" {
		options = append(options, jwt.WithAudience(c.Audience))
	}
	return jwt.NewParser(options...)
}

func checkLength(raw string) error {
	if raw == "" {
		return refuse(Missing, "no token")
	}
	if len(raw) > maxTokenLength {
		return refuse(Malformed, fmt.Sprintf("longer than %d bytes", maxTokenLength))
	}
	return nil
}

// parse makes every check and says which key the signature was made with.
func (v *Verifier) parse(ctx context.Context, raw string) (*Principal, *key, error) {
	// The decoder skips line breaks, so one signature could be written, and
	// remembered, in any number of ways.
	if strings.ContainsAny(raw, "\r\n") {
		return nil, nil, refuse(Malformed, "a line break in the token")
	}
	var signedWith *key
	var c claims
	token, err := v.parser.ParseWithClaims(raw, &c, func(t *jwt.Token) (any, error) {
		keys, err := v.keysFor(ctx, t)
		if err != nil {
			return nil, err
		}
		signedWith = signerOf(t, keys)
		return signedWith.material, nil
	})
	if err != nil {
		return nil, nil, withKeyID(token, v.explain(token, c, err))
	}
	p, err := c.principal(v.names)
	if err != nil {
		return nil, nil, withKeyID(token, err)
	}
	return p, signedWith, nil
}

// withKeyID adds to an error which key the token names.
func withKeyID(token *jwt.Token, err error) error {
	refused, ok := errors.AsType[*Error](err)
	if token == nil || !ok {
		return err
	}
	named := *refused
	named.KeyID = loggedKeyID(token.Header)
	return &named
}

// signerOf returns the key that made the signature, or the first one if none of them did.
func signerOf(t *jwt.Token, keys []*key) *key {
	if len(keys) == 1 {
		return keys[0] // which the parser tries
	}
	text := t.Raw[:strings.LastIndexByte(t.Raw, '.')]
	for _, k := range keys[:min(len(keys), maxTried)] {
		if t.Method.Verify(text, t.Signature, k.material) == nil {
			return k
		}
	}
	return keys[0]
}

// keysFor picks the keys by the token's header. The parser has made sure that the
// algorithm is one of ours.
func (v *Verifier) keysFor(ctx context.Context, t *jwt.Token) ([]*key, error) {
	if _, critical := t.Header["crit"]; critical {
		return nil, refuse(Malformed, "a critical extension (crit) that is not supported")
	}
	alg := t.Method.Alg()
	if v.secret != nil && alg == v.secret.id.alg {
		return []*key{v.secret}, nil
	}
	if v.keys == nil {
		return nil, refuse(UnsupportedAlgorithm, "no key for this algorithm")
	}
	kid, isText := t.Header["kid"].(string)
	if _, present := t.Header["kid"]; present && (!isText || len(kid) > maxKeyIDLength) {
		return nil, refuse(
			Malformed, fmt.Sprintf("kid is not a string of at most %d bytes", maxKeyIDLength),
		)
	}
	keys := v.keys.find(ctx, keyID{alg, kid})
	if len(keys) == 0 && kid == "" {
		return nil, refuse(UnknownKey, "no kid, and the key set has no key of this algorithm")
	}
	if len(keys) == 0 {
		return nil, refuse(UnknownKey, "the key set has no key with this kid and algorithm")
	}
	return keys, nil
}

// explain turns the library's error into ours. Its texts are dropped, because
// they may quote the token.
func (v *Verifier) explain(token *jwt.Token, c claims, err error) error {
	if own, ok := errors.AsType[*Error](err); ok {
		return own
	}
	switch {
	case errors.Is(err, jwt.ErrTokenMalformed):
		return refuse(Malformed, "not a JSON Web Token: three parts with a dot between each two")
	case errors.Is(err, jwt.ErrTokenUnverifiable), token == nil, !slices.Contains(
		v.algs, token.Method.Alg(),
	):
		return refuse(UnsupportedAlgorithm, "the algorithm is not one of "+strings.Join(v.algs, ", "))
	case errors.Is(err, jwt.ErrTokenSignatureInvalid):
		return refuse(BadSignature, "the signature does not fit")
	case errors.Is(err, jwt.ErrTokenExpired):
		return refuse(Expired, "it has expired")
	case errors.Is(err, jwt.ErrTokenNotValidYet):
		return refuse(NotYetValid, "it is not valid yet (nbf)")
	}
	return v.explainOrigin(c, err)
}

// explainOrigin tells apart what the library reports alike: which of the
// required claims is missing.
func (v *Verifier) explainOrigin(c claims, err error) error {
	switch {
	case c["exp"] == nil:
		return refuse(NoExpiry, "exp is missing")
	case errors.Is(err, jwt.ErrTokenInvalidIssuer):
		return refuse(WrongIssuer, "iss is another issuer")
	case errors.Is(err, jwt.ErrTokenInvalidAudience):
		return refuse(WrongAudience, "aud does not name this service")
	}
	if iss, _ := c.text("iss", WrongIssuer); v.issuer != "" && iss == "" {
		return refuse(WrongIssuer, "iss is missing")
	}
	return refuse(WrongAudience, "aud is missing")
}
