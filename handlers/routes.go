package handlers

import (
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/fencepost/fencepost/auth"
)

// route is an operation with its method and path, and what it asks of a request.
type route struct {
	method, path string
	policy       policy
	handler      handler
}

// add adds routes to the router.
func (a *endpoints) add(r *gin.Engine, routes ...[]route) {
	for _, group := range routes {
		for _, one := range group {
			one.policy.named = strings.Contains(one.path, "/:name")
			r.Handle(one.method, one.path, a.handle(one))
		}
	}
}

// params are the query parameters that an operation knows.
func params(names ...string) []string { return names }

func vitalRoutes() []route {
	return []route{
		{"GET", "/healthz", policy{}, get(getHealth)},
		{"GET", "/readyz", policy{}, get(getReadiness)},
	}
}

func metricsRoutes() []route { return []route{{"GET", "/metrics", policy{}, getMetrics}} }

func documentRoutes() []route {
	return []route{
		{"GET", "/openapi.json", policy{}, getDescription},
		{"GET", "/problems/:code", policy{}, getProblem},
		{"GET", "/docs", policy{}, findPage},
		{"GET", "/docs/", policy{}, getPage},
		{"GET", "/docs/:file", policy{}, getPageFile},
	}
}

func lockRoutes() []route {
	list := params("prefix", "state", "limit", "cursor", "consistent")
	read := func(query ...string) policy {
		return policy{scopes: []auth.Scope{auth.LocksRead}, query: query}
	}
	write := func(l load) policy { return policy{scopes: []auth.Scope{auth.LocksWrite}, load: l} }
	wait := policy{
		scopes: []auth.Scope{auth.LocksRead, auth.LocksWrite}, load: waiting,
		query: params("wait_seconds"),
	}
	return []route{
		{"GET", "/locks", read(list...), get(listLocks)},
		{"GET", "/locks/:name", read("consistent"), get(getLock)},
		{"POST", "/locks/:name", write(newWork), send(inSlot(newWork, acquireLock))},
		{"PUT", "/locks/:name/renew", write(renewing), send(renewLock)},
		{"DELETE", "/locks/:name", write(releasing), send(inSlot(releasing, releaseLock))},
		{"GET", "/locks/:name/entries/:id", wait, send(getEntry)},
		{"POST", "/locks/:name/stale-writes", write(newWork), send(reportStaleWrite)},
		{"POST", "/locksets", write(newWork), send(inSlot(newWork, acquireLockSet))},
		{"PUT", "/locksets/:id/renew", write(renewing), send(renewLockSet)},
		{"DELETE", "/locksets/:id", write(releasing), send(inSlot(releasing, releaseLockSet))},
		{"GET", "/locksets/:id", wait, send(getLockSet)},
		{"GET", "/events", read("types", "locks"), followEvents},
	}
}

func webhookRoutes() []route {
	of := func(query ...string) policy {
		return policy{scopes: []auth.Scope{auth.WebhooksWrite}, query: query}
	}
	redelivery := "/webhooks/:id/deliveries/:delivery/redeliver"
	return []route{
		{"POST", "/webhooks", of(), send(createWebhook)},
		{"GET", "/webhooks", of("limit", "cursor"), get(listWebhooks)},
		{"POST", "/webhooks/callback-secret/rotate", of("reason"), send(rotateCallbackSecret)},
		{"GET", "/webhooks/:id", of(), get(getWebhook)},
		{"PATCH", "/webhooks/:id", of(), send(changeWebhook)},
		{"DELETE", "/webhooks/:id", of("reason"), send(deleteWebhook)},
		{"POST", "/webhooks/:id/rotate", of("reason"), send(rotateWebhook)},
		{"POST", "/webhooks/:id/test", of("reason"), send(testWebhook)},
		{"GET", "/webhooks/:id/deliveries", of("limit", "cursor"), get(listDeliveries)},
		{"POST", redelivery, of("reason"), send(redeliver)},
	}
}

