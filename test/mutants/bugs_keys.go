package main

// keyBugs break tokens, idempotency keys and what a name, a tenant or a key can reach.
func keyBugs() []Bug {
	return []Bug{
		{
			Name: "service-forged-token", Breaks: "a lock token cannot be made without the key",
			File: "service/token.go", Anchor: "!hmac.Equal(mac, want[:]) {",
			Becomes: "!hmac.Equal(mac[:1], want[:1]) {", In: "./service", Run: "^TestForgedTokens$",
		},
		{
			Name: "service-token-of-another-tenant", Breaks: "a lock token is valid for its tenant only",
			File: "service/token.go", Anchor: "appendParts(s.text[:0], tenant, subject)",
			Becomes: "appendParts(s.text[:0], tenant[:0], subject)", In: "./service",
			Run: "^TestTokenIsForOneEntry$",
		},
		{
			Name: "service-token-of-another-entry", Breaks: "a release removes its own entry only",
			File: "service/entry.go", Anchor: `if req.ID != "" && req.ID != id {`, Becomes: "if false {",
			In: "./service", Run: "^TestTokenIsForOneEntry$",
		},
		{
			Name: "service-key-with-other-parameters", Breaks: "a retry with other parameters is rejected",
			File: "service/acquire.go", Anchor: "if st.Entry.Request != e.Request {", Becomes: "if false {",
			In: "./service", Run: "^TestKeyWithOtherParameters$",
		},
		{
			Name: "service-key-of-another-tenant", Breaks: "equal keys of two tenants are two requests",
			File: "service/token.go", Anchor: "append(s.text[:0], idLabel...), tenant, subject, key)",
			Becomes: "append(s.text[:0], idLabel...), tenant[:0], subject, key)", In: "./service",
			Run: "^TestKeysAreOfOneLock$",
		},
		{
			Name: "service-key-of-other-locks", Breaks: "a set's key with other names is rejected",
			File:    "service/request.go",
			Anchor:  "idFor(req.Tenant, keyScope(subjectOf(e), req.Subject), req.IdempotencyKey)",
			Becomes: "idFor(req.Tenant, e.Name(), req.IdempotencyKey)",
			In:      "./service", Run: "^TestKeyOfASet$",
		},
		{
			Name:   "service-key-waits-for-the-view",
			Breaks: "the store alone decides whether a key is used up", File: "service/wait.go",
			Anchor:  "if w.seen.proven() && (st.State",
			Becomes: "if w.seen.proven() && w.s.view.Reached(w.entry.Number) && (st.State", In: "./service",
			Run: "^TestKeyBehindALateView$",
		},
		{
			Name:   "service-reasons-for-5-minutes",
			Breaks: "a key answers 410 for 10 minutes after its entry ended",
			File:   "service/view/endings.go", Anchor: "minutesKept = 10 ", Becomes: "minutesKept = 4 ",
			In: "./service", Run: "^TestReasonsAreForgotten$",
		},
		{
			Name:   "operators-revoke-a-later-entry",
			Breaks: "a revocation removes exactly the entry that the operator saw",
			File:   "service/revoke.go", Anchor: "case e.Number != r.Fence:",
			Becomes: "case e.Number < r.Fence:", In: "./service", Run: "^TestRevokeExactly$",
		},
	}
}
