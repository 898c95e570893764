package handlers_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/auth"
)

// recorded returns what is on record of the client's tenant, the oldest first.
func (c *client) recorded() []api.AuditRecord {
	c.t.Helper()
	var page api.AuditPage
	c.operator().get("/admin/audit").want(http.StatusOK, &page)
	slices.Reverse(page.Records)
	return page.Records
}

// because says why something is done, for the audit.
const because = "?reason=it+is+%3Cneeded%3E"

// TestShortReasonsAreRefused: a reason that says nothing is refused, before anything is done.
func TestShortReasonsAreRefused(t *testing.T) {
	t.Parallel()
	c := subscriber(t)
	path := "/webhooks/" + c.subscribe(`{"url":"https://example.org"}`).ID
	admin := c.as(func(cl *auth.Claims) { cl.Scopes = []auth.Scope{auth.Admin} })
	for _, a := range []*answer{
		c.delete(path+"?reason=short", loose), c.post(path+"/test?reason=", loose),
		c.post(path+"/rotate?reason=short", loose), c.post(callbackSecret+"?reason=short", loose),
		c.post(path+"/deliveries/1-1/redeliver?reason=short", loose),
		admin.post(
			"/admin"+strings.Replace(path, "webhooks/", "webhooks/"+c.claims.Tenant+"/", 1)+
				"/deliveries/1-1/redeliver?reason=short",
			loose,
		),
		admin.delete("/admin/closures/none?reason=short", loose),
		admin.delete("/admin/tenants/"+c.claims.Tenant+"/quota?reason=short", loose),
	} {
		a.wantStatus(http.StatusBadRequest)
		if !strings.Contains(string(a.body), `"field":"reason"`) {
			t.Errorf("%s", a.body)
		}
	}
	if all := c.recorded(); len(all) != 1 {
		t.Errorf("on record is %+v", all)
	}
}

// TestWebhooksOnRecord: what is done to webhooks is in the audit, as pages and as lines, with who
// did it and from where, and without what is secret.
func TestWebhooksOnRecord(t *testing.T) {
	t.Parallel()
	c := subscriber(t)
	made := c.subscribe(`{"url":"https://example.org/s3cr3t?token=s3cr3t","locks":"orders:*"}`)
	path := "/webhooks/" + made.ID
	c.do("PATCH", path, body(`{"paused":true}`)).wantStatus(http.StatusOK)
	c.do("PATCH", path, body(`{"events":["lock.acquired"],"locks":"orders:1*"}`)).
		wantStatus(http.StatusOK)
	c.post(path + "/rotate" + because).wantStatus(http.StatusOK)
	c.post(path + "/test" + because).wantStatus(http.StatusAccepted)
	c.post(path + "/deliveries/1-1/redeliver").wantStatus(http.StatusNotFound)
	c.post(callbackSecret + because).wantStatus(http.StatusOK)
	c.delete(path + because).wantNoContent()
	all := c.recorded()
	var did []string
	for _, r := range all {
		did = append(did, strings.Join(
			[]string{
				r.Action, r.Object.Webhook.Receiver, r.Object.Locks[0],
				strings.Join(r.Object.Webhook.Changed, "+"),
			},
			" ",
		))
		if r.Actor != (api.AuditActor{
			Subject: c.claims.Subject, Tenant: c.claims.Tenant, Scope: "webhooks:write",
			Address: "127.0.0.1", Peer: "127.0.0.1",
		}) ||
			r.Result != "asked" ||
			r.Tenant != c.claims.Tenant ||
			r.RequestID == "" {
			t.Errorf("on record is %+v", r)
		}
	}
	want := []string{
		"webhook.create https://example.org orders:* ", "webhook.pause https://example.org orders:* ",
		"webhook.change https://example.org orders:1* events+locks",
		"webhook.rotate https://example.org orders:1* ", "webhook.test https://example.org orders:1* ",
		"webhook.rotate  * ", "webhook.delete https://example.org orders:1* ",
	}
	for _, r := range all {
		if said := !slices.Contains(
			[]string{"webhook.create", "webhook.pause", "webhook.change"}, r.Action,
		); said != (r.Reason == "it is <needed>") {
			t.Errorf("%s is on record because of %q", r.Action, r.Reason)
		}
	}
	if diff := cmp.Diff(want, did); diff != "" {
		t.Errorf("on record (-want +got)\n%s", diff)
	}
	if all[4].Object.Webhook.Delivery == "" {
		t.Errorf("what was to be sent is %+v", all[4].Object.Webhook)
	}
	lines := c.operator().get("/admin/audit", header("Accept", "application/x-ndjson"))
	if text := string(lines.body); strings.Count(text, "\n") != len(want) ||
		strings.Contains(text, "s3cr3t") || strings.Contains(text, "whsec") {
		t.Errorf("the lines are %s", text)
	}
	limited := c.operator().within("orders:1*")
	var page api.AuditPage
	limited.get("/admin/audit").want(http.StatusOK, &page)
	if len(page.Records) != 4 {
		t.Errorf("who may see orders:1* is told %+v", page.Records)
	}
}
