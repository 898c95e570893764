package main

// storeBugs break what package store decides for all stores.
func storeBugs() []Bug {
	return []Bug{
		{
			Name: "store-cleans-in-order", Breaks: "a tenant's many abandoned writes do not delay another's",
			File: "store/turns.go", Anchor: "t.turns = append(t.turns, tenant)\n\t}\n\treturn x, true", Becomes: "t.turns = append([]string{tenant}, t.turns...)\n\t}\n\treturn x, true",
			In: "./store", Run: "^TestCleanerTakesTurns$",
		},
		{
			Name: "store-cleaner-refuses-the-last", Breaks: "while too many abandoned writes wait, the tenant with most gives way",
			File: "store/turns.go", Anchor: "most := slices.MaxFunc(t.turns", Becomes: "most := slices.MinFunc(t.turns",
			In: "./store", Run: "^TestCleanerTakesTurns$",
		},
		{
			Name: "store-entry-for-centuries", Breaks: "what no replica can have written is not believed",
			File: "store/value.go", Anchor: "if v.TTL <= 0 || v.TTL > lock.MaxTTL.Milliseconds() {", Becomes: "if v.TTL <= 0 {",
			In: "./store", Run: "^TestDamage$",
		},
		{
			Name: "store-claims-of-another-lock", Breaks: "an entry stands in the queues of its key only",
			File: "store/value.go", Anchor: "case !slices.ContainsFunc(claims, func(c lock.Claim) bool { return c.Name == key.Lock }):",
			Becomes: "case !slices.ContainsFunc(claims, func(c lock.Claim) bool { return c.Name != `` }):",
			In:      "./store", Run: "^TestDamage$",
		},
		{
			Name: "store-damaged-lets-others-in", Breaks: "an entry that cannot be read keeps its place, alone",
			File: "store/value.go", Anchor: "Claims: []lock.Claim{{Name: key.Lock, Mode: lock.Exclusive}},",
			Becomes: "Claims: []lock.Claim{{Name: key.Lock, Mode: lock.Shared}},",
			In:      "./store", Run: "^TestDamaged$",
		},
		{
			Name: "store-two-of-one-lock-in-a-batch", Breaks: "two entries of one lock do not share a number",
			File: "store/batch/pending.go", Anchor: "\tc := p.chains[key]\n\tif c == nil {\n\t\tc = &chain",
			Becomes: "\tkey += string(rune('a' + p.all.Writes%26))\n\tc := p.chains[key]\n\tif c == nil {\n\t\tc = &chain",
			In:      "./store", Run: "^TestLongChainHoldsUpNothingElse$",
		},
		{
			Name: "store-batch-without-bytes", Breaks: "a batch is bounded in bytes",
			File: "store/batch/pending.go", Anchor: "(ops > p.limits.Ops || bytes > p.limits.Bytes)", Becomes: "(ops > p.limits.Ops)",
			In: "./store", Run: "^TestBatchIsBoundedInBytes$",
		},
		{
			Name: "store-overload-waits", Breaks: "what cannot be written in time is refused at once",
			File: "store/batch/pending.go", Anchor: "if fits && (before < alwaysAdmitted || wait <= budget) {", Becomes: "if fits || wait+budget < 0 {",
			In: "./store", Run: "^TestOverload$",
		},
		{
			Name: "store-pending-without-bound", Breaks: "what is pending is bounded, for each tenant too",
			File: "store/batch/pending.go", Anchor: "if fits && (before < alwaysAdmitted || wait <= budget) {", Becomes: "if fits || before < alwaysAdmitted || wait <= budget {",
			In: "./store", Run: "^TestOverload$",
		},
		{
			Name: "store-removal-refused", Breaks: "a release is not refused because others are pending",
			File: "store/batch/pending.go", Anchor: "if w.Must {", Becomes: "if false {",
			In: "./store", Run: "^TestOverload$",
		},
		{
			Name: "store-abandoned-is-sent-again", Breaks: "nothing is sent again that its caller has given up",
			File: "store/batch/committer.go", Anchor: "if w.retried = false; closed || w.Abandoned() {", Becomes: "if w.retried = false; closed {",
			In: "./store", Run: "^TestGivenUp$", Hangs: true,
		},
		{
			Name: "store-one-lock-in-a-row", Breaks: "a burst on one lock has more transactions in flight",
			File: "store/batch/committer.go", Anchor: "return int(c.pace.window)\n\t}", Becomes: "return c.limits.InFlight\n\t}",
			In: "./store", Run: "^TestLongChainHoldsUpNothingElse$|^TestManyOfOneLock$",
		},
		{
			Name: "store-slow-store-swamped", Breaks: "a slow store has less to write at once",
			File: "store/batch/pending.go", Anchor: "p.window = max(p.window*0.9, min(fewest, float64(most)))", Becomes: "p.window = float64(most)",
			In: "./store", Run: "^TestSlowStoreIsSentLess$",
		},
		{
			Name: "store-burst-runs-out-of-time", Breaks: "what came with many others is written for as long as others are",
			File: "store/batch/committer.go", Anchor: "case !lost && !late:", Becomes: "case !lost && !late && now.IsZero():",
			In: "./store", Run: "^TestBurstOutlastsACall$",
		},
		{
			Name: "store-burst-waits-for-a-lost-store", Breaks: "who is pending is told of a store that is lost",
			File: "store/batch/committer.go", Anchor: "lost, late := now.Sub(c.wrote) >= silence,", Becomes: "lost, late := now.Sub(c.wrote) >= time.Hour,",
			In: "./store", Run: "^TestStoreFallsSilent$",
		},
		{
			Name: "store-tenants-in-a-row", Breaks: "a tenant with thousands of writes does not make others wait for them",
			File: "store/batch/pending.go", Anchor: "\t\tp.turns.MoveToBack(e)\n", Becomes: "",
			In: "./store", Run: "^TestTenantsTakeTurns$",
		},
		{
			Name: "store-refused-for-others", Breaks: "nobody is refused because of what other tenants have pending",
			File: "store/batch/pending.go", Anchor: "before := max(min(p.ops, ops*turns)/p.limits.Ops,", Becomes: "before := max(max(p.ops, ops*turns)/p.limits.Ops,",
			In: "./store", Run: "^TestOthersAreNoReasonToRefuse$",
		},
		{
			Name: "store-standstill-counts-for-each", Breaks: "nobody is refused because the store stood still for a moment",
			File: "store/batch/pending.go", Anchor: "* (lasted / time.Duration(p.samples))", Becomes: "* max(p.between, lasted/time.Duration(p.samples))",
			In: "./store", Run: "^TestStoreThatStandsStill$",
		},
		{
			Name: "store-burst-begins-slowly", Breaks: "nobody is refused because of the first few writes of a burst",
			File: "store/batch/pending.go", Anchor: "if lasted < settled || ", Becomes: "if lasted <= 0 || ",
			In: "./store", Run: "^TestPaceIsTheBurstsOwn$",
		},
		{
			Name: "store-burst-at-the-pace-before", Breaks: "nobody is refused because of what was written before the burst",
			File: "store/batch/pending.go", Anchor: "settled || now.Sub(p.latest) > stale {", Becomes: "settled || now.Sub(p.latest) > time.Hour {",
			In: "./store", Run: "^TestPaceIsTheBurstsOwn$",
		},
		{
			Name: "store-refused-late", Breaks: "who needs something else first is refused before that",
			File: "store/batch/committer.go", Anchor: "\tc.pending.reserve(w, 1, w.Bytes)\n", Becomes: "\tc.pending.reserve(w, 0, 0)\n",
			In: "./store", Run: "^TestReserve$",
		},
		{
			Name: "store-refused-after-the-wait", Breaks: "a write is refused if it would be too late for who asks for it",
			File: "store/batch/pending.go", Anchor: "budget = min(budget, w.Within)", Becomes: "budget = max(budget, w.Within)",
			In: "./store", Run: "^TestWithin$",
		},
		{
			Name: "etcd-refused-after-the-lease", Breaks: "a join is refused on arrival, and not when it has got a lease",
			File: "store/etcd/join.go", Anchor: "\tif err != nil {\n\t\treturn err\n\t}\n\tdefer release()", Becomes: "\tif err == nil {\n\t\tdefer release()\n\t}",
			In: "./store/etcd", Run: "^TestRefusedBeforeALeaseIsAsked$", Needs: "etcd",
		},
		{
			Name: "store-denies-what-may-be-done", Breaks: "of a write that was handed back and may have been executed nobody says that it was not",
			File: "store/batch/write.go", Anchor: "\tif w.OutcomeUnknown {\n", Becomes: "\tif false {\n",
			In: "./store", Run: "^TestClosedBetweenAttempts$",
		},
		{
			Name: "store-patience-without-end", Breaks: "a patient write is held back for the linger at most",
			File: "store/batch/committer.go", Anchor: "\tif w.Lingers {\n\t\tc.arm()\n\t}\n", Becomes: "",
			In: "./store", Run: "^TestPatience$",
		},
	}
}
