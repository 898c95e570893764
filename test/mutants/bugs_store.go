package main

// storeBugs break what package store decides for all stores.
func storeBugs() []Bug {
	return []Bug{
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
			File: "store/pending.go", Anchor: "\tc := p.chains[key]\n\tif c == nil {\n\t\tc = &chain",
			Becomes: "\tkey += string(rune('a' + p.all.Writes%26))\n\tc := p.chains[key]\n\tif c == nil {\n\t\tc = &chain",
			In:      "./store", Run: "^TestLongChainHoldsUpNothingElse$",
		},
		{
			Name: "store-batch-without-bytes", Breaks: "a batch is bounded in bytes",
			File: "store/pending.go", Anchor: "(ops > p.limits.Ops || bytes > p.limits.Bytes)", Becomes: "(ops > p.limits.Ops)",
			In: "./store", Run: "^TestBatchIsBoundedInBytes$",
		},
		{
			Name: "store-overload-waits", Breaks: "what cannot be written in time is refused at once",
			File: "store/pending.go", Anchor: "if fits && (before < alwaysAdmitted || wait <= b.Budget) {", Becomes: "if fits {",
			In: "./store", Run: "^TestOverload$",
		},
		{
			Name: "store-pending-without-bound", Breaks: "what is pending is bounded, for each tenant too",
			File: "store/pending.go", Anchor: "if fits && (before < alwaysAdmitted || wait <= b.Budget) {", Becomes: "if before < alwaysAdmitted || wait <= b.Budget {",
			In: "./store", Run: "^TestOverload$",
		},
		{
			Name: "store-removal-refused", Breaks: "a release is not refused because others are pending",
			File: "store/pending.go", Anchor: "if w.Must {", Becomes: "if false {",
			In: "./store", Run: "^TestOverload$",
		},
		{
			Name: "store-abandoned-is-sent-again", Breaks: "nothing is sent again that its caller has given up",
			File: "store/committer.go", Anchor: "if w.again = false; closed || w.Abandoned() {", Becomes: "if w.again = false; closed {",
			In: "./store", Run: "^TestGivenUp$", Hangs: true,
		},
		{
			Name: "store-one-lock-in-a-row", Breaks: "a burst on one lock has more transactions in flight",
			File: "store/committer.go", Anchor: "return int(c.pace.window)\n\t}", Becomes: "return c.limits.InFlight\n\t}",
			In: "./store", Run: "^TestLongChainHoldsUpNothingElse$|^TestManyOfOneLock$",
		},
		{
			Name: "store-slow-store-swamped", Breaks: "a slow store has less to write at once",
			File: "store/pending.go", Anchor: "p.window = max(p.window*0.9, min(fewest, float64(most)))", Becomes: "p.window = float64(most)",
			In: "./store", Run: "^TestSlowStoreIsSentLess$",
		},
		{
			Name: "store-admitted-too-much", Breaks: "what was admitted before the pace was known is refused when it is",
			File: "store/committer.go", Anchor: "late, refusal := c.pending.shed(batch, &c.pace)", Becomes: "late, refusal := c.pending.shed(nil, &c.pace)",
			In: "./store", Run: "^TestShedding$",
		},
		{
			Name: "store-patience-without-end", Breaks: "a patient write is held back for the linger at most",
			File: "store/committer.go", Anchor: "\tif w.Patient {\n\t\tc.arm()\n\t}\n", Becomes: "",
			In: "./store", Run: "^TestPatience$",
		},
	}
}
