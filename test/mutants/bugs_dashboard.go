package main

// dashboardBugs break what a session of the dashboard proves, and what its page may load.
func dashboardBugs() []Bug {
	return []Bug{
		{
			Name: "dashboard-session-outlives-its-token", Breaks: "a session ends with its token",
			File: "auth/session.go", Anchor: "if !now.Before(p.Expires) {", Becomes: "if !now.Before(p.Expires.Add(MaxSession)) {",
			In: "./auth", Run: "^TestSessionIsBounded$",
		},
		{
			Name: "dashboard-session-without-end", Breaks: "a session lasts 12 hours at most",
			File: "auth/session.go", Anchor: "in.Expires.After(end) {", Becomes: "in.Expires.After(end) && false {",
			In: "./auth", Run: "^TestSessionIsBounded$",
		},
		{
			Name: "dashboard-session-forgets-patterns", Breaks: "a session of a token that may use no lock may use none",
			File: "auth/session.go", Anchor: "\t\tp.Locks = []Pattern{}\n", Becomes: "",
			In: "./auth", Run: "^TestSessionSaysWhoSignedIn$",
		},
		{
			Name: "dashboard-code-counts-again", Breaks: "a code signs in once",
			File: "auth/code.go", Anchor: "\t\tc.open = append(c.open[:i], c.open[i+1:]...)\n", Becomes: "\t\t_ = i\n",
			In: "./auth", Run: "^TestCodeCountsOnce$",
		},
		{
			Name: "dashboard-cookie-for-all", Breaks: "a session counts for what operators do alone",
			File: "handlers/admit.go", Anchor: "len(values) == 0 && o.bySession() &&", Becomes: "len(values) == 0 &&",
			In: "./handlers", Run: "^TestSessionOfOperators$", Needs: "etcd",
		},
		{
			Name: "dashboard-any-site", Breaks: "nothing is done or read for a page of another origin",
			File: "handlers/session.go", Anchor: "if foreign || http", Becomes: "if foreign && http",
			In: "./handlers", Run: "^TestOtherSites$", Needs: "etcd",
		},
		{
			Name: "dashboard-plain-cookie", Breaks: "but on the machine itself browsers keep the cookie to TLS and to the host",
			File: "handlers/session.go", Anchor: "r.TLS == nil && addressOf(r.RemoteAddr).IsLoopback() &&", Becomes: "r.TLS == nil &&",
			In: "./handlers", Run: "^TestCookieOfAHost$", Needs: "etcd",
		},
		{
			Name: "dashboard-plain-cookie-by-proxy", Breaks: "the cookie is kept to TLS also behind a proxy that names localhost",
			File: "handlers/session.go", Anchor: "if r.Header.Get(by) != \"\" {", Becomes: "if r.Header.Get(by) == by {",
			In: "./handlers", Run: "^TestCookieOfAHost$", Needs: "etcd",
		},
		{
			Name: "dashboard-inline-script", Breaks: "the page runs no script but its own files",
			File: "dashboard/embed.go", Anchor: "script-src 'self';", Becomes: "script-src 'self' 'unsafe-inline';",
			In: "./dashboard", Run: "^TestPolicy$",
		},
	}
}
