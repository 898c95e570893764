package handlers

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/lock"
)

// Sessions seal a principal of the dashboard into a cookie; [auth.Sessions] does.
type Sessions interface {
	Seal(*auth.Principal) (string, *auth.Principal, error)
	Open(context.Context, string) (*auth.Principal, error)
}

// Codes are one-time codes to sign in with; [auth.Codes] has them.
type Codes interface {
	Redeem(code string) (*auth.Principal, error)
}

// signIn begins a session.
//
// @Summary     Sign in at the dashboard
// @Description Exchanges an operator's bearer token, or a one-time code, for a cookie. The session ends with the token, or after 12 hours.
// @Param       body body api.SessionBody true "A token or a code"
// @Success     200 {object} api.Session "The caller that is signed in"
// @Header      200 {string} Set-Cookie "The session"
// @Failure     400 {object} api.Problem "invalid_request"
// @Failure     401 {object} api.Problem "unauthenticated"
// @Failure     403 {object} api.Problem "forbidden"
// @Failure     413 {object} api.Problem "body_too_large"
// @Failure     415 {object} api.Problem "unsupported_media_type"
// @Router      /dashboard/session [post]
func signIn(r *request, body *api.SessionBody) (reply, error) {
	if err := checkOrigin(r); err != nil {
		return reply{}, err
	}
	who, err := newcomer(r, body)
	if err != nil {
		return reply{}, refusedSession(r, err)
	}
	if !slices.ContainsFunc(operators(), who.Allows) {
		return reply{}, lock.Errorf(
			lock.Forbidden,
			"the dashboard is for callers with the scope %s or %s; sign in with a token that has one",
			auth.Admin, auth.TenantAdmin,
		)
	}
	text, who, err := r.endpoints.Sessions.Seal(who)
	if err != nil {
		return reply{}, refusedSession(r, err)
	}
	http.SetCookie(r.Writer, r.cookies().session(text, who.Expires))
	r.principal = who
	return showSession(r)
}

// newcomer is who a token or a code stands for.
func newcomer(r *request, body *api.SessionBody) (*auth.Principal, error) {
	codes := r.endpoints.Codes
	switch {
	case (body.BearerToken == nil) == (body.Code == nil):
		return nil, lock.Errorf(lock.InvalidRequest, "send either a token or a code")
	case body.Code != nil && codes != nil:
		return codes.Redeem(*body.Code)
	case body.Code != nil:
		return nil, lock.Errorf(
			lock.Unauthenticated, "this server issues no codes; sign in with a bearer token",
		)
	}
	return r.endpoints.Verifier.Verify(r.context(), strings.TrimSpace(*body.BearerToken))
}

// refusedSession turns what is wrong with a token, a code or a session into a problem.
func refusedSession(r *request, err error) error {
	problem := r.unauthenticated(err, "sign in again")
	var refused *auth.Error
	if errors.As(err, &refused) && errors.Is(refused, auth.TooLarge) {
		return lock.Errorf(lock.InvalidRequest, "%s; "+
			"sign in with a token that has fewer patterns", refused.Detail)
	}
	return r.challenge(problem)
}

// getSession tells the page whether it has to ask for a token.
//
// @Summary  See which user is signed in
// @Success  200 {object} api.Session "The caller that is signed in"
// @Failure  401 {object} api.Problem "unauthenticated"
// @Failure  403 {object} api.Problem "forbidden"
// @Router   /dashboard/session [get]
func getSession(r *request) (reply, error) {
	if err := authenticateSession(r); err != nil {
		return reply{}, r.challenge(err)
	}
	return showSession(r)
}

// signOut takes the cookie back.
//
// @Summary     Sign out of the dashboard
// @Description Removes the cookie. The server keeps no list of sessions, so a copy of the cookie is valid until the session ends.
// @Success     204 "Signed out, or there was no session"
// @Header      204 {string} Set-Cookie "No session"
// @Failure     403 {object} api.Problem "forbidden"
// @Router      /dashboard/session [delete]
func signOut(r *request) (reply, error) {
	if err := sameOrigin(r.Request); err != nil {
		return reply{}, err
	}
	http.SetCookie(r.Writer, r.cookies().session("", time.Time{}))
	return noContent(), nil
}

func showSession(r *request) (reply, error) {
	p := r.principal
	out := api.Session{
		Tenant: p.Tenant, Subject: p.Subject, Scopes: []string{},
		ExpiresAt: api.InstantOf(p.Expires), ServerNow: api.InstantOf(time.Now()),
	}
	for _, s := range p.Scopes {
		out.Scopes = append(out.Scopes, string(s))
	}
	for _, pattern := range p.Locks {
		out.Locks = append(out.Locks, pattern.String())
	}
	r.Header("Cache-Control", "no-store")
	return ok(out), nil
}

// authenticateSession finds the caller by the cookie. A page of another origin may have the browser
// send it along, so the request's origin counts too.
func authenticateSession(r *request) error {
	found := r.Request.CookiesNamed(r.cookies().name(sessionName))
	if len(found) != 1 {
		return lock.Errorf(lock.Unauthenticated, "the request has no session; "+
			"sign in, or send a bearer token")
	}
	if err := checkOrigin(r); err != nil {
		return err
	}
	p, err := r.endpoints.Sessions.Open(r.context(), found[0].Value)
	if err != nil {
		return refusedSession(r, err)
	}
	r.principal = p
	return nil
}

// checkOrigin rejects requests of pages of other origins, and a plain cookie for a page that was
// opened over https: a browser would also send it without TLS.
func checkOrigin(r *request) error {
	if err := sameOrigin(r.Request); err != nil {
		return err
	}
	origin := strings.ToLower(r.Request.Header.Get("Origin"))
	if r.endpoints.PlainCookies && strings.HasPrefix(origin, "https:") {
		return lock.Errorf(lock.Forbidden, "the page is open over https, for which the server's session "+
			"cookie is not meant: start it with --trusted-proxy-hops")
	}
	return nil
}

const (
	sessionName = "fencepost-session"
	flowName    = "fencepost-sign-in"
)

// cookies makes the cookies of the dashboard.
type cookies struct {
	plain bool   // without TLS
	base  string // path under which a proxy publishes the server
	host  string // of the request
}

func (r *request) cookies() cookies {
	return cookies{r.endpoints.PlainCookies, r.endpoints.BasePath, r.Request.Host}
}

// session returns the cookie of a session; an empty text ends it.
func (c cookies) session(text string, until time.Time) *http.Cookie {
	made := &http.Cookie{
		Name: c.name(sessionName), Value: text, Path: c.base + "/", Expires: until,
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: !c.plain,
	}
	if text == "" {
		made.MaxAge = -1
	}
	return made
}

// flow returns the cookie that a browser keeps while its user signs in elsewhere; an empty text
// ends it. The browser sends it when the other site leads back.
func (c cookies) flow(text string, until time.Time) *http.Cookie {
	made := c.session(text, until)
	made.Name, made.SameSite = c.name(flowName), http.SameSiteLaxMode
	return made
}

// name puts __Host- before a name, which browsers take only from the host itself over TLS, or
// __Secure- under a base path, which other servers of the host do not get. A plain cookie has the
// port: cookies count for all ports of a host, and a host may run two servers.
func (c cookies) name(name string) string {
	switch {
	case !c.plain && c.base != "":
		return "__Secure-" + name
	case !c.plain:
		return "__Host-" + name
	}
	_, port, _ := net.SplitHostPort(c.host)
	if strings.Trim(port, "0123456789") != "" {
		port = ""
	}
	return name + port
}
