package handlers_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/audit"
	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/handlers"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
)

const explanation = "its node was lost in the fire"

type revoked struct {
	ID      string   `json:"id"`
	Tenant  string   `json:"tenant"`
	Locks   []string `json:"locks"`
	Holder  string   `json:"holder"`
	Fence   uint64   `json:"fence"`
	Held    bool     `json:"held"`
	AuditID string   `json:"audit_id"`
}

type auditPage struct {
	Records    []auditRecord `json:"records"`
	NextCursor string        `json:"next_cursor"`
}

type auditRecord struct {
	ID     string  `json:"id"`
	At     instant `json:"at"`
	Tenant string  `json:"tenant"`
	Actor  struct {
		Subject string `json:"subject"`
		Tenant  string `json:"tenant"`
		Scope   string `json:"scope"`
		Address string `json:"address"`
		Peer    string `json:"peer"`
	} `json:"actor"`
	Action string `json:"action"`
	Object struct {
		Locks  []string `json:"locks"`
		Entry  string   `json:"entry"`
		Holder string   `json:"holder"`
		Fence  uint64   `json:"fence"`
		Held   bool     `json:"held"`
		Until  *instant `json:"until"`
	} `json:"object"`
	Reason    string `json:"reason"`
	Result    string `json:"result"`
	RequestID string `json:"request_id"`
	ServerID  string `json:"server_request_id"`
}

func seenAs(fence uint64) option {
	return body(fmt.Sprintf(`{"fence":%d,"reason":%q}`, fence, explanation))
}

func (c *client) revokePath(e entry) string {
	return "/admin/locks/" + c.claims.Tenant + "/" + e.Name + "/entries/" + e.ID + "/revoke"
}

func (c *client) audit(query string) auditPage {
	c.t.Helper()
	var page auditPage
	c.get("/admin/audit"+query).want(http.StatusOK, &page)
	return page
}

// TestRevokeEndsWhatTheOperatorSaw: an operator of the tenant ends what he saw, at another replica.
func TestRevokeEndsWhatTheOperatorSaw(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	operator := c.operator().named("ops").at(shared.other)
	stream := c.follow("/events?types=lock.revoked")
	held := c.acquire("orders:42", body(`{"holder":"w1","ttl_seconds":60}`))
	waits := c.join("orders:42", body(`{"holder":"w2","ttl_seconds":60,"wait_seconds":40}`))
	var done revoked
	operator.post(c.revokePath(held), seenAs(*held.Fence), header("X-Request-Id", "the-request")).
		want(http.StatusOK, &done)
	want := revoked{
		ID: held.ID, Tenant: c.claims.Tenant, Locks: []string{"orders:42"}, Holder: "w1",
		Fence: *held.Fence, Held: true, AuditID: done.AuditID,
	}
	if diff := cmp.Diff(want, done); diff != "" || len(done.AuditID) != 26 {
		t.Errorf("revoked (-want +got)\n%s", diff)
	}
	next := waits.wait().held(http.StatusCreated)
	c.put("/locks/orders:42/renew", lockToken(held.Token)).goneBecause("revoked")
	operator.post(c.revokePath(held), seenAs(*held.Fence)).goneBecause("revoked")
	operator.post(c.revokePath(next), seenAs(*held.Fence)).wantStatus(http.StatusConflict)
	if told := stream.wants("lock.revoked orders:42 revoked")[0].Data.Data.Revoked; told == nil ||
		told.By != "ops" || told.Reason != explanation {
		t.Errorf("the event says %+v", told)
	}
	page := operator.audit("")
	if len(page.Records) != 1 {
		t.Fatalf("on record: %+v", page)
	}
	r := page.Records[0]
	if r.ID != done.AuditID || r.Actor.Subject != "ops" || r.Actor.Scope != "tenant-admin" ||
		r.Actor.Address == "" || r.Actor.Peer == "" || r.RequestID != "the-request" ||
		r.Action != "entry.revoke" || r.Object.Entry != held.ID || r.Object.Fence != *held.Fence ||
		r.Reason != explanation || r.Result != "revoked" || time.Since(r.At.Time) > time.Minute {
		t.Errorf("on record: %+v", r)
	}
	if line := shared.journal.request(t, "the-request"); len(r.ServerID) != 16 ||
		line["server_request_id"] != r.ServerID {
		t.Errorf("the server's own id is %q, and in the log %v", r.ServerID, line["server_request_id"])
	}
}

