package handlers_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/handlers"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/quota"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/closures"
	seen "github.com/fencepost/fencepost/service/figures"
	"github.com/fencepost/fencepost/service/view"
)

// stub stands in for the service, for what that does only on bad days.
type stub struct {
	err   error
	grant *service.Grant
	panic any

	view      service.LockView
	page      view.Page
	order     seen.OrderReport
	acquired  func(service.AcquireRequest) // nil is not told
	deadlocks []view.Deadlock
	outcomes  []service.RevokeOutcome
}

func (s *stub) Genuine(service.TokenRequest) bool { return true }

func (s *stub) ReportStaleWrite(context.Context, lock.Ref, lock.StaleWrite) error {
	_, err := s.answer()
	return err
}

func (s *stub) Revoke(context.Context, service.RevokeRequest) (*service.Revoked, error) {
	_, err := s.answer()
	return nil, err
}

func (s *stub) RevokeAll(context.Context, []service.RevokeRequest) []service.RevokeOutcome {
	_, _ = s.answer()
	return s.outcomes
}

// closuresStub stands in for the closures.
type closuresStub struct{ *stub }

func (s closuresStub) List(context.Context, string) ([]*lock.Closure, error) {
	_, err := s.answer()
	return nil, err
}

func (s closuresStub) Close(context.Context, closures.CloseRequest) (*lock.Closure, error) {
	_, err := s.answer()
	return nil, err
}

func (s closuresStub) Open(context.Context, closures.OpenRequest) error {
	_, err := s.answer()
	return err
}

func (s *stub) Used(string) quota.Limits { return quota.Limits{} }

func (s *stub) Revision() uint64 { return 1 }

func (s *stub) Started() time.Time { return time.Unix(1, 0) }

func (s *stub) answer() (*service.Grant, error) {
	if s.panic != nil {
		panic(s.panic)
	}
	return s.grant, s.err
}

func (s *stub) Acquire(_ context.Context, req service.AcquireRequest) (*service.Grant, error) {
	if s.acquired != nil {
		s.acquired(req)
	}
	return s.answer()
}

func (s *stub) Renew(context.Context, service.TokenRequest) (*service.Grant, error) {
	return s.answer()
}

func (s *stub) Entry(context.Context, service.TokenRequest, time.Duration) (*service.Grant, error) {
	return s.answer()
}

func (s *stub) Release(context.Context, service.TokenRequest) error {
	_, err := s.answer()
	return err
}

func (s *stub) Ready(context.Context) error {
	_, err := s.answer()
	return err
}

func (s *stub) Events(context.Context, service.EventsRequest) (*service.EventStream, error) {
	_, err := s.answer()
	return nil, err
}

func (s *stub) Lock(
	context.Context, lock.Ref, bool, func(func()) error,
) (*service.LockView, error) {
	_, err := s.answer()
	view := s.view
	return &view, err
}

func (s *stub) List(_ context.Context, req service.ListRequest) (*view.Page, error) {
	if err := req.Enter(); err != nil {
		return nil, err
	}
	_, err := s.answer()
	page := s.page
	return &page, err
}

func (s *stub) LockOrder(string, int) seen.OrderReport {
	_, _ = s.answer()
	return s.order
}

func (s *stub) Deadlocks(string, int) []view.Deadlock {
	_, _ = s.answer()
	return s.deadlocks
}

// over returns a client of a replica whose service is s.
func over(t *testing.T, s *stub) *client {
	t.Helper()
	h := shared.handlers(s)
	h.Closures = closuresStub{s}
	r := serve(nil, handlers.New(h))
	t.Cleanup(r.close)
	return newTenant(t).at(r)
}

// codes reads the codes out of package lock, so that a new one is noticed.
func codes(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../lock/errors.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok {
			if of, ok := v.Type.(*ast.Ident); ok && of.Name == "Code" {
				found = append(found, must(strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)))
			}
		}
		return true
	})
	return found
}

