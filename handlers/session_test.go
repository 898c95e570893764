package handlers_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/handlers"
)

// session is what the page gets about the signed-in caller.
type session struct {
	Tenant    string    `json:"tenant"`
	Subject   string    `json:"subject"`
	Scopes    []string  `json:"scopes"`
	Locks     []string  `json:"locks"`
	ExpiresAt time.Time `json:"expires_at"`
	ServerNow time.Time `json:"server_now"`
}

// newOperator returns a client whose token has the scope of operators.
func newOperator(t testing.TB) *client {
	t.Helper()
	return newTenant(t).as(func(c *auth.Claims) {
		c.Subject, c.Scopes = "ann", []auth.Scope{auth.Admin, auth.WebhooksWrite}
	})
}

// signsIn is the body that signs the client in with its token.
func (c *client) signsIn() option {
	return func(r *request) {
		r.Header.Del("Authorization")
		body(`{"bearer_token":"` + c.bearer + `"}`)(r)
	}
}

// signedIn returns a client with a session in place of its token, and the session's cookie.
func (c *client) signedIn() (*client, *http.Cookie) {
	c.t.Helper()
	cookie := c.post("/dashboard/session", c.signsIn()).cookie()
	return c.with(""), cookie
}

// cookie is the one that an answer sets.
func (a *answer) cookie() *http.Cookie {
	a.t.Helper()
	all := (&http.Response{Header: a.header}).Cookies()
	if len(all) != 1 {
		a.t.Fatalf("%v: cookies %v, want one", a, all)
	}
	shared.secrets.add(all[0].Value)
	return all[0]
}

// bearing sends a cookie. That it stands for a bearer token is between the page and its
// server, and not described.
func bearing(c *http.Cookie) option {
	return func(r *request) {
		r.AddCookie(&http.Cookie{Name: c.Name, Value: c.Value})
		r.loose = true
	}
}

func notSignedIn(detail string) problem { return problem{code: "unauthenticated", detail: detail} }

const (
	nobody    = "the request has no session; sign in, or send a bearer token"
	notOurs   = "the session is not one of this server's; sign in again"
	otherSite = "the request comes from a page of another site; " +
		"send it from this server's own pages"
	noSuchCode   = "the code is not known here, was used, or is older than 5 minutes; sign in again"
	needsABearer = "the request has no credential; send one Authorization header with a bearer token"
)

func TestSignInMakesASession(t *testing.T) {
	t.Parallel()
	c := newOperator(t).within("orders:*")
	a := c.post("/dashboard/session", c.signsIn())
	cookie := a.cookie()
	var got session
	if err := json.Unmarshal(a.body, &got); err != nil {
		t.Fatal(err)
	}
	if got.ServerNow.Before(a.sent.Add(-time.Second)) ||
		got.ServerNow.After(a.received.Add(time.Second)) {
		t.Errorf("the server's time is %v", got.ServerNow)
	}
	want := session{
		Tenant: c.claims.Tenant, Subject: "ann", Scopes: []string{"admin", "webhooks:write"},
		Locks: []string{"orders:*"}, ExpiresAt: got.ExpiresAt, ServerNow: got.ServerNow,
	}
	slices.Sort(got.Scopes)
	if diff := cmp.Diff(want, got); a.status != 200 || diff != "" {
		t.Errorf("%v (-want +got)\n%s", a, diff)
	}
	if left := time.Until(got.ExpiresAt); left > time.Hour || left < 59*time.Minute {
		t.Errorf("a session of an hour's token lasts %v", left)
	}
	if strings.Contains(cookie.Value, c.bearer) || !cookie.HttpOnly ||
		cookie.SameSite != http.SameSiteStrictMode || cookie.Path != "/" || cookie.Domain != "" {
		t.Errorf("the cookie is %v", cookie)
	}
	c.with("").get("/dashboard/session", bearing(cookie)).want(200, &got)
	if slices.Sort(got.Scopes); got.Subject != "ann" || !slices.Equal(got.Locks, want.Locks) {
		t.Errorf("the session is %+v", got)
	}
}

