package handlers

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/quota"
)

// policy is what an operation asks of a request before it runs. Without scopes it is open to all.
type policy struct {
	scopes []auth.Scope // the caller needs one of them
	load   load
	query  []string // the parameters that the operation knows
	named  bool     // the path has the name of a lock
}

// load is what an operation does to the server: it decides which rate of the tenant the request
// counts against, and whether the server refuses it when it has too many requests.
type load int

const (
	newWork   load = iota // counts as a request
	waiting               // goes on with an entry; counts as a renewal
	renewing              // is never refused; counts as a renewal
	releasing             // is never refused; counts as a release
	looking               // is for operators, and never refused; counts as a request of a tenant
	changing              // is for operators, and never refused; counts as a release of a tenant
)

// sheds reports whether the server refuses such operations when it has too many requests.
func (l load) sheds() bool { return l <= waiting }

// forOperators reports whether a session of the dashboard may take the place of a bearer token: the
// dashboard uses all operations but those of clients.
func (p *policy) forOperators() bool {
	return p.load >= looking || slices.Contains(p.scopes, auth.WebhooksWrite)
}

// scopeNames names the scopes; the caller needs one of them.
func (p *policy) scopeNames() string {
	names := make([]string, len(p.scopes))
	for i, s := range p.scopes {
		names[i] = string(s)
	}
	return strings.Join(names, " or ")
}

// admission decides whether a request may run, by the policy of its operation.
type admission struct {
	r      *request
	policy *policy
}

// admit authenticates the caller, counts the request, and returns why the operation may not run.
func (a admission) admit() error {
	if a.policy.forOperators() { // a cache would show to all what a cookie opens, secrets too
		a.r.Header("Cache-Control", "no-store")
		a.r.tagged = a.r.Request.Method == http.MethodGet
	}
	if err := a.authenticate(); err != nil {
		return a.r.challenge(err)
	}
	a.r.conn.occupy(a.r.tenant())
	refused := a.permit()
	if rate, counts := a.rate(refused != nil); counts {
		if err := a.r.endpoints.Quotas.Take(a.r.tenant(), rate, 1); err != nil {
			return err
		}
		a.r.counted = rate == quota.Requests
	}
	if refused != nil {
		return refused
	}
	return checkQuery(a.r.Request.URL.RawQuery, a.policy.query)
}

// permit returns why the caller may not run the operation, whatever is locked.
func (a admission) permit() error {
	if !slices.ContainsFunc(a.policy.scopes, a.r.principal.Allows) {
		return lock.Errorf(lock.Forbidden, "the caller lacks the scope %s; "+
			"use a credential that has it", a.policy.scopeNames())
	}
	if a.r.conn.crowded && a.policy.load.sheds() {
		return errOverloaded("requests of the tenant")
	}
	if a.policy.named {
		return a.readName()
	}
	return nil
}

// readName reads the lock's name from the path and compares it with the token's patterns.
func (a admission) readName() error {
	name, err := url.PathUnescape(a.r.Param("name"))
	if err != nil || !lock.ValidName(name) {
		return errInvalidName()
	}
	if a.r.name = name; !a.r.principal.MayUse(name) {
		return errOtherNames(name)
	}
	return nil
}

// rate returns the rate of the tenant that the request counts against. Requests of operators of all
// tenants count against none: they could not fix a quota otherwise. A request that is rejected
// counts as a request, and so does one whose lock token is made up: it could keep the tenant's
// holders from renewing.
func (a admission) rate(refused bool) (rate quota.Limit, counts bool) {
	operates := a.policy.load >= looking && a.r.principal.Allows(auth.Admin)
	switch {
	case refused:
	case operates:
		return 0, false
	case a.policy.load == changing: // a tenant that uses up its requests can still revoke
		return quota.Releases, true
	case a.policy.load == releasing && a.genuine():
		return quota.Releases, true
	case (a.policy.load == waiting || a.policy.load == renewing) && a.genuine():
		return quota.Renewals, true
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
func (a admission) genuine() bool {
	req := ofLock(a.r)
	if !a.policy.named {
		req = ofSet(a.r)
	}
	return readTokenHeader(a.r, &req) == nil && a.r.endpoints.Entries.Genuine(req)
}

// errOtherNames says which name that the caller sent it may not use.
func errOtherNames(name string) error {
	return lock.Errorf(lock.Forbidden, "the caller is limited to other lock names than %s; "+
		"use a credential that covers it", name)
}

func errInvalidName() error {
	return lock.Errorf(lock.InvalidName, "a lock name is 1 to %d of the characters "+
		"A-Z a-z 0-9 . _ : @ = + - and begins with a letter or a digit", lock.MaxNameLength)
}
