package main

// signInBugs break how operators sign in by an identity provider.
func signInBugs() []Bug {
	return []Bug{
		{
			Name: "signin-any-state", Breaks: "a code counts only for the sign-in that this browser began",
			File: "auth/signin/signin.go", Anchor: "f.State != state || ", Becomes: "",
			In: "./auth/signin", Run: "^TestWhatIsKept$",
		},
		{
			Name: "signin-without-end", Breaks: "a sign-in that was begun ends after ten minutes",
			File: "auth/signin/signin.go", Anchor: "p.config.Now().Unix() >= f.Ends", Becomes: "p.config.Now().Unix() >= f.Ends+3600",
			In: "./auth/signin", Run: "^TestWhatIsKept$",
		},
		{
			Name: "signin-any-nonce", Breaks: "an ID token is good for one sign-in",
			File: "auth/signin/signin.go", Anchor: "if err == nil && id.Nonce != f.Nonce {", Becomes: "if err == nil && id.Nonce != f.Nonce && false {",
			In: "./auth/signin", Run: "^TestWhatTheProviderSays$",
		},
		{
			Name: "signin-without-pkce", Breaks: "a code that was stolen on the way is of no use",
			File: "auth/signin/signin.go", Anchor: "oidc.Nonce(f.Nonce), oauth2.S256ChallengeOption(f.Verifier))", Becomes: "oidc.Nonce(f.Nonce))",
			In: "./auth/signin", Run: "^TestAsksWithPKCE$",
		},
		{
			Name: "signin-plain-issuer", Breaks: "the identity provider is known by TLS",
			File: "auth/signin/signin.go", Anchor: `u.Scheme != "https" && (u.Scheme != "http" || !here)`, Becomes: `u.Scheme != "https" && u.Scheme != "http" && !here`,
			In: "./auth/signin", Run: "^TestCheck$",
		},
		{
			Name: "signin-one-key-for-all", Breaks: "what one deployment sealed another does not take",
			File: "auth/sealer.go", Anchor: "hkdf.Key(sha256.New, secret, nil, use, 32)", Becomes: "hkdf.Key(sha256.New, make([]byte, 32), nil, use, 32)",
			In: "./auth/signin", Run: "^TestWhatIsKept$",
		},
		{
			Name: "signin-last-entry-counts", Breaks: "the first entry counts that is about somebody",
			File: "auth/claimants.go", Anchor: "for _, e := range c.inUse() {", Becomes: "for _, e := range slices.Backward(c.inUse()) {",
			In: "./auth", Run: "^TestClaimants$",
		},
		{
			Name: "signin-everybody-is-one", Breaks: "who signs in is on record by the name that the provider has for them",
			File: "auth/claimants.go", Anchor: "\t\t\twho := *e.who\n\t\t\twho.Subject = subject\n\t\t\treturn &who, nil", Becomes: "\t\t\te.who.Subject = subject\n\t\t\treturn e.who, nil",
			In: "./auth", Run: "^TestClaimants$",
		},
		{
			Name: "signin-workers-come-in", Breaks: "nobody is signed in who is no operator",
			File: "handlers/signin.go", Anchor: "if !slices.ContainsFunc(operators(), who.Allows) {", Becomes: "if !slices.ContainsFunc(operators(), who.Allows) && who.Subject == \"\" {",
			In: "./handlers", Run: "^TestTurnedAway$", Needs: "etcd",
		},
		{
			Name: "signin-begun-by-another-site", Breaks: "another site has nobody sign in",
			File: "handlers/signin.go", Anchor: "\tif err := r.sameOrigin(); err != nil {\n\t\treturn err\n\t}\n\tto, kept", Becomes: "\tto, kept",
			In: "./handlers", Run: "^TestNobodyElseBegins$", Needs: "etcd",
		},
		{
			Name: "signin-asks-for-each", Breaks: "strangers who begin to sign in have the provider asked once",
			File: "auth/signin/signin.go", Anchor: "if p.config.Now().Before(p.again) {", Becomes: "if p.config.Now().Before(p.again) && p.known != nil {",
			In: "./auth/signin", Run: "^TestManyBegin$",
		},
		{
			Name: "signin-all-codes-at-once", Breaks: "of one sign-in the provider is asked about one code at a time",
			File: "auth/signin/signin.go", Anchor: "\tif busy {", Becomes: "\tif busy && p.known == nil {",
			In: "./auth/signin", Run: "^TestMadeUpCodes$",
		},
		{
			Name: "signin-codes-sent-twice", Breaks: "a code is sent once",
			File: "auth/signin/signin.go", Anchor: "\tendpoint.AuthStyle = p.authStyle(known)\n", Becomes: "\t_ = p.authStyle\n",
			In: "./auth/signin", Run: "^TestMadeUpCodes$",
		},
	}
}
