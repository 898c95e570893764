package handlers_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/handlers"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/quota"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/test/poll"
	"github.com/fencepost/fencepost/webhook/subscription"
)

func (c *client) quotaPath() string { return "/admin/tenants/" + c.claims.Tenant + "/quota" }

// limits sets the client's tenant's quota, and waits until the replicas of these tests heed it.
func (c *client) limits(text string) api.Quota {
	c.t.Helper()
	var out api.Quota
	c.admin().put(c.quotaPath(), body(text)).want(http.StatusOK, &out)
	poll.Within(c.t, 20*time.Second, "it holds", func() bool {
		return quotaHolds(shared.quotas.Of(c.claims.Tenant), out.Overrides)
	})
	return out
}

// quotaHolds reports whether limits are those that were set.
func quotaHolds(l *quota.Limits, set *api.QuotaOverrides) bool {
	return (set.HeldLocks == nil || l[quota.HeldLocks] == int(*set.HeldLocks)) &&
		(set.Requests == nil || l[quota.Requests] == int(*set.Requests)) &&
		(set.Webhooks == nil || l[quota.Webhooks] == int(*set.Webhooks)) &&
		(set.Renewals == nil || l[quota.Renewals] == int(*set.Renewals)) &&
		(set.Releases == nil || l[quota.Releases] == int(*set.Releases)) &&
		(set.EventStreams == nil || l[quota.EventStreams] == int(*set.EventStreams))
}

// exceeds checks a refusal for a quota.
func (a *answer) exceeds(code, name string, limit, used int) {
	a.t.Helper()
	f := a.fields()
	if a.status != http.StatusTooManyRequests || f["code"] != code || f["quota"] != name ||
		fmt.Sprintf("%v of %v", f["used"], f["limit"]) != fmt.Sprintf("%d of %d", used, limit) ||
		a.header.Get("Retry-After") == "" {
		a.t.Errorf("%v, want 429 %s, %s with %d of %d", a, code, name, used, limit)
	}
}

// TestQuotaBindsAllReplicas: a limit that an operator sets binds all replicas within a second, is
// shown with the use, and is in the audit; after a reset the defaults hold again.
func TestQuotaBindsAllReplicas(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	book := quota.New(quota.Config{Records: shared.records}) // of another replica
	stop := runs(book.Run)
	t.Cleanup(stop)
	other := newReplica(t, func(cfg *service.Config) { cfg.Limits = book.Of })
	var before api.Quota
	c.admin().get(c.quotaPath()).want(http.StatusOK, &before)
	if diff := cmp.Diff(before.Defaults, before.Limits); diff != "" || before.Version != 0 ||
		before.Overrides != nil || before.Limits.HeldLocks != quota.Standard()[quota.HeldLocks] {
		t.Errorf("before it is %+v", before)
	}
	e := c.acquire("a", body(`{"metadata":{"k":"1234"}}`))
	c.acquire("b")
	began := time.Now()
	made := c.limits(`{"held_locks":2,"reason":"a <migration>"}`)
	for book.Of(c.claims.Tenant)[quota.HeldLocks] != 2 {
		if <-time.After(5 * time.Millisecond); time.Since(began) > 20*time.Second {
			t.Fatal("it does not hold at the other replica")
		}
	}
	t.Logf("it holds at the other replica after %v", time.Since(began))
	if made.Limits.HeldLocks != 2 || made.Limits.Waiting != before.Limits.Waiting ||
		*made.Overrides.HeldLocks != 2 || made.Overrides.Waiting != nil ||
		made.ChangedBy != c.admin().claims.Subject || made.Reason != "a <migration>" ||
		made.ChangedAt == nil || made.Damaged {
		t.Errorf("made %+v", made)
	}
	poll.Until(t, "what is used is told", func() bool {
		var now api.Quota
		c.operator().get(c.quotaPath()).want(http.StatusOK, &now)
		return now.Used.HeldLocks == 2 && now.Used.Places == 2 && now.Used.MetadataBytes == 5 &&
			now.Used.Requests >= 0 && now.Version == made.Version
	})
	for _, at := range []*client{c, c.at(other)} {
		poll.Until(t, "more is refused", func() bool {
			a := at.post("/locks/c", body(`{}`))
			if a.status != http.StatusTooManyRequests {
				t.Errorf("%v", a)
			}
			return fmt.Sprint(a.fields()["used"]) == "2"
		})
		at.post("/locks/c", body(`{}`)).exceeds("quota_exceeded", "held_locks", 2, 2)
		at.post("/locksets", body(`{"locks":[{"name":"c"}]}`)).
			exceeds("quota_exceeded", "held_locks", 2, 2)
		at.put("/locks/a/renew", lockToken(e.Token)).wantStatus(http.StatusOK)
	}
	var page api.AdminTenantPage
	poll.Until(t, "it is in the list", func() bool {
		page = api.AdminTenantPage{}
		c.operator().get("/admin/tenants").want(http.StatusOK, &page)
		return len(page.Tenants) == 1 && page.Tenants[0].Quota.Limits.HeldLocks == 2 &&
			page.Tenants[0].Quota.Used.HeldLocks == 2
	})
	c.admin().delete(c.quotaPath() + because).wantNoContent()
	c.admin().delete(c.quotaPath()).wantNoContent()
	poll.Within(
		t, 20*time.Second, "the defaults hold",
		func() bool { return *shared.quotas.Of(c.claims.Tenant) == *quota.Standard() },
	)
	c.acquire("c")
	var log api.AuditPage
	c.operator().get("/admin/audit").want(http.StatusOK, &log)
	if len(log.Records) != 2 || log.Records[0].Action != "quota.reset" ||
		log.Records[1].Action != "quota.set" || *log.Records[1].Object.Quota.HeldLocks != 2 ||
		log.Records[1].Reason != "a <migration>" || log.Records[0].Reason != "it is <needed>" {
		t.Errorf("on record is %+v", log.Records)
	}
}

