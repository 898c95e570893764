package handlers_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/handlers"
)

// stubSignIn knows a user by the code, and wants the cookie that the browser kept.
type stubSignIn struct{ begin, finish error }

func (s stubSignIn) Host() string { return "login.example" }

func (s stubSignIn) Begin(context.Context) (location, kept string, until time.Time, err error) {
	return "https://login.example/auth?state=s", "kept", time.Now().Add(10 * time.Minute), s.begin
}

func (s stubSignIn) Finish(ctx context.Context, kept, state, code string) (*auth.Principal, error) {
	who := &auth.Principal{Tenant: "acme", Subject: "ann", Expires: time.Now().Add(time.Hour)}
	switch {
	case s.finish != nil:
		return nil, s.finish
	case kept != "kept" || state != "s":
		return nil, &auth.Error{Reason: auth.BadSignIn}
	case code == "operator":
		return shared.verifier.Verify(
			ctx, hs("acme", map[string]any{"sub": "ann", "scope": "tenant-admin"}),
		)
	}
	return who, nil
}

// withSignIn returns a client of a replica with an identity provider, which has no token and
// follows no redirects.
func withSignIn(t *testing.T, s stubSignIn) *client {
	t.Helper()
	config := shared.handlers(shared.main.service)
	config.SignIn, config.Console = s, shared.main.console
	r := serve(nil, handlers.New(config))
	t.Cleanup(r.close)
	return newTenant(t).at(r).with("")
}

// cookies are those that an answer sets, by name without the port.
func (a *answer) cookies() map[string]*http.Cookie {
	all := map[string]*http.Cookie{}
	for _, c := range (&http.Response{Header: a.header}).Cookies() {
		all[strings.TrimRight(c.Name, "0123456789")] = c
		if c.Value != "" && c.Value != "kept" {
			shared.secrets.add(c.Value)
		}
	}
	return all
}

// leads fails unless the answer leads there, and nowhere is it remembered.
func (a *answer) leads(to string) *answer {
	a.t.Helper()
	if a.status != http.StatusSeeOther || a.header.Get("Location") != to ||
		a.header.Get("Cache-Control") != "no-store" {
		a.t.Errorf("%v leads to %q, want %q", a, a.header.Get("Location"), to)
	}
	return a
}

func callback(code string) string {
	return "/dashboard/sign-in/oidc/callback?" + url.Values{"state": {"s"}, "code": {code}}.Encode()
}

func TestSignInByProvider(t *testing.T) {
	t.Parallel()
	c := withSignIn(t, stubSignIn{})
	var ways struct{ Provider string }
	if c.get("/dashboard/sign-in").want(200, &ways); ways.Provider != "login.example" {
		t.Errorf("%+v", ways)
	}
	begun := c.get("/dashboard/sign-in/oidc").leads("https://login.example/auth?state=s").cookies()
	kept := begun["fencepost-sign-in"]
	if kept == nil || !kept.HttpOnly || kept.SameSite != http.SameSiteLaxMode ||
		kept.Value != "kept" || time.Until(kept.Expires) > 11*time.Minute {
		t.Fatalf("the browser keeps %v", kept)
	}
	back := c.get(callback("operator"), bearing(kept), header("Sec-Fetch-Site", "cross-site")).
		leads("/dashboard/").cookies()
	in := back["fencepost-session"]
	if in == nil || in.SameSite != http.SameSiteStrictMode || back["fencepost-sign-in"] == nil ||
		back["fencepost-sign-in"].MaxAge >= 0 {
		t.Fatalf("signed in by %v", back)
	}
	var who session
	if c.get("/dashboard/session", bearing(in)).want(200, &who); who.Subject != "ann" ||
		who.Tenant != "acme" || time.Until(who.ExpiresAt) > time.Hour {
		t.Errorf("%+v", who)
	}
}

// TestDashboardShowsWhyASignInFailed: the dashboard shows why a user is not signed in, and there is
// no session.
func TestDashboardShowsWhyASignInFailed(t *testing.T) {
	t.Parallel()
	c := withSignIn(t, stubSignIn{})
	kept := c.get("/dashboard/sign-in/oidc").cookies()["fencepost-sign-in"]
	for why, path := range map[string]string{
		"unknown_claims": callback("worker"),
		"bad_sign_in":    "/dashboard/sign-in/oidc/callback?state=other&code=operator",
		"denied":         "/dashboard/sign-in/oidc/callback?state=s&error=access_denied&error_description=%3Cscript%3E",
	} {
		if got := c.get(path, bearing(kept)).leads(
			"/dashboard/#sign-in=" + why,
		).cookies(); got["fencepost-session"] != nil {
			t.Errorf("%s: a session", why)
		}
	}
	for _, path := range []string{
		callback(""), "/dashboard/sign-in/oidc/callback", "/dashboard/sign-in/oidc/callback?%zz",
		"/dashboard/sign-in/oidc/callback?code=" + strings.Repeat("c", 5000),
	} {
		a := c.get(path, bearing(kept), loose)
		if to := a.header.Get("Location"); !strings.HasPrefix(to, "/dashboard/#sign-in=") ||
			a.cookies()["fencepost-session"] != nil {
			t.Errorf("%s: %d leads to %q", path[:min(len(path), 60)], a.status, to)
		}
	}
	c.get(callback("operator")).leads("/dashboard/#sign-in=bad_sign_in") // another browser
	gone := &auth.Error{Reason: auth.NoProvider, Detail: "away"}
	withSignIn(t, stubSignIn{begin: gone}).get("/dashboard/sign-in/oidc").
		leads("/dashboard/#sign-in=no_provider")
	away := withSignIn(t, stubSignIn{finish: gone})
	kept = away.get("/dashboard/sign-in/oidc").cookies()["fencepost-sign-in"]
	away.get(callback("operator"), bearing(kept)).leads("/dashboard/#sign-in=no_provider")
}

// TestOtherSitesCannotBeginASignIn: another site cannot begin a sign-in, and without a provider
// there is none.
func TestOtherSitesCannotBeginASignIn(t *testing.T) {
	t.Parallel()
	c := withSignIn(t, stubSignIn{})
	c.get("/dashboard/sign-in/oidc", header("Sec-Fetch-Site", "cross-site")).
		wantProblem(problem{code: "forbidden", detail: otherSite})
	none := newTenant(t).with("")
	nothing := nothingHere()
	none.get("/dashboard/sign-in/oidc").wantProblem(nothing)
	none.get(callback("operator")).wantProblem(nothing)
	ways := none.get("/dashboard/sign-in")
	if ways.wantStatus(http.StatusOK); string(ways.body) != "{}" {
		t.Errorf("%s", ways.body)
	}
}
