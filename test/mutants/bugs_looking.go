package main

// lookingBugs break what operators are shown.
func lookingBugs() []Bug {
	return []Bug{
		{
			Name: "looking-without-the-store-unsaid", Breaks: "an answer of a replica that does not see the store says so",
			File: "handlers/console.go", Anchor: "if !lost {\n\t\treturn nil", Becomes: "if !lost || lost {\n\t\treturn nil",
			In: "./handlers", Run: "^TestStoreOutOfSight$", Needs: "etcd",
		},
		{
			Name: "looking-watch-without-the-store-unsaid", Breaks: "who watches is told that the replica does not see the store",
			File: "handlers/watch_parts.go", Anchor: " && !page && !sight {", Becomes: " && !page && (!sight || sight) {",
			In: "./handlers", Run: "^TestWatchStoreOutOfSight$", Needs: "etcd",
		},
		{
			Name: "looking-further-uncounted", Breaks: "who waits and is not looked at counts as waiting",
			File: "lock/blocking/forest.go", Anchor: "		t.Waiting += q.Further\n", Becomes: "",
			In: "./lock/blocking", Run: "^TestFurtherOnesCount$",
		},
		{
			Name: "looking-further-untold", Breaks: "how many wait for a lock is told, however many are looked at",
			File: "service/view/blocking.go", Anchor: "	out.Further = q.Waiting() - len(out.Behind)\n", Becomes: "",
			In: "./service/view", Run: "^TestBlockingIsBounded$",
		},
		{
			Name: "looking-blames-for-earlier-waits", Breaks: "nobody is blamed for what was waited before he was in the way",
			File: "lock/blocking/forest.go", Anchor: "latest(e.EnqueuedAt, q.Since, under.Since)", Becomes: "latest(e.EnqueuedAt, e.EnqueuedAt, under.Since)",
			In: "./lock/blocking", Run: "^TestForest$",
		},
		{
			Name: "looking-counts-a-set-twice", Breaks: "an entry that waits for several locks counts once",
			File: "lock/blocking/forest.go", Anchor: "q.Behind[at] = nil // it", Becomes: "_ = at // it",
			In: "./lock/blocking", Run: "^TestForest$",
		},
		{
			Name: "looking-forgets-cycles", Breaks: "who waits for himself in the end is shown too",
			File: "lock/blocking/forest.go", Anchor: "if !g.done[a] {\n\t\t\tf.add", Becomes: "if g.done[a] && false {\n\t\t\tf.add",
			In: "./lock/blocking", Run: "^TestForest$",
		},
		{
			Name: "looking-takes-a-crowd-for-one", Breaks: "many who go by one name are not taken for one holder",
			File: "lock/blocking/forest.go", Anchor: "> maxWaits", Becomes: "> 1000*maxWaits",
			In: "./lock/blocking", Run: "^TestManyGoByOneName$",
		},
		{
			Name: "looking-lists-a-tree-without-end", Breaks: "of a tree so much is listed and no more",
			File: "lock/blocking/forest.go", Anchor: " && len(t.Waits) < g.limits.Waits", Becomes: "",
			In: "./lock/blocking", Run: "^TestForestIsBounded$",
		},
		{
			Name: "looking-blames-holders-of-closed-locks", Breaks: "of a closed lock the closure is to blame",
			File: "service/blocking.go", Anchor: "c.closedBy(refs)", Becomes: "nil",
			In: "./handlers", Run: "^TestBlockingOfClosedLocks$", Needs: "etcd",
		},
		{
			Name: "looking-forgets-the-first-at-closed-locks", Breaks: "of a closed lock the first in line waits too",
			File: "service/view/blocking.go", Anchor: "range without(\"\", q.Waiters(), most) {", Becomes: "range without(q.Head().Member().Entry().ID, q.Waiters(), most) {",
			In: "./service/view", Run: "^TestBlockingAtAClosedLock$",
		},
		{
			Name: "looking-tells-ends-that-are-over", Breaks: "a lease that may have become longer is not told to be over",
			File: "service/row_expiries.go", Anchor: "one.until.Before(now) {", Becomes: "one.until.IsZero() {",
			In: "./service", Run: "^TestAnEndThatIsOverIsNotTold$",
		},
		{
			Name: "looking-asks-of-rows-nobody-sees", Breaks: "the store is not asked of rows that nobody sees",
			File: "service/row_expiries.go", Anchor: "case now.Sub(one.wanted) >= endWanted:", Becomes: "case false:",
			In: "./service", Run: "^TestRowsAskTheStoreAtAPace$",
		},
		{
			Name: "looking-forgets-how-many-waited", Breaks: "the history of a lock says how many waited for it lately",
			File: "service/history.go", Anchor: "kept && !h.Idle(now) {", Becomes: "kept && h.Idle(now) {",
			In: "./handlers", Run: "^TestHeatMap$", Needs: "etcd",
		},
		{
			Name: "looking-reads-a-queue-without-end", Breaks: "of one lock so many places are read at once, and no more",
			File: "service/view/blocking.go", Anchor: "min(most-read, MaxBlockedPerLock)", Becomes: "most-read",
			In: "./service/view", Run: "^TestBlockingIsBounded$",
		},
		{
			Name: "looking-at-all-of-a-holder", Breaks: "so many entries of a holder are looked at, and no more",
			File: "service/view/blocking.go", Anchor: "looked > maxOfHolder", Becomes: "looked < 0",
			In: "./service/view", Run: "^TestOfHolderIsBounded$",
		},
		{
			Name: "looking-shows-other-names-of-a-holder", Breaks: "of a set those locks are shown that the operator may see",
			File: "service/view/blocking.go", Anchor: "if may != nil && !may(s.Claim().Name) {", Becomes: "if may != nil && len(s.Claim().Name) == 0 {",
			In: "./handlers", Run: "^TestHoldings$", Needs: "etcd",
		},
		{
			Name: "looking-series-count-the-newest-step", Breaks: "who waits counts in each step for his part of it",
			File: "service/series/series.go", Anchor: "s.cell(n).waited +=", Becomes: "s.cell(number(now)).waited +=",
			In: "./service/series", Run: "^TestSteps$",
		},
		{
			Name: "looking-series-forget-who-holds", Breaks: "who holds counts in each step for his part of it",
			File: "service/series/series.go", Anchor: "s.waiting+s.holding > 0 && now", Becomes: "s.waiting > 0 && now",
			In: "./service/series", Run: "^TestQuarterOfAnHour$",
		},
		{
			Name: "looking-series-of-all-lose-who-holds", Breaks: "the series of all tenants count who holds in each",
			File: "service/view/pulse.go", Anchor: "\t\t\tp.holding += a.holding\n", Becomes: "",
			In: "./service", Run: "^TestSeriesOverAGap$",
		},
		{
			Name: "looking-says-the-closure-that-ends-first", Breaks: "of several closures the one that lasts longest is told",
			File: "service/closed.go", Anchor: "c.Until.After(found.Until)", Becomes: "found.Until.After(c.Until)",
			In: "./service", Run: "^TestListsSayWhatIsClosed$",
		},
		{
			Name: "looking-takes-all-locks-for-closed", Breaks: "what is open is not said to be closed",
			File: "service/closed.go", Anchor: "c.Locks.Match(name) && (", Becomes: "(",
			In: "./service", Run: "^TestListsSayWhatIsClosed$",
		},
		{
			Name: "looking-lists-dead-receivers-as-well", Breaks: "the list says which webhook's receiver fails",
			File: "handlers/webhooks.go", Anchor: "*webhookOf(one, health[i])", Becomes: "*webhookOf(one, health[i].Of(-1))",
			In: "./handlers", Run: "^TestDisabled$", Needs: "etcd",
		},
		{
			Name: "looking-series-keep-old-steps", Breaks: "what is older than a quarter of an hour is forgotten",
			File: "service/series/series.go", Anchor: "s.cells[n%Steps] = nil", Becomes: "_ = n",
			In: "./service/series", Run: "^TestQuarterOfAnHour$",
		},
		{
			Name: "looking-series-lose-count-over-a-gap", Breaks: "who waits is counted anew after a list",
			File: "service/view/view.go", Anchor: "\tv.relist(now)\n", Becomes: "",
			In: "./service", Run: "^TestSeriesOverAGap$",
		},
		{
			Name: "looking-tells-bounds-to-who-may-see-some", Breaks: "who is limited to names is not told what a tenant uses in all",
			File: "service/tenants.go", Anchor: "if s.May == nil {", Becomes: "if s.May == nil || t.Locks > 0 {",
			In: "./handlers", Run: "^TestTenants$", Needs: "etcd",
		},
		{
			Name: "looking-first-draws-all", Breaks: "whoever looks first does not wait for the rows of all locks",
			File: "service/board/first.go", Anchor: "	if !b.ready.Load() {", Becomes: `	if !b.ready.Load() && state == "nothing" {`,
			In: "./service/board", Run: "^TestFirstLook$",
		},
		{
			Name: "looking-first-lists-twice", Breaks: "the first look lists a lock for which others wait once",
			File: "service/board/first.go", Anchor: "!again && len(page.Rows)", Becomes: "(!again || again) && len(page.Rows)",
			In: "./service/board", Run: "^TestFirstLook$",
		},
		{
			Name: "looking-first-skips-what-was-contended", Breaks: "a lock whose waiters change while the first page is read is on it",
			File: "service/board/first.go", Anchor: "\tfor _, l := range page.Rows {\n\t\tthere[l.Ref] = struct{}{}\n\t}\n", Becomes: "\tb.source.Names(\"contended\", q.Tenant, func(r lock.Ref) { there[r] = struct{}{} })\n",
			In: "./service/board", Run: "^TestFirstLookListsOnce$",
		},
		{
			Name: "looking-first-puts-new-waits-last", Breaks: "the first page is in order although others came to wait meanwhile",
			File: "service/board/first.go", Anchor: "\tslices.SortFunc(page.Rows, q.compare)", Becomes: "\t_ = slices.Clone[[]Line]",
			In: "./service/board", Run: "^TestFirstLookListsOnce$",
		},
		{
			Name: "looking-first-ends-at-a-short-page", Breaks: "a lock that goes while the first page is read does not end the list",
			File: "service/board/first.go", Anchor: "\tslices.SortFunc(page.Rows, q.compare)", Becomes: "\tif len(page.Rows) < q.Limit {\n\t\tpage.Next = nil\n\t}\n\tslices.SortFunc(page.Rows, q.compare)",
			In: "./service/board", Run: "^TestFirstLookGoesOn$",
		},
		{
			Name: "looking-first-is-newer-than-its-rows", Breaks: "the first page is complete up to its revision",
			File: "service/board/first.go", Anchor: "\tb.source.Names(\"\", q.Tenant,", Becomes: "\tpage.Revision = b.source.Names(\"\", q.Tenant,",
			In: "./service/board", Run: "^TestFirstLookListsOnce$",
		},
		{
			Name: "looking-first-sums-are-older", Breaks: "the first totals are complete up to their revision",
			File: "service/board/first.go", Anchor: "\tt := &Totals{Now: b.now()}\n\tvar refs []lock.Ref\n\tt.Revision = b.source.Names(\"contended\", s.Tenant, func(r lock.Ref) {\n\t\tif s.Sees(r) {\n\t\t\trefs = append(refs, r)\n\t\t}\n\t})\n\tsums := b.source.Sums(s.Tenant) // not before: they are complete up to the revision\n\tt.Locks, t.Held, t.Holding = sums.Locks, sums.Held, sums.Holding\n",
			Becomes: "\tsums := b.source.Sums(s.Tenant)\n\tt := &Totals{Now: b.now()}\n\tvar refs []lock.Ref\n\tt.Revision = b.source.Names(\"contended\", s.Tenant, func(r lock.Ref) {\n\t\tif s.Sees(r) {\n\t\t\trefs = append(refs, r)\n\t\t}\n\t})\n\tt.Locks, t.Held, t.Holding = sums.Locks, sums.Held, sums.Holding\n",
			In:      "./service/board", Run: "^TestRevisionOfFirstTotals$",
		},
		{
			Name: "looking-first-draws-nothing-for-the-next", Breaks: "who looks after the first one finds the rows drawn",
			File: "service/board/first.go", Anchor: "done: b.signal,", Becomes: "done: func() {},",
			In: "./service/board", Run: "^TestFirstLookHasRowsDrawn$",
		},
		{
			Name: "looking-first-keeps-what-passes", Breaks: "what the first look shows is each lock's own row",
			File: "service/board/first.go", Anchor: "return &kept", Becomes: "return row",
			In: "./service/board", Run: "^TestFirstLookOfMany$",
		},
		{
			Name: "looking-first-forgets-the-page-before", Breaks: "pages of the first look go on after each other",
			File: "service/board/first.go", Anchor: "first.wants(line) && q.follows(line)", Becomes: "first.wants(line)",
			In: "./service/board", Run: "^TestFirstLook$",
		},
		{
			Name: "looking-first-counts-holders-once", Breaks: "those who came to hold later count in the first look too",
			File: "service/view/room.go", Anchor: "a.add(tallyOf(g, true))", Becomes: "_ = g",
			In: "./service/board", Run: "^TestFirstLook$",
		},
		{
			Name: "looking-shows-where-webhooks-go", Breaks: "operators are not shown the path of a webhook's URL, which may be a secret",
			File: "webhook/subscription/record.go", Anchor: `return u.Scheme + "://" + u.Host`, Becomes: `return u.String()`,
			In: "./handlers", Run: "^TestAdminWebhooks$", Needs: "etcd",
		},
		{
			Name: "looking-shows-webhooks-of-all-names", Breaks: "who is limited to names sees the webhooks about those",
			File: "webhook/subscription/subscriptions.go", Anchor: `one.Tenant == tenant) && may(who, one, s.Now())`, Becomes: `one.Tenant == tenant)`,
			In: "./handlers", Run: "^TestAdminWebhooks$", Needs: "etcd",
		},
		{
			Name: "looking-keeps-all-events", Breaks: "so many events of locks are kept in all, and no more",
			File: "service/view/past.go", Anchor: "for *f.past >= maxPast {", Becomes: "for *f.past >= 100*maxPast {",
			In: "./service/view", Run: "^TestPastIsBounded$",
		},
		{
			Name: "looking-takes-a-repeated-renewal-for-two", Breaks: "a holder that works on after its lease counts once",
			File: "service/evidence.go", Anchor: "&& !late && known", Becomes: "&& late && known",
			In: "./service", Run: "^TestWorkedAfterExpiry$",
		},
		{
			Name: "looking-blames-those-who-released", Breaks: "only an expired lease shows that it was too short",
			File: "service/evidence.go", Anchor: " || lost.Reason != lock.Expired", Becomes: "",
			In: "./handlers", Run: "^TestEvidence$", Needs: "etcd",
		},
		{
			Name: "looking-late-only-when-over", Breaks: "a renewal is late when two thirds of the lease have passed",
			File: "service/evidence.go", Anchor: "gap <= e.TTL*2/3", Becomes: "gap <= e.TTL",
			In: "./service", Run: "^TestLateRenewals$",
		},
		{
			Name: "looking-tells-all-to-who-may-see-some", Breaks: "who is limited to names is told nothing of all together",
			File: "service/console.go", Anchor: "if s.May == nil {", Becomes: "if s.May == nil || o.LostFor == 0 {",
			In: "./handlers", Run: "^TestSeries$", Needs: "etcd",
		},
		{
			Name: "revoked-in-part-is-in-vain", Breaks: "who revokes some of what he orders to be is answered at once",
			File: "handlers/revoke.go", Anchor: "revoked = revoked || out[i].Err == nil", Becomes: "revoked = out[i].Err == nil",
			In: "./handlers", Run: "^TestRevokedInPart$", Needs: "etcd",
		},
		{
			Name: "orders-in-vain-of-workers", Breaks: "orders in vain take nothing from who works",
			File: "handlers/quota.go", Anchor: "Take(quotas.Looking(r.tenant()), quota.Requests); errors.As", Becomes: "Take(r.tenant(), quota.Requests); errors.As",
			In: "./handlers", Run: "^TestAccountOfOrdersInVain$", Needs: "etcd",
		},
		{
			Name: "watches-of-what-is-dear", Breaks: "who watches what is dear is told once a second at most",
			File: "handlers/watch.go", Anchor: "for slow && next.Sub(", Becomes: "for slow && next.IsZero() && next.Sub(",
			In: "./handlers", Run: "^TestSlowViews$", Needs: "etcd",
		},
		{
			Name: "watches-paces-are-kept", Breaks: "of a tenant of which nobody watches no pace is kept",
			File: "handlers/watch.go", Anchor: "		delete(w.paces, tenant)\n", Becomes: "",
			In: "./handlers", Run: "^TestNarrowWatches$", Needs: "etcd",
		},
		{
			Name: "exports-keep-bodies", Breaks: "bodies that exports do not need keep nothing else from coming through",
			File: "handlers/audit.go", Anchor: "	if err := r.skipBody(); err != nil {\n		return err\n	}\n", Becomes: "",
			In: "./handlers", Run: "^TestExportsKeepNoRoomOfOthers$", Needs: "etcd",
		},
		{
			Name: "looking-room-of-others-is-given", Breaks: "room for a large answer is given back to who took it",
			File: "handlers/answer.go", Anchor: "r.endpoints.answers.give(r.account(), r.taken)", Becomes: "r.endpoints.answers.give(r.tenant(), r.taken)",
			In: "./handlers", Run: "^TestRoomIsGivenBack$", Needs: "etcd",
		},
		{
			Name: "price-watches-again-and-again", Breaks: "what is watched is paid for once each time it is made",
			File: "handlers/pages.go", Anchor: "	r.looked = 0\n", Becomes: "",
			In: "./handlers", Run: "^TestPriceOfWatches$", Needs: "etcd",
		},
		{
			Name: "looking-names-again", Breaks: "each name is told once",
			File: "service/view/names.go", Anchor: "		some = some[:0]\n", Becomes: "",
			In: "./service/view", Run: "^TestNamesInParts$",
		},
		{
			Name: "price-audit-of-later-pages-free", Breaks: "later pages of the audit cost what is read for them too",
			File: "audit/back.go", Anchor: "\t\ts.looked++\n", Becomes: "\t\tif s.q.Before == \"\" {\n\t\t\ts.looked++\n\t\t}\n",
			In: "./audit", Run: "^TestLooked$",
		},
		{
			Name: "looking-sets-of-an-id-used-again", Breaks: "the locks of a set are not taken for those of a later one with its id",
			File: "service/expired_sets.go", Anchor: "set.number == number {", Becomes: "number > 0 {",
			In: "./service", Run: "^TestExpiredSets$",
		},
		{
			Name: "looking-heat-of-idle-locks", Breaks: "of a lock for which nobody has waited lately no history of waiting is told",
			File: "service/history.go", Anchor: "kept && !h.Idle(now) {", Becomes: "kept {",
			In: "./service", Run: "^TestHeatOfIdleLocks$",
		},
		{
			Name: "looking-depths-of-replicas", Breaks: "the longest queue is none of the replicas' own",
			File: "service/view/depths.go", Anchor: "was == waiting || r.Tenant == lock.OwnTenant", Becomes: "was == waiting",
			In: "./service/view", Run: "^TestOwnTenantIsNobody$",
		},
		{
			Name: "looking-replicas-are-a-tenant", Breaks: "the replicas' own entries are no tenant's",
			File: "service/view/names.go", Anchor: " && tenant != lock.OwnTenant {", Becomes: " {",
			In: "./service/view", Run: "^TestOwnTenantIsNobody$",
		},
		{
			Name: "looking-one-holds", Breaks: "what is too little to go by is counted in words",
			File: "handlers/console_dto.go", Anchor: "if held.Samples == 1 {", Becomes: "if held.Samples < 0 {",
			In: "./handlers", Run: "^TestAdviceOfOneHold$", Needs: "etcd",
		},
	}
}
