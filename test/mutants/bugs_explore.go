package main

// exploreBugs break the protocol between replicas and store: twelve mistakes, and nine protections
// whose removal only a rare order shows. The explorer finds them in the scenario that the row
// names, and tells the shortest story. What it cannot reach has a test that shows it.
func exploreBugs() []Bug {
	return append(foundByBoth(), foundByExploring()...)
}

const (
	explorer      = "./test/simulation"
	twoDeviations = "EXPLORE_DEVIATIONS=2"
)

// foundByBoth returns the bugs of the table that the explorer finds too, with the scenario.
func foundByBoth() (bugs []Bug) {
	scenarios := map[string]string{
		"engine-settled-while-it-may-come":     "hand-over",
		"engine-taken-back-while-it-may-come":  "hang-up-while-it-is-written",
		"engine-silence-is-refusal":            "hand-over",
		"engine-fresh-entry-written-twice":     "revoked-before-the-answer",
		"engine-key-taken-back":                "key-that-was-given-up",
		"engine-given-up-stays":                "hang-up-while-it-is-written",
		"engine-denies-what-may-be-done":       "retry-with-a-key",
		"service-grant-ahead-of-an-older-view": "hand-over",
		"service-gone-client-stays":            "hang-up-while-it-is-written",
		"simulation-gap-calls-nobody":          "callback-after-a-gap",
	}
	for _, b := range table() {
		if s := scenarios[b.Name]; s != "" {
			b.In, b.Run = explorer, "^TestExplore$/^"+s+"$"
			bugs = append(bugs, b)
		}
	}
	return bugs
}

func foundByExploring() []Bug {
	return []Bug{
		{
			Name:    "explore-gives-way-to-nobody",
			Breaks:  "a removal that a view decides compares what it was decided by",
			File:    "service/withdraw.go",
			Anchor:  "w.Store.Remove(ctx, e, why, blockers...)",
			Becomes: "w.Store.Remove(ctx, e, why, blockers[:0]...)",
			In:      explorer, Run: "^TestExplore$/^time-out-of-a-key-at-both$", Env: twoDeviations,
		},
		{
			Name:   "explore-refused-by-nobody",
			Breaks: "an entry is refused only while the whole reason stands",
			File:   "service/withdraw.go",
			Anchor: "endOf(e, refused), while...)", Becomes: "endOf(e, refused), while[:0]...)",
			In: explorer, Run: "^TestExplore$/^only-the-newest$",
		},
		{
			Name:    "explore-used-up-by-an-old-view",
			Breaks:  "a key is used up only by a view that has every write before the call",
			File:    "service/acquire.go",
			Anchor:  "if !s.settled(ctx) {\n\t\treturn ctx.Err() // nil",
			Becomes: "if !s.settled(ctx) && ctx.Err() != nil {\n\t\treturn ctx.Err() // nil",
			In:      explorer, Run: "^TestExplore$/^key-that-expires$", Env: twoDeviations,
		},
		{
			Name:   "explore-expiry-is-a-release",
			Breaks: "a release that found its entry gone looks for its own attempt",
			File:   "store/engine/remove.go",
			Anchor: "\tcase did:\n", Becomes: "\tcase did || err == nil:\n",
			In: explorer, Run: "^TestExplore$/^release-against-expiry$",
		},
		{
			Name:    "explore-from-before-the-subscription",
			Breaks:  "events with a number up to that of the subscription are not for it",
			File:    "webhook/outbox/target.go",
			Anchor:  "return id.Number > t.From && (t.sends() || before)",
			Becomes: "return t.sends() || before",
			In:      explorer, Run: "^TestExplore$/^callback-beside-a-subscription$",
		},
		{
			Name:    "explore-called-for-two-leases",
			Breaks:  "`expires_at` and `NotAfter` are the grant and one TTL",
			File:    "webhook/outbox/callback.go",
			Anchor:  "d.Call.lasts = e.At.Add(of.TTL)",
			Becomes: "d.Call.lasts = e.At.Add(2 * of.TTL)",
			In:      explorer, Run: "^TestExplore$/^callback-after-a-gap$",
		},
		{
			Name:    "explore-foreign-record",
			Breaks:  "a record that another wrote means that the shard is lost",
			File:    "webhook/outbox/ledger.go",
			Anchor:  "if c.busy = false; err != nil {\n\t\t\t\tl.lost()\n",
			Becomes: "if c.busy = false; err != nil {\n",
			In:      "./webhook/outbox", Run: "^TestForeignRecordLosesTheShard$",
		},
		{
			Name:    "explore-attempts-before-earlier-events",
			Breaks:  "a new owner's first attempts wait for earlier events",
			File:    "webhook/outbox/dispatch.go",
			Anchor:  "len(w.late) > 0 && w.late[0].event().Compare(w.cursor.last) <= 0",
			Becomes: "len(w.late) > 0",
			In:      "./webhook/outbox", Run: "^TestNewOwnerBeginsInOrder$",
		},
		{
			Name:    "explore-grown-and-settled",
			Breaks:  "what grew while the cursor was written is not settled",
			File:    "webhook/outbox/cursor.go",
			Anchor:  "func() { c.at, c.known = at, true })",
			Becomes: "func() { c.at, c.known = c.settled(), true })",
			In:      "./webhook/outbox", Run: "^TestCursorGrowsWhileItIsWritten$",
		},
		{
			Name:    "explore-given-up-before-it-is-missed",
			Breaks:  "the record of a given-up delivery goes only after events.missed is written",
			File:    "webhook/outbox/missed.go",
			Anchor:  "\tit := &item{open: 1, done: func() {\n\t\tif d.over {",
			Becomes: "\tw.finish(d)\n\tit := &item{open: 1, done: func() {\n\t\tif d.over && false {",
			In:      "./webhook/outbox", Run: "^TestGivenUpRecordStays$",
		},
		{
			Name:    "explore-expired-though-renewed",
			Breaks:  "the removal of an expired entry compares its lease's version",
			File:    "store/zookeeper/expire.go",
			Anchor:  "version != noLease, version, lock.Expired)",
			Becomes: "version != noLease, anyVersion, lock.Expired)",
			In:      "./store/zookeeper", Run: "^TestRenewedSinceTheLook$", Needs: "zookeeper",
		},
	}
}
