package handlers

import (
	"github.com/gin-gonic/gin"

	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/quota"
)

// everything adds all routes, each with what it asks of a request.
func (a *endpoints) everything(r *gin.Engine) {
	a.operations(r)
	a.locks(r)
	a.locksets(r)
	a.webhooks(r)
	a.admin(r)
	a.adminWebhooks(r)
	a.quotas(r)
	a.dashboard(r)
}

func (a *endpoints) vitals(r *gin.Engine) {
	r.GET("/healthz", a.handle(get(getHealth)))
	r.GET("/readyz", a.handle(get(getReadiness)))
}

func (a *endpoints) operations(r *gin.Engine) {
	a.vitals(r)
	if a.Exposition != nil {
		r.GET("/metrics", a.handle(getMetrics))
	}
	r.GET("/openapi.json", a.handle(getDescription))
	r.GET("/problems/:code", a.handle(getProblem))
	r.GET("/docs", a.handle(findPage))
	r.GET("/docs/", a.handle(getPage))
	r.GET("/docs/:file", a.handle(getPageFile))
}

func (a *endpoints) locks(r *gin.Engine) {
	read, write := []auth.Scope{auth.LocksRead}, []auth.Scope{auth.LocksWrite}
	either := []auth.Scope{auth.LocksRead, auth.LocksWrite}
	r.GET("/locks", a.authorized(operation{scopes: read, query: []string{"prefix", "state", "limit", "cursor", "consistent"}}, get(listLocks)))
	r.GET("/locks/:name", a.authorized(operation{scopes: read, named: true, query: []string{"consistent"}}, get(getLock)))
	r.POST("/locks/:name", a.authorized(operation{scopes: write, named: true}, send(acquireLock)))
	r.POST("/locks/:name/stale-writes", a.authorized(operation{scopes: write, named: true}, send(reportStaleWrite)))
	r.PUT("/locks/:name/renew", a.authorized(operation{scopes: write, named: true, always: true, rate: quota.Renewals}, send(renewLock)))
	r.DELETE("/locks/:name", a.authorized(operation{scopes: write, named: true, always: true, rate: quota.Releases}, send(releaseLock)))
	r.GET("/locks/:name/entries/:id", a.authorized(operation{scopes: either, rate: quota.Renewals, named: true, query: []string{"wait_seconds"}}, send(getEntry)))
	r.POST("/locks/:name/entries/:id/request-release", a.authorized(operation{scopes: write, named: true}, a.requestRelease))
	r.GET("/events", a.authorized(operation{scopes: read, query: []string{"types", "locks"}}, followEvents))
}

func (a *endpoints) locksets(r *gin.Engine) {
	write, either := []auth.Scope{auth.LocksWrite}, []auth.Scope{auth.LocksRead, auth.LocksWrite}
	r.POST("/locksets", a.authorized(operation{scopes: write}, send(acquireLockSet)))
	r.PUT("/locksets/:id/renew", a.authorized(operation{scopes: write, always: true, rate: quota.Renewals}, send(renewLockSet)))
	r.DELETE("/locksets/:id", a.authorized(operation{scopes: write, always: true, rate: quota.Releases}, send(releaseLockSet)))
	r.GET("/locksets/:id", a.authorized(operation{scopes: either, rate: quota.Renewals, query: []string{"wait_seconds"}}, send(getLockSet)))
	r.POST("/locksets/:id/request-release", a.authorized(operation{scopes: write}, a.requestReleaseForSet))
}

func (a *endpoints) webhooks(r *gin.Engine) {
	o := operation{scopes: []auth.Scope{auth.WebhooksWrite}, page: true}
	paged, reasoned := o, o
	paged.query, reasoned.query = []string{"limit", "cursor"}, []string{"reason"}
	r.POST("/webhooks", a.authorized(o, send(createWebhook)))
	r.GET("/webhooks", a.authorized(paged, get(listWebhooks)))
	r.POST("/webhooks/callback-secret/rotate", a.authorized(reasoned, send(rotateCallbackSecret)))
	r.GET("/webhooks/:id", a.authorized(o, get(getWebhook)))
	r.PATCH("/webhooks/:id", a.authorized(o, send(changeWebhook)))
	r.DELETE("/webhooks/:id", a.authorized(reasoned, send(deleteWebhook)))
	r.POST("/webhooks/:id/rotate", a.authorized(reasoned, send(rotateWebhook)))
	r.POST("/webhooks/:id/test", a.authorized(reasoned, send(testWebhook)))
	r.GET("/webhooks/:id/deliveries", a.authorized(paged, get(listDeliveries)))
	r.POST("/webhooks/:id/deliveries/:delivery/redeliver", a.authorized(reasoned, send(redeliver)))
}

