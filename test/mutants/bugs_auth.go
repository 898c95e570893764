package main

// authBugs break authentication: claims, sessions, certificates, scopes.
func authBugs() []Bug {
	return []Bug{
		{
			Name: "auth-any-algorithm", Breaks: "only HS256, RS256, ES256 and EdDSA verify",
			File: "auth/token.go", Anchor: "jwt.WithValidMethods(algs)",
			Becomes: `jwt.WithValidMethods(append(algs, "HS384", "HS512", "none"))`, In: "./auth",
			Run: "^TestBadTokens$",
		},
		{
			Name: "auth-without-expiry", Breaks: "a token without `exp` is rejected", File: "auth/token.go",
			Anchor: "\t\tjwt.WithExpirationRequired(),\n", Becomes: "", In: "./auth", Run: "^TestBadTokens$",
		},
		{
			Name: "auth-any-audience", Breaks: "`aud` names this service", File: "auth/token.go",
			Anchor: `if c.Audience != "" {`, Becomes: "if false {", In: "./auth", Run: "^TestBadTokens$",
		},
		{
			Name: "auth-any-issuer", Breaks: "`iss` is the configured one", File: "auth/token.go",
			Anchor: `if c.Issuer != "" {`, Becomes: "if false {", In: "./auth", Run: "^TestBadTokens$",
		},
		{
			Name: "auth-any-tenant", Breaks: "a tenant name cannot reach another tenant's keys",
			File: "auth/claims.go", Anchor: "if !lock.ValidTenant(tenant) {",
			Becomes: "if len(tenant) > lock.MaxTenantLength {", In: "./auth", Run: "^TestBadTokens$",
		},
		{
			Name: "auth-empty-list-is-no-limit", Breaks: "an empty list of locks allows none",
			File: "auth/principal.go", Anchor: "if p.Locks == nil {", Becomes: "if len(p.Locks) == 0 {",
			In: "./auth", Run: "^TestLocksLimit$",
		},
		{
			Name: "auth-withdrawn-key-stays", Breaks: "a key that left the key set verifies no more tokens",
			File: "auth/cache.go", Anchor: "return now.Before(t.until) && t.key.used.Err() == nil",
			Becomes: "return now.Before(t.until)", In: "./auth", Run: "^TestRotation$",
		},
		{
			Name: "auth-work-outlives-its-credential", Breaks: "what a withdrawn credential began ends",
			File: "auth/validity.go", Anchor: "\t\tw.withdrawn()\n", Becomes: "", In: "./auth",
			Run: "^TestWorkEndsWithTheKeyOfItsToken$",
		},
		{
			Name:   "auth-one-key-file-two-deployments",
			Breaks: "a lock token and a session count in one deployment", File: "cmd/api/config_keys.go",
			Anchor: "hkdf.Key(sha256.New, file, stored,", Becomes: "hkdf.Key(sha256.New, file, stored[:0],",
			In: "./cmd/api", Run: "^TestOneKeyFileInTwoDeployments$",
		},
		{
			Name: "auth-one-of-two-common-names", Breaks: "a certificate's subject is compared as it stands",
			File: "auth/principals.go", Anchor: "return names.String()",
			Becomes: "return c.Subject.String()", In: "./auth", Run: "^TestSubjectIsComparedAsItStands$",
		},
		{
			Name:   "tls-client-certificate-ended",
			Breaks: "a connection does not outlive its client's certificate", File: "auth/principals.go",
			Anchor: "if now.After(c.NotAfter) || now.Before", Becomes: "if now.IsZero() || now.Before",
			In: "./auth", Run: "^TestIdentify$",
		},
		{
			Name: "handlers-any-scope", Breaks: "a request needs its scope", File: "handlers/policy.go",
			Anchor:  "if !slices.ContainsFunc(a.policy.scopes, a.r.principal.Allows) {",
			Becomes: "if len(a.policy.scopes) == 0 {", In: "./handlers", Run: "^TestScopes$", Needs: "etcd",
		},
		{
			Name: "handlers-no-pace", Breaks: "requests that are not authenticated do not stop others",
			File: "handlers/request.go", Anchor: "err = cmp.Or(r.pace(), err)", Becomes: "_ = r.pace",
			In: "./handlers", Run: "^TestRequestsWithoutAuthenticationArePaced$", Needs: "etcd",
		},
	}
}
