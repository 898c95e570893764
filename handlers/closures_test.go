package handlers_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/handlers"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/test/poll"
)

type closure struct {
	ID          string  `json:"id"`
	Tenant      string  `json:"tenant"`
	Locks       string  `json:"locks"`
	Since       instant `json:"since"`
	Until       instant `json:"until"`
	Reason      string  `json:"reason"`
	Description string  `json:"description"`
	By          string  `json:"by"`
	Revision    uint64  `json:"revision"`
}

type closurePage struct {
	Closures   []closure `json:"closures"`
	NextCursor string    `json:"next_cursor"`
}

const counting = "the stock is <counted>"

func closingBody(tenant, locks string, length time.Duration) option {
	return body(fmt.Sprintf(
		`{"tenant":%q,"locks":%q,"until":%q,"reason":%q}`, tenant, locks,
		time.Now().Add(length).UTC().Format("2006-01-02T15:04:05.000Z"), counting,
	))
}

func (c *client) closes(locks string, length time.Duration) closure {
	c.t.Helper()
	var made closure
	c.post("/admin/closures", closingBody(c.claims.Tenant, locks, length)).
		want(http.StatusCreated, &made)
	return made
}

func (c *client) closures(query string) closurePage {
	c.t.Helper()
	var page closurePage
	c.get("/admin/closures"+query).want(http.StatusOK, &page)
	return page
}

// TestClosedLocksTakeNoNewEntries: an operator closes locks at one replica, which binds the other
// at once, and opens them there. Holders finish, and waiters are granted in order.
func TestClosedLocksTakeNoNewEntries(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	operator := c.operator().named("ops")
	elsewhere := c.at(shared.other)
	held := c.acquire("orders:42", body(`{"holder":"w1","ttl_seconds":60}`))
	waits := elsewhere.join("orders:42", body(`{"holder":"w2","ttl_seconds":60,"wait_seconds":40}`))
	made := operator.closes("orders:*", time.Hour)
	if made.Tenant != c.claims.Tenant || made.Locks != "orders:*" || made.Reason != counting ||
		made.By != "ops" || time.Until(made.Until.Time) < 50*time.Minute {
		t.Errorf("made %+v", made)
	}
	for _, at := range []*client{elsewhere, c} {
		for _, name := range []string{"orders:42", "orders:43"} {
			a := at.post("/locks/"+name, body(`{"wait_seconds":30}`))
			f := a.fields()
			if a.status != http.StatusLocked || f["code"] != "lock_closed" || f["reason"] != counting ||
				f["until"] != made.Until.UTC().Format("2006-01-02T15:04:05.000Z") ||
				a.header.Get("Retry-After") != "30" {
				t.Errorf("refused with %v", a)
			}
		}
		a := at.post("/locksets", body(`{"locks":[{"name":"orders:44"},{"name":"stock"}]}`))
		if a.status != http.StatusLocked || a.fields()["code"] != "lock_closed" {
			t.Errorf("a set is refused with %v", a)
		}
		poll.Until(t, "the replica shows the closure", func() bool {
			return at.get("/locks/orders:42").fields()["closed"] != nil
		})
		look := at.get("/locks/orders:42?consistent=true").fields()
		if closed, ok := look["closed"].(map[string]any); !ok || closed["reason"] != counting {
			t.Errorf("a look shows %v", look)
		}
	}
	if closed, ok := operator.get(
		"/admin/locks/" + c.claims.Tenant + "/orders:42",
	).fields()["closed"].(map[string]any); !ok || closed["reason"] != counting {
		t.Error("an operator's look does not show it")
	}
	operator.at(shared.other).showsClosed(made)
	c.put("/locks/orders:42/renew", lockToken(held.Token)).wantStatus(http.StatusOK)
	c.release(held)
	c.release(waits.wait().held(http.StatusCreated))
	poll.Until(t, "an answer as new as the closure shows no holder", func() bool {
		var seen api.AdminLockView
		operator.at(shared.other).get("/admin/locks/"+c.claims.Tenant+"/orders:42").
			want(http.StatusOK, &seen)
		return seen.Revision >= made.Revision && len(seen.Holders) == 0 && seen.Waiting == 0
	})
	if page := operator.closures(""); len(page.Closures) != 1 || page.Closures[0] != made ||
		page.NextCursor != "" {
		t.Errorf("listed: %+v, want %+v", page, made)
	}
	operator.at(shared.other).delete("/admin/closures/" + made.ID + because).
		wantStatus(http.StatusNoContent)
	poll.Until(t, "the lock is open", func() bool {
		a := c.post("/locks/orders:42", body(`{}`))
		return a.status == http.StatusCreated
	})
	operator.delete("/admin/closures/" + made.ID).wantStatus(http.StatusNotFound)
	actions := ""
	for i, r := range operator.audit("").Records {
		if want := [...]string{"it is <needed>", counting}[i]; r.Reason != want {
			t.Errorf("%s is on record because of %q", r.Action, r.Reason)
		}
		actions += r.Action + " " + r.Object.Locks[0] + " " + r.Object.Entry + " " + r.Result + "\n"
	}
	if want := "locks.open orders:* " + made.ID + " opened\nlocks.close orders:* " + made.ID +
		" closed\n"; actions != want {
		t.Errorf("on record:\n%s", actions)
	}
}

