package main

// streamBugs break the streams of events.
func streamBugs() []Bug {
	return []Bug{
		{
			Name: "stream-places-of-the-servers-own", Breaks: "webhooks are sent however many follow events",
			File: "service/events/subscription.go", Anchor: "p.all >= inAll && tenant != lock.OwnTenant:", Becomes: "p.all >= inAll:",
			In: "./service/events", Run: "^TestPlacesAreNotTheServersOwn$",
		},
		{
			Name: "stream-past-the-token", Breaks: "a stream ends with its bearer token",
			File: "handlers/event_stream.go", Anchor: "time.NewTimer(time.Until(w.request.principal.Expires))", Becomes: "time.NewTimer(time.Hour)",
			In: "./handlers", Run: "^TestEventsEnd$", Needs: "etcd",
		},
		{
			Name: "stream-past-the-drain", Breaks: "a stream ends when its server shuts down",
			File: "service/follow.go", Anchor: "Draining: s.draining}", Becomes: "Draining: nil}",
			In: "./handlers", Run: "^TestEventsEnd$", Needs: "etcd",
		},
		{
			Name: "stream-names-of-a-set", Breaks: "of a set only the names are told that the reader may see",
			File: "api/event/filter.go", Anchor: "			seen = append(seen, all[i])\n		}\n	}\n	return seen", Becomes: "			seen = append(seen, all[i])\n		}\n	}\n	if len(seen) > 0 {\n		return all\n	}\n	return seen",
			In: "./handlers", Run: "^TestEventsOfSets$", Needs: "etcd",
		},
		{
			Name: "stream-beyond-the-token", Breaks: "the bearer token's patterns hold for events too",
			File: "api/event/filter.go", Anchor: "return matches(f.Within, name) && matches(f.Locks, name)", Becomes: "return matches(f.Locks, name)",
			In: "./handlers", Run: "^TestEventsOfSets$", Needs: "etcd",
		},
		{
			Name: "stream-of-all-tenants", Breaks: "a tenant is told of its own locks only",
			File: "handlers/events.go", Anchor: "return r.follow(r.tenant()) }", Becomes: "return r.follow(r.tenant()[:0]) }",
			In: "./handlers", Run: "^TestEventsOfOthers$", Needs: "etcd",
		},
		{
			Name: "stream-kept-for-who-stalls", Breaks: "who takes nothing is dropped, and its stream with it",
			File: "handlers/event_stream.go", Anchor: "time.Now().Add(w.timeout)", Becomes: "time.Now().Add(1000 * w.timeout)",
			In: "./handlers", Run: "^TestEventReaderThatStalls$", Needs: "etcd",
		},
		{
			Name: "stream-cut-like-an-answer", Breaks: "a stream lives for longer than an answer may take",
			File: "handlers/event_stream.go", Anchor: "\t\t_ = w.out.SetWriteDeadline(", Becomes: "\t\t_, _ = w.out, (",
			In: "./handlers", Run: "^TestHeartbeat$", Needs: "etcd",
		},
		{
			Name: "stream-quiet-place", Breaks: "a quiet stream can be resumed from where it is, not from its last event",
			File: "handlers/event_stream.go", Anchor: "[]byte(\":\\nid: \" + w.stream.At().String() + \"\\n\\n\")", Becomes: "[]byte(\":\\n\\n\")",
			In: "./handlers", Run: "^TestHeartbeat$", Needs: "etcd",
		},
		{
			Name: "watch-as-quiet-as-events", Breaks: "who watches learns within seconds that the server does not answer",
			File: "handlers/watch.go", Anchor: "w.every = min(w.every, watchBeat)", Becomes: "w.every = max(w.every, watchBeat)",
			In: "./handlers", Run: "^TestWatchShowsThatItIsThere$", Needs: "etcd",
		},
		{
			Name: "stream-to-a-head", Breaks: "who asks for the head of a stream gets no stream",
			File: "handlers/event_stream.go", Anchor: "if w.request.headOnly() {", Becomes: "if w.err != nil {",
			In: "./handlers", Run: "^TestHeadOfEvents$", Needs: "etcd",
		},
		{
			Name: "stream-stars-without-bound", Breaks: "what an event is held against is bounded",
			File: "handlers/events.go", Anchor: "strings.Count(text, \"*\") > maxEventStars", Becomes: "strings.Count(text, \"*\") > 1000*maxEventStars",
			In: "./handlers", Run: "^TestBadEventRequests$", Needs: "etcd",
		},
		{
			Name: "stream-counts-as-latency", Breaks: "how long a stream lasts is no latency",
			File: "handlers/events.go", Anchor: "\tr.waits = true // how long it lasts is the client's choice\n", Becomes: "",
			In: "./handlers", Run: "^TestEventsInTheMetrics$", Needs: "etcd",
		},
	}
}
