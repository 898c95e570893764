package handlers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/handlers"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/webhook"
	"github.com/fencepost/fencepost/webhook/outbox"
)

// stubDeliveries stands in for the use cases: it answers with its fields and notes the calls.
type stubDeliveries struct {
	page  outbox.Page
	err   func() error
	asked []string
}

func (s *stubDeliveries) note(words ...any) error {
	s.asked = append(s.asked, strings.TrimSpace(fmt.Sprintln(words...)))
	if s.err == nil {
		return nil
	}
	return s.err()
}

func (s *stubDeliveries) List(
	_ context.Context,
	tenant, id, cursor string,
	limit int,
) (*outbox.Page, error) {
	err := s.note("list", tenant, id, cursor, limit)
	page := s.page
	return &page, err
}

// Health is not noted: each answer about a webhook has it.
func (s *stubDeliveries) Health(context.Context, string, string) (outbox.Health, error) {
	return s.page.Health, nil
}

func (s *stubDeliveries) Pending(_ context.Context, tenant, id string) (outbox.Pending, error) {
	return outbox.Pending{
		Deliveries: len(s.page.Deliveries), More: s.page.Next != "",
	}, s.note("owed", tenant, id)
}

func idOf(o outbox.Order) string {
	if o.Of == nil {
		return outbox.Callbacks
	}
	return o.Of.ID
}

func (s *stubDeliveries) Test(_ context.Context, o outbox.Order) (string, error) {
	return "test-1", s.note("test", o.Tenant, idOf(o))
}

func (s *stubDeliveries) Redeliver(_ context.Context, o outbox.Order, delivery string) error {
	return s.note("redeliver", o.Tenant, idOf(o), delivery, o.By.Scope)
}

// withDeliveries returns a subscriber of a replica with these deliveries.
func withDeliveries(t *testing.T, s *stubDeliveries) *client {
	t.Helper()
	config := shared.handlers(shared.main.service)
	config.Deliveries, config.Console = s, shared.main.console
	r := serve(nil, handlers.New(config))
	t.Cleanup(r.close)
	return subscriber(t).at(r)
}

// deliveryRoutes are those of what a webhook is sent, with a body that each takes.
func deliveryRoutes(id string) map[route]string {
	return map[route]string{
		{"List", "GET", "/webhooks/" + id + "/deliveries"}:                    "",
		{"Again", "POST", "/webhooks/" + id + "/deliveries/1042-1/redeliver"}: "",
		{"Test", "POST", "/webhooks/" + id + "/test"}:                         "",
	}
}

func withText(text string) option {
	if text == "" {
		return loose
	}
	return body(text)
}

// TestDisabledWebhookIsShownUntilResumed: every answer about a webhook shows that its receiver
// fails, until a client resumes it.
func TestDisabledWebhookIsShownUntilResumed(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 15, 4, 5, 250e6, time.UTC)
	c := withDeliveries(t, &stubDeliveries{
		page: outbox.Page{Health: outbox.Health{FailingSince: at, Disabled: webhook.DisabledGone}},
	})
	path := "/webhooks/" + c.subscribe(`{`+receiver+`}`).ID
	for _, path := range []string{path, path + "/deliveries"} {
		if got := c.get(path).fields(); got["disabled"] != "gone" ||
			got["failing_since"] != "2026-01-02T15:04:05.250Z" {
			t.Errorf("GET %s = %v", path, got)
		}
	}
	listed := func() map[string]any {
		return c.get("/webhooks").fields()["webhooks"].([]any)[0].(map[string]any)
	}
	if got := listed(); got["disabled"] != "gone" ||
		got["failing_since"] != "2026-01-02T15:04:05.250Z" {
		t.Errorf("listed as %v", got)
	}
	if got := c.do("PATCH", path, body(`{"paused":false}`)).fields(); got["disabled"] != nil ||
		got["failing_since"] != nil {
		t.Errorf("set going again it is %v", got)
	}
	if got := listed(); got["disabled"] != nil || got["failing_since"] != nil {
		t.Errorf("set going again it is listed as %v", got)
	}
	if got := c.get(path + "/deliveries").fields(); got["disabled"] != nil {
		t.Errorf("its deliveries are %v", got)
	}
}

