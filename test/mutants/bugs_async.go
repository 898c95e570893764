package main

// asyncBugs break what keeps entries that nobody is connected to.
func asyncBugs() []Bug {
	return []Bug{
		{
			Name: "async-in-doubt-all-the-time", Breaks: "an entry that is not told that it holds is renewed as others are, also when its wait is over",
			File: "service/async.go", Anchor: " || e.s.view.Status(e.entry.ID, e.entry.Number).State == view.Held {", Becomes: " {",
			In: "./service", Run: "^TestAsyncWithoutTrustOrTime$",
		},
		{
			Name: "async-not-renewed", Breaks: "the place of an async entry outlives its lease",
			File: "service/async.go", Anchor: "third := e.entry.TTL / 3", Becomes: "third := e.entry.TTL * 3",
			In: "./service", Run: "^TestAsync$",
		},
		{
			Name: "async-kept-after-grant", Breaks: "who does not claim a grant loses the lock",
			File: "service/async_grant.go", Anchor: "return err == nil, err", Becomes: "return false, err",
			In: "./service", Run: "^TestAsync$",
		},
		{
			Name: "async-grant-for-less", Breaks: "a grant begins with a full lease",
			File: "service/async_grant.go", Anchor: "if time.Since(e.refreshed) <= freshEnough ||", Becomes: "if time.Since(e.refreshed) <= e.entry.TTL ||",
			In: "./service", Run: "^TestAsync$",
		},
		{
			Name: "async-rejected-at-once-forgotten", Breaks: "an entry that cannot stay from the start is taken back at once",
			File: "service/async.go", Anchor: "case st.Refused != nil, listed:", Becomes: "case st.Refused != nil && e.Queued(), listed:",
			In: "./service", Run: "^TestAsyncEnds$|^TestAsyncOfAnotherMode$",
		},
		{
			Name: "async-rejected-without-reason", Breaks: "why an async entry could not stay can be asked for",
			File: "service/async.go", Anchor: "case !e.Async:", Becomes: "case e.Async || why != nil:",
			In: "./service", Run: "^TestAsyncEnds$",
		},
		{
			Name: "async-wait-never-ends", Breaks: "a wait ends after wait_seconds",
			File: "service/async.go", Anchor: "case decides && !e.s.Now().Before(e.entry.WaitUntil):", Becomes: "case decides && e.entry.WaitUntil.IsZero():",
			In: "./service", Run: "^TestAsyncEnds$",
		},
		{
			Name: "async-kept-by-all", Breaks: "each entry is kept by one replica",
			File: "service/async.go", Anchor: "mine: a.sharing.Does(string(entry.ID))", Becomes: "mine: a.sharing.Does(string(entry.ID)) || entry.ID != \"\"",
			In: "./service", Run: "^TestAsyncShared$",
		},
		{
			Name: "async-not-taken-over", Breaks: "entries of a replica that stopped are taken over",
			File: "service/async.go", Anchor: "case e.mine && !was:", Becomes: "case e.mine && !was && a.attended < 0:",
			In: "./service", Run: "^TestAsyncShared$",
		},
		{
			Name: "async-not-listed", Breaks: "a replica that starts keeps what is there already",
			File: "service/view/async.go", Anchor: "		a.add(e)\n		a.note(e.ID)\n", Becomes: "		a.add(e)\n",
			In: "./service", Run: "^TestAsyncRestart$",
		},
		{
			Name: "async-left-behind", Breaks: "an entry whose client was not told of it is taken back",
			File: "service/async_answer.go", Anchor: "case ctx.Err() != nil && !e.Resumable():", Becomes: "case ctx.Err() != nil && e.Opaque:",
			In: "./service", Run: "^TestAsyncOfAGoneClient$",
		},
		{
			Name: "async-there-and-not-told", Breaks: "whose entry is in the queue is told so",
			File: "service/async_answer.go", Anchor: "case errors.Is(err, lock.StoreUnavailable): // it is there, and will be kept", Becomes: "case errors.Is(err, lock.StoreUnavailable) && e.Opaque:",
			In: "./service", Run: "^TestAsyncInDoubt$",
		},
		{
			Name: "async-asks-again-and-again", Breaks: "a store that fails is not asked for each entry again and again",
			File: "service/async.go", Anchor: "max(recheck, e.entry.TTL/16)", Becomes: "recheck",
			In: "./service", Run: "^TestAsyncFailing$",
		},
		{
			Name: "async-in-no-fingerprint", Breaks: "a retry repeats that it is async",
			File: "service/request.go", Anchor: "	if req.Async {\n		writeParts", Becomes: "	if req.Async && req.Set {\n		writeParts",
			In: "./service", Run: "^TestAsyncKey$",
		},
		{
			Name: "async-renewals-unbounded", Breaks: "what one tenant has the replicas renew is bounded",
			File: "service/view/room.go", Anchor: ", (t.renewed+3599)/3600", Becomes: ", t.renewed/36000",
			In: "./service", Run: "^TestTenantWithoutRenewals$",
		},
		{
			Name: "async-renewals-of-holders", Breaks: "entries that hold need no renewals of the replicas",
			File: "service/view/room.go", Anchor: "t.waiting, t.renewed = 1, renewals(e)\n\t}", Becomes: "t.waiting = 1\n\t}\n\tt.renewed = renewals(e)",
			In: "./service", Run: "^TestTenantWithoutRenewals$",
		},
		{
			Name: "async-kept-while-cut-off", Breaks: "while the list of replicas cannot be read, every replica keeps all",
			File: "service/replicas.go", Anchor: "r.note(nil, false)", Becomes: "_ = r.note",
			In: "./service", Run: "^TestSharing$",
		},
		{
			Name: "async-kept-by-who-sees-nothing", Breaks: "a replica that does not see what happens leaves the keeping to others",
			File: "service/replicas.go", Anchor: "case !sees && version > 0:", Becomes: "case !sees && version > 0 && !r.read:",
			In: "./service", Run: "^TestAsyncBesideALateReplica$",
		},
		{
			Name: "async-late-is-fresh", Breaks: "the lease of an entry that its replica hears of late is taken for what it is",
			File: "service/async.go", Anchor: "time.Now().Add(-a.s.view.WaitedFor(entry))", Becomes: "time.Now()",
			In: "./service", Run: "^TestAsyncLateFeed$",
		},
		{
			Name: "async-not-let-go", Breaks: "who joins takes its share over, and the others let go of it",
			File: "service/async.go", Anchor: "e.mine = a.sharing.Does(string(id)); {", Becomes: "e.mine = was || a.sharing.Does(string(id)); {",
			In: "./service", Run: "^TestAsyncSharedWithANewOne$",
		},
		{
			Name: "async-grant-overlooked", Breaks: "a lease begins with the grant, also of an entry that was being renewed",
			File: "service/async.go", Anchor: "\tcase again:\n", Becomes: "\tcase again && e.Queued():\n",
			In: "./service", Run: "^TestAsyncGrantDuringARenewal$",
		},
		{
			Name: "async-taken-for-an-earlier-one", Breaks: "an entry with the id of one that ended is kept",
			File: "service/async.go", Anchor: "if st.Entry != nil && st.Entry.Number == e.entry.Number && !inACopy {", Becomes: "if st.Entry != nil && !inACopy {",
			In: "./service", Run: "^TestAsyncKeyUsedAnew$",
		},
		{
			Name: "async-granted-without-trust", Breaks: "who is not told of a grant for want of trust keeps it",
			File: "service/async_grant.go", Anchor: "return !st.Doubt || s.Store.Refusal() == nil", Becomes: "return !st.Doubt || s.closing.Err() == nil",
			In: "./service", Run: "^TestAsyncWithoutTrust$",
		},
		{
			Name: "async-grant-begun-by-each-floor", Breaks: "a lease that began is not started anew with a fence floor",
			File: "service/async.go", Anchor: "again.begun = begun", Becomes: "again.begun = begun && again.Queued()",
			In: "./service", Run: "^TestAsyncFloorAfterTheGrant$",
		},
		{
			Name: "async-grant-in-a-gap-overlooked", Breaks: "a lease begins for what came to hold in a gap of the feed, or in doubt",
			File: "service/async.go", Anchor: "(st.State != view.Held || !st.Queued)", Becomes: "(st.State != view.Held || !st.Queued || true)",
			In: "./service", Run: "^TestAsyncGrantInAGap$|^TestAsyncFloor$",
		},
		{
			Name: "async-grant-left-to-who-is-gone", Breaks: "who takes a share over begins the leases that its keeper did not",
			File: "service/async_grant.go", Anchor: "time.Since(e.granted) >= takeOverTime:", Becomes: "time.Since(e.granted) >= 0:",
			In: "./service", Run: "^TestAsyncGrantOfAnAbsentKeeper$",
		},
		{
			Name: "async-grant-begun-again", Breaks: "who takes a share over leaves alone what came to hold long ago",
			File: "service/async_grant.go", Anchor: "time.Since(e.granted) >= takeOverTime:", Becomes: "e.entry == nil:",
			In: "./service", Run: "^TestAsyncGrantBegunBefore$",
		},
		{
			Name: "async-grant-between-two", Breaks: "a grant in the moment of a change of keepers begins a lease",
			File: "service/async_grant.go", Anchor: "if e.mine || !e.left.IsZero() && time.Since(e.left) < takeOverTime {", Becomes: "if e.mine {",
			In: "./service", Run: "^TestAsyncGrantAsItIsHandedOver$",
		},
		{
			Name: "async-one-tenant-has-all", Breaks: "a grant does not wait for what another tenant has the replicas renew",
			File: "service/async_turns.go", Anchor: "t.attended < asyncOfOne", Becomes: "t.attended < asyncAtOnce",
			In: "./service", Run: "^TestAsyncGrantBesideManyOfAnother$",
		},
		{
			Name: "async-accepted-and-not-kept", Breaks: "what a replica accepts while its feed is interrupted is kept",
			File: "service/async_answer.go", Anchor: "	if !s.view.Reached(e.Number) {", Becomes: "	if e.Opaque {",
			In: "./service", Run: "^TestAsyncWithoutAFeed$",
		},
		{
			Name: "async-given-and-not-forgotten", Breaks: "what ended unseen is not remembered for ever",
			File: "service/async_given.go", Anchor: ".State == view.Gone {", Becomes: ".State == view.Gone && e.attended {",
			In: "./service", Run: "^TestAsyncGivenAndNotKept$",
		},
		{
			Name: "async-accepted-without-a-view", Breaks: "a replica that sees nothing for long does not say that it keeps a place",
			File: "service/async_given.go", Anchor: "if !e.Async || s.view.LateFor() <= currentTimeout {", Becomes: "if !e.Async || s.view.LostFor() <= e.TTL {",
			In: "./service", Run: "^TestAsyncRefusedWithoutAView$",
		},
	}
}
