package main

// asyncBugs break what keeps an entry without a connection.
func asyncBugs() []Bug {
	return []Bug{
		{
			Name: "async-not-renewed", Breaks: "the replicas renew an async entry", File: "service/async.go",
			Anchor: "third := e.entry.TTL / 3", Becomes: "third := e.entry.TTL * 3", In: "./service",
			Run: "^TestAsync$",
		},
		{
			Name: "async-kept-after-grant", Breaks: "an unclaimed grant expires",
			File: "service/async_grant.go", Anchor: "return err == nil, err", Becomes: "return false, err",
			In: "./service", Run: "^TestAsync$",
		},
		{
			Name: "async-not-taken-over", Breaks: "running replicas take over the entries of a stopped one",
			File: "service/async.go", Anchor: "case e.mine && !was:",
			Becomes: "case e.mine && !was && a.attended < 0:", In: "./service", Run: "^TestAsyncShared$",
		},
	}
}