// TestNothingIsDueWhilePaused: a paused or disabled webhook shows no time of a next attempt, on
// any page.
func TestNothingIsDueWhilePaused(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 15, 4, 5, 250e6, time.UTC)
	s := &stubDeliveries{
		page: outbox.Page{
			Deliveries: []outbox.Delivery{{ID: "1042-1", State: webhook.StatePending, Made: at, Due: at}},
		},
	}
	c := withDeliveries(t, s)
	path := "/webhooks/" + c.subscribe(`{`+receiver+`}`).ID
	check := func(when string, next any) {
		t.Helper()
		for _, page := range []string{"", "?cursor=" + segment("deliveries|acme/x:1")} {
			got := c.get(path + "/deliveries" + page).fields()["deliveries"].([]any)[0].(map[string]any)
			if got["next_attempt_at"] != next || got["state"] != "pending" {
				t.Errorf("%s, page %q: %v", when, page, got)
			}
		}
	}
	const due = "2026-01-02T15:04:05.250Z"
	check("while it sends", due)
	c.do("PATCH", path, body(`{"paused":true}`))
	check("while it is paused", nil)
	c.do("PATCH", path, body(`{"paused":false}`))
	check("once it goes on", due)
	s.page.Health = outbox.Health{Enabled: 0, Disabled: webhook.DisabledGone}
	path = "/webhooks/" + c.subscribe(`{`+receiver+`}`).ID
	check("while it is disabled", nil)
}

