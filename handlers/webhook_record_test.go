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

// TestWebhooksOnRecord: what is done to webhooks is in the audit, as pages and as lines, with who did it
// and from where, and without what is secret.
func TestWebhooksOnRecord(t *testing.T) {
	t.Parallel()
	c := subscriber(t)
	made := c.subscribe(`{"url":"https://example.org/s3cr3t?token=s3cr3t","locks":"orders:*"}`)
	path := "/webhooks/" + made.ID
	c.do("PATCH", path, body(`{"paused":true}`)).wantStatus(http.StatusOK)
	c.do("PATCH", path, body(`{"events":["lock.acquired"],"locks":"orders:1*"}`)).wantStatus(http.StatusOK)
	c.post(path + "/rotate").wantStatus(http.StatusOK)
	c.post(path + "/test").wantStatus(http.StatusAccepted)
	c.post(path+"/redeliver", body(`{"since":"2026-01-02T15:04:05Z"}`)).wantNoContent()
	c.post(path + "/deliveries/1-1/redeliver").wantStatus(http.StatusNotFound)
	c.post(callbackSecret).wantStatus(http.StatusOK)
	c.delete(path).wantNoContent()
	all := c.recorded()
	var did []string
	for _, r := range all {
		did = append(did, strings.Join([]string{r.Action, r.Object.Webhook.Receiver, r.Object.Locks[0], strings.Join(r.Object.Webhook.Changed, "+")}, " "))
		if r.Actor != (api.AuditActor{Subject: c.claims.Subject, Tenant: c.claims.Tenant, Scope: "webhooks:write", Address: "127.0.0.1"}) || r.Result != "asked" || r.Tenant != c.claims.Tenant || r.RequestID == "" {
			t.Errorf("on record is %+v", r)
		}
	}
	want := []string{
		"webhook.create https://example.org orders:* ", "webhook.pause https://example.org orders:* ", "webhook.change https://example.org orders:1* events+locks",
		"webhook.rotate https://example.org orders:1* ", "webhook.test https://example.org orders:1* ", "webhook.redeliver https://example.org orders:1* ",
		"webhook.rotate  * ", "webhook.delete https://example.org orders:1* ",
	}
	if diff := cmp.Diff(want, did); diff != "" {
		t.Errorf("on record (-want +got)\n%s", diff)
	}
	if w := all[5].Object.Webhook; w.Since == nil || *w.Since != "2026-01-02T15:04:05.000Z" || all[4].Object.Webhook.Delivery == "" {
		t.Errorf("what was to be sent is %+v and %+v", all[4].Object.Webhook, w)
	}
	lines := c.operator().get("/admin/audit", header("Accept", "application/x-ndjson"))
	if text := string(lines.body); strings.Count(text, "\n") != len(want) || strings.Contains(text, "s3cr3t") || strings.Contains(text, "whsec") {
		t.Errorf("the lines are %s", text)
	}
	limited := c.as(func(cl *auth.Claims) { cl.Scopes, cl.Locks = []auth.Scope{auth.TenantAdmin}, []string{"orders:1*"} })
	var page api.AuditPage
	limited.get("/admin/audit").want(http.StatusOK, &page)
	if len(page.Records) != 5 {
		t.Errorf("who may see orders:1* is told %+v", page.Records)
	}
}
