package handlers_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/test/poll"
	"github.com/fencepost/fencepost/webhook"
	"github.com/fencepost/fencepost/webhook/outbox"
)

// TestAdminWebhooks: those of all tenants or the own one, in pages, without what may be secret.
func TestAdminWebhooks(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	stub := &stubDeliveries{
		page: outbox.Page{
			Deliveries: make([]outbox.Delivery, 3), Next: "x",
			Health: outbox.Health{FailingSince: at, Failures: 4, Disabled: webhook.DisabledGone},
		},
	}
	c := withDeliveries(t, stub)
	own, orders := c.subscribe(`{`+receiver+`}`), c.subscribe(`{`+receiver+`,"locks":"orders:*"}`)
	other := subscriber(t)
	other.subscribe(`{` + receiver + `}`)
	var p api.AdminWebhookPage
	list := func(who *client, query string) string {
		p = api.AdminWebhookPage{}
		a := who.get("/admin/webhooks" + query)
		a.want(http.StatusOK, &p)
		if text := string(a.body); strings.Contains(text, "told") || strings.Contains(text, "whsec") {
			t.Errorf("it shows what may be secret: %s", text)
		}
		ids := map[string]bool{}
		for _, w := range p.Webhooks {
			ids[w.ID] = true
		}
		switch {
		case ids[own.ID] && ids[orders.ID]:
			return "both"
		case ids[own.ID]:
			return "own"
		case ids[orders.ID]:
			return "orders"
		}
		return ""
	}
	poll.Until(t, "both are there", func() bool { return list(c.operator(), "") == "both" })
	if w := p.Webhooks[0]; len(p.Webhooks) != 2 || p.Total != 2 || w.Tenant != c.claims.Tenant ||
		w.Receiver != "https://example.org" || w.Pending != 3 || !w.PendingMore || w.Disabled != "gone" ||
		w.Failures != 4 || w.FailingSince == "" {
		t.Errorf("%+v", p)
	}
	poll.Until(
		t,
		"an operator of all sees the other tenant's",
		func() bool { list(c.admin(), "?tenant="+other.claims.Tenant); return len(p.Webhooks) == 1 },
	)
	list(c.operator(), "?limit=1")
	first := p.Webhooks[0].ID
	list(c.operator(), "?limit=1&cursor="+p.NextCursor)
	if len(p.Webhooks) != 1 || p.Webhooks[0].ID == first || p.NextCursor != "" ||
		first > p.Webhooks[0].ID {
		t.Errorf("the second page of two is %+v", p)
	}
	limited := c.operator().within("orders:*")
	if got := list(limited, ""); got != "orders" {
		t.Errorf("who may see orders is shown %s", got)
	}
	c.operator().get("/admin/webhooks?tenant=" + other.claims.Tenant).wantProblem(ownTenantOnly())
	c.operator().get("/admin/webhooks?cursor=x").
		wantProblem(invalid("cursor", "must be the next_cursor of a page of this list; "+
			"leave it out to begin again"))
}
