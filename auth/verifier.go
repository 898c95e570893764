// Package auth turns a bearer token, a JSON Web Token, into a [Principal]: the
// tenant it speaks for, its subject, its scopes and the locks it is limited to.
//
// Two families of keys can be configured, alone or together, and they never
// mix. A shared secret verifies HS256 and nothing else. The keys of a JWK Set
// (an https URL or a file) verify RS256, ES256 and EdDSA, each only with a key
// of that kind and with the kid that the token names; a token without one tries
// all keys of its algorithm. Every other algorithm, "none" included, is refused. Headers that point
// to keys (jku, x5u, jwk) are ignored, and a token with a critical extension (crit) is refused.
//
// A token that passed is remembered under its SHA-256 until it expires, so that
// the usual request costs one hash and no signature. At most 10 000 tokens are
// remembered. A token that failed is never remembered.
//
// The JWK Set is read again every 5 minutes from a URL and every second from
// a file (Config.Refresh), and when a token names an unknown kid, but for that
// reason at most once in 10 seconds and for the same kid once in a minute. A key
// that is gone from the set stops working with that very read, for remembered
// tokens, sessions that began with one, and work under way too ([Principal.While]).
// While the set cannot be read, its last keys stay in use.
//
// What it does not do: a single token cannot be revoked before it expires, and
// there is no call to the issuer about one.
package auth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

const (
	minSecretLength = 32 // bytes: as long as the hash of HS256 (RFC 7518 section 3.2)

	defaultLeeway = 5 * time.Second
	maxLeeway     = time.Minute
)

// Config says which tokens are good. Secret or JWKS is required.
type Config struct {
	// Secret verifies HS256; at least 32 bytes. Empty refuses HS256.
	Secret []byte

	// JWKS is where the keys for RS256, ES256 and EdDSA are: an https URL, an
	// http URL on a loopback address, or a path. Empty refuses these.
	JWKS string

	// Issuer and Audience, if set, have to be the token's iss and among its aud.
	Issuer, Audience string

	// Names says in which claims the rights of a token are.
	Names ClaimNames

	// Leeway is how far the issuer's clock may be off, up to a minute. 0 means
	// 5 seconds.
	Leeway time.Duration

	// Refresh is how often the JWK Set is read. 0 means 5 minutes for a URL and
	// a second for a file.
	Refresh time.Duration

	// Logger gets a line when the key set changes or cannot be read. Nil discards.
	Logger *slog.Logger

	// Now is the clock for tokens and for the limits on reading the key set.
	// Nil means [time.Now].
	Now func() time.Time
}

// Verifier verifies bearer tokens. It is safe for concurrent use.
type Verifier struct {
	now    func() time.Time
	leeway time.Duration
	parser *jwt.Parser
	algs   []string
	names  ClaimNames
	issuer string
	secret *key
	keys   *keySet // nil without a JWK Set
	cache  *cache
}

// New returns a verifier. ctx bounds only the first read of the JWK Set, which is repeated if a
// URL does not answer, see [Verifier.Ready]; [Verifier.Close] ends what runs after it. An error
// names the flag that is at fault.
func New(ctx context.Context, c Config) (*Verifier, error) {
	c, err := c.complete()
	if err != nil {
		return nil, err
	}
	v := &Verifier{now: c.Now, leeway: c.Leeway, issuer: c.Issuer, names: c.Names, cache: newCache()}
	if len(c.Secret) > 0 {
		alg := jwt.SigningMethodHS256.Alg()
		if v.secret, err = newKey(keyID{alg: alg}, slices.Clone(c.Secret)); err != nil {
			return nil, err
		}
		v.algs = append(v.algs, alg)
	}
	if c.JWKS != "" {
		if v.keys, err = openKeySet(ctx, c); err != nil {
			return nil, fmt.Errorf("--jwks: %w", err)
		}
		v.algs = append(
			v.algs, jwt.SigningMethodRS256.Alg(), jwt.SigningMethodES256.Alg(), jwt.SigningMethodEdDSA.Alg(),
		)
	}
	v.parser = newParser(c, v.algs)
	return v, nil
}

// complete checks a configuration and fills in what was left out.
func (c Config) complete() (Config, error) {
	if len(c.Secret) == 0 && c.JWKS == "" {
		return c, errors.New(
			"no key for bearer tokens: set --jwt-secret-file or --jwks (or --dev, to have a secret made)",
		)
	}
	if err := checkSecret(c.Secret); err != nil && len(c.Secret) > 0 {
		return c, fmt.Errorf("--jwt-secret-file: %w", err)
	}
	names, err := c.Names.complete()
	if err != nil {
		return c, err
	}
	c.Names = names
	if c.Leeway < 0 || c.Leeway > maxLeeway {
		return c, fmt.Errorf("--jwt-leeway: %v is not between 0 and %v", c.Leeway, maxLeeway)
	}
	if c.Refresh < 0 {
		return c, fmt.Errorf("--jwks-refresh: %v is negative", c.Refresh)
	}
	if c.Leeway == 0 {
		c.Leeway = defaultLeeway
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c, nil
}

func checkSecret(secret []byte) error {
	if len(secret) < minSecretLength {
		return fmt.Errorf("the secret has %d bytes, it needs at least %d", len(secret), minSecretLength)
	}
	return nil
}

func openKeySet(ctx context.Context, c Config) (*keySet, error) {
	src, err := newSource(c.JWKS)
	if err != nil {
		return nil, err
	}
	return startKeySet(ctx, src, c)
}

// Close stops reading the key set and waits until that has ended. Verify goes
// on with the keys as they are. Closing twice is harmless.
func (v *Verifier) Close() {
	if v.keys != nil {
		v.keys.close()
	}
}

// Ready returns an error until the key set was read once.
func (v *Verifier) Ready() error {
	if v.keys != nil && !v.keys.ready.Load() {
		return errors.New("the keys for bearer tokens could not be read yet")
	}
	return nil
}

// Known returns who a token speaks for that [Verifier.Verify] has remembered, or nil.
func (v *Verifier) Known(raw string) *Principal {
	if len(raw) > maxTokenLength {
		return nil
	}
	return v.cache.find(digestOf(raw), v.now())
}

// Verify returns who the token speaks for. raw is the token alone, without
// "Bearer". Every error is an [*Error]. A token with an unknown kid may wait up
// to 5 seconds for the key set to be read again; otherwise nothing is waited for.
func (v *Verifier) Verify(ctx context.Context, raw string) (*Principal, error) {
	if err := checkLength(raw); err != nil {
		return nil, err
	}
	now, d := v.now(), digestOf(raw)
	if p := v.cache.find(d, now); p != nil {
		return p, nil
	}
	p, k, err := v.parse(ctx, raw)
	if err != nil {
		return nil, err
	}
	if p.voucher = k.voucher; k != v.secret { // which never changes
		p.validity = k.validity
	}
	p.lasts(p.Expires.Add(v.leeway).Sub(now))
	v.cache.add(&verified{digest: d, principal: p, key: k, until: p.Expires.Add(v.leeway)}, now)
	return p, nil
}

// vouch implements [Voucher] for sessions that began with a bearer token.
func (v *Verifier) vouch(ctx context.Context, p *Principal) validity {
	if v.secret != nil && v.secret.voucher == p.voucher {
		return v.secret.validity
	}
	parts := strings.SplitN(p.voucher, ":", 3)
	if v.keys == nil || len(parts) != 3 {
		return nil
	}
	for _, k := range v.keys.find(ctx, keyID{parts[0], parts[2]}) {
		if k.voucher == p.voucher {
			return k.validity
		}
	}
	return nil
}
