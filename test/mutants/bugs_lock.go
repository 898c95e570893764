package main

// lockBugs break what package lock and those below it decide: who holds, in which order,
// and who waits for ever.
func lockBugs() []Bug {
	return []Bug{
		{
			Name: "lock-event-of-a-try", Breaks: "a try that nobody was told of makes no event",
			File: "lock/event.go", Anchor: "\t\tif e.Tries() {\n\t\t\treturn Event{}, false\n\t\t}\n", Becomes: "",
			In: "./lock", Run: "^TestEventsOfEntries$",
		},
		{
			Name: "lock-event-id-with-zeros", Breaks: "an event id has one spelling",
			File: "lock/event.go", Anchor: " || id.String() != text", Becomes: "",
			In: "./lock", Run: "^TestEventIDs$",
		},
		{
			Name: "lock-two-exclusive", Breaks: "one holder",
			File: "lock/queue.go", Anchor: "case first.Mode == Shared && next.Mode == Shared:",
			Becomes: "case first.Mode != Semaphore && next.Mode == first.Mode:",
			In:      "./lock", Run: "^TestFront$",
		},
		{
			Name: "lock-semaphore-over-limit", Breaks: "a semaphore's first `limit` entries hold",
			File: "lock/queue.go", Anchor: "n < next.Limit", Becomes: "n <= next.Limit",
			In: "./lock", Run: "^TestFront$",
		},
		{
			Name: "lock-reader-passes-writer", Breaks: "a reader behind a waiting writer waits",
			File: "lock/queue.go", Anchor: "\tfor q.next != nil && Joins(q.head.claim, q.front, q.next.claim) {\n",
			Becomes: "\tfor s := q.next; s != nil; s = s.next {\n\t\tif Joins(q.head.claim, q.front, s.claim) && !s.inFront && s != q.next {\n" +
				"\t\t\ts.inFront = true\n\t\t\tq.front++\n\t\t\tentered = append(entered, s)\n\t\t}\n\t}\n" +
				"\tfor q.next != nil && Joins(q.head.claim, q.front, q.next.claim) {\n",
			In: "./lock", Run: "^TestTableMatchesModel$",
		},
		{
			Name: "lock-out-of-order-insert", Breaks: "once head, always head",
			File: "lock/table.go", Anchor: "q != nil && q.newest >= e.Number", Becomes: "q != nil && q.newest == e.Number",
			In: "./lock", Run: "^TestInsertRefusesWhatIsOutOfOrder$",
		},
		{
			Name: "lock-set-holds-in-part", Breaks: "a set holds all of its locks or none",
			File: "lock/table.go", Anchor: "return m.fronts == len(m.slots)", Becomes: "return m.fronts > 0",
			In: "./lock", Run: "^TestSetHoldsOnlyWhenItHoldsEverywhere$",
		},
		{
			Name: "lock-modes-mix", Breaks: "entries of one lock agree on mode and limit",
			File: "lock/entry.go", Anchor: "return (c.Mode == Semaphore) == (other.Mode == Semaphore) && c.Limit == other.Limit",
			Becomes: "return (c.Mode == Semaphore) == (other.Mode == Semaphore)",
			In:      "./lock/deadlock", Run: "^TestClash$",
		},
		{
			Name: "lock-name-with-slash", Breaks: "a name is a path segment and a store key as it stands",
			File: "lock/name.go", Anchor: `"._:@=+-"`, Becomes: `"._:@=+-/"`,
			In: "./lock", Run: "^TestNamesFollowTheirPatterns$",
		},
		{
			Name: "lock-holder-turns-the-writing", Breaks: "a holder shows as it is",
			File: "lock/text.go", Anchor: "unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp)", Becomes: "false",
			In: "./lock", Run: "^TestCheckHolder$",
		},
		{
			Name: "lock-escape-in-metadata", Breaks: "metadata have no control characters",
			File: "lock/text.go", Anchor: "return unicode.IsControl(r) && r !=", Becomes: "return r == 0 && r !=",
			In: "./lock", Run: "^TestCheckMetadata$",
		},
		{
			Name: "lock-rejection-outlives-its-cycle", Breaks: "a deadlock is a function of the entries that are there",
			File: "lock/deadlock/detector.go", Anchor: "\tc.recheckDependents(n)\n\tc.record(n, nil)\n", Becomes: "\tc.record(n, nil)\n",
			In: "./lock/deadlock", Run: "^TestDeadlocksMatchBruteForce$",
		},
		{
			Name: "lock-lifted-rejection-harms-nobody", Breaks: "a deadlock is a function of the entries that are there",
			File: "lock/deadlock/detector.go", Anchor: "\t\tt.lookBehind(n, n.entry)\n", Becomes: "",
			In: "./lock/deadlock", Run: "^TestDeadlocksMatchBruteForce$",
		},
		{
			Name: "lock-same-write-unchecked", Breaks: "entries that were written together are checked in order, in whatever order they are told",
			File: "lock/deadlock/detector.go", Anchor: "		t.scheduleBeside(n)\n", Becomes: "		_ = n\n",
			In: "./lock/deadlock", Run: "^TestWrittenTogether$",
		},
		{
			Name: "lock-same-write-looked-behind", Breaks: "to learn of many locks takes no search, in whatever order they are told",
			File: "lock/deadlock/detector.go", Anchor: "		t.scheduleBeside(n)\n", Becomes: "		t.scheduleBeside(n)\n		t.lookBehind(n, t.detector.newest)\n",
			In: "./lock/deadlock", Run: "^TestManyWrittenTogether$",
		},
		{
			Name: "lock-earlier-writes-remembered", Breaks: "of who waits, those of one write are remembered for the next to come",
			File: "lock/deadlock/detector.go", Anchor: "		c.beside = c.beside[:0]\n", Becomes: "",
			In: "./lock/deadlock", Run: "^TestManyWrittenTogether$",
		},
		{
			Name: "lock-checked-by-later-ones", Breaks: "a deadlock is a function of the entries that are there",
			File: "lock/deadlock/search.go", Anchor: " && in.sees(other) {\n\t\t\tin.include(other)", Becomes: " {\n\t\t\tin.include(other)",
			In: "./lock/deadlock", Run: "^TestDeadlocksMatchBruteForce$",
		},
		{
			Name: "lock-semaphore-waits-for-one", Breaks: "a semaphore waits for as many as it has units",
			File: "lock/blockers.go", Anchor: "if c.Mode != Semaphore || len(alike) < c.Limit {\n\t\treturn nil\n\t}\n\treturn alike\n", Becomes: "return alike[:min(1, len(alike))]\n",
			In: "./lock", Run: "^TestBlockersAreBounded$",
		},
		{
			Name: "lock-search-without-end", Breaks: "a search for a deadlock looks at a bounded number of places",
			File: "lock/deadlock/search.go", Anchor: "left: min(MaxLooks, *looks)", Becomes: "left: *looks << 10",
			In: "./lock/deadlock", Run: "^TestSearchIsBounded$",
		},
		{
			Name: "lock-searches-for-all", Breaks: "a holder for whom nobody waits costs no search",
			File: "lock/deadlock/deadlock.go", Anchor: " || !h.awaited(n)", Becomes: "",
			In: "./lock/deadlock", Run: "^TestWhoIsNotAwaited$",
		},
		{
			Name: "lock-looks-behind-all", Breaks: "behind an entry for which nobody waits nothing is looked for",
			File: "lock/deadlock/detector.go", Anchor: "if !n.inTheWay() {", Becomes: "if n == nil {",
			In: "./lock/deadlock", Run: "^TestLiftedBehindNobody$",
		},
		{
			Name: "lock-crowd-is-one-holder", Breaks: "a name with more than 100 waits is not taken for one holder",
			File: "lock/deadlock/holder.go", Anchor: "if h.waiting > MaxWaits {", Becomes: "if h == nil {",
			In: "./lock/deadlock", Run: "^TestManyOfOneName$",
		},
		{
			Name: "lock-try-that-came-to-hold", Breaks: "who waits for ever behind a try that came to hold is refused",
			File: "lock/deadlock/detector.go", Anchor: "case n.entry.Tries():", Becomes: "case false:",
			In: "./lock/deadlock", Run: "^TestBarredTry$",
		},
		{
			Name: "lock-change-without-end", Breaks: "all checks because of one change have a bound together",
			File: "lock/deadlock/detector.go", Anchor: "\tt.detector.looks = maxLooksOfChange\n\tfor t.detector.pending.Len() > 0 {\n",
			Becomes: "\tfor t.detector.pending.Len() > 0 {\n\t\tt.detector.looks = maxLooksOfChange\n",
			In:      "./lock/deadlock", Run: "^TestOneChangeIsBounded$",
		},
		{
			Name: "heap-gap-not-closed", Breaks: "what takes the place of an element that is removed gets to its own",
			File: "lock/heap/heap.go", Anchor: "if at < last {", Becomes: "if at < last && at > 0 {",
			In: "./lock/heap", Run: "^TestHeap$",
		},
	}
}
