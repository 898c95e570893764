package auth_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/auth"
)

// provider is an identity provider with the settings that its access tokens need.
type provider struct {
	names            auth.ClaimNames
	issuer, audience string
	header, claims   map[string]any
	tenant, subject  string
	locks            string // a name that the token may use, if it limits them
}

// TestTokensOfProviders has a token of each as its documentation shows it: lifetimes, and
// identifiers where nothing depends on them, are the test's.
func TestTokensOfProviders(t *testing.T) {
	for name, p := range map[string]provider{
		"Auth0": auth0(), "Auth0/RBAC": auth0Permissions(), "Keycloak": keycloak(),
		"Entra/user": entraUser(), "Entra/application": entraApplication(), "Okta": okta(),
		"Google": google(),
	} {
		t.Run(name, func(t *testing.T) {
			key := signer{"RS256", "rsa-1", rsaKey()}
			v := newVerifier(t, auth.Config{
				JWKS: write(t, keySet(key)), Issuer: p.issuer, Audience: p.audience, Names: p.names,
				Now: newClock().Now,
			})
			p.header["alg"], p.header["kid"] = key.alg, key.kid
			got := accept(t, v, key.sign(p.header, p.claims))
			slices.Sort(got.Scopes)
			want := []auth.Scope{auth.LocksRead, auth.LocksWrite}
			if diff := cmp.Diff(want, got.Scopes); diff != "" {
				t.Errorf("scopes differ (-want +got):\n%s", diff)
			}
			if got.Tenant != p.tenant || got.Subject != p.subject {
				t.Errorf("tenant %q, subject %q, want %q, %q", got.Tenant, got.Subject, p.tenant, p.subject)
			}
			if p.locks != "" && (!got.MayUse(p.locks) || got.MayUse("another")) {
				t.Errorf("the token is not limited to its locks: %v", got.Locks)
			}
		})
	}
}

// life are the claims about time, which all of them set.
func life(claims map[string]any) map[string]any {
	claims["iat"], claims["exp"] = start.Unix(), start.Unix()+3600
	return claims
}

// auth0 demands a URL as the name of an own claim, which an action sets.
func auth0() provider {
	return provider{
		names: auth.ClaimNames{
			Tenant: "https://fencepost.example/tenant", Locks: "https://fencepost.example/locks",
		},
		issuer: "https://acme.eu.auth0.com/", audience: "https://fencepost.example",
		header: map[string]any{"typ": "JWT"},
		claims: life(map[string]any{
			"https://fencepost.example/tenant": "acme",
			"https://fencepost.example/locks":  []string{"orders:*"},
			"iss":                              "https://acme.eu.auth0.com/",
			"sub":                              "auth0|5f7c8ec7c33c6c004bbafe82",
			"aud": []string{
				"https://fencepost.example", "https://acme.eu.auth0.com/userinfo",
			},
			"scope": "openid profile locks:read locks:write",
			"azp":   "my_client_id",
		}),
		tenant: "acme", subject: "auth0|5f7c8ec7c33c6c004bbafe82", locks: "orders:1",
	}
}

// auth0Permissions is an API with "Add Permissions in the Access Token".
func auth0Permissions() provider {
	p := auth0()
	p.names.Scope = "permissions"
	p.claims["permissions"] = []string{"locks:read", "locks:write", "read:reports"}
	p.claims["scope"] = "openid"
	p.claims["sub"], p.claims["gty"] = "my_client_id@clients", "client-credentials"
	p.subject = "my_client_id@clients"
	return p
}