// TestDeliveries: what is known of a delivery is shown, but no name that the bearer token
// may not use.
func TestDeliveries(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 15, 4, 5, 250e6, time.UTC)
	s := &stubDeliveries{page: outbox.Page{
		Next:   "acme/x:1",
		Health: outbox.Health{FailingSince: at, Failures: 12, Disabled: webhook.DisabledFailing},
		Deliveries: []outbox.Delivery{
			{
				ID: "1042-1", Type: "lock.acquired", Lock: "orders:42", State: webhook.StatePending, Made: at,
				Due: at.Add(time.Minute), Tried: 2,
				Attempts: []outbox.Attempt{
					{
						At: at, Outcome: webhook.Failed, Status: 500, Err: "the receiver answered 500", TookMS: 250,
						SkewS: -3600,
					},
					{At: at, Outcome: webhook.Failed, Err: "no answer", TookMS: 15_000},
				},
			},
			{
				ID: "1041-1", Type: "lock.released", Lock: "stock:7", State: webhook.StateDelivered, Made: at,
				Tried: 1,
			},
		},
	}}
	c := withDeliveries(t, s).within("orders:*")
	id := c.subscribe(`{` + receiver + `,"locks":"orders:*"}`).ID
	const instant = "2026-01-02T15:04:05.250Z"
	want := map[string]any{
		"next_cursor": segment("deliveries|acme/x:1"), "failing_since": instant, "disabled": "failing",
		"deliveries": []any{
			map[string]any{
				"id": "1042-1", "type": "lock.acquired", "lock": "orders:42", "state": "pending",
				"created_at": instant,
				"tried":      json.Number("2"), "attempts": []any{
					map[string]any{
						"at": instant, "outcome": "failed", "status": json.Number("500"),
						"error":        "the receiver answered 500",
						"took_seconds": json.Number("0.25"), "clock_skew_seconds": json.Number("-3600"),
					},
					map[string]any{
						"at":           instant,
						"outcome":      "failed",
						"error":        "no answer",
						"took_seconds": json.Number("15"),
					},
				},
			},
			map[string]any{
				"id": "1041-1", "type": "lock.released", "state": "delivered", "created_at": instant,
				"tried": json.Number("1"), "attempts": []any{},
			},
		},
	}
	path := "/webhooks/" + id + "/deliveries"
	if diff := cmp.Diff(want, c.get(path).fields()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s.page = outbox.Page{}
	if diff := cmp.Diff(
		map[string]any{"deliveries": []any{}},
		c.get(path+"?limit=7&cursor="+segment("deliveries|acme/x:1")).fields(),
	); diff != "" {
		t.Errorf("without any (-want +got):\n%s", diff)
	}
	asked := []string{
		fmt.Sprint("list ", c.claims.Tenant, " ", id, "  100"),
		fmt.Sprint("list ", c.claims.Tenant, " ", id, " acme/x:1 7"),
	}
	if diff := cmp.Diff(asked, s.asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	for query, want := range map[string]problem{
		"cursor=x": invalid("cursor", "must be the next_cursor of a page "+
			"of this list; leave it out to begin again"),
		"cursor=" + segment("deliveries|"): invalid("cursor", "must be the next_cursor of a page "+
			"of this list; leave it out to begin again"),
		"cursor=" + segment("deliveries|\x00"): invalid("cursor", "must be the next_cursor of a page "+
			"of this list; leave it out to begin again"),
		"limit=0":                    invalid("limit", "must be a whole number from 1 to 1000"),
		"since=2026-01-02T15:04:05Z": invalid("since", notAParameter),
	} {
		c.get(path+"?"+query, loose).wantProblem(want)
	}
}

// TestRedeliverReachesTheOwnWebhook: what is asked for is passed on, for the tenant's own webhook.
func TestRedeliverReachesTheOwnWebhook(t *testing.T) {
	t.Parallel()
	s := &stubDeliveries{}
	c := withDeliveries(t, s)
	id := c.subscribe(`{` + receiver + `}`).ID
	path := "/webhooks/" + id
	a := c.post(path + "/test")
	if a.status != http.StatusAccepted || a.fields()["delivery"] != "test-1" ||
		a.header.Get("Location") != path+"/deliveries" {
		t.Errorf("%v at %q", a, a.header.Get("Location"))
	}
	c.post(path + "/deliveries/1042-1/redeliver").wantNoContent()
	c.post("/webhooks/callbacks/deliveries/1042-1/redeliver").wantNoContent()
	c.get("/webhooks/callbacks/deliveries").fields()
	want := []string{
		"test % " + id, "redeliver % " + id + " 1042-1 webhooks:write",
		"redeliver % callbacks 1042-1 webhooks:write", "list % callbacks  100",
	}
	for i := range want {
		want[i] = strings.Replace(want[i], "%", c.claims.Tenant, 1)
	}
	if diff := cmp.Diff(want, s.asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
}

// TestGapsAreDescribed: what tells of a gap is listed and asked for again by the id of the gap, in
// the form that is published.
func TestGapsAreDescribed(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 15, 4, 5, 250e6, time.UTC)
	last := lock.EventID{Number: lock.MaxNumber, Index: math.MaxUint32}.String()
	for _, gap := range []string{"1039-2_1042-1", last + "_" + last} {
		s := &stubDeliveries{
			page: outbox.Page{
				Deliveries: []outbox.Delivery{
					{ID: gap, Type: "events.missed", State: webhook.StateDelivered, Made: at},
				},
			},
		}
		c := withDeliveries(t, s)
		path := "/webhooks/" + c.subscribe(`{`+receiver+`}`).ID
		if got := c.get(
			path + "/deliveries",
		).fields()["deliveries"].([]any)[0].(map[string]any)["id"]; got != gap {
			t.Errorf("%v is listed for %s", got, gap)
		}
		c.post(path + "/deliveries/" + gap + "/redeliver").wantNoContent()
	}
}

// TestDeliveriesOfOthers: a caller without rights to a webhook reaches none of its deliveries.
func TestDeliveriesOfOthers(t *testing.T) {
	t.Parallel()
	s := &stubDeliveries{}
	owner := withDeliveries(t, s)
	id := owner.subscribe(`{` + receiver + `}`).ID
	other := subscriber(t).at(owner.replica)
	limited := owner.within("orders:*")
	unscoped := owner.as(
		func(cl *auth.Claims) { cl.Scopes = []auth.Scope{auth.LocksRead, auth.LocksWrite, auth.Admin} },
	)
	for r, text := range deliveryRoutes(id) {
		other.do(r.method, r.path, withText(text)).
			wantProblem(problem{code: "not_found", detail: "there is no webhook with this id; " +
				"GET /webhooks lists them"})
		limited.do(r.method, r.path, withText(text)).wantStatus(http.StatusForbidden)
		unscoped.do(r.method, r.path, withText(text)).wantProblem(lacks("webhooks:write"))
	}
	callbacks := problem{
		code: "forbidden",
		detail: "callbacks are for all locks, and the caller is limited to some; " +
			"use a credential without that limit",
	}
	limited.get("/webhooks/callbacks/deliveries").wantProblem(callbacks)
	limited.post("/webhooks/callbacks/deliveries/1042-1/redeliver").wantProblem(callbacks)
	if len(s.asked) > 0 {
		t.Errorf("asked %v", s.asked)
	}
}

// TestDeliverTooLate: the notice of a grant whose lease is over is never sent again.
func TestDeliverTooLate(t *testing.T) {
	t.Parallel()
	const detail = "the lease of that grant is over"
	c := withDeliveries(
		t, &stubDeliveries{err: func() error { return lock.Errorf(lock.Lost, detail) }},
	)
	over := problem{code: "lock_lost", detail: detail}
	c.post("/webhooks/callbacks/deliveries/1042-0/redeliver").wantProblem(over)
	c.operator().post("/admin/webhooks/" + c.claims.Tenant + "/callbacks/deliveries/1042-0/redeliver").
		wantProblem(over)
}
