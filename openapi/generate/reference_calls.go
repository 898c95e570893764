package main

const (
	keepEntry = "ENTRY=$(field id) LOCK_TOKEN=$(field token) FENCE=$(field fence)"
	keepSet   = "SET=$(field id) SET_TOKEN=$(field token) FENCE=$(field fence)"

	// acquire is the beginning of a command.
	acquire = `curl -s "$FENCEPOST_URL/locks/orders:42" -H "Authorization: Bearer $FENCEPOST_TOKEN" \
  --json `
	createWebhook = `curl -s "$FENCEPOST_URL/webhooks" -H "Authorization: Bearer $FENCEPOST_TOKEN" \
  --json '{"url":"https://example.org/events","events":["lock.acquired"]}' >answer.json
`
	acquireSet = `curl -s "$FENCEPOST_URL/locksets" -H "Authorization: Bearer $FENCEPOST_TOKEN" \
  --json '{"locks":[{"name":"stock:7"},{"name":"stock:8"}]}' >answer.json
` + keepSet + "\n"
)

// sections are the page, in the order in which its examples run on one server.
func sections() []section {
	return []section{
		{title: "Locks", about: "Acquire, renew, release and look at locks.", calls: lockCalls()},
		{title: "Lock sets", about: "Several locks, all or none.", calls: setCalls()},
		{
			title: "Webhooks", about: "Subscriptions of the tenant: [receive webhooks](../how-to/receive-webhooks.md).",
			calls: webhookCalls(),
		},
		{
			title: "Operators", about: "For the [operators](../operate/operators.md) of one tenant or all. " +
				"The examples look at a held lock with a waiter:",
			before: acquire + `'{"holder":"worker-7","ttl_seconds":60}' >answer.json
` + keepEntry + `
` + acquire + `'{"holder":"worker-8","async":true,"wait_seconds":60}' >waiting.json`,
			calls: operatorCalls(),
		},
		{title: "Closures and quotas", about: "Close locks for a time, and bound what a tenant uses.", calls: closureCalls()},
		{title: "Revocations", about: "Look first, then name what you saw.", calls: revokeCalls()},
		{
			title: "Webhooks of all tenants", about: "Operators see, pause and retry them.",
			before: createWebhook + "WEBHOOK=$(field id)", calls: allWebhookCalls(),
		},
	}
}

func lockCalls() []call {
	return []call{
		{operation: "acquireLock", header: "Idempotency-Key: nightly-2026-01-02", after: keepEntry},
		{operation: "getEntry"},
		{operation: "renewLock"},
		{operation: "getLock"},
		{operation: "listLocks", query: "?prefix=orders:&state=held"},
		{
			operation: "followEvents", query: "?types=lock.acquired&locks=orders:*",
			header: "Last-Event-ID: 0-0",
		},
		{operation: "reportStaleWrite", body: `{"fence_known":"#FENCE","fence_presented":1,"resource":"accounts database"}`},
		{operation: "releaseLock"},
	}
}

func setCalls() []call {
	return []call{
		{operation: "acquireLockSet", after: keepSet},
		{operation: "getLockSet"},
		{operation: "renewLockSet"},
		{operation: "releaseLockSet"},
	}
}

func webhookCalls() []call {
	return []call{
		{
			operation: "createWebhook", body: `{"url":"https://example.org/events","events":["lock.acquired"],"locks":"orders:*"}`,
			after: "WEBHOOK=$(field id)",
		},
		{operation: "listWebhooks"},
		{operation: "getWebhook"},
		{operation: "changeWebhook", body: `{"paused":true}`},
		{operation: "testWebhook", after: "DELIVERY=$(field delivery)"},
		{operation: "listDeliveries"},
		{operation: "redeliver"},
		{operation: "rotateWebhook"},
		{operation: "rotateCallbackSecret"},
		{operation: "deleteWebhook"},
	}
}

func operatorCalls() []call {
	return []call{
		{operation: "getOverview"},
		{operation: "listTenants"},
		{operation: "listAllLocks", query: "?search=orders&state=contended&sort=-waiters"},
		{operation: "getAnyLock"},
		{operation: "getLockHistory"},
		{operation: "getBlocking"},
		{operation: "getHoldings", query: "?tenant=demo&holder=worker-7"},
		{operation: "getSeries"},
		{operation: "getHeatMap"},
		{operation: "listDeadlocks"},
		{operation: "getLockOrder"},
		{operation: "listAudit", query: "?limit=10"},
		{operation: "followAllEvents", query: "?tenant=demo", header: "Last-Event-ID: 0-0"},
	}
}

func closureCalls() []call {
	return []call{
		{
			operation: "closeLocks",
			before: `UNTIL=$(python3 -c 'import time
print(time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600)))')
`,
			body:  `{"tenant":"demo","locks":"nightly:*","until":"$UNTIL","reason":"the stock is counted"}`,
			after: "CLOSURE=$(field id)",
		},
		{operation: "listClosures"},
		{operation: "openLocks", query: "?reason=the+stock+is+counted+now"},
		{operation: "setQuota", body: `{"held_locks":500}`},
		{operation: "getQuota"},
		{operation: "resetQuota"},
	}
}

func revokeCalls() []call {
	const why = `"reason":"its node was lost in the fire"`
	return []call{
		{operation: "revokeEntry", body: `{"fence":"#FENCE",` + why + `}`},
		{operation: "revokeSet", before: acquireSet, body: `{"fence":"#FENCE",` + why + `}`},
		{
			operation: "revokeHolder", before: `curl -s "$FENCEPOST_URL/admin/locks/demo/orders:42" \
  -H "Authorization: Bearer $FENCEPOST_TOKEN" >answer.json
ENTRY=$(field id) FENCE=$(field fence)
`,
			body: `{"tenant":"demo","holder":"worker-8","entries":[{"id":"$ENTRY","fence":"#FENCE"}],` + why + `}`,
		},
	}
}

func allWebhookCalls() []call {
	return []call{
		{operation: "listAllWebhooks"},
		{operation: "getAnyWebhook"},
		{operation: "pauseAnyWebhook", body: `{"paused":true,"reason":"its receiver is repaired"}`},
		{operation: "listAnyDeliveries", before: `curl -s -X POST "$FENCEPOST_URL/webhooks/$WEBHOOK/test" \
  -H "Authorization: Bearer $FENCEPOST_TOKEN" >answer.json
DELIVERY=$(field delivery)
`},
		{operation: "redeliverAny"},
	}
}
