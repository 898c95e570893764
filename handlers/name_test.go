package handlers_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"
)

// route is one that concerns locks.
type route struct{ name, method, path string }

// routes are all routes that concern locks, with name and entry as the test sends them.
func routes(name, id string) []route {
	return []route{
		{"List", "GET", "/locks"},
		{"Look", "GET", "/locks/" + name},
		{"Acquire", "POST", "/locks/" + name},
		{"Renew", "PUT", "/locks/" + name + "/renew"},
		{"Release", "DELETE", "/locks/" + name},
		{"Entry", "GET", "/locks/" + name + "/entries/" + id},
	}
}

// TestNames: each good name is a lock of its own, however it is written.
func TestNames(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	names := []string{
		"a", "A", "0", "a.", "a..", "a.b", "a_b", "a:b", "a@b", "a=b", "a+b", "a-b", "a++b", "renew",
		"entries", "locks", "a:renew",
		strings.Repeat("a", 200), strings.Repeat("a", 199), "aZ09._:@=+-", "null", "0x1", "a--",
	}
	for _, name := range names {
		e := c.post("/locks/"+percentAll(name), body(`{"ttl_seconds":600}`)).held(201)
		if e.Name != name {
			t.Errorf("acquired %q, want %q", e.Name, name)
		}
		for _, written := range []string{name, url.QueryEscape(name), percentAll(name)} {
			if v := c.look(written); v.Name != name || len(v.Holders) != 1 ||
				v.Holders[0].Fence != *e.Fence {
				t.Errorf("GET /locks/%s = %+v, want %q with its holder", written, v, name)
			}
		}
		c.put("/locks/"+percentAll(name)+"/renew", lockToken(e.Token)).held(200)
		c.get("/locks/"+percentAll(name)+"/entries/"+e.ID, lockToken(e.Token)).held(200)
	}
	slices.Sort(names)
	if got := c.list("consistent=true").names(); !slices.Equal(got, names) {
		t.Errorf("the list has %q, want %q", got, names)
	}
}

// percentAll writes every byte as an escape.
func percentAll(s string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for _, c := range []byte(s) {
		b.Write([]byte{'%', digits[c>>4], digits[c&15]})
	}
	return b.String()
}

// TestBadNamesAreRefused: in every route, and as they are on the wire.
func TestBadNamesAreRefused(t *testing.T) {
	t.Parallel()
	cases := map[string]string{
		"TooLong": strings.Repeat("a", 201), "VeryLong": strings.Repeat("a", 5000), "Unicode": "%C3%A4",
		"UnicodeRaw": "ä", "Emoji": "a%F0%9F%94%92",
		"Space": "a%20b", "LeadingSpace": "%20a", "TrailingSpace": "a%20", "Tab": "a%09b",
		"Newline": "a%0A", "Null": "a%00", "Delete": "a%7F",
		"Dot": ".", "DotDot": "..", "DotEncoded": "%2e", "DotDotEncoded": "%2e%2e", "LeadingDot": ".a",
		"LeadingDash": "-a", "LeadingColon": ":a",
		"LeadingPlus": "+a", "LeadingUnderscore": "_a", "EncodedSlash": "a%2Fb",
		"EncodedSlashLower": "a%2fb", "OnlyEncodedSlash": "%2F",
		"EncodedSlashLast": "a%2F", "EncodedSlashRenew": "a%2Frenew", "EncodedDotDotSlash": "%2e%2e%2Fa",
		"Backslash": "a%5Cb", "BackslashRaw": `a\b`,
		"DoubleEncoded": "a%252Fb", "DoubleEncodedLetter": "%2561", "Percent": "%25", "Query": "a%3Fb",
		"Fragment": "a%23b", "Semicolon": "a;b",
		"Comma": "a,b", "Star": "a*", "Tilde": "~a", "Quote": "a%22", "Angle": "%3Ca%3E", "Dollar": "a$b",
		"Ampersand": "a&b", "Exclamation": "a!",
		"Parenthesis": "(a)", "InvalidUTF8": "a%FFb", "Overlong": "a%C0%AFb",
		"FullWidthSlash": "a%EF%BC%8Fb", "ZeroWidth": "a%E2%80%8Bb",
		"Bracket": "[a]", "Pipe": "a|b", "EncodedEmpty": "%20",
	}
	for name, wire := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newTenant(t)
			for _, r := range routes(wire, "x")[1:] {
				c.do(r.method, r.path, lockToken("x")).wantProblem(invalidName())
			}
			if got := c.list("consistent=true").names(); len(got) != 0 {
				t.Errorf("%q became the locks %q", wire, got)
			}
		})
	}
}

