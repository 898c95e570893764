package auth

import (
	"slices"
	"strings"
	"time"
)

// Scope is one thing that a bearer token allows. None implies another.
type Scope string

// The scopes that Fencepost knows. Others in a token are ignored, because one
// token may serve several services.
const (
	LocksRead     Scope = "locks:read"
	LocksWrite    Scope = "locks:write"
	WebhooksWrite Scope = "webhooks:write"
	TenantAdmin   Scope = "tenant-admin" // what operators may, within the tenant of the token
	Admin         Scope = "admin"        // the same for all tenants
)

func scopes() []Scope { return []Scope{LocksRead, LocksWrite, WebhooksWrite, TenantAdmin, Admin} }

func known(s Scope) bool { return slices.Contains(scopes(), s) }

// parseScopes returns the known scopes among the words that begin with prefix, each once.
func parseScopes(words []string, prefix string) []Scope {
	var scopes []Scope
	for _, word := range words {
		name, ours := strings.CutPrefix(word, prefix)
		if s := Scope(name); ours && known(s) && !slices.Contains(scopes, s) {
			scopes = append(scopes, s)
		}
	}
	return scopes
}

// Principal is who a verified bearer token speaks for. One Principal is shared
// by all requests that carry the same token: it must not be changed.
type Principal struct {
	// Tenant owns the locks that the token is for.
	Tenant string

	// Subject is the token's sub: which worker, user or service this is.
	Subject string

	// Scopes are the known scopes of the token.
	Scopes []Scope

	// Locks limits the token to locks that one of these patterns selects. Nil
	// means no limit; empty but not nil means that no lock may be used.
	Locks []Pattern

	// Expires is the token's exp, without leeway.
	Expires time.Time

	// validity says whether the credential still counts; nil is a credential that counts until it
	// expires. voucher names in a session what has to count for that.
	validity validity
	voucher  string

	ends time.Time // when it expires, with leeway, by the monotonic clock; zero is never
}

// Allows reports whether the token has the scope.
func (p *Principal) Allows(scope Scope) bool {
	return slices.Contains(p.Scopes, scope)
}

// MayOperate reports whether the token lets an operator see and change what belongs to the
// tenant; "" stands for all of them.
func (p *Principal) MayOperate(tenant string) bool {
	return p.Allows(Admin) || p.Allows(TenantAdmin) && tenant == p.Tenant
}

// MayUse reports whether the token's name patterns let it use the lock.
func (p *Principal) MayUse(name string) bool {
	if p.Locks == nil {
		return true
	}
	for i := range p.Locks {
		if p.Locks[i].Match(name) {
			return true
		}
	}
	return false
}

// MayUseAll reports whether the token's name patterns let it use every lock that the pattern
// selects.
func (p *Principal) MayUseAll(of Pattern) bool {
	return p.Locks == nil ||
		slices.ContainsFunc(p.Locks, func(allowed Pattern) bool { return allowed.Covers(of) })
}