// TestSessionIsForOperationsOfOperators: the cookie counts for what operators do, and for nothing
// else.
func TestSessionIsForOperationsOfOperators(t *testing.T) {
	t.Parallel()
	c := newOperator(
		t,
	).as(func(cl *auth.Claims) { cl.Scopes = append(cl.Scopes, auth.LocksRead, auth.LocksWrite) })
	page, cookie := c.signedIn()
	for _, path := range []string{"/admin/lock-order", "/admin/deadlocks", "/webhooks"} {
		if a := page.get(path, bearing(cookie)); a.status != 200 {
			t.Errorf("%v", a)
		}
		page.get(path).wantProblem(notSignedIn(needsABearer))
	}
	for _, r := range []route{
		{"", "GET", "/locks"},
		{"", "POST", "/locks/orders:42"},
		{"", "GET", "/events"},
		{"", "POST", "/locksets"},
	} {
		page.do(r.method, r.path, bearing(cookie), loose).wantProblem(notSignedIn(needsABearer))
	}
}

// TestSessionHasTheScopesOfItsToken: a session may do what its token may, no more.
func TestSessionHasTheScopesOfItsToken(t *testing.T) {
	t.Parallel()
	c := newTenant(t).as(func(cl *auth.Claims) { cl.Scopes = []auth.Scope{auth.Admin} })
	page, cookie := c.signedIn()
	page.get("/webhooks", bearing(cookie)).wantProblem(lacks("webhooks:write"))
	own := newTenant(t).as(func(cl *auth.Claims) { cl.Scopes = []auth.Scope{auth.TenantAdmin} })
	page, cookie = own.signedIn()
	page.get("/admin/deadlocks?tenant=acme", bearing(cookie)).wantProblem(ownTenantOnly())
	page.get("/admin/deadlocks?tenant="+own.claims.Tenant, bearing(cookie))
	worker := newTenant(t)
	worker.post("/dashboard/session", worker.signsIn()).wantProblem(problem{
		code: "forbidden", detail: "the dashboard is for callers with the scope admin or " +
			"tenant-admin; " + "sign in with a token that has one",
	})
}

// TestBearerTakesPrecedenceOverSession: a bearer token takes precedence over a session.
func TestBearerTakesPrecedenceOverSession(t *testing.T) {
	t.Parallel()
	_, cookie := newOperator(t).signedIn()
	newTenant(t).get("/admin/deadlocks", bearing(cookie)).wantProblem(lacks("admin or tenant-admin"))
	newTenant(t).with("nonsense").get("/admin/deadlocks", bearing(cookie)).
		wantStatus(http.StatusUnauthorized)
}

func TestSignInRefuses(t *testing.T) {
	t.Parallel()
	c := newOperator(t)
	for name, tc := range map[string]struct {
		text string
		want problem
	}{
		"Nothing": {`{}`, problem{code: "invalid_request", detail: "send either a token or a code"}},
		"Both": {
			`{"bearer_token":"x","code":"y"}`,
			problem{code: "invalid_request", detail: "send either a token or a code"},
		},
		"BadToken": {
			`{"bearer_token":"x"}`,
			notSignedIn("not a JSON Web Token: three parts with a dot between each two; " + "sign in again"),
		},
		"NoToken": {`{"bearer_token":""}`, notSignedIn("no token; sign in again")},
		"BadCode": {`{"code":"nonsense"}`, notSignedIn(noSuchCode)},
		"Unknown": {
			`{"password":"x"}`,
			problem{code: "invalid_request", detail: "password is not known here; leave it out", field: "password"},
		},
	} {
		a := c.with("").post("/dashboard/session", body(tc.text), loose)
		if a.wantProblem(tc.want); a.header.Get("Set-Cookie") != "" {
			t.Errorf("%s: %v sets a cookie", name, a)
		}
	}
	c.post("/dashboard/session", body(strings.Repeat(" ", 17<<10)+"{}"), loose).
		wantStatus(http.StatusRequestEntityTooLarge)
	c.post("/dashboard/session", body("{}"), header("Content-Type", "text/plain"), loose).
		wantStatus(http.StatusUnsupportedMediaType)
	many := make([]string, 100)
	for i := range many {
		many[i] = strings.Repeat("x", 40) + "*"
	}
	wide := c.as(func(cl *auth.Claims) { cl.Locks = many })
	wide.post("/dashboard/session", wide.signsIn()).wantProblem(problem{
		code: "invalid_request",
		detail: "its subject and name patterns are too long for a session; " +
			"sign in with a token that has fewer patterns",
	})
}