// showsClosed: the lists say of a lock that it is closed, and of an open one nothing.
func (c *client) showsClosed(made closure) {
	c.t.Helper()
	open := c.as(func(cl *auth.Claims) { cl.Scopes = []auth.Scope{auth.LocksWrite} }).acquire("stock")
	page := c.adminLocks("", shows("orders:42", "stock"))
	if one, other := page.Locks[0].Closed, page.Locks[1].Closed; one == nil ||
		one.Reason != counting ||
		string(one.Until) != made.Until.UTC().Format("2006-01-02T15:04:05.000Z") || other != nil {
		c.t.Errorf("listed as closed: %+v and %+v", one, other)
	}
	var o api.AdminOverview
	c.get("/admin/overview").want(http.StatusOK, &o)
	if len(o.Blockers) != 1 || o.Blockers[0].Closed == nil || o.Blockers[0].Closed.Reason != counting {
		c.t.Errorf("the overview shows %+v", o.Blockers)
	}
	c.as(func(cl *auth.Claims) { cl.Scopes = []auth.Scope{auth.LocksWrite} }).release(open)
}

// oneInstant lists closures that began at one instant.
type oneInstant struct{ closuresStub }

func (oneInstant) List(context.Context, string) (all []*lock.Closure, _ error) {
	for _, id := range []lock.ID{"a", "b", "c"} {
		locks, err := lock.ParseNamePattern(string(id))
		if err != nil {
			return nil, err
		}
		id = lock.ID(strings.Repeat("0", 25)) + id
		all = append(all, &lock.Closure{
			ID: id, Tenant: "acme", Locks: locks, Reason: "it is moved", By: "ann",
			Since: time.UnixMilli(1_700_000_000_123),
		})
	}
	return all, nil
}

// TestClosuresOfOneInstantAreOnSeveralPages: a page ends between closures that began together.
func TestClosuresOfOneInstantAreOnSeveralPages(t *testing.T) {
	t.Parallel()
	h := shared.handlers(&stub{})
	h.Closures = oneInstant{closuresStub{&stub{}}}
	r := serve(nil, handlers.New(h))
	t.Cleanup(r.close)
	operator, got, cursor := newTenant(t).at(r).admin(), "", ""
	for range 3 {
		page := operator.closures("?limit=1" + cursor)
		if len(page.Closures) == 1 {
			got += page.Closures[0].Locks
		}
		cursor = "&cursor=" + page.NextCursor
	}
	if got != "abc" {
		t.Errorf("the pages have %s, want abc", got)
	}
}

// TestClosurePages: in pages, of one tenant and by names.
func TestClosurePages(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	operator := c.operator()
	for _, locks := range []string{"a", "b:*", "*"} {
		operator.closes(locks, time.Hour)
	}
	got, cursor := "", ""
	for range 4 {
		page := operator.closures("?limit=1" + cursor)
		for _, one := range page.Closures {
			got += one.Locks + " "
		}
		if page.NextCursor == "" {
			break
		}
		cursor = "&cursor=" + page.NextCursor
	}
	if got != "a b:* * " {
		t.Errorf("the pages have %s", got)
	}
	if page := operator.within("b:*").closures(""); len(page.Closures) != 1 ||
		page.Closures[0].Locks != "b:*" {
		t.Errorf("of some names: %+v", page)
	}
	if page := c.admin().closures("?tenant=" + c.claims.Tenant); len(page.Closures) != 3 {
		t.Errorf("of the tenant: %+v", page)
	}
	operator.get("/admin/closures?cursor=x", loose).wantStatus(http.StatusBadRequest)
	operator.get("/admin/closures?cursor=YWZ0ZXI6YQ", loose).wantStatus(http.StatusBadRequest)
	operator.get("/admin/closures?limit=0", loose).wantStatus(http.StatusBadRequest)
	for _, one := range operator.closures("").Closures {
		operator.delete("/admin/closures/" + one.ID).wantStatus(http.StatusNoContent)
	}
}

// TestHostileCloser has nothing to do with others, and cannot close what his token may not use.
func TestHostileCloser(t *testing.T) {
	t.Parallel()
	victim, c := newTenant(t), newTenant(t)
	theirs := victim.operator().closes("a", time.Hour)
	hostile := c.operator()
	hostile.post("/admin/closures", closingBody(victim.claims.Tenant, "b", time.Hour)).
		wantProblem(ownTenantOnly())
	hostile.get("/admin/closures?tenant=" + victim.claims.Tenant).wantProblem(ownTenantOnly())
	hostile.delete("/admin/closures/" + theirs.ID).wantStatus(http.StatusNotFound)
	if page := hostile.closures(""); len(page.Closures) != 0 {
		t.Errorf("others' are listed: %+v", page)
	}
	hostile.within("b:*").post("/admin/closures", closingBody(c.claims.Tenant, "*", time.Hour)).
		wantStatus(http.StatusForbidden)
	victim.admin().post("/admin/closures", closingBody(lock.OwnTenant, "*", time.Hour), loose).
		wantStatus(http.StatusBadRequest)
	for _, wrong := range []option{
		body(`{}`), closingBody(c.claims.Tenant, "", time.Hour),
		closingBody(c.claims.Tenant, strings.Repeat("a", 257), time.Hour),
		closingBody(c.claims.Tenant, "a", -time.Second),
		closingBody(c.claims.Tenant, "a", 7*24*time.Hour),
		body(fmt.Sprintf(
			`{"tenant":%q,"locks":"a","until":"tomorrow","reason":%q}`, c.claims.Tenant, counting,
		)),
		body(fmt.Sprintf(
			`{"tenant":%q,"locks":"a","until":"2999-01-02T15:04:05Z","reason":"short"}`, c.claims.Tenant,
		)),
	} {
		hostile.post("/admin/closures", wrong, loose).wantStatus(http.StatusBadRequest)
	}
	c.release(c.acquire("b"))
	victim.operator().delete("/admin/closures/" + theirs.ID).wantStatus(http.StatusNoContent)
}