// TestCodes: every code that there is has its row, with the status of the
// contract.
func TestCodes(t *testing.T) {
	t.Parallel()
	all := codes(t)
	if len(all) != len(kinds()) {
		t.Errorf("package lock has %d codes, the contract %d", len(all), len(kinds()))
	}
	for _, code := range all {
		if slices.Contains(
			[]string{
				"internal", "lock_held", "lock_closed", "wait_timeout", "overloaded", "store_unavailable",
				"draining", "fence_floor_required",
			},
			code,
		) {
			continue // they have tests of their own
		}
		err := &lock.Error{
			Code: lock.Code(code), Detail: "the detail", Field: "field", Reason: "reason",
			Cause: errors.New("inside"),
		}
		var besides []string
		if kinds()[code].status == http.StatusTooManyRequests {
			err.RetryAfter = time.Second
		}
		if code == "overloaded" {
			besides = append(besides, "may_have_taken_effect")
		}
		c := over(t, &stub{err: fmt.Errorf("wrapped: %w", err)})
		c.post("/locks/orders:42", undescribed).
			wantProblem(problem{code, "the detail", "field", "reason"}, besides...)
	}
}

// undescribed is for codes that the route does not have.
func undescribed(r *request) { r.undescribed = true }

// TestRetryAfter: in whole seconds, never too early.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for after, want := range map[time.Duration]string{
		time.Millisecond: "1", time.Second: "1", 1001 * time.Millisecond: "2", time.Minute: "60",
	} {
		c := over(t, &stub{err: &lock.Error{Code: lock.StoreUnavailable, Detail: "x", RetryAfter: after}})
		if got := c.post("/locks/orders:42").header.Get("Retry-After"); got != want {
			t.Errorf("Retry-After = %q after %v, want %q", got, after, want)
		}
	}
}

// TestOverloadedHasNoEffect: the answer says so, when to retry, and the log has no error for it.
func TestOverloadedHasNoEffect(t *testing.T) {
	t.Parallel()
	full := &lock.Error{Code: lock.Overloaded, Detail: "too much at once", RetryAfter: 2 * time.Second}
	c := over(t, &stub{err: full})
	for _, a := range []*answer{
		c.post("/locks/orders:42"), c.post("/locksets", body(`{"locks":[{"name":"a"}]}`)),
		c.get("/locks/orders:42/entries/"+someID+"?wait_seconds=1", lockToken(someToken)),
		c.get("/locksets/"+someID+"?wait_seconds=1", lockToken(someToken)),
	} {
		a.wantProblem(problem{code: "overloaded", detail: "too much at once"}, "may_have_taken_effect")
		if a.fields()["may_have_taken_effect"] != false || a.header.Get("Retry-After") != "2" {
			t.Errorf("%v, want false and 2", a)
		}
		if line := shared.journal.request(t, a.header.Get("X-Request-Id")); line["level"] == "ERROR" ||
			line["code"] != "overloaded" {
			t.Errorf("%v is logged as %v", a, line)
		}
	}
}

// TestStoreUnavailable: the answer says whether the request may have taken effect.
func TestStoreUnavailable(t *testing.T) {
	t.Parallel()
	away := func(ambiguous bool) error {
		return &lock.Error{
			Code:       lock.StoreUnavailable,
			Detail:     "the store did not answer in time; " + "retry with the same Idempotency-Key",
			RetryAfter: time.Second, OutcomeUnknown: ambiguous, Cause: errors.New("etcdserver: inside"),
		}
	}
	late := "the request took too long; retry with the same Idempotency-Key"
	cases := map[string]struct {
		err       error
		detail    string
		ambiguous bool
	}{
		"Certain": {away(false), "the store did not answer in time; " +
			"retry with the same Idempotency-Key", false},
		"Ambiguous": {away(true), "the store did not answer in time; " +
			"retry with the same Idempotency-Key", true},
		"Deadline": {fmt.Errorf("wrapped: %w", context.DeadlineExceeded), late, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := over(t, &stub{err: tc.err})
			for _, r := range append(routes("orders:42", someID), route{"Ready", "GET", "/readyz"}) {
				a := c.do(r.method, r.path, lockToken(someToken))
				a.wantProblem(problem{code: "store_unavailable", detail: tc.detail}, "may_have_taken_effect")
				if got := a.fields()["may_have_taken_effect"]; got != tc.ambiguous {
					t.Errorf("%v: may_have_taken_effect = %v, want %v", a, got, tc.ambiguous)
				}
				line := shared.journal.request(t, a.header.Get("X-Request-Id"))
				if line["level"] != "ERROR" || line["code"] != "store_unavailable" ||
					line["error"] != tc.err.Error() {
					t.Errorf("%v is logged as %v", a, line)
				}
			}
		})
	}
}