// TestRevokesSetsAndHolders: a set as a whole, and several entries of one holder.
func TestRevokesSetsAndHolders(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	operator := c.admin()
	set := c.post(
		"/locksets", body(`{"locks":[{"name":"a"},{"name":"b"}],"holder":"w1","ttl_seconds":60}`),
	)
	var s struct {
		ID    string `json:"id"`
		Locks []struct {
			Fence uint64 `json:"fence"`
		} `json:"locks"`
	}
	if err := json.Unmarshal(set.body, &s); err != nil || set.status != http.StatusCreated {
		t.Fatal(set)
	}
	path := "/admin/locksets/" + c.claims.Tenant + "/" + s.ID + "/revoke"
	operator.post(
		"/admin/locks/"+c.claims.Tenant+"/a/entries/"+s.ID+"/revoke", seenAs(s.Locks[0].Fence),
	).wantStatus(http.StatusNotFound)
	var done revoked
	operator.post(path, seenAs(s.Locks[0].Fence)).want(http.StatusOK, &done)
	if !cmp.Equal(done.Locks, []string{"a", "b"}) {
		t.Errorf("%+v", done)
	}
	operator.post(path, seenAs(s.Locks[0].Fence)).goneBecause("revoked")

	one, two := c.acquire("a", body(`{"holder":"w1","ttl_seconds":60}`)), c.acquire(
		"b", body(`{"holder":"w2","ttl_seconds":60}`),
	)
	operator.post("/admin/locksets/"+c.claims.Tenant+"/"+one.ID+"/revoke", seenAs(*one.Fence)).
		wantStatus(http.StatusNotFound)
	named := func(entries string) option {
		return body(fmt.Sprintf(
			`{"tenant":%q,"holder":"w1","entries":[%s],"reason":%q}`, c.claims.Tenant, entries, explanation,
		))
	}
	seen := func(e entry, fence uint64) string {
		return fmt.Sprintf(`{"id":%q,"fence":%d}`, e.ID, fence)
	}
	var list struct {
		Entries []struct {
			ID, Result, Reason string
			Fence              uint64
			AuditID            string `json:"audit_id"`
		} `json:"entries"`
	}
	all := []string{
		seen(one, *one.Fence+1), seen(one, *one.Fence), seen(two, *two.Fence), seen(one, *one.Fence),
	}
	operator.post("/admin/holders/revoke", named(strings.Join(all, ","))).want(http.StatusOK, &list)
	var results []string
	for _, e := range list.Entries {
		results = append(results, e.Result+e.Reason)
	}
	if diff := cmp.Diff(
		[]string{"changed", "revoked", "changed", "lock_lostrevoked"}, results,
	); diff != "" {
		t.Errorf("results (-want +got)\n%s", diff)
	}
	for text, wrong := range map[string]problem{
		"":                                invalid("entries", "must be 1 to 100 entries"),
		strings.Repeat(`{},`, 100) + "{}": invalid("entries", "must be 1 to 100 entries"),
		`{"id":"x"}`:                      invalid("entries", "must have an id and a fence each"),
	} {
		operator.post("/admin/holders/revoke", named(text), loose).wantProblem(wrong)
	}
}