func adminRoutes() []route {
	look := func(query ...string) policy {
		return policy{scopes: operators(), load: looking, query: query}
	}
	change := func(query ...string) policy {
		return policy{scopes: operators(), load: changing, query: query}
	}
	admins := policy{scopes: []auth.Scope{auth.Admin}, load: changing}
	reset := admins
	reset.query = params("reason")
	list := params("tenant", "search", "state", "holder", "sort", "limit", "cursor")
	webhook, quotas := "/admin/webhooks/:tenant/:id", "/admin/tenants/:tenant/quota"
	return []route{
		{"GET", "/admin/overview", look("tenant"), shown(getOverview)},
		{"GET", "/admin/locks", look(list...), shown(listAllLocks)},
		{"GET", "/admin/locks/:tenant/:name", look("limit"), shown(getAnyLock)},
		{"GET", "/admin/locks/:tenant/:name/history", look(), shown(getLockHistory)},
		{"POST", "/admin/locks/:tenant/:name/entries/:id/revoke", change(), send(revokeEntry)},
		{"POST", "/admin/locksets/:tenant/:id/revoke", change(), send(revokeSet)},
		{"GET", "/admin/holders", look("tenant", "holder", "limit"), shown(getHoldings)},
		{"POST", "/admin/holders/revoke", change(), send(revokeHolder)},
		{"GET", "/admin/blocking", look("tenant", "limit"), shown(getBlocking)},
		{"GET", "/admin/series", look("tenant", "step_seconds"), shown(getSeries)},
		{"GET", "/admin/heatmap", look("tenant", "limit"), shown(getHeatMap)},
		{"GET", "/admin/lock-order", look("tenant", "limit"), get(getLockOrder)},
		{"GET", "/admin/deadlocks", look("tenant", "limit"), get(listDeadlocks)},
		{"GET", "/admin/audit", look(
			"tenant", "limit", "cursor", "since", "operator", "action", "lock",
		), get(listAudit)},
		{"GET", "/admin/events", look("types", "locks", "tenant"), followAllEvents},
		{"POST", "/admin/closures", change(), send(closeLocks)},
		{"DELETE", "/admin/closures/:id", change("reason"), send(openLocks)},
		{"GET", "/admin/closures", look("tenant", "limit", "cursor"), get(listClosures)},
		{"GET", "/admin/tenants", look("tenant", "limit", "cursor"), shown(listTenants)},
		{"GET", quotas, look(), get(getQuota)},
		{"PUT", quotas, admins, send(setQuota)},
		{"DELETE", quotas, reset, send(resetQuota)},
		{"GET", "/admin/webhooks", look("tenant", "limit", "cursor"), get(listAllWebhooks)},
		{"GET", webhook, look(), get(getAnyWebhook)},
		{"PATCH", webhook, change(), send(pauseAnyWebhook)},
		{"GET", webhook + "/deliveries", look("limit", "cursor"), get(listAnyDeliveries)},
		{"POST", webhook + "/deliveries/:delivery/redeliver", look("reason"), send(redeliverAny)},
	}
}

func dashboardRoutes() []route {
	return []route{
		{"GET", "/dashboard", policy{}, findDashboard},
		{"GET", "/dashboard/", policy{}, getDashboard},
		{"GET", "/dashboard/assets/:file", policy{}, getDashboardFile},
		{"POST", "/dashboard/session", policy{}, send(signIn)},
		{"GET", "/dashboard/session", policy{}, get(getSession)},
		{"DELETE", "/dashboard/session", policy{}, get(signOut)},
		{"GET", "/dashboard/sign-in", policy{}, get(getSignIn)},
		{"GET", "/dashboard/sign-in/oidc", policy{}, beginSignIn},
		{"GET", "/dashboard/sign-in/oidc/callback", policy{}, finishSignIn},
	}
}