// TestEncodedSlashBesideABrace: an encoded slash is none, whatever else the path
// has. net/url gives up the path as it was sent when a character of it should have
// been escaped.
func TestEncodedSlashBesideABrace(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	for _, line := range []string{
		"POST /locks/a%2Fb{", "GET /locks/a%2fentries/x{", "PUT /locks/a%2Fx|/renew",
		"DELETE /locks/{%2F", "GET /locks/a%2Fb^?limit=1",
	} {
		conn := dial(t, shared.main)
		conn.write(
			line + " HTTP/1.1\r\nHost: x\r\nLock-Token: x\r\nAuthorization: Bearer " + c.bearer + "\r\n\r\n",
		)
		method, _, _ := strings.Cut(line, " ")
		a, _ := conn.read(method)
		a.check()
		a.wantProblem(invalidName())
	}
}

// TestUnknownPathsAre404: paths that are none of ours, with and without a bearer token.
func TestUnknownPathsAre404(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	c.put("/locks//renew").wantProblem(invalidName())
	c.get("/locks//entries/x").wantProblem(invalidName())
	paths := []string{
		"//", "/nowhere", "/locks/", "/locks//", "/locks/a/", "/locks/a/b", "/locks/a/renew/",
		"/locks/a/entries", "/locks/a/entries/", "/locks/a/entries/x/", "/locks/a/entries/x/y", "//locks",
		"/Locks", "/LOCKS/a", "/locks/a/Renew", "/locks/a%2F/entries", "/locks%2Fa", "/%6Cocks/a/b",
		"/./locks", "/../locks", "/locks/../locks", "/healthz/", "/metrics/", "/favicon.ico", "/v1/locks",
		"/lockset", "/events/", "/webhooks/", "/hooks", "/admin", "/debug/pprof/", "/.env",
	}
	want := nothingHere()
	for _, path := range paths {
		for _, method := range []string{"GET", "POST", "DELETE"} {
			c.do(method, path).wantProblem(want)
			c.with("").do(method, path).wantProblem(want)
		}
	}
	root := problem{
		code:   "not_found",
		detail: "there is nothing at this path; the dashboard is at /dashboard/, the API at /docs/",
	}
	c.get("/").wantProblem(root)
	c.with("").get("/").wantProblem(root)
	if got := c.list("consistent=true").names(); len(got) != 0 {
		t.Errorf("they became the locks %q", got)
	}
}

// TestUnknownMethodsAre405WithAllow: a path with other methods says which.
func TestUnknownMethodsAre405WithAllow(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	allow := map[string][]string{
		"/locks": {"GET", "HEAD"}, "/locks/a": {"DELETE", "GET", "HEAD", "POST"},
		"/locks/a/renew":     {"PUT"},
		"/locks/a/entries/x": {"GET", "HEAD"}, "/healthz": {"GET", "HEAD"}, "/readyz": {"GET", "HEAD"},
		"/metrics": {"GET", "HEAD"}, "/openapi.json": {"GET", "HEAD"}, "/docs": {"GET", "HEAD"},
		"/docs/":  {"GET", "HEAD"},
		"/events": {"GET", "HEAD"}, "/admin/events": {"GET", "HEAD"},
	}
	for path, methods := range allow {
		for _, m := range []string{
			"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "get", "X",
		} {
			if slices.Contains(methods, m) {
				continue // of HEAD see TestHead
			}
			a := c.do(m, path)
			if m == "HEAD" {
				if a.status != 405 || len(a.body) != 0 {
					t.Errorf("%v, want 405 and no body", a)
				}
			} else {
				a.wantProblem(problem{code: "method_not_allowed", detail: "this path has no such method; " +
					"use a method of the Allow header"})
			}
			got := strings.Split(a.header.Get("Allow"), ", ")
			if slices.Sort(got); !slices.Equal(got, methods) {
				t.Errorf("%v: Allow = %q, want %q", a, got, methods)
			}
		}
	}
}