// TestTenantAdminReachesNoOtherTenant: he has nothing to do with others, sees no more of them than
// that, and cannot fill anything.
func TestTenantAdminReachesNoOtherTenant(t *testing.T) {
	t.Parallel()
	victim, c := newTenant(t), newTenant(t)
	theirs, ours := victim.acquire("a"), c.acquire("a")
	hostile := c.operator()
	hostile.post(victim.revokePath(theirs), seenAs(*theirs.Fence)).wantProblem(ownTenantOnly())
	hostile.post(
		"/admin/locksets/"+victim.claims.Tenant+"/"+theirs.ID+"/revoke", seenAs(*theirs.Fence),
	).wantProblem(ownTenantOnly())
	hostile.post("/admin/holders/revoke", body(fmt.Sprintf(
		`{"tenant":%q,"holder":"w","entries":[{"id":%q,"fence":1}],"reason":%q}`, victim.claims.Tenant,
		someID, explanation,
	))).wantProblem(ownTenantOnly())
	theirs.Name = "a"
	hostile.post(c.revokePath(theirs), seenAs(*theirs.Fence)).goneBecause("unknown")
	// by their id, as one's own
	victim.admin().post(victim.revokePath(theirs), seenAs(*theirs.Fence)).wantStatus(http.StatusOK)
	hostile.post(c.revokePath(theirs), seenAs(*theirs.Fence)).goneBecause("unknown")
	hostile.get("/admin/audit?tenant=" + victim.claims.Tenant).wantProblem(ownTenantOnly())
	if page := hostile.audit(""); len(page.Records) != 0 {
		t.Errorf("what others have on record is shown: %+v", page)
	}
	hostile.within("b").post(c.revokePath(ours), seenAs(*ours.Fence)).wantStatus(http.StatusForbidden)
	for _, wrong := range []string{
		"too short", strings.Repeat("ä", 501), "its node\u2028was lost", "its node was \u202elost",
	} {
		text, err := json.Marshal(map[string]any{"fence": *ours.Fence, "reason": wrong})
		if err != nil {
			t.Fatal(err)
		}
		hostile.post(c.revokePath(ours), body(string(text)), loose).wantStatus(http.StatusBadRequest)
	}
	for _, text := range []string{
		`{}`, `{"reason":"` + explanation + `"}`, `{"fence":0,"reason":"` + explanation + `"}`,
		`{"fence":1.5,"reason":"` + explanation + `"}`, `{"fence":"7","reason":"` + explanation + `"}`,
	} {
		hostile.post(c.revokePath(ours), body(text), loose).wantStatus(http.StatusBadRequest)
	}
	victim.acquire("a")
	c.release(ours)
}

// TestAuditIsReadInPagesAndAsLines: in pages, since an instant, by names, and as lines.
func TestAuditIsReadInPagesAndAsLines(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	operator := c.operator()
	var ids []string
	for i := range 5 {
		e := c.acquire(fmt.Sprint([]string{"orders:", "jobs:"}[i%2], i))
		by := []*client{
			operator,
			c.as(
				func(cl *auth.Claims) { cl.Tenant, cl.Scopes = "home-of-"+cl.Tenant, []auth.Scope{auth.Admin} },
			),
		}[i/4]
		var done revoked
		by.post(c.revokePath(e), seenAs(*e.Fence)).want(http.StatusOK, &done)
		ids = append([]string{done.AuditID}, ids...)
	}
	var got []string
	for cursor := ""; len(got) < 5; {
		page := operator.audit("?limit=2" + cursor)
		for _, r := range page.Records {
			got = append(got, r.ID)
			if foreign := r.Actor.Tenant != c.claims.Tenant; foreign != (r.Actor.Address == "") {
				t.Errorf("the address is told: %+v", r.Actor)
			}
		}
		if cursor = "&cursor=" + page.NextCursor; page.NextCursor == "" {
			break
		}
	}
	if len(got) != 5 || !sameSet(ids, got) {
		t.Errorf("on record: %v, want %v", got, ids)
	}
	if page := operator.within("jobs:*").audit(""); len(page.Records) != 2 {
		t.Errorf("of some names: %+v", page)
	}
	if page := operator.audit("?since=2999-01-02T15:04:05Z"); len(page.Records) != 0 {
		t.Errorf("of the future: %+v", page)
	}
	lines := operator.get("/admin/audit", header("Accept", "application/x-ndjson"))
	if lines.status != http.StatusOK || lines.header.Get("Content-Type") != "application/x-ndjson" {
		t.Fatal(lines)
	}
	n := 0
	for scan := bufio.NewScanner(bytes.NewReader(lines.body)); scan.Scan(); n++ {
		var r auditRecord
		if err := json.Unmarshal(scan.Bytes(), &r); err != nil || r.Tenant != c.claims.Tenant {
			t.Errorf("%v in %s", err, scan.Bytes())
		}
	}
	if n != 5 {
		t.Errorf("%d lines, want 5", n)
	}
	operator.get("/admin/audit?since=yesterday", loose).
		wantProblem(invalid("since", "must be an instant as 2026-01-02T15:04:05Z"))
	operator.get("/admin/audit?cursor=x", loose).wantStatus(http.StatusBadRequest)
	operator.get("/admin/audit?limit=0", loose).wantStatus(http.StatusBadRequest)
}

