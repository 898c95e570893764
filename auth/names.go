package auth

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

const maxClaimName = 256 // bytes

// ClaimNames says in which claims of a token its rights are: some identity providers fix the
// names. "" is the default. A name may be a URL.
type ClaimNames struct {
	Tenant string // by default "tenant"
	Scope  string // by default "scope": a string of words, or a list of strings
	Locks  string // by default "locks"

	// ScopePrefix stands before each scope that is meant for Fencepost. Others are ignored.
	ScopePrefix string
}

// registered are claims that have a meaning of their own (RFC 7519 section 4.1).
func registered() []string { return []string{"iss", "sub", "aud", "exp", "nbf", "iat", "jti"} }

// Check returns what is wrong with the names.
func (n ClaimNames) Check() error {
	_, err := n.complete()
	return err
}

func (n ClaimNames) complete() (ClaimNames, error) {
	for _, c := range []struct {
		flag  string
		name  *string
		usual string
	}{
		{"--jwt-tenant-claim", &n.Tenant, "tenant"},
		{"--jwt-scope-claim", &n.Scope, "scope"},
		{"--jwt-locks-claim", &n.Locks, "locks"},
	} {
		if *c.name == "" {
			*c.name = c.usual
		}
		if len(*c.name) > maxClaimName || slices.Contains(registered(), *c.name) {
			return n, fmt.Errorf("%s: must be at most %d bytes and none of %s",
				c.flag, maxClaimName, strings.Join(registered(), ", "))
		}
	}
	if n.Tenant == n.Scope || n.Scope == n.Locks || n.Locks == n.Tenant {
		return n, errors.New("--jwt-tenant-claim, --jwt-scope-claim and --jwt-locks-claim must differ")
	}
	return n, nil
}

// scopes reads the scopes from a string of words, or from a list with one in each string.
func (c claims) scopes(names ClaimNames) ([]Scope, error) {
	raw, ok := c[names.Scope]
	if !ok {
		return nil, nil
	}
	if len(raw) > 0 && raw[0] == '[' {
		return scopesOfList(raw, names)
	}
	words, err := c.text(names.Scope, BadScope)
	return parseScopes(strings.Split(words, " "), names.ScopePrefix), err
}

func scopesOfList(raw json.RawMessage, names ClaimNames) ([]Scope, error) {
	var list []*string
	if err := json.Unmarshal(raw, &list); err != nil || slices.Contains(list, nil) {
		return nil, refuse(BadScope, names.Scope+" is neither a string nor a list of strings")
	}
	words := make([]string, len(list))
	for i, word := range list {
		words[i] = *word
	}
	return parseScopes(words, names.ScopePrefix), nil
}
