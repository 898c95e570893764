package handlers_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/handlers"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/openapi"
	"github.com/fencepost/fencepost/quota"
)

// described is an operation of the OpenAPI document that needs a bearer token.
type described struct {
	method, path string
	codes        map[int][]string // of its problems, by status
}

// sample replaces the parameters in a path.
func sample(path string) string {
	return strings.NewReplacer(
		"{name}", "a", "{id}", someID, "{tenant}", "acme", "{delivery}", "1042-1",
	).Replace(path)
}

func describedOperations(t *testing.T) (all []described) {
	t.Helper()
	doc := must(openapi3.NewLoader().LoadFromData(openapi.Document()))
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			if op.Security == nil {
				continue
			}
			one := described{method, sample(path), map[int][]string{}}
			for status, r := range op.Responses.Map() {
				if codes, ok := r.Value.Extensions["x-problem-codes"].([]any); ok {
					for _, code := range codes {
						n := must(strconv.Atoi(status))
						one.codes[n] = append(one.codes[n], code.(string))
					}
				}
			}
			all = append(all, one)
		}
	}
	return all
}

// opens reports whether the operation needs the scope.
func (d described) opens(s auth.Scope) bool {
	switch reads := d.method == http.MethodGet; {
	case strings.HasPrefix(d.path, "/webhooks"):
		return s == auth.WebhooksWrite
	case strings.HasPrefix(d.path, "/admin"):
		return s == auth.Admin || s == auth.TenantAdmin
	case reads && strings.Contains(d.path, someID):
		return s == auth.LocksRead || s == auth.LocksWrite
	case reads:
		return s == auth.LocksRead
	}
	return s == auth.LocksWrite
}

// valid returns what makes a request valid: its query and its options.
func (d described) valid() (query string, o []option) {
	o = []option{lockToken(someToken)}
	if !strings.HasPrefix(d.path, "/locks") || d.path == "/locksets" || d.method == "POST" {
		o = nil
	}
	if d.path == "/admin/holders" {
		query = "?tenant=acme&holder=w1"
	}
	text := map[string]string{
		"POST /locksets": oneLock, "POST /webhooks": `{` + receiver + `}`,
		"POST /admin/holders/revoke": `{"tenant":"acme","holder":"w","entries":[{"id":"` + someID +
			`","fence":7}],"reason":"` + explanation + `"}`,
		"POST /admin/closures": `{"tenant":"acme","locks":"a","until":"2999-01-01T00:00:00.000Z",` +
			`"reason":"` + explanation + `"}`,
		"POST " + sample("/admin/locks/{tenant}/{name}/entries/{id}/revoke"): revoking,
		"POST " + sample("/admin/locksets/{tenant}/{id}/revoke"):             revoking,
		"POST /locks/a/stale-writes": `{"fence_presented":1,` +
			`"fence_known":2,"resource":"db"}`,
		"PATCH " + sample("/admin/webhooks/{tenant}/{id}"): `{"paused":true,` + whyPaused + `}`,
	}[d.method+" "+d.path]
	if text != "" {
		o = append(o, body(text))
	}
	return query, o
}

const revoking = `{"fence":7,"reason":"` + explanation + `"}`

// failing returns a client with all scopes of a replica whose parts all return err; nil is a
// panic.
func failing(t *testing.T, err error) *client {
	t.Helper()
	s := &stub{err: err}
	if err == nil {
		s.panic = "a bug"
	}
	fail := func() error {
		_, err := s.answer()
		return err
	}
	h := shared.handlers(s)
	h.Closures, h.Console, h.Audit = closuresStub{s}, &consoleStub{err: err, panic: s.panic}, trail{
		err: err, panic: s.panic,
	}
	h.Webhooks, h.Deliveries = &stubWebhooks{fail}, &stubDeliveries{err: fail}
	h.Quotas = &brokenQuotas{shared.quotas, fail, errors.Is(err, lock.RateLimited)}
	r := serve(nil, handlers.New(h))
	t.Cleanup(r.close)
	return newTenant(t).at(r).as(func(c *auth.Claims) {
		c.Scopes = []auth.Scope{auth.LocksRead, auth.LocksWrite, auth.WebhooksWrite, auth.Admin}
	})
}

