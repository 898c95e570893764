package handlers_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/lists"
	"github.com/fencepost/fencepost/test/poll"
)

// polled are the paths that the dashboard polls, for a tenant with a lock and a webhook.
func polled(tenant, webhook string) []string {
	of := "/admin/webhooks/" + tenant + "/" + webhook
	return []string{
		"/admin/overview", "/admin/locks", "/admin/blocking", "/admin/holders?holder=w",
		"/admin/locks/" + tenant + "/a", "/admin/locks/" + tenant + "/a/history", "/admin/series",
		"/admin/tenants", "/admin/heatmap", "/admin/audit", "/admin/deadlocks", "/admin/lock-order",
		"/admin/closures", "/admin/webhooks", of, of + "/deliveries",
		"/admin/tenants/" + tenant + "/quota", "/webhooks", "/webhooks/" + webhook,
		"/webhooks/" + webhook + "/deliveries",
	}
}

// TestUnchangedAnswerIs304: each list and look has an ETag, and a client that sends it gets 304
// without a body.
func TestUnchangedAnswerIs304(t *testing.T) {
	t.Parallel()
	c := newTenant(t).at(newReplica(t, func(*service.Config) {})).as(func(cl *auth.Claims) {
		cl.Scopes = []auth.Scope{auth.TenantAdmin, auth.LocksWrite, auth.WebhooksWrite}
	})
	var hook api.NewWebhook
	c.post("/webhooks", body(`{"url":"https://receiver.example/x","events":["lock.acquired"]}`)).
		want(http.StatusCreated, &hook)
	for _, path := range polled(c.claims.Tenant, hook.ID) {
		poll.Until(t, path+" is answered 304", func() bool { // other tests change what is in the series
			first := c.get(path)
			first.wantStatus(http.StatusOK)
			tag := first.header.Get("ETag")
			if !strings.HasPrefix(tag, `W/"`) {
				t.Fatalf("%s has the ETag %q", path, tag)
			}
			again := c.get(path, header("If-None-Match", `"other", `+tag))
			if again.status == http.StatusOK {
				return false
			}
			if again.wantStatus(http.StatusNotModified); len(again.body) > 0 ||
				again.header.Get("ETag") != tag {
				t.Errorf("%s: 304 with %q and the ETag %q", path, again.body, again.header.Get("ETag"))
			}
			return true
		})
	}
}

// TestETagChangesWithTheAnswer: another row, or a store out of sight, is another answer; another
// revision of the store is not.
func TestETagChangesWithTheAnswer(t *testing.T) {
	t.Parallel()
	tagOf := func(s *consoleStub) string {
		return overConsole(t, s).get("/admin/locks").header.Get("ETag")
	}
	page := func(revision uint64, matching int) lists.Page {
		return lists.Page{Revision: revision, Matching: matching}
	}
	same, other := tagOf(&consoleStub{page: page(1, 1)}), tagOf(&consoleStub{page: page(1, 2)})
	if again := tagOf(&consoleStub{page: page(2, 1)}); again != same {
		t.Errorf("the ETag of another revision is %s, was %s", again, same)
	}
	if other == same {
		t.Error("another answer has the same ETag")
	}
	lost := &consoleStub{page: page(1, 1)}
	lost.lost.Store(new(time.Now()))
	if tagOf(lost) == same {
		t.Error("an answer without the store has the same ETag")
	}
}

// TestOnlyUnchangedAnswersHaveNoLogLine: a page polls once a second, so 304 is not logged; an
// answer that has changed is.
func TestOnlyUnchangedAnswersHaveNoLogLine(t *testing.T) {
	t.Parallel()
	a := newTenant(t).admin().get("/admin/closures?tenant=none", header("If-None-Match", `"other"`))
	line := shared.journal.request(t, a.header.Get("X-Request-Id"))
	if line["status"] != 200.0 {
		t.Errorf("%v is logged as %v", a, line)
	}
}
