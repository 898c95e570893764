package main

// telemetryBugs break what figures, spans and lines promise.
func telemetryBugs() []Bug {
	return []Bug{
		{
			Name: "figures-embedded-size-untold", Breaks: "how full the embedded store is is in the metrics",
			File: "store/etcd/embedded.go", Anchor: "size: m.size, ", Becomes: "",
			In: "./cmd/api", Run: "^TestEmbeddedSize$",
		},
		{
			Name: "figures-all-tenants-named", Breaks: "no more tenants are named than the operator wants",
			File: "telemetry/tenants.go", Anchor: "len(t.named) >= t.most", Becomes: "len(t.named) > t.most",
			In: "./telemetry", Run: "^TestNamedTenants$",
		},
		{
			Name: "figures-others-by-number", Breaks: "of other tenants the one is shown that is nearest to its limit",
			File: "telemetry/tenants.go", Anchor: "u.part(l) > best.part(l)", Becomes: "u.Used[l] > best.Used[l]",
			In: "./telemetry", Run: "^TestNamedTenants$",
		},
		{
			Name: "figures-backlog-outlives-shard", Breaks: "a replica that has lost a shard has no backlog of it",
			File: "webhook/outbox/owner.go", Anchor: "	defer w.owes.Store(nil)\n", Becomes: "",
			In: "./webhook/outbox", Run: "^TestBacklogIsTold$",
		},
		{
			Name: "figures-late-is-lost", Breaks: "a renewal that comes after the end of its lease is counted as late",
			File: "service/slack.go", Anchor: "lost.Reason == lock.Expired", Becomes: "lost.Reason == lock.Revoked",
			In: "./service", Run: "^TestLeaseMetrics$",
		},
		{
			Name: "figures-slack-of-each", Breaks: "the store is asked what is left of few leases only",
			File: "service/slack.go", Anchor: "slackEvery   = 100 * time.Millisecond", Becomes: "slackEvery   = 0 * time.Millisecond",
			In: "./service", Run: "^TestLeaseMetrics$",
		},
		{
			Name: "figures-slack-asks-on", Breaks: "a store in trouble is not asked what is left of leases",
			File: "service/slack.go", Anchor: "case ctx.Err() == nil && !errors.Is(err, lock.Lost):", Becomes: "case ctx.Err() == nil && errors.Is(err, lock.Lost):",
			In: "./service", Run: "^TestLeaseMetrics$",
		},
		{
			Name: "figures-deepest-never-falls", Breaks: "the longest queue is that of now",
			File: "service/view/depths.go", Anchor: "d.most > 0 && d.locks[d.most] == 0", Becomes: "d.most > len(d.of) && d.locks[d.most] == 0",
			In: "./service", Run: "^TestDeepest$",
		},
	}
}