func (a *endpoints) admin(r *gin.Engine) {
	look := func(h handler, query ...string) gin.HandlerFunc {
		return a.authorized(operation{scopes: operators(), always: true, query: query}, h)
	}
	named := func(h handler, query ...string) gin.HandlerFunc {
		return a.authorized(operation{scopes: operators(), always: true, named: true, query: query}, h)
	}
	r.GET("/admin/overview", look(shown(getOverview), "tenant"))
	r.GET("/admin/locks", look(shown(listAllLocks), "tenant", "search", "state", "holder", "sort", "limit", "cursor"))
	r.GET("/admin/locks/:tenant/:name", named(shown(getAnyLock), "limit"))
	r.GET("/admin/locks/:tenant/:name/history", named(shown(getLockHistory)))
	r.POST("/admin/locks/:tenant/:name/entries/:id/revoke", named(send(revokeEntry)))
	r.POST("/admin/locksets/:tenant/:id/revoke", look(send(revokeSet)))
	r.GET("/admin/holders", look(shown(getHoldings), "tenant", "holder", "limit"))
	r.POST("/admin/holders/revoke", look(send(revokeHolder)))
	r.GET("/admin/blocking", look(shown(getBlocking), "tenant", "limit"))
	r.GET("/admin/series", look(shown(getSeries), "tenant"))
	r.GET("/admin/tenants", look(shown(listTenants), "tenant", "limit", "cursor"))
	r.GET("/admin/heatmap", look(shown(getHeatMap), "tenant", "limit"))
	r.GET("/admin/lock-order", look(get(getLockOrder), "tenant", "limit"))
	r.GET("/admin/deadlocks", look(get(listDeadlocks), "tenant", "limit"))
	r.GET("/admin/audit", look(get(listAudit), "tenant", "limit", "cursor", "since"))
	r.GET("/admin/events", look(followAllEvents, "types", "locks", "tenant"))
	r.POST("/admin/closures", look(send(closeLocks)))
	r.DELETE("/admin/closures/:id", look(send(openLocks), "reason"))
	r.GET("/admin/closures", look(get(listClosures), "tenant", "limit", "cursor"))
}

func (a *endpoints) adminWebhooks(r *gin.Engine) {
	o := operation{scopes: operators(), always: true, ofTenants: true} // each asks the store
	r.GET("/admin/webhooks", a.authorized(operation{scopes: o.scopes, always: true, query: []string{"tenant", "limit", "cursor"}}, get(listAllWebhooks)))
	one := r.Group("/admin/webhooks/:tenant/:id")
	one.GET("", a.authorized(o, get(getAnyWebhook)))
	one.PATCH("", a.authorized(operation{scopes: o.scopes, always: true}, send(pauseAnyWebhook))) // so seldom that it need not count
	one.GET("/deliveries", a.authorized(operation{scopes: o.scopes, always: true, query: []string{"limit", "cursor"}}, get(listAnyDeliveries)))
	o.query = []string{"reason"}
	one.POST("/deliveries/:delivery/redeliver", a.authorized(o, send(redeliverAny)))
}

func (a *endpoints) dashboard(r *gin.Engine) {
	r.GET("/dashboard", a.handle(findDashboard))
	r.GET("/dashboard/", a.handle(getDashboard))
	r.GET("/dashboard/assets/:file", a.handle(getDashboardFile))
	r.POST("/dashboard/session", a.handle(send(signIn)))
	r.GET("/dashboard/session", a.handle(get(getSession)))
	r.DELETE("/dashboard/session", a.handle(get(signOut)))
	r.GET("/dashboard/sign-in", a.handle(get(getSignIn)))
	r.GET("/dashboard/sign-in/oidc", a.handle(beginSignIn))
	r.GET("/dashboard/sign-in/oidc/callback", a.handle(finishSignIn))
}
