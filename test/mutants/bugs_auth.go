package main

// authBugs break what a bearer token proves.
func authBugs() []Bug {
	return []Bug{
		{
			Name: "auth-any-algorithm", Breaks: "only HS256, RS256, ES256 and EdDSA verify",
			File: "auth/token.go", Anchor: "jwt.WithValidMethods(algs)",
			Becomes: `jwt.WithValidMethods(append(algs, "HS384", "HS512", "none"))`,
			In:      "./auth", Run: "^TestBadTokens$",
		},
		{
			Name: "auth-without-expiry", Breaks: "a token without `exp` is refused",
			File: "auth/token.go", Anchor: "\t\tjwt.WithExpirationRequired(),\n", Becomes: "",
			In: "./auth", Run: "^TestBadTokens$",
		},
		{
			Name: "auth-any-audience", Breaks: "`aud` names this service",
			File: "auth/token.go", Anchor: `if c.Audience != "" {`, Becomes: "if false {",
			In: "./auth", Run: "^TestBadTokens$",
		},
		{
			Name: "auth-any-issuer", Breaks: "`iss` is the configured one",
			File: "auth/token.go", Anchor: `if c.Issuer != "" {`, Becomes: "if false {",
			In: "./auth", Run: "^TestBadTokens$",
		},
		{
			Name: "auth-critical-extension", Breaks: "an extension that must be understood is refused",
			File: "auth/token.go", Anchor: `t.Header["crit"]; critical {`, Becomes: `t.Header["crit"]; critical && false {`,
			In: "./auth", Run: "^TestBadTokens$",
		},
		{
			Name: "auth-any-tenant", Breaks: "a tenant's name cannot reach into another's keys",
			File: "auth/claims.go", Anchor: "if !lock.ValidTenant(tenant) {", Becomes: "if len(tenant) > lock.MaxTenantLength {",
			In: "./auth", Run: "^TestBadTokens$",
		},
		{
			Name: "auth-repeated-claim", Breaks: "a claim that is there twice is refused",
			File: "auth/claims.go", Anchor: "repeated || !ok {", Becomes: "repeated && !ok {",
			In: "./auth", Run: "^TestBadTokens$",
		},
		{
			Name: "auth-empty-list-is-no-limit", Breaks: "a token limited to no lock may use none",
			File: "auth/principal.go", Anchor: "if p.Locks == nil {", Becomes: "if len(p.Locks) == 0 {",
			In: "./auth", Run: "^TestLocksLimit$",
		},
		{
			Name: "auth-pattern-without-its-end", Breaks: "a token is limited to the names of its patterns",
			File: "lock/pattern.go", Anchor: "strings.CutSuffix(rest, p.suffix); !ok {",
			Becomes: "strings.CutSuffix(rest, p.suffix); !ok && false {",
			In:      "./auth", Run: "^TestPattern$",
		},
		{
			Name: "auth-withdrawn-key-stays", Breaks: "a key that left the key set stops working, for remembered tokens too",
			File: "auth/cache.go", Anchor: "return now.Before(t.until) && !t.key.retired.Load()", Becomes: "return now.Before(t.until)",
			In: "./auth", Run: "^TestRotation$",
		},
		{
			Name: "auth-remembered-past-expiry", Breaks: "a remembered token ends with its `exp`",
			File: "auth/cache.go", Anchor: "return now.Before(t.until) && !t.key.retired.Load()", Becomes: "return !t.key.retired.Load()",
			In: "./auth", Run: "^TestRememberedUntilExpiry$",
		},
		{
			Name: "auth-short-rsa-key", Breaks: "RSA keys below 2048 bits are left out",
			File: "auth/jwks.go", Anchor: "minRSABits, maxRSABits = 2048, 8192", Becomes: "minRSABits, maxRSABits = 1024, 8192",
			In: "./auth", Run: "^TestUnusableKeysAreLeftOut$",
		},
		{
			Name: "auth-flood-of-kids", Breaks: "made-up key ids have the key set read once in 10 s at most",
			File: "auth/keyset.go", Anchor: "if now.Before(s.nextAsk) {", Becomes: "if false {",
			In: "./auth", Run: "^TestFloodOfUnknownKids$",
		},
		{
			Name: "auth-kid-as-sent", Breaks: "a refused token writes nothing of its own into the log",
			File: "auth/errors.go", Anchor: "return strings.Map(harmless, kid)", Becomes: "_ = harmless\n\treturn kid",
			In: "./auth", Run: "^TestKeyIDOfRefused$",
		},
	}
}
