package main

// waitBugs break the service's wait loop: grants, leases, disconnected clients and removals.
func waitBugs() []Bug {
	return []Bug{
		{
			Name:    "service-waiter-lapses",
			Breaks:  "while a request waits, its replica keeps the lease alive",
			File:    "service/keep.go",
			Anchor:  "third := k.entry.TTL / 3",
			Becomes: "third := k.entry.TTL * 3",
			In:      "./service", Run: "^TestKeepsWaitersAlive$",
		},
		{
			Name:    "service-grant-without-proof",
			Breaks:  "a grant after a wait gets its full TTL and a proof that its entry exists",
			File:    "service/wait.go",
			Anchor:  "if (w.seen.waited() || w.refreshed.IsZero()) && ",
			Becomes: "if w.refreshed.IsZero() && ",
			In:      "./service", Run: "^TestExpiresAsItComesToHold$",
		},
		{
			Name:    "service-grant-ahead-of-an-older-view",
			Breaks:  "a grant ahead of the feed needs a view that has all earlier entries",
			File:    "service/view/quota.go",
			Anchor:  "at.number != e.Number-1 ||",
			Becomes: "",
			In:      "./service/view", Run: "^TestWritten$",
		},
		{
			Name:    "service-lease-from-the-answer",
			Breaks:  "`expires_at` counts from when the replica sent the request to the store",
			File:    "service/keep.go",
			Anchor:  "k.refreshed, k.shown = start, true\n",
			Becomes: "k.refreshed, k.shown = start.Add(time.Since(start)), true\n",
			In:      "./service", Run: "^TestLeaseCountsFromTheQuestion$",
		},
		{
			Name:    "service-told-when-it-is-over",
			Breaks:  "a waiter with a short lease gets its 503 before the lease ends",
			File:    "service/keep.go",
			Anchor:  "least := min(askTimeout, k.entry.TTL/6)",
			Becomes: "least := askTimeout",
			In:      "./service", Run: "^TestToldBeforeTheLeaseIsOver$",
		},
		{
			Name:    "service-gone-client-stays",
			Breaks:  "the entry of a disconnected client leaves the queue at once",
			File:    "service/wait.go",
			Anchor:  `if g := w.answer; g != nil && g.Token != "" && w.goneForGood(ctx) {`,
			Becomes: "if false {",
			In:      "./service",
			Run:     "^TestGoneClient$|^TestGoneWaiterMakesRoom$|^TestGoneWhileItLeft$",
		},
		{
			Name:    "service-gone-client-with-key-loses",
			Breaks:  "with an `Idempotency-Key` an entry outlives its connection by one TTL",
			File:    "service/wait.go",
			Anchor:  "if ctx.Err() == nil || w.comesBack() {",
			Becomes: "if ctx.Err() == nil {",
			In:      "./service", Run: "^TestGoneClientWithAKey$",
		},
		{
			Name:    "service-times-out-what-holds",
			Breaks:  "a timeout removes no entry that another replica has granted",
			File:    "service/withdraw.go",
			Anchor:  "w.Store.Remove(ctx, e, why, blockers...)",
			Becomes: "w.Store.Remove(ctx, e, why, blockers[:0]...)",
			In:      "./service", Run: "^TestTimesOutLate$",
		},
		{
			Name:   "service-gives-way-to-nobody",
			Breaks: "the store checks the holder by which a removal was decided",
			File:   "service/withdraw.go",
			Anchor: "\t\tif !errors.Is(err, lock.Changed) {\n" +
				"\t\t\treturn nil, err\n",
			Becomes: "\t\tif true {\n" +
				"\t\t\treturn nil, err\n",
			In: "./service", Run: "^TestTimesOutBehindAnother$",
		},
		{
			Name:   "service-late-view-refuses",
			Breaks: "a stale replica does not report a released lock as held",
			File:   "service/refusal.go",
			Anchor: "if err := s.view.Progress.Await(ctx, number); err != nil {\n" +
				"\t\treturn nil // joining the queue will show it\n" +
				"\t}\n",
			Becomes: "_ = number\n",
			In:      "./service", Run: "^TestTryAfterAReleaseElsewhere$",
		},
		{
			Name:    "service-late-view-says-waiting",
			Breaks:  "a renewal does not report a holder as waiting",
			File:    "service/entry.go",
			Anchor:  "if x.view.Progress.Reached(e.Number) && x.settled(ctx) {",
			Becomes: "if true {",
			In:      "./service", Run: "^TestRenewedAtALateReplica$",
		},
		{
			Name: "service-renewed-after-the-end", Breaks: "410 is final",
			File: "service/entry.go",
			Anchor: "if err := x.Store.Renew(ctx, e); err != nil {\n" +
				"\t\treturn nil, x.whyLost(ctx, e, err)\n",
			Becomes: "if err := x.Store.Renew(ctx, e); err != nil && !errors.Is(err, lock.Lost) {\n" +
				"\t\treturn nil, x.whyLost(ctx, e, err)\n",
			In: "./service", Run: "^TestRenewNeverSucceedsAfterTheEnd$",
		},
		{
			Name:    "service-release-half-done",
			Breaks:  "a release completes after its client has disconnected",
			File:    "service/entry.go",
			Anchor:  "x.Store.Remove(context.WithoutCancel(ctx), e, lock.Released)",
			Becomes: "x.Store.Remove(ctx, e, lock.Released)",
			In:      "./service", Run: "^TestReleaseOutlivesItsClient$",
		},
		{
			Name:    "service-pool-times-out-what-holds",
			Breaks:  "a timeout removes no entry of a pool that another replica has granted",
			File:    "service/queue_read.go",
			Anchor:  "st.entry, st.blockers = now, []*lock.Entry{now}",
			Becomes: "st.entry = now",
			In:      "./service", Run: "^TestPoolThatIsGrantedAtTheEndOfAWait$",
		},
		{
			Name:    "simulation-gap-calls-nobody",
			Breaks:  "the simulation finds a grant in a gap that is not called back",
			File:    "webhook/outbox/history.go",
			Anchor:  "\tw.callHeld(m.Before, it)\n",
			Becomes: "",
			In:      "./test/simulation", Run: "^TestHistories$",
		},
	}
}