// TestRatesOfRequests: acquires over the rate are refused before their bodies are read, and keep
// no client from renewing and releasing. Each rate is its own.
func TestRatesOfRequests(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	e, next, last := c.acquire("a"), c.acquire("b"), c.acquire("c")
	var set api.HeldSet
	c.post("/locksets", body(`{"locks":[{"name":"d"},{"name":"e"}]}`)).want(http.StatusCreated, &set)
	c.limits(`{"requests_per_second":0,"renewals_per_second":1000000}`)
	c.post("/locks/c", body(`{}`)).exceeds("rate_limited", "requests_per_second", 0, 0)
	c.post("/locks/c", body(`{"wrong`), loose).exceeds("rate_limited", "requests_per_second", 0, 0)
	c.get("/locks/a").exceeds("rate_limited", "requests_per_second", 0, 0)
	c.get("/events").exceeds("rate_limited", "requests_per_second", 0, 0)
	for range 20 {
		c.put("/locks/a/renew", lockToken(e.Token)).wantStatus(http.StatusOK)
	}
	c.get("/locks/a/entries/"+e.ID, lockToken(e.Token)).wantStatus(http.StatusOK)
	c.release(e)
	c.operator().get("/admin/locks").exceeds("rate_limited", "requests_per_second", 0, 0)
	newTenant(t).acquire("a")
	c.limits(`{"renewals_per_second":0,"requests_per_second":5}`)
	c.put("/locks/b/renew", lockToken(next.Token)).exceeds("rate_limited", "renewals_per_second", 0, 0)
	c.put("/locksets/"+set.ID+"/renew", lockToken(set.Token)).
		exceeds("rate_limited", "renewals_per_second", 0, 0)
	c.release(next)
	c.limits(`{"renewals_per_second":1,"releases_per_second":0,"requests_per_second":5}`)
	c.delete("/locks/c", lockToken(last.Token)).exceeds("rate_limited", "releases_per_second", 0, 0)
	c.delete("/locksets/"+set.ID, lockToken(set.Token)).
		exceeds("rate_limited", "releases_per_second", 0, 0)
	poll.Until(
		t, "it begins anew",
		func() bool { return c.post("/locks/f", body(`{}`)).status != http.StatusTooManyRequests },
	)
}

