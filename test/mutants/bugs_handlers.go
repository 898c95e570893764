package main

// handlersBugs break what HTTP promises.
func handlersBugs() []Bug {
	return []Bug{
		{
			Name: "handlers-any-scope", Breaks: "a request needs its scope",
			File: "handlers/middleware.go", Anchor: "if p.Allows(s) {", Becomes: "if p.Allows(s) || true {",
			In: "./handlers", Run: "^TestScopes$", Needs: "etcd",
		},
		{
			Name: "handlers-any-name", Breaks: "a token is limited to the names of its patterns",
			File: "handlers/middleware.go", Anchor: "if !principal(c).MayUse(name) {", Becomes: "if false {",
			In: "./handlers", Run: "^TestPatterns$", Needs: "etcd",
		},
		{
			Name: "handlers-any-set", Breaks: "a token is limited to the names of its patterns, in sets too",
			File: "handlers/locks.go", Anchor: "req.Set, req.May = true, p.MayUse", Becomes: "req.Set = true",
			In: "./handlers", Run: "^TestPatternsOfSets$", Needs: "etcd",
		},
		{
			Name: "handlers-list-shows-all", Breaks: "a list has only the locks that the token may use",
			File: "handlers/list.go", Anchor: "Limit: defaultPage, May: p.MayUse}", Becomes: "Limit: defaultPage}",
			In: "./handlers", Run: "^TestListIsFiltered$", Needs: "etcd",
		},
		{
			Name: "handlers-admin-for-all", Breaks: "what is for operators needs the scope `admin`",
			File: "handlers/router.go", Anchor: "admin := a.require(auth.Admin)", Becomes: "admin := a.require(auth.Admin, auth.LocksRead)",
			In: "./handlers", Run: "^TestAdminIsForAdmins$", Needs: "etcd",
		},
		{
			Name: "handlers-long-body", Breaks: "a body is 16 KiB at most",
			File: "handlers/body.go", Anchor: "maxBody     = 16 << 10", Becomes: "maxBody     = 16 << 20",
			In: "./handlers", Run: "^TestTooLarge$", Needs: "etcd",
		},
		{
			Name: "handlers-unknown-field", Breaks: "a field that is not known is refused, not passed over",
			File: "handlers/body.go", Anchor: "\td.DisallowUnknownFields()\n", Becomes: "",
			In: "./handlers", Run: "^TestBadBodies$", Needs: "etcd",
		},
		{
			Name: "handlers-field-twice", Breaks: "a field that is there twice is refused",
			File: "handlers/body.go", Anchor: "case len(before) < manyMembers && slices.Contains(before, name):",
			Becomes: "case len(before) > manyMembers && slices.Contains(before, name):",
			In:      "./handlers", Run: "^TestBadBodies$", Needs: "etcd",
		},
		{
			Name: "handlers-unknown-parameter", Breaks: "a query parameter that is not known is refused",
			File: "handlers/middleware.go", Anchor: "case !slices.Contains(known, name):", Becomes: "case false && !slices.Contains(known, name):",
			In: "./handlers", Run: "^TestQueryIsStrict$", Needs: "etcd",
		},
		{
			Name: "handlers-two-bearers", Breaks: "one bearer token speaks for a request",
			File: "handlers/middleware.go", Anchor: "if len(values) != 1 {\n\t\treturn nil, lock.Errorf(lock.Unauthenticated,",
			Becomes: "if len(values) == 0 {\n\t\treturn nil, lock.Errorf(lock.Unauthenticated,",
			In:      "./handlers", Run: "^TestBadBearers$", Needs: "etcd",
		},
		{
			Name: "handlers-encoded-slash", Breaks: "a path has one reading",
			File: "handlers/middleware.go", Anchor: "if slash(sent) && !slash(c.Request.URL.EscapedPath()) {", Becomes: "if false && slash(sent) {",
			In: "./handlers", Run: "^TestEncodedSlashBesideABrace$", Needs: "etcd",
		},
		{
			Name: "handlers-request-id-as-sent", Breaks: "a client writes nothing of its own into the log",
			File: "handlers/middleware.go", Anchor: "len(given) <= maxLength && strings.IndexFunc(given, func(c rune) bool { return !harmless(c) }) < 0",
			Becomes: "(len(given) <= maxLength || harmless(' '))",
			In:      "./handlers", Run: "^TestRequestID$", Needs: "etcd",
		},
		{
			Name: "handlers-cause-in-the-answer", Breaks: "an internal error's text stays in the log",
			File: "handlers/problem.go", Anchor: `Detail: "something went wrong in the server; the request id finds it in the log"`,
			Becomes: `Detail: err.Error()`,
			In:      "./handlers", Run: "^TestInternal$", Needs: "etcd",
		},
		{
			Name: "handlers-sure-of-the-unknown", Breaks: "a 503 says whether it may have taken effect",
			File: "handlers/problem.go", Anchor: "p.MayHaveTakenEffect = &e.Ambiguous", Becomes: "p.MayHaveTakenEffect = new(bool)",
			In: "./handlers", Run: "^TestStoreUnavailable", Needs: "etcd",
		},
	}
}
