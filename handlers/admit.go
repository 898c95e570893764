package handlers

import (
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/quota"
)

// operation is what an operation that needs a bearer token asks of a request before its
// handler sees it.
type operation struct {
	scopes []auth.Scope // of which one will do
	always bool         // also for a tenant that has too many requests under way
	query  []string     // the parameters that it knows
	named  bool         // the path has the name of a lock
	rate   quota.Limit  // against which it counts, if not against that of requests
	page   bool         // the dashboard does it too, though it is not for operators alone

	ofTenants bool // it changes nothing that operators keep in order, so it counts as a request
}

// bySession reports whether a session of the dashboard will do instead of a bearer token.
func (o operation) bySession() bool {
	return o.page || slices.ContainsFunc(o.scopes, func(s auth.Scope) bool { return slices.Contains(operators(), s) })
}

// scopeNames names the scopes of which one will do.
func (o operation) scopeNames() string {
	names := make([]string, len(o.scopes))
	for i, s := range o.scopes {
		names[i] = string(s)
	}
	return strings.Join(names, " or ")
}

// authorized has a handler answer the requests that the operation lets pass.
func (a *endpoints) authorized(o operation, h handler) gin.HandlerFunc {
	return a.handle(func(r *request) error {
		if err := r.admit(o); err != nil {
			return err
		}
		return h(r)
	})
}

// admit learns who asks, and for what, and returns why that is refused.
func (r *request) admit(o operation) error {
	if o.bySession() { // a cache would take what a cookie alone opens for everybody's, new secrets too
		r.Header("Cache-Control", "no-store")
		r.tagged = r.Request.Method == http.MethodGet
	}
	if err := r.authenticate(o); err != nil {
		return r.challenge(err)
	}
	r.occupy()
	refused := r.permit(o)
	if rate, counts := r.countedBy(o, refused != nil); counts {
		if err := r.endpoints.Quotas.Take(r.tenant(), rate, 1); err != nil {
			return err
		}
		r.counted = rate == quota.Requests
	}
	if refused != nil {
		return refused
	}
	return checkQuery(r.Request.URL.RawQuery, o.query)
}

// permit returns why who asks may not have the operation done, whatever is locked.
func (r *request) permit(o operation) error {
	if !slices.ContainsFunc(o.scopes, r.principal.Allows) {
		return lock.Errorf(lock.Forbidden, "the caller lacks the scope %s", o.scopeNames())
	}
	if r.crowded && !o.always {
		return errCrowded()
	}
	if o.named {
		return r.readName()
	}
	return nil
}

// countedBy returns the rate of the tenant that the request counts against. Requests of operators of
// all tenants count against none: they could not fix a quota otherwise. A request that is rejected
// counts as a request, whatever it was for.
func (r *request) countedBy(o operation, refused bool) (rate quota.Limit, counts bool) {
	switch {
	case refused:
		return quota.Requests, true
	case o.rate != 0 && r.genuine(o):
		return o.rate, true
	case o.rate != 0: // or made-up tokens could keep the tenant's holders from renewing
		return quota.Requests, true
	case o.always && r.principal.Allows(auth.Admin):
		return 0, false
	case o.always && !o.ofTenants && r.Request.Method != http.MethodGet:
		return quota.Releases, true // a tenant that uses up its requests can still revoke
	}
	return quota.Requests, true
}

// charge takes what the request costs beyond one, of the rate that it counts against.
func (r *request) charge(more int) error {
	if !r.counted || more <= 0 {
		return nil
	}
	return r.endpoints.Quotas.Take(r.tenant(), quota.Requests, more)
}

// genuine reports whether the request has a lock token that was issued for what its path names.
func (r *request) genuine(o operation) bool {
	req := ofSet(r)
	if o.named {
		req = ofLock(r)
	}
	return readTokenHeader(r, &req) == nil && r.endpoints.Locks.Genuine(req)
}

func (r *request) authenticate(o operation) error {
	values := r.Request.Header["Authorization"]
	if len(values) == 0 && !r.bearsSession(o) {
		if known, err := r.authenticateCertificate(); known || err != nil {
			return err
		}
	}
	if len(values) == 0 && o.bySession() && r.Request.Header["Cookie"] != nil {
		return r.authenticateSession()
	}
	if len(values) == 0 && r.takesCertificates() {
		return lock.Errorf(lock.Unauthenticated, "a client certificate, or one Authorization header with a bearer token, is needed")
	}
	if len(values) != 1 {
		return lock.Errorf(lock.Unauthenticated, "one Authorization header with a bearer token is needed")
	}
	scheme, raw, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return lock.Errorf(lock.Unauthenticated, "the Authorization header must be of the form Bearer <token>")
	}
	p, err := r.endpoints.Verifier.Verify(r.context(), strings.TrimSpace(raw))
	var refused *auth.Error
	if errors.As(err, &refused) {
		r.noteUnknown(refused)
		if refused.KeyID != "" {
			r.note(slog.String("kid", refused.KeyID))
		}
		return lock.Errorf(lock.Unauthenticated, "%s", refused.Detail)
	}
	r.principal = p
	return err
}