// TestMadeUpTokensCountAsRequests: made-up tokens, and those of another lock, count against the
// tenant's requests, and keep no client from renewing and releasing.
func TestMadeUpTokensCountAsRequests(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	e, other := c.acquire("a"), newTenant(t).acquire("a")
	c.limits(`{"requests_per_second":1000000,"renewals_per_second":0,"releases_per_second":0}`)
	forged := []string{someToken, e.Token[:len(e.Token)-4] + "AAAA", other.Token, "x"}
	send := func(want func(*answer)) {
		for _, token := range forged {
			want(c.put("/locks/a/renew", lockToken(token), loose))
			want(c.delete("/locks/a", lockToken(token), loose))
			want(c.get("/locks/a/entries/"+e.ID, lockToken(token), loose))
			want(c.put("/locksets/"+e.ID+"/renew", lockToken(token), loose))
			want(c.delete("/locksets/"+e.ID, lockToken(token), loose))
			want(c.get("/locksets/"+e.ID, lockToken(token), loose))
		}
	}
	send(func(a *answer) { a.wantStatus(http.StatusForbidden) })
	c.put("/locks/b/renew", lockToken(e.Token)).wantStatus(http.StatusForbidden)
	c.put("/locks/a/renew", lockToken(e.Token)).exceeds("rate_limited", "renewals_per_second", 0, 0)
	c.limits(`{"requests_per_second":0,"renewals_per_second":1000000,"releases_per_second":1000000}`)
	send(func(a *answer) { a.exceeds("rate_limited", "requests_per_second", 0, 0) })
	c.put("/locks/a/renew", loose).exceeds("rate_limited", "requests_per_second", 0, 0)
	c.put("/locks/a/renew", lockToken(e.Token)).wantStatus(http.StatusOK)
	c.release(e)
}

// TestQuotaOfWebhooksAndStreams: these are counted where they always were.
func TestQuotaOfWebhooksAndStreams(t *testing.T) {
	t.Parallel()
	c := newTenant(t).as(func(cl *auth.Claims) { cl.Scopes = append(cl.Scopes, auth.WebhooksWrite) })
	c.limits(`{"webhooks":1,"event_streams":1}`)
	book := shared.quotas.Of
	w := subscription.New(subscription.Config{
		Records: shared.records, Keys: shared.webhooks.Keys, Policy: shared.webhooks.Policy,
		Directory: shared.webhooks.Directory, Limits: book,
	})
	h := shared.handlers(shared.main.service)
	h.Webhooks = w
	r := serve(nil, handlers.New(h))
	t.Cleanup(r.close)
	c.at(r).post("/webhooks", body(`{"url":"https://example.org/told","events":["*"]}`)).
		wantStatus(http.StatusCreated)
	c.at(r).post("/webhooks", body(`{"url":"https://example.org/told","events":["*"]}`)).
		exceeds("quota_exceeded", "webhooks", 1, 1)
	s := c.follow("/events")
	c.get("/events").exceeds("quota_exceeded", "event_streams", 1, 1)
	poll.Until(t, "both are told as used", func() bool {
		var now api.Quota
		c.admin().get(c.quotaPath()).want(http.StatusOK, &now)
		return now.Used.Webhooks == 1 && now.Used.EventStreams == 1
	})
	s.end()
}