// TestEveryOperationReportsWhatItsPartsReport: the problems that the OpenAPI document lists are
// those that the service, the store and the webhooks return.
func TestEveryOperationReportsWhatItsPartsReport(t *testing.T) {
	t.Parallel()
	clients := map[string]*client{}
	for _, err := range []*lock.Error{
		{Code: lock.StoreUnavailable, RetryAfter: time.Second},
		{Code: lock.NotFound},
		{Code: lock.Changed},
		{Code: lock.Lost, Reason: lock.Expired},
	} {
		err.Detail = "the detail"
		clients[string(err.Code)] = failing(t, err)
	}
	broken := failing(t, nil)
	for _, op := range describedOperations(t) {
		query, o := op.valid()
		broken.start(op.method, op.path+query, o...).raw().wantInternal()
		for status, codes := range op.codes {
			for code, c := range clients {
				if slices.Contains(codes, code) {
					c.do(op.method, op.path+query, o...).wantStatus(status)
				}
			}
		}
	}
}

// TestEveryOperationRefuses: a request without a bearer token, without one of the operation's
// scopes, over the rate, or with a body or query that the operation does not know.
func TestEveryOperationRefuses(t *testing.T) {
	t.Parallel()
	c := failing(t, &lock.Error{Code: lock.StoreUnavailable, Detail: "x", RetryAfter: time.Second})
	none := c.as(func(cl *auth.Claims) { cl.Scopes = nil })
	unscoped := func(op described) *client {
		return c.as(func(cl *auth.Claims) {
			cl.Scopes = slices.DeleteFunc(slices.Clone(cl.Scopes), op.opens)
		})
	}
	fast := none.at(
		failing(t, &lock.Error{Code: lock.RateLimited, Detail: "x", RetryAfter: time.Second}).replica,
	)
	for _, op := range describedOperations(t) {
		query, o := op.valid()
		c.with("nonsense").do(op.method, op.path+query, o...).wantStatus(http.StatusUnauthorized)
		none.do(op.method, op.path+query, o...).wantStatus(http.StatusForbidden)
		unscoped(op).do(op.method, op.path+query, o...).wantStatus(http.StatusForbidden)
		fast.do(op.method, op.path+query, o...).wantStatus(http.StatusTooManyRequests)
		c.do(op.method, op.path+"?x=1", append(o, loose)...).wantProblem(invalid("x", notAParameter))
		if len(op.codes[http.StatusUnsupportedMediaType]) == 0 {
			continue
		}
		c.do(op.method, op.path+query, append(o, body(padded(16<<10+1)), loose)...).
			wantProblem(tooLarge())
		c.do(
			op.method, op.path+query, append(o, body("{}"), header("Content-Type", "text/plain"), loose)...,
		).wantStatus(http.StatusUnsupportedMediaType)
		c.do(op.method, op.path+query, append(o, body(`{"x":1}`), loose)...).wantProblem(unknown("x"))
	}
}

// brokenQuotas lets requests pass, unless the error is that they are too many, and fails otherwise.
type brokenQuotas struct {
	handlers.Quotas
	fail    func() error
	tooFast bool
}

func (b *brokenQuotas) Take(string, quota.Limit, int) error {
	if b.tooFast {
		return b.fail()
	}
	return nil
}

func (b *brokenQuotas) Get(context.Context, string) (*quota.State, error) { return nil, b.fail() }

func (b *brokenQuotas) Set(context.Context, quota.Change) (*quota.State, error) {
	return nil, b.fail()
}

func (b *brokenQuotas) Reset(context.Context, quota.Change) error { return b.fail() }
