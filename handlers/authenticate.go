package handlers

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/lock"
)

const bearerRealm = `Bearer realm="fencepost"`

// authenticate finds the caller by the bearer token, the session of the dashboard or the client
// certificate of the request. A bearer token goes first.
func (a admission) authenticate() error {
	values := a.r.Request.Header["Authorization"]
	certificates := a.r.endpoints.Clients != nil && a.r.Request.TLS != nil
	if len(values) == 0 && certificates && !a.bearsSession() {
		if err := a.authenticateCertificate(); err != nil || a.r.principal != nil {
			return err
		}
	}
	switch {
	case len(values) == 0 && a.policy.forOperators() && a.r.Request.Header["Cookie"] != nil:
		return authenticateSession(a.r)
	case len(values) == 0 && certificates:
		return lock.Errorf(lock.Unauthenticated,
			"the request has no credential; "+
				"send a bearer token in one Authorization header, or a client certificate")
	case len(values) != 1:
		return lock.Errorf(lock.Unauthenticated, "the request has no credential; "+
			"send one Authorization header with a bearer token")
	}
	scheme, raw, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return lock.Errorf(
			lock.Unauthenticated, "the Authorization header must be of the form Bearer <token>",
		)
	}
	return a.verify(strings.TrimSpace(raw))
}

// verify finds the caller by a bearer token. A signature takes time, so that the first request of a
// token is paced as those without one.
func (a admission) verify(raw string) (err error) {
	if a.r.principal = a.r.endpoints.Verifier.Known(raw); a.r.principal != nil {
		return nil
	}
	if err := a.r.pace(); err != nil {
		return err
	}
	a.r.principal, err = a.r.endpoints.Verifier.Verify(a.r.context(), raw)
	return a.r.unauthenticated(err, "get another token from its issuer")
}

func (a admission) bearsSession() bool {
	name := a.r.cookies().name(sessionName)
	return a.policy.forOperators() && len(a.r.Request.CookiesNamed(name)) > 0
}

// authenticateCertificate finds the caller by the client's certificate, if it shows one. A browser
// shows it for a page of another origin too, so the origin counts.
func (a admission) authenticateCertificate() error {
	p, err := a.r.endpoints.Clients.Identify(a.r.Request.TLS)
	if err != nil || p == nil {
		return a.r.unauthenticated(err, "send a bearer token, or another certificate")
	}
	if err := sameOrigin(a.r.Request); err != nil {
		return err
	}
	a.r.principal = p
	return nil
}

// unauthenticated turns what is wrong with a credential into a problem that says what to do next,
// and notes it for the log.
func (r *request) unauthenticated(err error, advice string) error {
	refused, ok := errors.AsType[*auth.Error](err)
	if !ok {
		return err
	}
	r.line.refused.auth = refused.Reason
	r.note(slog.String("auth", string(refused.Reason)))
	if refused.KeyID != "" {
		r.note(slog.String("kid", refused.KeyID))
	}
	return lock.Errorf(lock.Unauthenticated, "%s; %s", refused.Detail, advice)
}

// challenge adds to a problem how to authenticate.
func (r *request) challenge(err error) error {
	if errors.Is(err, lock.Unauthenticated) {
		r.Header("WWW-Authenticate", bearerRealm)
	}
	return err
}

// sameOrigin rejects a request that a browser sends for a page of another origin, reads too: they
// could not be seen there, but take memory here.
func sameOrigin(r *http.Request) error {
	from := r.Header.Get("Sec-Fetch-Site")
	foreign := from != "" && from != "same-origin" && from != "none"
	if foreign || http.NewCrossOriginProtection().Check(r) != nil {
		return lock.Errorf(lock.Forbidden, "the request comes from a page of another site; "+
			"send it from this server's own pages")
	}
	return nil
}