// keycloak has mappers for the audience and the tenant in a client scope.
func keycloak() provider {
	return provider{
		issuer: "https://keycloak.example/realms/acme", audience: "fencepost",
		header: map[string]any{"typ": "JWT"},
		claims: life(map[string]any{
			"jti": "trrtcc:0e5a1d86", "iss": "https://keycloak.example/realms/acme",
			"aud": []string{"fencepost", "account"}, "sub": "e6d9a3a6-7b0d-4f3c-8f7c-2a5b1a4b9c1d",
			"typ": "Bearer", "azp": "worker", "acr": "1", "allowed-origins": []string{"/*"},
			"realm_access":    map[string]any{"roles": []string{"offline_access", "uma_authorization"}},
			"resource_access": map[string]any{"account": map[string]any{"roles": []string{"view-profile"}}},
			"scope":           "locks:read locks:write profile email", "clientHost": "10.0.0.1",
			"email_verified": false, "preferred_username": "service-account-worker", "tenant": "acme",
		}),
		tenant: "acme", subject: "e6d9a3a6-7b0d-4f3c-8f7c-2a5b1a4b9c1d",
	}
}

const entraTenant = "9122040d-6c67-4c5b-b112-36a304b66dad"

// entraUser has delegated permissions in scp, and 200 groups: 11.4 KB.
func entraUser() provider {
	groups := make([]string, 200)
	for i := range groups {
		groups[i] = fmt.Sprintf("6fd0b2d4-0b8f-4a5e-9c3d-%012d", i)
	}
	return provider{
		names:    auth.ClaimNames{Tenant: "tid", Scope: "scp"},
		issuer:   "https://login.microsoftonline.com/" + entraTenant + "/v2.0",
		audience: "6e74172b-be56-4843-9ff4-e66a39bb12e3",
		header:   map[string]any{"typ": "JWT", "x5t": "i6lGk3FZzxRcUb2C3nEQ7syHJlY"},
		claims: life(map[string]any{
			"aud": "6e74172b-be56-4843-9ff4-e66a39bb12e3", "nbf": start.Unix(), "groups": groups,
			"iss": "https://login.microsoftonline.com/" + entraTenant + "/v2.0",
			"aio": "AXQAi/8IAAAAtAaZLo3ChMif6KOnttRB7eBq4/DccQzjcJGxPYy", "azpacr": "0",
			"azp": "6e74172b-be56-4843-9ff4-e66a39bb12e3", "name": "Abe Lincoln",
			"oid": "690222be-ff1a-4d56-abd1-7e4f7d38e474", "preferred_username": "abeli@microsoft.com",
			"rh": "I", "scp": "locks:read locks:write", "sub": "HKZpfaHyWadeOouYlitjrI-KffTm222X5rrV3xDqfKQ",
			"tid": entraTenant, "uti": "fqiBqXLPj0eQa82S-IYFAA", "ver": "2.0",
		}),
		tenant: entraTenant, subject: "HKZpfaHyWadeOouYlitjrI-KffTm222X5rrV3xDqfKQ",
	}
}

// entraApplication has application permissions in roles, here with a prefix.
func entraApplication() provider {
	p := entraUser()
	p.names.Scope, p.names.ScopePrefix = "roles", "Fencepost."
	p.claims["roles"] = []string{"Fencepost.locks:read", "Fencepost.locks:write", "admin"}
	for _, name := range []string{"scp", "groups", "name", "preferred_username"} {
		delete(p.claims, name)
	}
	p.claims["idtyp"], p.claims["sub"] = "app", "690222be-ff1a-4d56-abd1-7e4f7d38e474"
	p.subject = "690222be-ff1a-4d56-abd1-7e4f7d38e474"
	return p
}

// okta is a custom authorization server with a claim of its own.
func okta() provider {
	return provider{
		names:  auth.ClaimNames{Scope: "scp"},
		issuer: "https://acme.okta.com/oauth2/default", audience: "api://default",
		header: map[string]any{},
		claims: life(map[string]any{
			"ver": 1, "jti": "AT.0mP4JKAZX1iACIT4vbEDF7LpvDVjxypPMf0D7uX39RE",
			"iss": "https://acme.okta.com/oauth2/default", "aud": "api://default",
			"cid": "0oabv6kx4qq6h1U5l0h7", "uid": "00ujmkLgagxeRrAg20g3",
			"scp": []string{"locks:read", "locks:write", "openid"}, "auth_time": start.Unix(),
			"sub": "user@example.com", "tenant": "acme",
		}),
		tenant: "acme", subject: "user@example.com",
	}
}