// TestStoreUnavailableWithEntry: the answer has the entry that may stand.
func TestStoreUnavailableWithEntry(t *testing.T) {
	t.Parallel()
	now := time.Now()
	e := &lock.Entry{
		ID: someID, Tenant: "acme", Holder: "w", TTL: 30 * time.Second, EnqueuedAt: now, Number: 7,
		Claims: []lock.Claim{{Name: "orders:42", Mode: lock.Exclusive}},
	}
	grant := &service.Grant{Entry: e, Token: someToken, ExpiresAt: now}
	c := over(t, &stub{
		err: &lock.Error{Code: lock.StoreUnavailable, Detail: "x", RetryAfter: time.Second}, grant: grant,
	})
	for _, a := range []*answer{
		c.post("/locks/orders:42"),
		c.get("/locks/orders:42/entries/"+someID+"?wait_seconds=1", lockToken(someToken)),
	} {
		a.wantProblem(problem{code: "store_unavailable", detail: "x"}, "may_have_taken_effect", "entry")
		got := a.fields()["entry"].(map[string]any)
		if got["id"] != someID || got["token"] != someToken || got["state"] != "waiting" {
			t.Errorf("entry = %v", got)
		}
		if at := a.header.Get("Location"); at != "/locks/orders:42/entries/"+someID {
			t.Errorf("Location = %q", at)
		}
	}
}

// TestInternalErrorsShowNothing: a bug of ours shows nothing of the inside, which is in the log.
func TestInternalErrorsShowNothing(t *testing.T) {
	t.Parallel()
	inside := errors.New("inside: 10.0.0.7:2379")
	cases := map[string]struct {
		stub   *stub
		logged string
	}{
		"AnyError": {&stub{err: inside}, inside.Error()},
		"Internal": {
			&stub{err: &lock.Error{Code: lock.Internal, Detail: "inside", Cause: inside}},
			"internal: inside: inside: 10.0.0.7:2379",
		},
		"NewCode": {&stub{err: &lock.Error{Code: "new_code", Detail: "inside"}}, "new_code: inside"},
		"Canceled": {
			&stub{err: context.Canceled}, "context canceled",
		}, // of something else than the request
		"Panic":    {&stub{panic: "inside"}, "panic: inside"},
		"PanicErr": {&stub{panic: inside}, "panic: " + inside.Error()},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := over(t, tc.stub)
			for _, r := range append(routes("orders:42", someID), route{"Ready", "GET", "/readyz"}) {
				a := c.start(r.method, r.path, lockToken(someToken)).raw()
				a.wantInternal()
				line := shared.journal.request(t, a.header.Get("X-Request-Id"))
				if line["level"] != "ERROR" || line["error"] != tc.logged ||
					tc.stub.panic != nil && line["stack"] == nil {
					t.Errorf("%v is logged as %v, want the error %q", a, line, tc.logged)
				}
			}
		})
	}
}

func (a *answer) wantInternal() {
	a.t.Helper()
	want := map[string]any{
		"type": "/problems/internal", "title": "Internal error", "status": json.Number("500"),
		"code": "internal",
		"detail": "something went wrong in the server; " +
			"retry, and find the cause by the request id in its log",
		"request_id": a.header.Get("X-Request-Id"),
	}
	diff := cmp.Diff(want, a.fields())
	if a.status != 500 || diff != "" || a.header.Get("Content-Type") != "application/problem+json" {
		a.t.Errorf("%v (-want +got)\n%s", a, diff)
	}
	if a.method != "GET" || !strings.HasPrefix(a.asked, "GET /readyz") { // where it cannot happen
		for _, err := range a.violations {
			a.t.Errorf("%v: not as described: %v", a, err)
		}
	}
}

// TestAbortEndsTheConnection: a handler that gives up on purpose ends the connection.
func TestAbortEndsTheConnection(t *testing.T) {
	t.Parallel()
	p := over(t, &stub{panic: http.ErrAbortHandler}).start("POST", "/locks/orders:42")
	if <-p.done; p.err == nil {
		t.Errorf("%v, want no answer", p.answer)
	}
}

// TestGoneIsLogged: a request whose client disconnected has a log line.
func TestGoneIsLogged(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	c.acquire("orders:42")
	id := c.claims.Tenant + "-gone"
	gone := c.join("orders:42", header("X-Request-Id", id))
	gone.cut()
	line := shared.journal.request(t, id)
	if line["status"] != 499.0 || line["level"] != "INFO" || line["code"] != nil {
		t.Errorf("it is logged as %v, want 499", line)
	}
}
