package main

// storeBugs break what every store shares: batches, values, records, forms.
func storeBugs() []Bug {
	return []Bug{
		{
			Name:   "store-two-of-one-lock-in-a-batch",
			Breaks: "two entries of one lock do not share a number",
			File:   "store/batch/chain.go",
			Anchor: "\tc := p.chains[key]\n" +
				"\tif c == nil {\n" +
				"\t\tc = &chain",
			Becomes: "\tkey += string(rune('a' + p.all.Writes%26))\n" +
				"\tc := p.chains[key]\n" +
				"\tif c == nil {\n" +
				"\t\tc = &chain",
			In: "./store/batch", Run: "^TestLongChainHoldsUpNothingElse$",
		},
		{
			Name: "store-batch-without-bytes", Breaks: "a batch is bounded in bytes",
			File:    "store/batch/pending.go",
			Anchor:  "(ops > p.limits.Ops || bytes > p.limits.Bytes)",
			Becomes: "(ops > p.limits.Ops)",
			In:      "./store/batch", Run: "^TestBatchIsBoundedInBytes$",
		},
		{
			Name:    "store-batch-without-turns",
			Breaks:  "the pending writes of a tenant delay another tenant's by one batch at most",
			File:    "store/batch/turns.go",
			Anchor:  "for t.now.credit <= 0 {",
			Becomes: "for false {",
			In:      "./store/batch", Run: "^TestBacklogOfATenantDelaysNoOther$",
		},
		{
			Name:    "store-pending-without-bound",
			Breaks:  "pending writes are bounded, per tenant too",
			File:    "store/batch/pending.go",
			Anchor:  "if fits || w.Must {",
			Becomes: "if true {",
			In:      "./store/batch", Run: "^TestOverBoundIsRejectedAtOnce$",
		},
		{
			Name: "store-removal-refused", Breaks: "pending writes do not get a release rejected",
			File:    "store/batch/pending.go",
			Anchor:  "if fits || w.Must {",
			Becomes: "if fits {",
			In:      "./store/batch", Run: "^TestOverBoundIsRejectedAtOnce$",
		},
		{
			Name:    "store-denies-what-may-be-done",
			Breaks:  "a write that may have been executed is not reported as failed",
			File:    "store/batch/write.go",
			Anchor:  "\tif w.OutcomeUnknown {\n",
			Becomes: "\tif false {\n",
			In:      "./store/batch", Run: "^TestClosedBetweenAttempts$",
		},
		{
			Name:    "store-damaged-lets-others-in",
			Breaks:  "an unreadable entry stays the exclusive holder",
			File:    "store/value.go",
			Anchor:  "Claims: []lock.Claim{{Name: key.Lock, Mode: lock.Exclusive}},",
			Becomes: "Claims: []lock.Claim{{Name: key.Lock, Mode: lock.Shared}},",
			In:      "./store", Run: "^TestDamaged$",
		},
		{
			Name:    "form-earlier-is-read",
			Breaks:  "a store of an earlier version is refused",
			File:    "store/form.go",
			Anchor:  "case form < Form:",
			Becomes: "case form < 0:",
			In:      "./store/memory", Run: "^TestConformance$/^form$/^a_store_of_an_earlier",
		},
		{
			Name:    "form-not-judged",
			Breaks:  "a replica that does not understand the stored form grants nothing",
			File:    "store/trust.go",
			Anchor:  "\tcase form != nil:\n",
			Becomes: "\tcase form != nil && r.Form == 0:\n",
			In:      "./store", Run: "^TestTrustInAForm$",
		},
		{
			Name:    "records-lost-answer-is-refused",
			Breaks:  "a record write whose answer was lost is found again",
			File:    "store/engine/swap.go",
			Anchor:  "if !w.Delete && s.Found && s.Mark == w.Mark {",
			Becomes: "if s.Mark == `none` {",
			In:      "./store/engine", Run: "^TestRecordLostAnswer$",
		},
		{
			Name:    "records-late-write-brings-back",
			Breaks:  "a late write does not restore a deleted record",
			File:    "store/memory/values.go",
			Anchor:  " || now.Stamp != c.Was.Stamp",
			Becomes: "",
			In:      "./store/memory", Run: "^TestLateRecord$",
		},
	}
}