// TestAuditIsFiltered: by operator, action and lock, which a record can name by a pattern.
func TestAuditIsFiltered(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	day, night := c.operator().named("Day@example.org"), c.operator().named("night@example.org")
	for name, by := range map[string]*client{"orders:1": day, "orders:2": night, "jobs:1": day} {
		e := c.acquire(name)
		by.post(c.revokePath(e), seenAs(*e.Fence)).wantStatus(http.StatusOK)
	}
	night.closes("orders:*", time.Hour)
	for query, want := range map[string][]string{
		"":                                   {"orders:1", "orders:2", "jobs:1", "orders:*"},
		"operator=day":                       {"orders:1", "jobs:1"},
		"operator=NIGHT@":                    {"orders:2", "orders:*"},
		"operator=nobody":                    {},
		"action=locks.close":                 {"orders:*"},
		"lock=orders:1":                      {"orders:1", "orders:*"},
		"lock=orders":                        {},
		"lock=orders:2&action=entry.revoke":  {"orders:2"},
		"lock=orders:1&operator=night":       {"orders:*"},
		"operator=day&limit=1&lock=orders:1": {"orders:1"},
	} {
		got := []string{}
		for _, r := range day.audit("?" + query).Records {
			got = append(got, r.Object.Locks...)
		}
		if !sameSet(got, want) {
			t.Errorf("%q finds %v, want %v", query, got, want)
		}
	}
	for _, wrong := range []string{
		"action=revoke", "lock=orders:*", "operator=" + strings.Repeat("x", 201),
	} {
		day.get("/admin/audit?"+wrong, loose).wantStatus(http.StatusBadRequest)
	}
}

func sameSet(a, b []string) bool {
	in := map[string]bool{}
	for _, x := range a {
		in[x] = true
	}
	for _, x := range b {
		if !in[x] {
			return false
		}
		delete(in, x)
	}
	return len(in) == 0
}

// TestRevokedInPartSaysWhatMayHaveTakenEffect: an unknown outcome is none that failed, and what was
// not tried is named.
func TestRevokedInPartSaysWhatMayHaveTakenEffect(t *testing.T) {
	t.Parallel()
	some := body(
		`{"tenant":"acme","holder":"w","entries":[{"id":"` + someID + `","fence":7},{"id":"` + someID +
			`","fence":8}],"reason":"` + explanation + `"}`,
	)
	sets := newTenant(t).operator()
	sets.post(
		"/admin/locksets/"+sets.claims.Tenant+"/"+someID+"/revoke",
		body(`{"fence":7,"reason":"too short"}`), loose,
	).wantStatus(http.StatusBadRequest)
	away := &stub{
		outcomes: []service.RevokeOutcome{
			{
				Err: &lock.Error{
					Code: lock.StoreUnavailable, Detail: "x", RetryAfter: time.Second, OutcomeUnknown: true,
				},
			},
		},
	}
	a := over(t, away).admin().post("/admin/holders/revoke", some)
	if a.status != http.StatusOK ||
		!strings.Contains(string(a.body), `"may_have_taken_effect":true`) ||
		!strings.Contains(string(a.body), `"not_tried"`) {
		t.Error(a)
	}
}

// goneBecause checks a 410.
func (a *answer) goneBecause(reason string) {
	a.t.Helper()
	if a.wantStatus(http.StatusGone); a.fields()["reason"] != reason {
		a.t.Errorf("%v, want the reason %s", a, reason)
	}
}

// TestExportThatFailsIsCut: no client takes the beginning of an export for all of it.
func TestExportThatFailsIsCut(t *testing.T) {
	t.Parallel()
	endless := trail{page: &audit.Page{Records: []*audit.Record{}, Next: someID + ".acme"}}
	c, _ := overRouter(t, &stub{}, func(h *handlers.Config) { h.Audit = endless })
	p := c.admin().start("GET", "/admin/audit", header("Accept", "application/x-ndjson"))
	if <-p.done; p.err == nil {
		t.Errorf("%v, want the connection cut", p.answer)
	}
}

// trail stands in for the audit.
type trail struct {
	err   error
	panic any
	page  *audit.Page
}

func (s trail) Page(_ context.Context, q audit.Query) (*audit.Page, error) {
	if s.panic != nil {
		panic(s.panic)
	}
	if s.page != nil && q.Before != "" {
		return nil, &lock.Error{Code: lock.StoreUnavailable, Detail: "away", RetryAfter: time.Second}
	}
	return s.page, s.err
}