// google is Identity Platform, whose custom claims an administrator sets; tokens of
// accounts.google.com have neither a tenant nor scopes.
func google() provider {
	return provider{
		names:  auth.ClaimNames{Scope: "permissions"},
		issuer: "https://securetoken.google.com/acme-prod", audience: "acme-prod",
		header: map[string]any{"typ": "JWT"},
		claims: life(map[string]any{
			"iss": "https://securetoken.google.com/acme-prod", "aud": "acme-prod",
			"auth_time": start.Unix(), "user_id": "k7Wm4h2TfYd", "sub": "k7Wm4h2TfYd",
			"email": "worker@example.com", "email_verified": true, "tenant": "acme",
			"permissions": []string{"locks:read", "locks:write"},
			"firebase":    map[string]any{"identities": map[string]any{}, "sign_in_provider": "custom"},
		}),
		tenant: "acme", subject: "k7Wm4h2TfYd",
	}
}

// TestClaimsUnderOtherNames: where a name is set, the usual one says nothing.
func TestClaimsUnderOtherNames(t *testing.T) {
	names := auth.ClaimNames{Tenant: "org", Scope: "scp", Locks: "may", ScopePrefix: "fencepost/"}
	v := newVerifier(t, auth.Config{Secret: secret, Names: names, Now: newClock().Now})
	reject(t, v, hs().token(nil), auth.NoTenant)
	p := accept(t, v, hs().token(map[string]any{
		"org": "other", "scp": []string{"fencepost/admin", "locks:write", "fencepost/x"},
		"locks": []string{},
	}))
	if p.Tenant != "other" || !slices.Equal(p.Scopes, []auth.Scope{auth.Admin}) || p.Locks != nil {
		t.Errorf("Verify() = %+v", p)
	}
	p = accept(t, v, hs().token(map[string]any{"org": "other", "may": []string{}}))
	if p.Locks == nil || p.MayUse("orders:1") {
		t.Error("an empty list of another name does not limit the token")
	}
	reject(t, v, hs().token(map[string]any{"org": "other", "may": "orders:*"}), auth.BadLocks)
}

// TestSignedClaimsUnderOtherNames: what we sign, a verifier of the same settings takes.
func TestSignedClaimsUnderOtherNames(t *testing.T) {
	names := auth.ClaimNames{
		Tenant: "https://a.example/org", Scope: "scp", Locks: "may", ScopePrefix: "fp.",
	}
	raw := must(auth.Sign(secret, auth.Claims{
		Tenant: "acme", Subject: "w", Scopes: []auth.Scope{auth.LocksRead}, Locks: []string{"a"},
		Names: names,
	}, start, 3600e9))
	p := accept(t, newVerifier(t, auth.Config{Secret: secret, Names: names, Now: newClock().Now}), raw)
	if p.Tenant != "acme" || !p.Allows(auth.LocksRead) || p.MayUse("b") {
		t.Errorf("Verify() = %+v", p)
	}
}

func TestClaimNamesAreChecked(t *testing.T) {
	for name, c := range map[string]struct {
		names auth.ClaimNames
		want  string
	}{
		"Registered": {auth.ClaimNames{Tenant: "sub"}, "--jwt-tenant-claim"},
		"Long":       {auth.ClaimNames{Locks: strings.Repeat("x", 257)}, "--jwt-locks-claim"},
		"Same":       {auth.ClaimNames{Tenant: "scp", Scope: "scp"}, "must differ"},
		"AsDefault":  {auth.ClaimNames{Scope: "tenant"}, "must differ"},
	} {
		_, err := auth.New(t.Context(), auth.Config{Secret: bytes.Clone(secret), Names: c.names})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: New() = %v, want %q", name, err, c.want)
		}
	}
}
