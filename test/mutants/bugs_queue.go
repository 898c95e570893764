package main

// queueBugs break package lock: the holders, their order, and the cycles of waits.
func queueBugs() []Bug {
	return []Bug{
		{
			Name: "lock-two-exclusive", Breaks: "one exclusive holder",
			File:    "lock/queue.go",
			Anchor:  "case first.Mode == Shared && next.Mode == Shared:",
			Becomes: "case first.Mode != Semaphore && next.Mode == first.Mode:",
			In:      "./lock", Run: "^TestFront$",
		},
		{
			Name:    "lock-semaphore-over-limit",
			Breaks:  "the permits up to a holder's own are at most its limit",
			File:    "lock/queue.go",
			Anchor:  "<= next.Limit",
			Becomes: "<= next.Limit+1",
			In:      "./lock", Run: "^TestFront$",
		},
		{
			Name: "lock-reader-passes-writer", Breaks: "a reader behind a waiting writer waits",
			File:   "lock/queue.go",
			Anchor: "\tfor first = q.next; q.next != nil && Joins(q.head.claim, int(q.taken), q.next.claim); n++ {\n",
			Becomes: "\tfor s := q.next; s != nil; s = s.next {\n" +
				"\t\tif Joins(q.head.claim, int(q.taken), s.claim) && !s.inFront && s != q.next {\n" +
				"\t\t\ts.inFront = true\n" +
				"\t\t\tq.front++\n" +
				"\t\t\tn++\n" +
				"\t\t}\n" +
				"\t}\n" +
				"\tfor first = q.next; q.next != nil && Joins(q.head.claim, int(q.taken), q.next.claim); n++ {\n",
			In: "./lock", Run: "^TestTableMatchesModel$",
		},
		{
			Name: "lock-out-of-order-insert", Breaks: "once head, always head",
			File:    "lock/table.go",
			Anchor:  "q != nil && q.newest >= e.Number",
			Becomes: "q != nil && q.newest == e.Number",
			In:      "./lock", Run: "^TestInsertRefusesWhatIsOutOfOrder$",
		},
		{
			Name: "lock-set-holds-in-part", Breaks: "a set holds all of its locks or none",
			File:    "lock/table.go",
			Anchor:  "return m.fronts == m.needs",
			Becomes: "return m.fronts > 0",
			In:      "./lock", Run: "^TestSetHoldsOnlyWhenItHoldsEverywhere$",
		},
		{
			Name: "lock-permits-not-freed", Breaks: "the end of a holder frees all of its permits",
			File:    "lock/queue.go",
			Anchor:  "q.taken -= int32(s.claim.Takes())",
			Becomes: "q.taken--",
			In:      "./lock", Run: "^TestTableMatchesModel$",
		},
		{
			Name: "lock-name-with-slash", Breaks: "a name is one path segment and one store key",
			File:    "lock/name.go",
			Anchor:  `"._:@=+-"`,
			Becomes: `"._:@=+-/"`,
			In:      "./lock", Run: "^TestNamesFollowTheirPatterns$",
		},
		{
			Name: "lock-superseded-holder", Breaks: "a newer request takes no lock from its holder",
			File:    "lock/deadlock/table.go",
			Anchor:  "\t\treturn grounds, ok\n",
			Becomes: "\t\treturn nil, ok\n",
			In:      "./service", Run: "^TestSupersededAndGranted$",
		},
		{
			Name: "lock-pool-holds-more-than-it-wants", Breaks: "a grant of any k of a pool has k locks",
			File:    "lock/table.go",
			Anchor:  "\t\tm.needs++\n",
			Becomes: "\t\tm.needs += 0\n",
			In:      "./lock", Run: "^TestTableMatchesModel$",
		},
		{
			Name:   "lock-rejection-outlives-its-cycle",
			Breaks: "a deadlock is a function of the entries that are present",
			File:   "lock/deadlock/detector.go",
			Anchor: "\tc.recheckDependents(n)\n" +
				"\tc.record(n, nil)\n",
			Becomes: "\tc.record(n, nil)\n",
			In:      "./lock/deadlock", Run: "^TestDeadlocksMatchBruteForce$",
		},
		{
			Name: "lock-search-without-end", Breaks: "a search for a deadlock has a bound",
			File:    "lock/deadlock/search.go",
			Anchor:  "left: min(MaxLooks, *looks)",
			Becomes: "left: *looks << 10",
			In:      "./lock/deadlock", Run: "^TestSearchIsBounded$",
		},
		{
			Name: "service-deadlock-unseen", Breaks: "exactly one request of a cycle is rejected",
			File:    "service/view/rejections.go",
			Anchor:  "\t\treturn lock.ErrDeadlock(rejection.Cycle)\n",
			Becomes: "\t\treturn nil\n",
			In:      "./service", Run: "^TestCrossingRequests$",
		},
	}
}
