package main

// serviceBugs break what the service promises whatever the store.
func serviceBugs() []Bug {
	return []Bug{
		{
			Name: "service-told-when-it-is-over", Breaks: "who waits with a short lease is told 503 before it is over",
			File: "service/keep.go", Anchor: "max(min(askTimeout, k.entry.TTL/6),", Becomes: "max(askTimeout,",
			In: "./service", Run: "^TestToldBeforeTheLeaseIsOver$",
		},
		{
			Name: "service-asks-until-it-is-over", Breaks: "to ask where an entry stands does not take until its lease is over",
			File: "service/keep.go", Anchor: "context.WithTimeout(ctx, k.inTime(askTimeout))", Becomes: "context.WithTimeout(ctx, askTimeout)",
			In: "./service", Run: "^TestToldBeforeTheLeaseIsOver$",
		},
		{
			Name: "service-asks-once-more", Breaks: "who waits is told as soon as it is time, whatever the store was asked",
			File: "service/keep.go", Anchor: "\tcase err != nil:\n\t\treturn err, k.tooLate()", Becomes: "\tcase err != nil:\n\t\treturn err, k.s.view.LostFor() > giveUp",
			In: "./service", Run: "^TestToldBeforeTheLeaseIsOver$",
		},
		{
			Name: "service-grant-until-it-is-over", Breaks: "a grant whose renewal is not answered is told as 503 before the lease is over",
			File: "service/wait.go", Anchor: "w.refreshInTime(ctx, w.entry.TTL)", Becomes: "w.refresh(context.WithoutCancel(ctx))",
			In: "./service", Run: "^TestToldInTimeOfAGrant$",
		},
		{
			Name: "service-drain-until-it-is-over", Breaks: "who is sent to another replica has time to go there, though the store does not answer",
			File: "service/keep.go", Anchor: "context.WithTimeout(context.WithoutCancel(ctx), k.inTime(most))", Becomes: "context.WithTimeout(context.WithoutCancel(ctx), most)",
			In: "./service", Run: "^TestToldInTimeOfADrain$",
		},
		{
			Name: "service-drain-behind-a-renewal", Breaks: "waiters are told within 5 s of a drain, though a renewal is not answered",
			File: "service/wait.go", Anchor: "w.refreshInTime(ctx, renewTimeout)", Becomes: "w.refreshInTime(ctx, w.entry.TTL)",
			In: "./service", Run: "^TestDrainDuringARenewal$",
		},
		{
			Name: "service-asks-all-the-time", Breaks: "a store that fails at once is not asked again and again",
			File: "service/keep.go", Anchor: "min(k.recheckAfter(true), time.Until(k.until()))", Becomes: "min(k.recheckAfter(true)/100, time.Until(k.until()))",
			In: "./service", Run: "^TestFailingStoreIsAskedNowAndThen$",
		},
		{
			Name: "service-stood-still-is-lost", Breaks: "that a process stood still says nothing of the store",
			File: "service/keep.go", Anchor: "case time.Since(start) > 2*limit:", Becomes: "case time.Since(start) > 2000*limit:",
			In: "./service", Run: "^TestStoodStillDuringARenewal$",
		},
		{
			Name: "service-short-grant-at-the-end", Breaks: "who holds when a request was held open for long enough has a full lease",
			File: "service/wait.go", Anchor: "\tcase g.Held:\n\t\treturn w.grantShown()\n", Becomes: "",
			In: "./service", Run: "^TestFullLeaseAtTheEndOfTheHold$",
		},
		{
			Name: "service-refused-in-the-way", Breaks: "who is refused is not in the way of others until its lease ends",
			File: "service/wait.go", Anchor: "\t\tw.s.unlessGone(w.entry, err)\n\t\tif errors.Is(why", Becomes: "\t\tif errors.Is(why",
			In: "./service", Run: "^TestRefusedGivesWayAtLast$",
		},
		{
			Name: "service-held-open-too-long", Breaks: "a request by token is held open for as long as it asks for",
			File: "service/wait.go", Anchor: "\tif limit == 0 {\n", Becomes: "\tif limit >= 0 {\n",
			In: "./service", Run: "^TestAskedForLess$",
		},
		{
			Name: "service-waited-less-than-nothing", Breaks: "how long a request waited is never less than nothing",
			File: "service/wait.go", Anchor: "st.Waited = w.s.view.WaitedFor(w.entry)", Becomes: "st.Waited = w.s.Now().Sub(w.entry.EnqueuedAt)",
			In: "./service", Run: "^TestWaitedByAWrongClock$",
		},
		{
			Name: "service-renewal-shows-nothing", Breaks: "who renewed an entry is told that its wait was in vain, whoever took it back",
			File: "service/keep.go", Anchor: "k.refreshed, k.shown = start, true", Becomes: "k.refreshed = start",
			In: "./service", Run: "^TestWaitEndsForBoth$",
		},
		{
			Name: "service-told-after-a-pause", Breaks: "who waits is told of a store that does not renew while a third of the lease is left",
			File: "service/keep.go", Anchor: "min(k.recheckAfter(true), time.Until(k.until()))", Becomes: "k.recheckAfter(true)",
			In: "./service", Run: "^TestToldInTimeToComeBack$",
		},
		{
			Name: "service-keys-without-bound", Breaks: "what a tenant's idempotency keys take of the store is bounded",
			File: "service/keys.go", Anchor: "if k.all[e.Tenant] < k.most {", Becomes: "if k.most > 0 {",
			In: "./service", Run: "^TestKeysAreBounded$",
		},
		{
			Name: "service-keys-counted-for-ever", Breaks: "idempotency keys that are forgotten do not count",
			File: "service/keys.go", Anchor: "if k.all[tenant] -= n; k.all", Becomes: "if k.all[tenant] -= 0 * n; k.all",
			In: "./service", Run: "^TestKeysAreBounded$",
		},
		{
			Name: "service-keys-of-unknown-outcomes", Breaks: "idempotency keys that may have been used count",
			File: "service/keys.go", Anchor: "errors.As(err, &failed) && failed.OutcomeUnknown;", Becomes: "errors.As(err, &failed) && false;",
			In: "./service", Run: "^TestKeysAreBounded$",
		},
		{
			Name: "service-taken-back-is-final", Breaks: "a request whose entry the store took back itself is made again",
			File: "service/acquire.go", Anchor: "store.ErrTakenBack) && ctx.Err() == nil", Becomes: "store.ErrTakenBack) && ctx.Err() != nil",
			In: "./service", Run: "^TestTakenBackIsAskedForAgain$",
		},
		{
			Name: "service-taken-back-without-end", Breaks: "a request whose entry the store took back is answered in time",
			File: "service/acquire.go", Anchor: "req.due = began.Add(anewUntil)", Becomes: "req.due = began.Add(time.Minute)",
			In: "./service", Run: "^TestTakenBackTooLate$",
		},
		{
			Name: "service-event-index-goes-on", Breaks: "an event is named by its write and an index among that write's events",
			File: "service/view/events.go", Anchor: "*w = writing{number: number}", Becomes: "w.number = number",
			In: "./service/view", Run: "^TestReplicasTellTheSameEvents$",
		},
		{
			Name: "service-event-of-the-run", Breaks: "an event has the number of its write, however the feed cuts changes",
			File: "service/view/view.go", Anchor: "v.writing.at(c.Number)", Becomes: "v.writing.at(upTo)",
			In: "./service/view", Run: "^TestReplicasTellTheSameEvents$",
		},
		{
			Name: "service-event-before-its-cause", Breaks: "an end is told before the grants that follow from it",
			File: "service/view/view.go", Anchor: "\tif told {\n\t\tv.happened(ended, now)\n\t}\n", Becomes: "\tif told {\n\t\tdefer v.happened(ended, now)\n\t}\n",
			In: "./service/view", Run: "^TestEventsOfOneWrite$",
		},
		{
			Name: "service-renews-at-the-grant-alone", Breaks: "on a busy lock the lease starts anew before the turn comes, not between two hand-overs",
			File: "service/keep.go", Anchor: "if k.turn == soon && ", Becomes: "if false && ",
			In: "./service", Run: "^TestReadyBeforeItsTurn$",
		},
		{
			Name: "service-ready-for-nobody", Breaks: "that a turn is soon is remembered while somebody waits for it",
			File: "service/view/watch.go", Anchor: "\t\tdelete(v.announced, id)\n", Becomes: "",
			In: "./service/view", Run: "^TestAnnouncementEnds$",
		},
		{
			Name: "service-ready-too-early", Breaks: "where a lock changes hands slowly a lease is not started anew before the grant",
			File: "service/view/view.go", Anchor: "if lasted > v.Fresh/(2*aheadBy) {", Becomes: "if false {",
			In: "./service", Run: "^TestReadyBeforeItsTurn$",
		},
		{
			Name: "service-ready-again-and-again", Breaks: "a request near its turn renews its lease once for that",
			File: "service/keep.go", Anchor: "	k.turn = ready\n", Becomes: "	k.turn = far\n",
			In: "./service", Run: "^TestReadyForAnotherTurn$",
		},
		{
			Name: "service-held-open-for-longer", Breaks: "a request is held open for 50 s at most, however long its entry took to be written",
			File: "service/acquire.go", Anchor: "shown: true, began: began}", Becomes: "shown: true}",
			In: "./service", Run: "^TestWrittenLate$",
		},
		{
			Name: "service-old-view-says-used-up", Breaks: "a key is used up as the store says, not as a view that is late",
			File: "service/acquire.go", Anchor: "	if !s.settled(ctx) {\n		return ctx.Err()", Becomes: "	if false {\n		return ctx.Err()",
			In: "./service", Run: "^TestKeyInUseAgain$",
		},
		{
			Name: "service-old-view-says-held", Breaks: "a view that may be older than the request does not say that a lock is held",
			File: "service/wait.go", Anchor: "if err != nil && w.origin != wrote {", Becomes: "if false {",
			In: "./service", Run: "^TestTryBehindAnOldView$",
		},
		{
			Name: "service-lease-of-a-joined-entry", Breaks: "who joins an entry is told how long its lease lasts, and starts it anew",
			File: "service/acquire.go", Anchor: "if written {\n\t\tw.origin, w.refreshed", Becomes: "if placed != nil {\n\t\tw.origin, w.refreshed",
			In: "./service", Run: "^TestLeaseOfAJoinedEntry$",
		},
		{
			Name: "service-key-taken-again-unseen", Breaks: "a later entry of a key is not taken for the one that ended",
			File: "service/entry.go", Anchor: "place >= 0 && r.entries[place].Number == e.Number", Becomes: "place >= 0",
			In: "./service", Run: "^TestKeyTakenAgainUnseen$",
		},
		{
			Name: "service-forged-token", Breaks: "a lock token cannot be made without the key",
			File: "service/token.go", Anchor: "!hmac.Equal(mac, want[:]) {",
			Becomes: "!hmac.Equal(mac[:1], want[:1]) {",
			In:      "./service", Run: "^TestForgedTokens$",
		},
		{
			Name: "service-token-of-another-tenant", Breaks: "a lock token is good for its tenant only",
			File: "service/token.go", Anchor: "appendParts(s.text[:0], tenant, subject)", Becomes: `appendParts(s.text[:0], tenant[:0], subject)`,
			In: "./service", Run: "^TestTokenIsForOneEntry$",
		},
		{
			Name: "service-token-of-another-lock", Breaks: "a lock token is good for its lock only",
			File: "service/token.go", Anchor: "appendParts(s.text[:0], tenant, subject)", Becomes: `appendParts(s.text[:0], tenant, subject[:0])`,
			In: "./service", Run: "^TestTokenIsForOneEntry$",
		},
		{
			Name: "service-token-of-another-entry", Breaks: "release hits its own entry only",
			File: "service/entry.go", Anchor: `if req.ID != "" && req.ID != id {`, Becomes: "if false {",
			In: "./service", Run: "^TestTokenIsForOneEntry$",
		},
		{
			Name: "service-waiter-lapses", Breaks: "while a request waits, its replica keeps the lease alive",
			File: "service/keep.go", Anchor: "third := k.entry.TTL / 3", Becomes: "third := k.entry.TTL * 3",
			In: "./service", Run: "^TestKeepsWaitersAlive$",
		},
		{
			Name: "service-crowd-in-step", Breaks: "leases that began together are not started anew together again and again",
			File: "service/keep.go", Anchor: "third - third/4*time.Duration(part)>>partBits", Becomes: "third - 0*time.Duration(part)>>partBits",
			In: "./service", Run: "^TestCrowdIsNotRenewedInStep$",
		},
		{
			Name: "service-renews-until-it-is-late", Breaks: "who waits is told 503 while a third of the lease is left to come back in",
			File: "service/keep.go", Anchor: "return k.inTime(renewTimeout)", Becomes: "return renewTimeout",
			In: "./service", Run: "^TestToldInTimeToComeBack$",
		},
		{
			Name: "service-slow-store-is-lost", Breaks: "a store that takes a second to renew a lease costs nobody who waits the place",
			File: "service/keep.go", Anchor: "return k.inTime(renewTimeout)", Becomes: "return k.inTime(askTimeout)",
			In: "./service", Run: "^TestSlowStoreIsWaitedFor$",
		},
		{
			Name: "service-grant-without-proof", Breaks: "a waited grant gets its full TTL, and is proven to be there",
			File: "service/wait.go", Anchor: "if time.Since(w.refreshed) > freshEnough && ", Becomes: "if w.refreshed.IsZero() && ",
			In: "./service", Run: "^TestExpiresAsItComesToHold$",
		},
		{
			Name: "service-lease-from-the-answer", Breaks: "`expires_at` counts from when the store was asked",
			File: "service/keep.go", Anchor: "k.refreshed, k.shown = start, true\n", Becomes: "k.refreshed, k.shown = start.Add(time.Since(start)), true\n",
			In: "./service", Run: "^TestLeaseCountsFromTheQuestion$",
		},
		{
			Name: "service-gone-client-stays", Breaks: "a client that goes away leaves the queue at once",
			File: "service/wait.go", Anchor: `if g := w.answer; g != nil && g.Token != "" && w.goneForGood(ctx) {`, Becomes: "if false {",
			In: "./service", Run: "^TestGoneClient$|^TestGoneWaiterMakesRoom$|^TestGoneWhileItLeft$",
		},
		{
			Name: "service-gone-client-with-key-loses", Breaks: "with an `Idempotency-Key` a place is kept for one TTL",
			File: "service/wait.go", Anchor: "if ctx.Err() == nil || w.comesBack() {", Becomes: "if ctx.Err() == nil {",
			In: "./service", Run: "^TestGoneClientWithAKey$",
		},
		{
			Name: "service-waiter-is-told-too-early", Breaks: "who waited over an interruption is told why its entry ended",
			File: "service/wait.go", Anchor: "return w.leave(w.s.lostBecause(ctx, w.entry.ID, w.entry.Number))", Becomes: "return w.lost(w.s.view.Status(w.entry.ID, w.entry.Number).Reason)",
			In: "./service", Run: "^TestWaiterLearnsTheReason$",
		},
		{
			Name: "service-victim-is-told-to-wait", Breaks: "who closed a cycle is not told that it waits",
			File: "service/wait.go", Anchor: "if st.State == view.Waiting && st.Refused != nil {", Becomes: "if false {",
			In: "./service", Run: "^TestRefusedAtTheEndOfTheHold$",
		},
		{
			Name: "service-key-with-other-parameters", Breaks: "a retry with other parameters is refused",
			File: "service/acquire.go", Anchor: "if st.Entry.Request != e.Request {", Becomes: "if false {",
			In: "./service", Run: "^TestKeyWithOtherParameters$",
		},
		{
			Name: "service-fingerprint-without-ttl", Breaks: "a retry with other parameters is refused",
			File: "service/request.go", Anchor: "\twriteNumber(h, int64(req.TTL))\n", Becomes: "",
			In: "./service", Run: "^TestKeyWithOtherParameters$",
		},
		{
			Name: "service-fingerprint-without-mode", Breaks: "a retry with other parameters is refused",
			File: "service/request.go", Anchor: "writeParts(h, c.Name, string(c.Mode))", Becomes: "writeParts(h, c.Name)",
			In: "./service", Run: "^TestKeyWithOtherParameters$",
		},
		{
			Name: "service-fingerprint-without-limit", Breaks: "a retry with other parameters is refused",
			File: "service/request.go", Anchor: "\t\twriteNumber(h, int64(c.Limit))\n", Becomes: "",
			In: "./service", Run: "^TestKeyWithAnotherLimit$",
		},
		{
			Name: "service-key-of-another-tenant", Breaks: "tenants do not meet, whatever their keys are",
			File: "service/token.go", Anchor: `writeParts(h, "idempotency", tenant, subject, key)`,
			Becomes: `writeParts(h, "idempotency", tenant[:0], subject, key)`,
			In:      "./service", Run: "^TestKeysAreOfOneLock$",
		},
		{
			Name: "service-late-view-refuses", Breaks: "a lock that was released elsewhere is not refused as held",
			File: "service/refusal.go", Anchor: "if err := s.view.Await(ctx, number); err != nil {\n\t\treturn nil // the queue itself will tell\n\t}\n",
			Becomes: "_ = number\n",
			In:      "./service", Run: "^TestTryAfterAReleaseElsewhere$",
		},
		{
			Name: "service-renewed-after-the-end", Breaks: "410 is final",
			File: "service/entry.go", Anchor: "if err := s.Store.Renew(ctx, e); err != nil {\n\t\treturn nil, s.whyLost(ctx, e, err)\n",
			Becomes: "if err := s.Store.Renew(ctx, e); err != nil && !errors.Is(err, lock.Lost) {\n\t\treturn nil, s.whyLost(ctx, e, err)\n",
			In:      "./service", Run: "^TestRenewNeverSucceedsAfterTheEnd$",
		},
		{
			Name: "service-release-half-done", Breaks: "a release is not given up with its client",
			File: "service/entry.go", Anchor: "s.Store.Remove(context.WithoutCancel(ctx), e, lock.Released)",
			Becomes: "s.Store.Remove(ctx, e, lock.Released)",
			In:      "./service", Run: "^TestReleaseOutlivesItsClient$",
		},
		{
			Name: "service-reasons-for-5-minutes", Breaks: "a key answers 410 for 10 minutes after its entry ended",
			File: "service/view/endings.go", Anchor: "minutesKept = 10 ", Becomes: "minutesKept = 4 ",
			In: "./service", Run: "^TestReasonsAreForgotten$",
		},
		{
			Name: "service-deadlock-unseen", Breaks: "of requests that close a cycle of waits exactly one is refused",
			File: "service/view/rejections.go", Anchor: "\t\treturn lock.ErrDeadlock(rejection.Cycle)\n", Becomes: "\t\treturn nil\n",
			In: "./service", Run: "^TestCrossingRequests$",
		},
		{
			Name: "service-takes-new-while-draining", Breaks: "a replica that shuts down takes nothing new",
			File: "service/acquire.go", Anchor: "if s.Draining() {", Becomes: "if false {",
			In: "./service", Run: "^TestDrainingTakesNothingNew$",
		},
		{
			Name: "service-free-before-the-first-list", Breaks: "a replica that never had a view does not say that locks are free",
			File: "service/view/status.go", Anchor: "\tif v.begun {\n\t\treturn nil\n\t}\n\treturn &lock.Error{\n",
			Becomes: "\tif v.begun || !v.current {\n\t\treturn nil\n\t}\n\treturn &lock.Error{\n",
			In:      "./service", Run: "^TestLookBeforeTheFirstList$",
		},
		{
			Name: "service-metadata-without-bound", Breaks: "metadata are 2 KiB at most",
			File: "lock/text.go", Anchor: "if size > MaxMetadataSize {", Becomes: "if false && size > 0 {",
			In: "./lock", Run: "^TestCheckMetadata$",
		},
		{
			Name: "service-times-out-what-holds", Breaks: "an entry that came to hold elsewhere is not taken away by a late view",
			File: "service/withdraw.go", Anchor: "s.Store.Remove(ctx, e, why, blockers...)", Becomes: "s.Store.Remove(ctx, e, why, blockers[:0]...)",
			In: "./service", Run: "^TestTimesOutLate$",
		},
		{
			Name: "service-try-takes-what-holds", Breaks: "an entry that came to hold elsewhere is not taken away by a late view",
			File:    "service/wait.go",
			Anchor:  "by, holds, err := w.s.giveWayTo(context.WithoutCancel(ctx), w.entry, lock.Withdrawn)",
			Becomes: "by, holds, err := []*lock.Entry(nil), false, w.s.Store.Remove(context.WithoutCancel(ctx), w.entry, lock.Withdrawn)",
			In:      "./service", Run: "^TestTryGivesWayLate$",
		},
		{
			Name: "service-gone-try-takes-what-holds", Breaks: "an entry that came to hold elsewhere is not taken away by a late view",
			File:    "service/wait.go",
			Anchor:  "_, err := w.s.giveWay(ctx, w.entry, lock.Withdrawn)",
			Becomes: "err := w.s.Store.Remove(ctx, w.entry, lock.Withdrawn)",
			In:      "./service", Run: "^TestTryGivesWayLate$",
		},
		{
			Name: "service-gives-way-to-nobody", Breaks: "a removal that was decided by somebody who is gone is decided anew",
			File: "service/withdraw.go", Anchor: "\t\tif !errors.Is(err, lock.Changed) {\n\t\t\treturn blockers, false, err\n", Becomes: "\t\tif true {\n\t\t\treturn blockers, false, err\n",
			In: "./service", Run: "^TestTimesOutBehindAnother$",
		},
		{
			Name: "service-cycle-that-is-no-more", Breaks: "nobody is refused for a cycle that is no more",
			File: "service/wait.go", Anchor: "endOf(w.entry, why), while...)", Becomes: "endOf(w.entry, why), while[:0]...)",
			In: "./service", Run: "^TestCycleThatIsNoMore$",
		},
		{
			Name: "service-late-view-says-waiting", Breaks: "who was told that it holds is not told that it waits",
			File: "service/entry.go", Anchor: "if s.view.Reached(e.Number) && s.settled(ctx) {", Becomes: "if true {",
			In: "./service", Run: "^TestRenewedAtALateReplica$",
		},
		{
			Name: "service-late-view-says-wait-on", Breaks: "who holds is not told to wait on, when a request was held open for long enough",
			File: "service/wait.go", Anchor: "stage(w.stillWaits)", Becomes: "stage(func(context.Context) stage { return w.tell(w.resumable(), nil) })",
			In: "./service", Run: "^TestStillWaitingAtALateReplica$",
		},
		{
			Name: "service-refused-before-the-request", Breaks: "nobody is refused for what was over before the request",
			File: "service/wait.go", Anchor: "case errors.Is(err, lock.Lost) && !w.shown: //", Becomes: "case false: //",
			In: "./service", Run: "^TestRefusedBeforeTheRequest$",
		},
		{
			Name: "service-refused-by-a-late-view", Breaks: "nobody is refused by a view alone that may be older than the request",
			File: "service/wait.go", Anchor: "case err != nil && !errors.Is(err, lock.Lost) && w.origin != wrote:", Becomes: "case false:",
			In: "./service", Run: "^TestRefusedBeforeAnUnansweredRequest$",
		},
		{
			Name: "service-refused-before-the-first-answer", Breaks: "nobody is told of a refusal that was carried out before the request",
			File: "service/wait.go", Anchor: "st.Refused != nil && w.shown:", Becomes: "st.Refused != nil:",
			In: "./service", Run: "^TestRefusedBeforeTheFirstAnswer$",
		},
		{
			Name: "service-refusal-of-an-earlier-entry", Breaks: "why a key's entry was refused is not told of its next one",
			File: "service/view/rejections.go", Anchor: "if r := v.carriedOut[id]; r.number == number {", Becomes: "if r := v.carriedOut[id]; true {",
			In: "./service/view", Run: "^TestRefusalIsOfOneEntry$",
		},
		{
			Name: "service-refused-is-unknown", Breaks: "each request of a key is told why its entry was refused",
			File: "service/view/rejections.go", Anchor: "v.rejections.carriedOut[id] = refusal{e.Number, refused}", Becomes: "_ = e",
			In: "./service", Run: "^TestRefusedTwice$",
		},
		{
			Name: "service-withdrawn-is-expired", Breaks: "an entry that was taken back is not called expired",
			File: "service/view/view.go", Anchor: "\t\tdelete(v.unexplained, e.ID)\n", Becomes: "\t\tif e.Reason != lock.Withdrawn {\n\t\t\tdelete(v.unexplained, e.ID)\n\t\t}\n",
			In: "./service", Run: "^TestWithdrawnDuringAGap$",
		},
		{
			Name: "service-try-taken-back-is-held", Breaks: "a try whose entry another request took back is not told that a free lock is held",
			File: "service/wait.go", Anchor: "if w.tries() && !w.comesBack() && why == lock.Unknown {", Becomes: "if w.tries() && why == lock.Unknown {",
			In: "./service", Run: "^TestTryRejoinsWhatWasTakenBack$|^TestTryOfAKeyThatEnds$",
		},
		{
			Name: "service-wait-that-was-over", Breaks: "nobody is told that a wait was in vain which was over before",
			File: "service/wait.go", Anchor: "(gone.Reason != lock.WaitTimeout || !w.shown) {", Becomes: "gone.Reason != lock.WaitTimeout {",
			In: "./service", Run: "^TestWaitThatWasOver$",
		},
		{
			Name: "service-key-waits-for-the-view", Breaks: "the store alone decides whether a key is used up",
			File: "service/wait.go", Anchor: "if w.seen.proven() && (st.State", Becomes: "if w.seen.proven() && w.s.view.Reached(w.entry.Number) && (st.State",
			In: "./service", Run: "^TestKeyBehindALateView$",
		},
		{
			Name: "service-key-of-other-locks", Breaks: "a set's key with other names is refused, not a second set",
			File: "service/request.go", Anchor: "idFor(req.Tenant, subjectOf(e), req.IdempotencyKey)", Becomes: "idFor(req.Tenant, e.Name(), req.IdempotencyKey)",
			In: "./service", Run: "^TestKeyOfASet$",
		},
		{
			Name: "service-shares-an-older-read", Breaks: "a renewal does not say that an entry waits which another replica told that it holds",
			File: "service/entry.go", Anchor: " || read.began < since", Becomes: " || since == 1<<63",
			In: "./service", Run: "^TestRenewalSharesNoOlderRead$",
		},
		{
			Name: "service-waited-by-another-clock", Breaks: "how long a request waited is told by its replica's clock",
			File: "service/view/view.go", Anchor: "max(0, v.Wall().Sub(e.EnqueuedAt))", Becomes: "max(0, time.Since(e.EnqueuedAt))",
			In: "./service", Run: "^TestWaitedByItsClock$",
		},
		{
			Name: "service-forgotten-is-expired", Breaks: "what ended in a gap longer than reasons are remembered is not said to have expired",
			File: "service/view/view.go", Anchor: "store.Age(v.gap) > store.LongestGap", Becomes: "store.Age(v.gap) > 1000*store.LongestGap",
			In: "./service", Run: "^TestReasonAfterALongGap$",
		},
		{
			Name: "service-silence-is-a-gap", Breaks: "a store in which nothing happens for long is no gap",
			File: "service/service.go", Anchor: "	s.view.HadAll(asked)\n", Becomes: "	_ = asked\n",
			In: "./service", Run: "^TestReasonAfterALongSilence$",
		},
		{
			Name: "service-rows-by-another-clock", Breaks: "the ends of leases in lists are by the clock that the answer shows, also after it was set",
			File: "service/row_expiries.go", Anchor: "at := wall(one.until).Round(0); at.Sub(one.told)", Becomes: "at := wall(one.until).Round(0); one.told.IsZero() && at.Sub(one.told)",
			In: "./service", Run: "^TestListsTellUntilWhenByTheReplicasClock$",
		},
		{
			Name: "service-slack-waits-for-the-clock", Breaks: "what is left of leases is measured again after the clock was set back",
			File: "service/slack.go", Anchor: "(left <= 0 || left > slackPause)", Becomes: "left <= 0",
			In: "./service", Run: "^TestSlackAfterTheClockWasSetBack$",
		},
		{
			Name: "service-held-since-later", Breaks: "a grant took, and was held for, no less than no time, whatever clock its replica had",
			File: "service/view/view.go", Anchor: "if e.EnqueuedAt.After(now) {", Becomes: "if false {",
			In: "./service", Run: "^TestHandedOverByAnotherClock$",
		},
		{
			Name: "service-not-gone-by-its-id", Breaks: "an entry has ended though another one has its id",
			File: "service/view/status.go", Anchor: "(e == nil || e.Number != number)", Becomes: "e == nil",
			In: "./service", Run: "^TestGoneThoughItsKeyIsInUseAgain$",
		},
		{
			Name: "service-resumes-what-has-ended", Breaks: "a key does not resume an entry that has ended",
			File: "service/acquire.go", Anchor: "return state != view.Unseen && state != view.Gone", Becomes: "return state != view.Unseen",
			In: "./service", Run: "^TestResumes$",
		},
		{
			Name: "service-slack-silenced-by-clients", Breaks: "a client that goes away does not keep what is left of leases from being measured",
			File: "service/slack.go", Anchor: "case ctx.Err() == nil && !errors", Becomes: "case !errors",
			In: "./service", Run: "^TestSlackThoughAClientGoesAway$",
		},
		{
			Name: "figures-half-is-more", Breaks: "a percentile is by nearest rank: of two durations the half is the lesser",
			File: "service/view/figures.go", Anchor: "max(int(math.Ceil(p*float64(len(sorted))))-1, 0)", Becomes: "min(int(math.Ceil(p*float64(len(sorted)))), len(sorted)-1)",
			In: "./service", Run: "^TestHalfOfTwo$",
		},
	}
}