// TestBadQuotaChangesAreRefused: a quota rejects callers without rights, values out of bounds, and
// a stale version.
func TestBadQuotaChangesAreRefused(t *testing.T) {
	t.Parallel()
	c, victim := newTenant(t), newTenant(t)
	path := c.quotaPath()
	c.operator().put(path, body(`{"sets":1}`)).wantProblem(lacks("admin"))
	c.operator().delete(path).wantProblem(lacks("admin"))
	c.operator().get(victim.quotaPath()).wantProblem(ownTenantOnly())
	c.operator().get(path).wantStatus(http.StatusOK)
	limited := c.admin().within("b")
	limited.get(path).wantStatus(http.StatusForbidden)
	limited.put(path, body(`{}`)).wantStatus(http.StatusForbidden)
	for text, field := range map[string]string{
		`{"sets":-1}`: "sets", `{"sets":10000001}`: "sets",
		`{"metadata_bytes":99999999999}`: "metadata_bytes", `{"sets":"1"}`: "sets",
		`{"sets":1.5}`: "sets",
		`{"set":1}`:    "set", `{"reason":""}`: "reason", `{"reason":"short"}`: "reason",
		`{"version":1.5}`: "version", `{"version":-1}`: "version", `{"version":"0"}`: "version",
	} {
		if a := c.admin().put(path, body(text), loose); a.status != http.StatusBadRequest ||
			a.fields()["field"] != field {
			t.Errorf("%s: %v, want 400 for %s", text, a, field)
		}
	}
	for _, method := range []string{"GET", "PUT", "DELETE"} {
		own := "/admin/tenants/" + lock.OwnTenant + "/quota"
		c.admin().do(method, own).wantStatus(http.StatusNotFound)
		c.admin().do(method, "/admin/tenants/No/quota", loose).wantStatus(http.StatusBadRequest)
	}
	made := c.limits(`{"sets":1,"version":0}`)
	c.admin().put(path, body(`{"sets":2,"version":0}`)).wantStatus(http.StatusConflict)
	c.admin().put(path, body(fmt.Sprintf(`{"sets":2,"version":%d}`, made.Version))).
		wantStatus(http.StatusOK)
}

// TestDamagedQuotaFallsBackToDefaults: the answer says that what was set cannot be read; the
// defaults hold, and the service goes on.
func TestDamagedQuotaFallsBackToDefaults(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	made := c.limits(`{"held_locks":0}`)
	key := store.RecordKey{Kind: quota.Kind, Tenant: c.claims.Tenant, ID: "limits"}
	if _, err := shared.records.Put(
		t.Context(), store.RecordPut{RecordKey: key, Value: []byte("{"), Version: made.Version},
	); err != nil {
		t.Fatal(err)
	}
	poll.Within(
		t, 20*time.Second, "the defaults hold",
		func() bool { return c.post("/locks/a", body(`{}`)).status == http.StatusCreated },
	)
	var now api.Quota
	c.operator().get(c.quotaPath()).want(http.StatusOK, &now)
	if !now.Damaged || now.Overrides != nil || now.Limits != now.Defaults {
		t.Errorf("it is told as %+v", now)
	}
	c.limits(`{"held_locks":5}`)
	now = api.Quota{}
	c.operator().get(c.quotaPath()).want(http.StatusOK, &now)
	if now.Damaged || now.Limits.HeldLocks != 5 {
		t.Errorf("set anew it is told as %+v", now)
	}
}

// TestQuotaFields: each limit has its name in the body and in all answers, and its bounds.
func TestQuotaFields(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	for _, l := range quota.All() {
		n := l.Most() - 1
		f := c.admin().put(c.quotaPath(), body(fmt.Sprintf(`{%q:%d}`, l, n))).fields()
		want := map[string]any{}
		for _, other := range quota.All() {
			want[other.String()] = json.Number(strconv.Itoa(quota.Standard()[other]))
		}
		if diff := cmp.Diff(any(want), f["defaults"]); diff != "" {
			t.Errorf("defaults (-want +got):\n%s", diff)
		}
		want[l.String()] = json.Number(strconv.Itoa(n))
		if diff := cmp.Diff(any(want), f["limits"]); diff != "" {
			t.Errorf("limits (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(
			any(map[string]any{l.String(): want[l.String()]}), f["overrides"],
		); diff != "" {
			t.Errorf("overrides (-want +got):\n%s", diff)
		}
		if a := c.admin().put(
			c.quotaPath(), body(fmt.Sprintf(`{%q:%d}`, l, l.Most()+1)), loose,
		); a.status != http.StatusBadRequest || a.fields()["field"] != l.String() {
			t.Errorf("%v", a)
		}
	}
}