// noteUnknown notes why what was shown says of nobody who asks.
func (r *request) noteUnknown(why *auth.Error) {
	r.refused.auth = why.Reason
	r.note(slog.String("auth", string(why.Reason)))
}

// bearsSession reports whether a session of the dashboard says who asks.
func (r *request) bearsSession(o operation) bool {
	return o.bySession() && len(r.Request.CookiesNamed(r.cookieName(sessionName))) > 0
}

// takesCertificates reports whether a client certificate may say who asks.
func (r *request) takesCertificates() bool { return r.endpoints.Clients != nil && r.Request.TLS != nil }

// authenticateCertificate learns from the client's certificate who asks, if it shows one. A
// browser shows it for a page of another origin too, so what it says of that counts.
func (r *request) authenticateCertificate() (known bool, err error) {
	if !r.takesCertificates() {
		return false, nil
	}
	p, err := r.endpoints.Clients.Identify(r.Request.TLS)
	var refused *auth.Error
	if errors.As(err, &refused) {
		r.noteUnknown(refused)
		return false, lock.Errorf(lock.Unauthenticated, "%s", refused.Detail)
	}
	if p == nil || err != nil {
		return false, err
	}
	if err := r.sameOrigin(); err != nil {
		return false, err
	}
	r.principal = p
	return true, nil
}

// readName reads the lock's name from the path and holds it against the bearer token's
// patterns.
func (r *request) readName() error {
	name, err := url.PathUnescape(r.Param("name"))
	if err != nil || !lock.ValidName(name) {
		return errInvalidName()
	}
	r.name = name
	if !r.principal.MayUse(name) {
		return errOtherNames(name)
	}
	return nil
}

// errOtherNames says which name that the caller sent it may not use.
func errOtherNames(name string) error {
	return lock.Errorf(lock.Forbidden, "the caller is limited to other lock names than %s", name)
}

func errInvalidName() error {
	return lock.Errorf(lock.InvalidName,
		"a lock name is 1 to %d of the characters A-Z a-z 0-9 . _ : @ = + - and begins with a letter or a digit", lock.MaxNameLength)
}

// maxHeaders is how many header fields a request may have, each line counted. They are
// kept for as long as it waits, and thousands of short ones would take ten times the bytes
// in which they were sent.
const maxHeaders = 100

func checkHeaders(h http.Header) error {
	fields := 0
	for _, values := range h {
		fields += len(values)
	}
	if fields > maxHeaders {
		return lock.Errorf(lock.InvalidRequest, "a request may have %d header fields", maxHeaders)
	}
	return nil
}

// checkSlashes refuses a path with an encoded slash that net/url has decoded: it gives
// up the path as it was sent if anything in it should have been escaped and is
// not, and the slash would separate segments.
func checkSlashes(r *http.Request) error {
	sent, _, _ := strings.Cut(r.RequestURI, "?")
	slash := func(path string) bool { return strings.Contains(strings.ToLower(path), "%2f") }
	if slash(sent) && !slash(r.URL.EscapedPath()) {
		return errInvalidName()
	}
	return nil
}

// checkQuery refuses other query parameters than those that are known, and one of them
// twice: a typo, or a field of the body in the wrong place, must not be passed over.
func checkQuery(query string, known []string) error {
	if query == "" {
		return nil
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return lock.Errorf(lock.InvalidRequest, "the query is not of the form name=value&name=value")
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch {
		case !slices.Contains(known, name):
			return unknownParameter(name, known)
		case len(values[name]) > 1:
			return lock.Invalid(name, "must not be there twice")
		}
	}
	return nil
}

// unknownParameter names the parameter if its name can be nothing but a name.
func unknownParameter(name string, known []string) error {
	const longest = 30
	if len(name) > longest || strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz_-") != "" {
		return lock.Errorf(lock.InvalidRequest, "a query parameter is not known here")
	}
	return suggest(lock.Invalid(name, "is not known here as a query parameter"), name, known)
}
