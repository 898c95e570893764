package handlers_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/webhook/outbox"
)

const whyPaused = `"reason":"its receiver is being repaired"`

// TestAdminWebhook: an operator looks at a tenant's webhook, pauses it and has deliveries made
// again, and that is on record with his name. What may be secret is not shown.
func TestAdminWebhook(t *testing.T) {
	t.Parallel()
	stub := &stubDeliveries{
		page: outbox.Page{
			Deliveries: []outbox.Delivery{
				{ID: "1042-1", Type: "lock.acquired", Lock: "orders:42", State: "failed", Made: time.Now()},
			},
		},
	}
	c := withDeliveries(t, stub)
	made := c.subscribe(`{` + receiver + `,"locks":"orders:*"}`)
	tenant := c.claims.Tenant
	path := "/admin/webhooks/" + tenant + "/" + made.ID
	home := newTenant(t)
	admin := home.at(c.replica).admin()
	for _, who := range []*client{admin, c.operator()} {
		var w api.AdminWebhook
		a := who.get(path)
		a.want(http.StatusOK, &w)
		if w.ID != made.ID || w.Tenant != tenant || w.Receiver != "https://example.org" || w.Pending != 1 ||
			strings.Contains(string(a.body), "told") ||
			strings.Contains(string(a.body), "whsec") {
			t.Errorf("it is shown as %s", a.body)
		}
		var p api.DeliveryPage
		who.get(path+"/deliveries?limit=5").want(http.StatusOK, &p)
		if len(p.Deliveries) != 1 || p.Deliveries[0].Lock != "orders:42" {
			t.Errorf("the deliveries are %+v", p)
		}
		who.do("PATCH", path, body(`{"paused":true,`+whyPaused+`}`)).want(http.StatusOK, &w)
		if !w.Paused || !c.webhooks()[0].Paused {
			t.Errorf("paused it is %+v", w)
		}
		who.do("PATCH", path, body(`{"paused":false,`+whyPaused+`}`)).want(http.StatusOK, &w)
		who.post(path + "/deliveries/1042-1/redeliver").wantNoContent()
		who.get("/admin/webhooks/" + tenant + "/callbacks/deliveries").wantStatus(http.StatusOK)
	}
	var asked, all []string
	for _, one := range stub.asked {
		if !strings.HasPrefix(one, "owed ") {
			asked = append(asked, one)
		}
	}
	for _, scope := range []string{"admin", "tenant-admin"} {
		all = append(
			all, "list "+tenant+" "+made.ID+"  5", "redeliver "+tenant+" "+made.ID+" 1042-1 "+scope,
			"list "+tenant+" callbacks  100",
		)
	}
	if diff := cmp.Diff(all, asked); diff != "" {
		t.Errorf("asked (-want +got)\n%s", diff)
	}
	var did []string
	for _, r := range c.at(shared.main).recorded() {
		did = append(
			did,
			r.Action+" by "+r.Actor.Scope+" of "+map[bool]string{
				true: "its own", false: "another",
			}[r.Actor.Tenant == tenant]+" tenant: "+r.Reason,
		)
		if other := r.Actor.Tenant != tenant; other && r.Actor.Address != "" {
			t.Errorf("the tenant is told from where %+v came", r.Actor)
		}
	}
	want := []string{
		"webhook.create by webhooks:write of its own tenant: ",
		"webhook.pause by admin of another tenant: its receiver is being repaired",
		"webhook.resume by admin of another tenant: its receiver is being repaired",
		"webhook.pause by tenant-admin of its own tenant: its receiver is being repaired",
		"webhook.resume by tenant-admin of its own tenant: its receiver is being repaired",
	}
	if diff := cmp.Diff(want, did); diff != "" {
		t.Errorf("on record (-want +got)\n%s", diff)
	}
}

// TestAdminWebhookRefusals: an operator reaches no webhook of another tenant or of other names.
func TestAdminWebhookRefusals(t *testing.T) {
	t.Parallel()
	stub := &stubDeliveries{}
	c := withDeliveries(t, stub)
	made := c.subscribe(`{` + receiver + `,"locks":"orders:*"}`)
	of := func(tenant, id string) map[string]string {
		path := "/admin/webhooks/" + tenant + "/" + id
		return map[string]string{
			"GET " + path:                 "",
			"GET " + path + "/deliveries": "",
			"PATCH " + path:               `{"paused":true,` + whyPaused + `}`,
			"POST " + path + "/deliveries/1042-1/redeliver": "",
		}
	}
	other := subscriber(t).at(c.replica)
	limited := c.operator().within("orders:1*")
	for _, tc := range []struct {
		what   string
		who    *client
		routes map[string]string
		status int
	}{
		{
			"another tenant's operator", other.operator(), of(c.claims.Tenant, made.ID),
			http.StatusForbidden,
		},
		{
			"by the own tenant's path", other.operator(), of(other.claims.Tenant, made.ID),
			http.StatusNotFound,
		},
		{
			"by another tenant's path", other.admin(), of(other.claims.Tenant, made.ID), http.StatusNotFound,
		},
		{"limited to other names", limited, of(c.claims.Tenant, made.ID), http.StatusForbidden},
		{"no webhook", c.operator(), of(c.claims.Tenant, someID), http.StatusNotFound},
	} {
		for route, text := range tc.routes {
			method, path, _ := strings.Cut(route, " ")
			o := loose
			if text != "" {
				o = body(text)
			}
			if a := tc.who.do(method, path, o); a.status != tc.status ||
				strings.Contains(string(a.body), "example.org") {
				t.Errorf("%s, %s: %v, want %d", tc.what, route, a, tc.status)
			}
		}
	}
	if w := c.webhooks(); w[0].Paused {
		t.Error("it is paused")
	}
	if all := c.at(shared.main).recorded(); len(all) != 1 {
		t.Errorf("on record is %+v", all)
	}
	limited.get("/admin/webhooks/" + c.claims.Tenant + "/callbacks/deliveries").
		wantStatus(http.StatusForbidden)
	path := "/admin/webhooks/" + c.claims.Tenant + "/" + made.ID
	for text, field := range map[string]string{
		`{` + whyPaused + `}`: "paused", `{"paused":true}`: "reason",
		`{"paused":true,"reason":"short"}`:                              "reason",
		`{"paused":true,` + whyPaused + `,"url":"https://example.org"}`: "url",
	} {
		if a := c.operator().do("PATCH", path, body(text), loose); a.status != http.StatusBadRequest ||
			a.fields()["field"] != field {
			t.Errorf("%s: %v, want 400 for %s", text, a, field)
		}
	}
	c.operator().get("/admin/webhooks/No/"+made.ID, loose).wantStatus(http.StatusBadRequest)
}
