package main

// priceBugs have one tenant cost others what it does not pay for, or wait for what it does to others.
func priceBugs() []Bug {
	return []Bug{
		{
			Name: "price-lists-of-who-leaves", Breaks: "who goes away before his list is complete pays for what was looked at",
			File: "handlers/list.go", Anchor: "	if page != nil { // who goes away", Becomes: "	if page != nil && err == nil { // who goes away",
			In: "./handlers", Run: "^TestListOfWhoGoesAway$", Needs: "etcd",
		},
		{
			Name: "looking-waits-for-who-works", Breaks: "a tenant's operator waits for no turn of those who work",
			File: "handlers/admit.go", Anchor: "	if r.payer != \"\" {\n		return r.payer\n	}\n	return r.tenant()\n", Becomes: "	return r.tenant()\n",
			In: "./handlers", Run: "^TestOperatorsLookBesideTheirTenant$", Needs: "etcd",
		},
		{
			Name: "price-operated-webhooks-cost-one", Breaks: "a list of webhooks costs a tenant's operator what the store is asked",
			File: "handlers/console_webhooks.go", Anchor: "r.charge(asksPerWebhook * len(page))", Becomes: "r.charge(0)",
			In: "./handlers", Run: "^TestPriceOfOperatedWebhooks$", Needs: "etcd",
		},
		{
			Name: "price-owed-read-for-nothing", Breaks: "deliveries that are read to be counted cost their price",
			File: "handlers/console_webhooks.go", Anchor: "quota.PriceOfRecords(owed.Looked)", Becomes: "0 * quota.PriceOfRecords(owed.Looked)",
			In: "./handlers", Run: "^TestPriceOfOperatedWebhooks$", Needs: "etcd",
		},
		{
			Name: "price-owed-to-others", Breaks: "deliveries of other webhooks that are read to count those of one cost their price",
			File: "handlers/console_webhooks.go", Anchor: "quota.PriceOfRecords(owed.Looked)", Becomes: "quota.PriceOfRecords(owed.Deliveries)",
			In: "./handlers", Run: "^TestPriceOfOperatedWebhooks$", Needs: "etcd",
		},
		{
			Name: "price-deliveries-of-others", Breaks: "deliveries that are read and not shown cost their price",
			File: "handlers/deliveries.go", Anchor: "quota.PriceOfRecords(page.Looked)", Becomes: "quota.PriceOfRecords(len(page.Deliveries))",
			In: "./handlers", Run: "^TestPriceOfOperatedWebhooks$", Needs: "etcd",
		},
		{
			Name: "looking-watches-of-workers", Breaks: "who works does not keep his tenant's operator from watching",
			File: "handlers/console.go", Anchor: "looks: true, ", Becomes: "",
			In: "./handlers", Run: "^TestWatchBesideTheirTenant$", Needs: "etcd",
		},
		{
			Name: "refusals-keep-bodies", Breaks: "who waits for a refusal keeps no room that others of the connection need",
			File: "handlers/quota.go", Anchor: "	r.readAway(d)\n", Becomes: "",
			In: "./handlers", Run: "^TestRefusalsKeepNoRoomOfOthers$", Needs: "etcd",
		},
		{
			Name: "streams-keep-bodies", Breaks: "bodies that streams do not need keep nothing else from coming through",
			File: "handlers/events.go", Anchor: "	if err := r.skipBody(); err != nil {\n		return err\n	}\n", Becomes: "",
			In: "./handlers", Run: "^TestStreamsKeepNoRoomOfOthers$", Needs: "etcd",
		},
		{
			Name: "price-audit-read-for-nothing", Breaks: "what is read of the audit costs its price, shown or not",
			File: "handlers/audit.go", Anchor: "	r.owe(quota.PriceOfRecords(page.Looked))\n", Becomes: "",
			In: "./handlers", Run: "^TestPriceOfTheAudit$", Needs: "etcd",
		},
		{
			Name: "revoke-asks-for-each", Breaks: "for all entries that are not there the store is asked once",
			File: "service/revoke.go", Anchor: "		*known = true\n", Becomes: "",
			In: "./service", Run: "^TestRevokeAllAsksOnce$",
		},
		{
			Name: "orders-in-vain-unpaced", Breaks: "who orders on and on what cannot be is answered later",
			File: "handlers/problem.go", Anchor: "	r.inVain()\n", Becomes: "",
			In: "./handlers", Run: "^TestOrdersInVainArePaced$", Needs: "etcd",
		},
		{
			Name: "orders-of-many-in-vain-unpaced", Breaks: "so is who revokes on and on entries that are not there",
			File: "handlers/revoke.go", Anchor: "	if !revoked {\n", Becomes: "	if revoked {\n",
			In: "./handlers", Run: "^TestOrdersInVainArePaced$", Needs: "etcd",
		},
		{
			Name: "orders-of-all-paced", Breaks: "an operator of all tenants waits for nothing",
			File: "handlers/admit.go", Anchor: "r.ordered = !counts && !r.principal.MayOperate(\"\")", Becomes: "r.ordered = !counts",
			In: "./handlers", Run: "^TestOrdersInVainArePaced$", Needs: "etcd",
		},
		{
			Name: "looking-names-under-the-view", Breaks: "grants do not wait until it is said which names may be seen",
			File: "service/view/names.go", Anchor: "func(r lock.Ref) { some = append(some, r) })", Becomes: "give)",
			In: "./service/view", Run: "^TestGrantsDoNotWaitForWhatMayBeSeen$",
		},
		{
			Name: "looking-rows-under-the-view", Breaks: "grants do not wait until it is said which rows may be seen",
			File: "service/view/names.go", Anchor: "			if v.fill(&rows[n], r) {\n				n++\n			}\n", Becomes: "			if v.fill(&rows[n], r) {\n				give(&rows[n])\n			}\n",
			In: "./service/view", Run: "^TestGrantsDoNotWaitForWhatMayBeSeen$",
		},
		{
			Name: "looking-holders-under-the-view", Breaks: "grants do not wait until it is said which of a holder's locks may be seen",
			File: "service/view/blocking.go", Anchor: "		may = v.askedBefore(who, may)\n", Becomes: "",
			In: "./service/view", Run: "^TestGrantsDoNotWaitForWhatMayBeSeen$",
		},
		{
			Name: "looking-holds-the-board", Breaks: "who looks waits for nobody else's names",
			File: "service/board/first.go", Anchor: "	if s.May != nil { // which", Becomes: "	if s.May != nil && s.Tenant == \"-\" { // which",
			In: "./service/board", Run: "^TestNobodyWaitsForWhatMayBeSeen$",
		},
		{
			Name: "price-looks-free", Breaks: "an operator pays for the names that are looked at to find those that he may see",
			File: "handlers/pages.go", Anchor: "	r.owe(quota.PriceOfNames(r.looked * auth.Effort(r.principal.Locks, r.sought)))\n", Becomes: "	_ = auth.Effort(r.sought)\n",
			In: "./handlers", Run: "^TestPriceOfNarrowLooks$", Needs: "etcd",
		},
		{
			Name: "looking-narrow-takes-all-makers", Breaks: "what may take long to make leaves others who make theirs",
			File: "handlers/pages.go", Anchor: "	if by.alone {\n", Becomes: "	if by.alone && whose == \"\" {\n",
			In: "./handlers", Run: "^TestRenderingsOfWhoMaySeeSome$", Needs: "etcd",
		},
		{
			Name: "watches-wait-for-narrow-ones", Breaks: "who watches waits for nobody whose names take long to find",
			File: "handlers/watch.go", Anchor: "at, p := now, w.pace(whose)", Becomes: "at, p := now, w.pace(\"\")",
			In: "./handlers", Run: "^TestNarrowWatches$", Needs: "etcd",
		},
		{
			Name: "price-streams-by-patterns-free", Breaks: "to hold each event against very many patterns costs something",
			File: "handlers/event_stream.go", Anchor: "w.looked * (w.effort - 1)", Becomes: "w.looked * 0",
			In: "./handlers", Run: "^TestPriceOfNarrowStreams$", Needs: "etcd",
		},
		{
			Name: "price-lock-order-free", Breaks: "orders of locks that are held against patterns cost their price",
			File: "handlers/deadlocks.go", Anchor: "	found := r.ownOrders(tenant, limit)\n	r.owe(quota.PriceOfNames(r.looked * r.principal.Effort()))\n", Becomes: "	found := r.ownOrders(tenant, limit)\n",
			In: "./handlers", Run: "^TestPriceOfLockOrder$", Needs: "etcd",
		},
		{
			Name: "looking-orders-without-a-turn", Breaks: "orders of locks are held against patterns one after the other of a tenant",
			File: "handlers/deadlocks.go", Anchor: "r.takeTurn(); err != nil { // to hold", Becomes: "r.charge(0); err != nil { // to hold",
			In: "./handlers", Run: "^TestPriceOfLockOrder$", Needs: "etcd",
		},
		{
			Name: "price-deadlocks-free", Breaks: "deadlocks that are held against patterns cost their price",
			File: "handlers/deadlocks.go", Anchor: "	r.owe(quota.PriceOfNames(r.looked * r.principal.Effort()))\n	return found", Becomes: "	return found",
			In: "./handlers", Run: "^TestPriceOfDeadlocks$", Needs: "etcd",
		},
		{
			Name: "price-searches-free", Breaks: "a tenant's operator who may see all names pays for those that are looked at too",
			File: "handlers/console.go", Anchor: "r.looked = max(r.looked, page.Looked)", Becomes: "_ = page.Looked",
			In: "./handlers", Run: "^TestPriceOfSearches$", Needs: "etcd",
		},
		{
			Name: "price-searches-by-stars-free", Breaks: "what takes longer to find costs more",
			File: "handlers/pages.go", Anchor: "auth.Effort(r.principal.Locks, r.sought)", Becomes: "auth.Effort(r.principal.Locks)",
			In: "./handlers", Run: "^TestPriceOfSearches$", Needs: "etcd",
		},
		{
			Name: "looking-of-what-is-shown-alone", Breaks: "a page says at how many locks it looked",
			File: "service/board/page.go", Anchor: "		if q.isOf(row.Ref) {\n", Becomes: "		if q.selects(row) {\n",
			In: "./service/board", Run: "^TestLooked$",
		},
		{
			Name: "looking-tenant-takes-all-makers", Breaks: "a tenant's operators have one page made at a time, whatever they may see",
			File: "handlers/pages.go", Anchor: "func (r *request) alone() bool { return !r.principal.MayOperate(\"\") }", Becomes: "func (r *request) alone() bool { return !r.principal.MayOperate(\"\") && r.principal.Locks != nil }",
			In: "./handlers", Run: "^TestRenderingsOfTenant$", Needs: "etcd",
		},
		{
			Name: "watches-of-who-owes", Breaks: "what a tenant's operators watch is not made anew while they owe for it",
			File: "handlers/watch.go", Anchor: "w.request.alone() && w.request.owes()", Becomes: "w.request.watchPace() != \"\" && w.request.owes()",
			In: "./handlers", Run: "^TestWatchOfWhoOwes$", Needs: "etcd",
		},
		{
			Name: "price-filters-free", Breaks: "to hold each event against patterns of a query costs something too",
			File: "handlers/event_stream.go", Anchor: "effort: f.Effort()", Becomes: "effort: r.principal.Effort()",
			In: "./handlers", Run: "^TestPriceOfFilters$", Needs: "etcd",
		},
		{
			Name: "streams-of-who-owes", Breaks: "who follows by many patterns is told nothing while his tenant owes",
			File: "handlers/event_stream.go", Anchor: "why == \"\" && w.effort > 1 && w.request.owes()", Becomes: "why != \"\" && w.effort > 1 && w.request.owes()",
			In: "./handlers", Run: "^TestPriceOfFilters$", Needs: "etcd",
		},
		{
			Name: "replays-all-at-once", Breaks: "of a tenant's streams one after the other is told what is past",
			File: "handlers/event_stream.go", Anchor: "w.effort == 1 && !w.stream.Past()", Becomes: "w.effort == 1",
			In: "./handlers", Run: "^TestReplaysTakeTurns$", Needs: "etcd",
		},
		{
			Name: "streams-begin-all-at-once", Breaks: "a tenant's streams begin one after the other",
			File: "handlers/event_stream.go", Anchor: "w.request.endpoints.openers.enter(", Becomes: "newTurns(1).enter(",
			In: "./handlers", Run: "^TestStreamsBeginInTurn$", Needs: "etcd",
		},
		{
			Name: "streams-begin-without-a-pause", Breaks: "a tenant's streams begin with a pause after each",
			File: "handlers/turns.go", Anchor: "	<-time.After(apart)\n", Becomes: "",
			In: "./handlers", Run: "^TestEnterOneAfterTheOther$", Needs: "etcd",
		},
		{
			Name: "streams-begin-behind-who-takes-nothing", Breaks: "who takes not even the first bytes of his stream keeps no other one of the tenant from beginning",
			File: "handlers/event_stream.go",
			Anchor: `	if w.request.endpoints.openers.enter(w.request.context(), w.request.account(), tellerPause) != nil {
		return // the client is gone
	}
	stop, more := w.begin()
	if !more {
		return
	}
	defer stop()
	w.write([]byte(reconnect + "id: " + w.stream.At().String() + "\n\n"))
	w.flush()
`,
			Becomes: `	turn, err := w.request.endpoints.openers.take(w.request.context(), w.request.account())
	if err != nil {
		return
	}
	defer turn.done()
	stop, more := w.begin()
	if !more {
		return
	}
	defer stop()
	w.write([]byte(reconnect + "id: " + w.stream.At().String() + "\n\n"))
	w.flush()
	turn.done()
`,
			In: "./handlers", Run: "^TestStreamThatTakesNothingBegins$", Needs: "etcd",
		},
		{
			Name: "streams-by-patterns-all-at-once", Breaks: "so is what is dear to find",
			File: "handlers/event_stream.go", Anchor: "w.effort == 1 && !w.stream.Past()", Becomes: "!w.stream.Past()",
			In: "./handlers", Run: "^TestReplaysTakeTurns$", Needs: "etcd",
		},
		{
			Name: "strangers-forge-addresses", Breaks: "nobody is told by an address that he sent in a line of his own",
			File: "handlers/address.go", Anchor: "slices.Backward(lines)", Becomes: "slices.All(lines)",
			In: "./handlers", Run: "^TestClientAddress$", Needs: "etcd",
		},
		{
			Name: "price-shown-by-length-free", Breaks: "what is long costs more, also where it is shared",
			File: "handlers/pages.go", Anchor: "	r.owe(quota.PriceOfBytes(len(text)))\n", Becomes: "",
			In: "./handlers", Run: "^TestPriceOfWhatIsShown$", Needs: "etcd",
		},
		{
			Name: "price-export-free", Breaks: "what is exported costs more the longer it is",
			File: "handlers/audit.go", Anchor: "	r.owe(quota.PriceOfBytes(sent))\n", Becomes: "",
			In: "./handlers", Run: "^TestPriceOfWhatIsShown$", Needs: "etcd",
		},
		{
			Name: "refusals-look-slow", Breaks: "that a refusal was held back is not taken for slowness",
			File: "handlers/quota.go", Anchor: "	r.waits = true // it says nothing of how fast the server is\n", Becomes: "",
			In: "./handlers", Run: "^TestHeldBackIsNotSlow$", Needs: "etcd",
		},
		{
			Name: "quota-who-may-not-look-counts-as-looking", Breaks: "who may not look takes nothing from who looks",
			File: "handlers/admit.go", Anchor: "if (o.always || o.looks) && o.rate == 0 && refused == nil {", Becomes: "if (o.always || o.looks) && o.rate == 0 {",
			In: "./handlers", Run: "^TestAccountOfWhoMayNotLook$", Needs: "etcd",
		},
		{
			Name: "strangers-known-without-a-line", Breaks: "an address of which the log had no line is new",
			File: "handlers/anonymous.go", Anchor: "(t.newcomers.TokensAt(now) < 1 || !isNew() ||", Becomes: "(!isNew() ||",
			In: "./handlers", Run: "^TestNewcomersAreTold$", Needs: "etcd",
		},
		{
			Name: "strangers-known-for-ever", Breaks: "a minute after its line an address that asks on is told again",
			File: "handlers/anonymous.go", Anchor: "	if !one.told.IsZero() && now.Sub(one.told) < introduced {\n		return false\n	}\n	one.told = now\n	return true\n", Becomes: "	defer func() { one.told = now }()\n	return one.told.IsZero() || now.Sub(one.told) >= introduced\n",
			In: "./handlers", Run: "^TestNewcomersAreTold$", Needs: "etcd",
		},
		{
			Name: "quota-of-very-many", Breaks: "limits are set for so many tenants at most",
			File: "service/quotas/change.go", Anchor: "was.Version == 0 && len(*b.set.Load()) >= MaxTenants", Becomes: "was.Version == 0 && len(*b.set.Load()) > 2*MaxTenants",
			In: "./service/quotas", Run: "^TestLimitsOfVeryMany$",
		},
		{
			Name: "quota-record-of-another-name", Breaks: "a record of another name is nobody's limits",
			File: "service/quotas/record.go", Anchor: "	if r.ID != keyOf(r.Tenant).ID {\n		return nil, errors.New(\"it has an id that is none of a quota\")\n	}\n", Becomes: "",
			In: "./service/quotas", Run: "^TestRecordOfAnotherName$",
		},
		{
			Name: "quota-without-limits", Breaks: "a record without limits is damaged",
			File: "service/quotas/record.go", Anchor: "	if f.Limits == nil {\n		return nil, errors.New(\"it has no limits\")\n	}\n", Becomes: "",
			In: "./service/quotas", Run: "^TestDamaged$",
		},
		{
			Name: "quota-none-is-owed-for-ever", Breaks: "who may ask for nothing is forgotten as others are",
			File: "service/quotas/rates.go", Anchor: "one.limiter.Burst() > 0 && one.owes(now)", Becomes: "one.owes(now)",
			In: "./service/quotas", Run: "^TestIdleWithoutQuota$",
		},
		{
			Name: "answers-unbounded-in-all", Breaks: "large answers of all tenants together are bounded",
			File: "handlers/shares.go", Anchor: "s.all+size > s.most || ", Becomes: "",
			In: "./handlers", Run: "^TestRoomOfAll$", Needs: "etcd",
		},
		{
			Name: "strangers-pay-for-errors", Breaks: "what fails counts as no refusal",
			File: "handlers/anonymous.go", Anchor: "return r.principal == nil && status >= http.StatusBadRequest && status < http.StatusInternalServerError", Becomes: "return r.principal == nil && status >= http.StatusBadRequest",
			In: "./handlers", Run: "^TestErrorsAreNoRefusals$", Needs: "etcd",
		},
		{
			Name: "price-all-again-for-one", Breaks: "who has everything told again pays for each event",
			File: "handlers/deliveries.go", Anchor: "r.charge(told + quota.PriceOfNames(looked))", Becomes: "r.charge(0 * (told + looked))",
			In: "./handlers", Run: "^TestPriceOfAllAgain$", Needs: "etcd",
		},
		{
			Name: "price-all-again-of-sets", Breaks: "who has everything told again pays for each name that is looked at",
			File: "webhook/outbox/deliveries.go", Anchor: "c.looked += len(e.Entry.Claims)", Becomes: "c.looked++",
			In: "./webhook/outbox", Run: "^TestSinceCountsNames$",
		},
		{
			Name: "price-all-again-of-dear-patterns", Breaks: "who has everything told again pays for patterns that take long",
			File: "webhook/outbox/deliveries.go", Anchor: "c.looked * c.filter.Effort()", Becomes: "c.looked",
			In: "./webhook/outbox", Run: "^TestSinceCountsNames$",
		},
		{
			Name: "all-again-without-turn", Breaks: "what a tenant is to be told again is looked for once at a time",
			File: "handlers/deliveries.go", Anchor: "r.context(), s, since, r.nextTurn)", Becomes: "r.context(), s, since, func() error { return r.charge(0) })",
			In: "./handlers", Run: "^TestTurnOfAllAgain$", Needs: "etcd",
		},
		{
			Name: "price-all-again-of-some", Breaks: "who has everything told again pays for all that is told",
			File: "webhook/outbox/deliveries.go", Anchor: "	for more := true; more && err == nil; {\n		if err = turn()", Becomes: "	for more := true; more && err == nil && c.told < maxAgain; {\n		if err = turn()",
			In: "./webhook/outbox", Run: "^TestSinceCountsWhatIsTold$",
		},
		{
			Name: "price-all-again-at-once", Breaks: "what is to be told again is looked for in parts, between which others have their turns",
			File: "webhook/outbox/deliveries.go", Anchor: "		if err = turn(); err == nil {\n", Becomes: "		if c.looked == 0 {\n			err = turn()\n		}\n		if err == nil {\n",
			In: "./webhook/outbox", Run: "^TestSinceInTurns$",
		},
		{
			Name: "price-all-again-without-end", Breaks: "what is to be told again is looked for up to where it was asked for",
			File: "webhook/outbox/deliveries.go", Anchor: "		if e.At.After(c.began) {\n			return false, nil\n		}\n", Becomes: "",
			In: "./webhook/outbox", Run: "^TestSinceEnds$",
		},
		{
			Name: "price-all-again-in-vain", Breaks: "who goes away before it is known what he would be told again pays for what was looked at",
			File: "handlers/deliveries.go", Anchor: "		r.owe(quota.PriceOfNames(looked))\n		return err\n", Becomes: "		return err\n",
			In: "./handlers", Run: "^TestPriceOfAllAgain$", Needs: "etcd",
		},
		{
			Name: "price-deadlock-searches-free", Breaks: "who has long chains of waits searched for a deadlock pays for that",
			File: "service/refusal.go", Anchor: "	if looked(looks); err == nil {\n", Becomes: "	if err == nil {\n",
			In: "./handlers", Run: "^TestPriceOfWaits$", Needs: "etcd",
		},
		{
			Name: "price-deadlock-searches-count-nothing", Breaks: "a search for a deadlock counts what it looks at",
			File: "lock/deadlock/deadlock.go", Anchor: "	return cycle, MaxLooks - left\n", Becomes: "	return cycle, 0 * left\n",
			In: "./handlers", Run: "^TestPriceOfWaits$", Needs: "etcd",
		},
	}
}