func TestForgedSessions(t *testing.T) {
	t.Parallel()
	page, cookie := newOperator(t).signedIn()
	other, err := auth.NewSessions([]byte(strings.Repeat("other", 8)), nil)
	if err != nil {
		t.Fatal(err)
	}
	foreign, _, err := other.Seal(&auth.Principal{
		Tenant: "acme", Subject: "eve", Scopes: []auth.Scope{auth.Admin},
		Expires: time.Now().Add(time.Hour),
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Altered": flip(cookie.Value, 20), "Cut": cookie.Value[:40], "OtherKey": foreign, "Nonsense": "x",
	} {
		for _, path := range []string{"/admin/deadlocks", "/dashboard/session"} {
			a := page.get(path, bearing(&http.Cookie{Name: cookie.Name, Value: value}))
			if a.wantProblem(notSignedIn(notOurs)); a.header.Get("WWW-Authenticate") == "" {
				t.Errorf("%s: %v does not say how to authenticate", name, a)
			}
		}
	}
	page.get("/admin/deadlocks", bearing(cookie), bearing(cookie)).wantProblem(notSignedIn(nobody))
	page.get("/dashboard/session").wantProblem(notSignedIn(nobody))
	page.get("/admin/deadlocks", bearing(&http.Cookie{Name: "other", Value: "x"})).
		wantProblem(notSignedIn(nobody))
}

// TestSessionsOfReplicas: who signed in at one replica is at all.
func TestSessionsOfReplicas(t *testing.T) {
	t.Parallel()
	page, cookie := newOperator(t).signedIn()
	cookie.Name = strings.Replace(cookie.Name, portOf(shared.main), portOf(shared.other), 1)
	if a := page.at(shared.other).get("/admin/deadlocks", bearing(cookie)); a.status != 200 {
		t.Errorf("%v", a)
	}
}

func portOf(r *replica) string { return r.url[strings.LastIndex(r.url, ":")+1:] }

// TestRequestsOfOtherSitesAreRefused: nothing is done, and nothing read, for a page of another
// origin.
func TestRequestsOfOtherSitesAreRefused(t *testing.T) {
	t.Parallel()
	c := newOperator(t)
	page, cookie := c.signedIn()
	foreign := []option{header("Sec-Fetch-Site", "cross-site"), header("Sec-Fetch-Site", "same-site")}
	for _, from := range foreign {
		page.get("/admin/deadlocks", bearing(cookie), from).
			wantProblem(problem{code: "forbidden", detail: otherSite})
		page.get("/dashboard/session", bearing(cookie), from).
			wantProblem(problem{code: "forbidden", detail: otherSite})
	}
	for _, from := range append(
		foreign, header("Origin", "https://evil.example"), header("Origin", "null"),
	) {
		page.post("/webhooks", bearing(cookie), body(`{"url":"https://example.org/x"}`), from).
			wantProblem(problem{code: "forbidden", detail: otherSite})
		page.post("/dashboard/session", c.signsIn(), from).
			wantProblem(problem{code: "forbidden", detail: otherSite})
		page.delete("/dashboard/session", bearing(cookie), from).
			wantProblem(problem{code: "forbidden", detail: otherSite})
	}
	for _, from := range []option{
		header("Sec-Fetch-Site", "same-origin"), header("Origin", shared.main.url),
		header("Sec-Fetch-Site", "none"),
	} {
		if a := page.get("/admin/deadlocks", bearing(cookie), from); a.status != 200 {
			t.Errorf("%v", a)
		}
	}
}

func TestSignOut(t *testing.T) {
	t.Parallel()
	page, cookie := newOperator(t).signedIn()
	a := page.delete("/dashboard/session", bearing(cookie))
	a.wantNoContent()
	if c := a.cookie(); c.Name != cookie.Name || c.Value != "" || c.MaxAge != -1 || c.Path != "/" {
		t.Errorf("the cookie is taken back by %v", c)
	}
	page.delete("/dashboard/session").wantNoContent()
}

// TestCodeSignsInOnce: the code of a link, which only who reads the server's output knows.
func TestCodeSignsInOnce(t *testing.T) {
	t.Parallel()
	h := shared.handlers(&stub{})
	codes := auth.NewCodes(nil)
	h.Codes = codes
	r := serve(nil, handlers.New(h))
	t.Cleanup(r.close)
	code := codes.Issue(&auth.Principal{
		Tenant: "demo", Subject: "developer", Scopes: []auth.Scope{auth.Admin},
		Expires: time.Now().Add(time.Hour),
	})
	shared.secrets.add(code)
	c := anonymous(t).at(r)
	a := c.post("/dashboard/session", body(`{"code":"`+code+`"}`))
	c.get("/admin/deadlocks", bearing(a.cookie()))
	c.post("/dashboard/session", body(`{"code":"`+code+`"}`)).wantProblem(notSignedIn(noSuchCode))
	h.Codes = nil
	without := serve(nil, handlers.New(h))
	t.Cleanup(without.close)
	c.at(without).post("/dashboard/session", body(`{"code":"`+code+`"}`)).
		wantProblem(notSignedIn("this server issues no codes; sign in with a bearer token"))
}

// TestSessionCookieIsASetting: neither the address nor what a proxy says decides whether the cookie
// of a session is for TLS alone. A page that was opened over https gets no plain one.
func TestSessionCookieIsASetting(t *testing.T) {
	t.Parallel()
	c := newOperator(t)
	for name, tc := range map[string]struct {
		plain                    bool
		host, remote, by, origin string
		cookie                   string // "" is 403
	}{
		"Secure": {
			false, "locks.example.org", "192.0.2.1:40000", "", "https://locks.example.org",
			"__Host-fencepost-session",
		},
		"SecureLoopback": {
			false, "127.0.0.1:8080", "127.0.0.1:40000", "", "http://127.0.0.1:8080",
			"__Host-fencepost-session",
		},
		"SecureNoHost": {false, "", "127.0.0.1:40000", "", "", "__Host-fencepost-session"},
		"Plain": {
			true, "127.0.0.1:8080", "127.0.0.1:40000", "", "http://127.0.0.1:8080", "fencepost-session8080",
		},
		"PlainName":    {true, "localhost", "[::1]:40000", "", "", "fencepost-session"},
		"PlainBadPort": {true, "127.0.0.1:80;x", "127.0.0.1:40000", "", "", "fencepost-session"},
		"PlainForwarded": {
			true, "127.0.0.1:8080", "127.0.0.1:40000", "X-Forwarded-Proto", "", "fencepost-session8080",
		},
		"PlainOverHTTPS": {
			true, "locks.example.org", "127.0.0.1:40000", "", "https://locks.example.org", "",
		},
		"PlainOverHTTPS2": {
			true, "locks.example.org", "127.0.0.1:40000", "X-Forwarded-Proto", "HTTPS://locks.example.org",
			"",
		},
	} {
		config := shared.handlers(&stub{})
		config.PlainCookies = tc.plain
		r := httptest.NewRequestWithContext(
			t.Context(), "POST", "/dashboard/session", strings.NewReader(`{"bearer_token":"`+c.bearer+`"}`),
		)
		r.Host, r.RemoteAddr = tc.host, tc.remote
		if tc.by != "" {
			r.Header.Set(tc.by, "https")
		}
		if tc.origin != "" {
			r.Header.Set("Origin", tc.origin)
			r.Header.Set("Sec-Fetch-Site", "same-origin")
		}
		w := httptest.NewRecorder()
		handlers.New(config).ServeHTTP(w, r)
		all := w.Result().Cookies()
		if tc.cookie == "" &&
			(w.Code != http.StatusForbidden || len(all) != 0 ||
				!strings.Contains(w.Body.String(), "--trusted-proxy-hops")) {
			t.Errorf("%s: %d %s, cookies %v", name, w.Code, w.Body, all)
		}
		secure := strings.HasPrefix(tc.cookie, "__Host-")
		if tc.cookie != "" &&
			(w.Code != 200 || len(all) != 1 || all[0].Name != tc.cookie || all[0].Secure != secure) {
			t.Errorf("%s: %d, cookies %v", name, w.Code, all)
		}
	}
}

// TestDashboard: the page and its files, behind any prefix.
func TestDashboard(t *testing.T) {
	t.Parallel()
	c := anonymous(t)
	if a := c.get("/dashboard"); a.status != http.StatusFound ||
		a.header.Get("Location") != "/dashboard/" {
		t.Errorf("%v to %q", a, a.header.Get("Location"))
	}
	if a := c.get("/dashboard/"); a.status != 200 ||
		!strings.HasPrefix(a.header.Get("Content-Type"), "text/html") {
		t.Errorf("%v", a)
	}
	if a := c.get("/dashboard/assets/app-12345678.js"); a.status != 200 ||
		!strings.HasPrefix(a.header.Get("Content-Type"), "text/javascript") {
		t.Errorf("%v", a)
	}
	for _, path := range []string{
		"/dashboard/assets/none.js", "/dashboard/assets/%2e%2e", "/dashboard/index.html",
		"/dashboard/assets/",
	} {
		c.get(path).wantProblem(nothingHere())
	}
}
