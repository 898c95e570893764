package auth

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Claims are what a token signed by [Sign] says.
type Claims struct {
	Tenant  string
	Subject string

	// Scopes has to name only scopes that Fencepost knows: a mistyped one would
	// be ignored when the token is used.
	Scopes []Scope

	// Locks are name patterns. Nil does not limit the token; empty but not nil
	// lets it use no lock.
	Locks []string

	// Issuer and Audience are left out if empty.
	Issuer, Audience string

	// Names says in which claims the verifier looks for the rest.
	Names ClaimNames
}

// Sign returns an HS256 token that is valid from now for ttl, at least a
// second. It refuses claims that Verify would refuse.
func Sign(secret []byte, c Claims, now time.Time, ttl time.Duration) (string, error) {
	if err := checkSecret(secret); err != nil {
		return "", err
	}
	if ttl < time.Second {
		return "", fmt.Errorf("a time to live of %v is below one second", ttl)
	}
	m, err := c.members()
	if err != nil {
		return "", err
	}
	m["iat"] = jwt.NewNumericDate(now)
	m["exp"] = jwt.NewNumericDate(now.Add(ttl))
	signed, err := jwt.NewWithClaims(jwt.SigningMethodHS256, m).SignedString(secret)
	if err != nil {
		return "", fmt.Errorf("sign a token: %w", err)
	}
	if len(signed) > maxTokenLength {
		return "", fmt.Errorf("the token would be longer than %d bytes", maxTokenLength)
	}
	return signed, nil
}

func (c Claims) members() (jwt.MapClaims, error) {
	names, err := c.Names.complete()
	if err := errors.Join(err, c.check()); err != nil {
		return nil, err
	}
	scopes := make([]string, len(c.Scopes))
	for i, s := range c.Scopes {
		scopes[i] = names.ScopePrefix + string(s)
	}
	m := jwt.MapClaims{
		names.Tenant: c.Tenant, "sub": c.Subject, names.Scope: strings.Join(scopes, " "),
	}
	if c.Locks != nil {
		m[names.Locks] = c.Locks
	}
	if c.Issuer != "" {
		m["iss"] = c.Issuer
	}
	if c.Audience != "" {
		m["aud"] = c.Audience
	}
	return m, nil
}

func (c Claims) check() error {
	for _, err := range []error{checkTenant("tenant", c.Tenant), checkSubject("sub", c.Subject)} {
		if fault, ok := errors.AsType[*Error](err); ok {
			return errors.New(fault.Detail)
		}
	}
	for _, s := range c.Scopes {
		if !known(s) {
			return fmt.Errorf("scope %.50q is unknown: there are %s, %s, %s, %s and %s",
				string(s), LocksRead, LocksWrite, WebhooksWrite, TenantAdmin, Admin)
		}
	}
	if len(c.Locks) > maxPatterns {
		return fmt.Errorf("more than %d name patterns", maxPatterns)
	}
	for _, text := range c.Locks {
		if _, err := ParsePattern(text); err != nil {
			return err
		}
	}
	return nil
}
