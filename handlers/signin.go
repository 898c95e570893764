package handlers

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/auth"
)

// SignIn lets people sign in by an identity provider; [signin.Provider] does. Errors are, or
// wrap, an [*auth.Error].
type SignIn interface {
	// Host is the provider's.
	Host() string
	// Begin says where to go, and what the browser keeps until it comes back, or until then.
	Begin(ctx context.Context) (location, kept string, until time.Time, err error)
	// Finish returns the principal that has come back.
	Finish(ctx context.Context, kept, state, code string) (*auth.Principal, error)
}

// getSignIn tells the page what to offer.
//
// @Summary  See how to sign in at the dashboard
// @Success  200 {object} api.SignIn "The ways besides a bearer token"
// @Router   /dashboard/sign-in [get]
func getSignIn(r *request) (reply, error) {
	ways := api.SignIn{}
	if provider := r.endpoints.SignIn; provider != nil {
		ways.Provider = new(provider.Host())
	}
	r.Header("Cache-Control", "no-store")
	return ok(ways), nil
}

// beginSignIn leads to the identity provider.
//
// @Summary     Sign in by an identity provider
// @Description Redirects a browser to the identity provider, or to the dashboard with the reason if that fails.
// @Success     303 "To the identity provider, or back to the dashboard"
// @Header      303 {string} Location "Where to go on"
// @Header      303 {string} Set-Cookie "What the browser keeps until it is back, for 10 minutes"
// @Failure     403 {object} api.Problem "forbidden"
// @Failure     404 {object} api.Problem "not_found"
// @Router      /dashboard/sign-in/oidc [get]
func beginSignIn(r *request) error {
	if r.endpoints.SignIn == nil {
		return nothingHere(r)
	}
	if err := sameOrigin(r.Request); err != nil {
		return err
	}
	to, kept, until, err := r.endpoints.SignIn.Begin(r.context())
	if err != nil {
		return turnedAway(r, err)
	}
	http.SetCookie(r.Writer, r.cookies().flow(kept, until))
	return goOn(r, to)
}

// finishSignIn is where the identity provider leads back to. The request comes from its site:
// the cookie proves that the state in the query belongs to this browser.
//
// @Summary     Return from an identity provider
// @Description Signs in the user that the identity provider sends back, or redirects to the dashboard with the reason.
// @Param       state query string false "What the request to the identity provider had" maxlength(256)
// @Param       code query string false "What the identity provider gave" maxlength(4096)
// @Param       error query string false "Why it gave none" maxlength(256)
// @Success     303 "To the dashboard"
// @Header      303 {string} Location "The dashboard, with why it did not work in the fragment"
// @Header      303 {string} Set-Cookie "The session"
// @Failure     404 {object} api.Problem "not_found"
// @Router      /dashboard/sign-in/oidc/callback [get]
func finishSignIn(r *request) error {
	if r.endpoints.SignIn == nil {
		return nothingHere(r)
	}
	text, who, err := cameBack(r)
	http.SetCookie(r.Writer, r.cookies().flow("", time.Time{}))
	if err != nil {
		return turnedAway(r, err)
	}
	http.SetCookie(r.Writer, r.cookies().session(text, who.Expires))
	r.principal = who
	return goOn(r, r.under("/dashboard/"))
}

// cameBack returns the session of the principal that has signed in at the identity provider.
func cameBack(r *request) (string, *auth.Principal, error) {
	said, err := url.ParseQuery(r.Request.URL.RawQuery)
	kept := r.Request.CookiesNamed(r.cookies().name(flowName))
	if err != nil || len(kept) != 1 {
		return "", nil, &auth.Error{
			Reason: auth.BadSignIn, Detail: "this browser has not begun to sign in here",
		}
	}
	if why := said.Get("error"); why != "" || said.Get("code") == "" {
		return "", nil, &auth.Error{
			Reason: auth.Denied, Detail: "the identity provider did not sign you in",
		}
	}
	who, err := r.endpoints.SignIn.Finish(
		r.context(), kept[0].Value, said.Get("state"), said.Get("code"),
	)
	if err != nil {
		return "", nil, err
	}
	if !slices.ContainsFunc(operators(), who.Allows) {
		return "", nil, &auth.Error{Reason: auth.UnknownClaims, Detail: "the dashboard is for operators"}
	}
	return r.endpoints.Sessions.Seal(who)
}

// turnedAway leads to the dashboard, which says in a person's words why it did not work.
func turnedAway(r *request, err error) error {
	var refused *auth.Error
	if !errors.As(err, &refused) {
		return err
	}
	const longest = 300 // of what another server may have written
	cause := err.Error()
	r.line.refused.auth = refused.Reason
	r.note(
		slog.String("auth", string(refused.Reason)),
		slog.String("cause", cause[:min(len(cause), longest)]),
	)
	return goOn(r, r.under("/dashboard/#sign-in="+string(refused.Reason)))
}

func goOn(r *request, to string) error {
	r.Header("Cache-Control", "no-store")
	r.Header("Referrer-Policy", "no-referrer")
	r.Header("Location", to)
	r.Status(http.StatusSeeOther)
	return nil
}
