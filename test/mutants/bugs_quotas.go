package main

// quotaBugs have a tenant use more than it may, or keep it from what it has.
func quotaBugs() []Bug {
	return []Bug{
		{
			Name: "quota-bursts-pass", Breaks: "what a replica is writing counts against limits",
			File: "service/view/room.go", Anchor: "\thas.add(a.pending)\n", Becomes: "",
			In: "./service", Run: "^TestLimitInABurst$",
		},
		{
			Name: "quota-failed-writes-count", Breaks: "what was not written does not count",
			File: "service/acquire.go", Anchor: "	defer s.view.Leave(e)\n", Becomes: "",
			In: "./service", Run: "^TestLimitInABurst$",
		},
		{
			Name: "quota-counts-twice", Breaks: "an entry that is in the view is not counted as being written too",
			File: "service/view/view.go", Anchor: "	v.arrived(e.ID)\n", Becomes: "",
			In: "./service", Run: "^TestLimitOnOneLock$|^TestLimitOfWaiting$",
		},
		{
			Name: "quota-all-will-hold", Breaks: "of many who want one free lock one is going to hold",
			File: "service/view/room.go", Anchor: "case c.Mode == lock.Exclusive || f.alone > 0:", Becomes: "case f.all < 0:",
			In: "./service", Run: "^TestLimitOnOneLock$",
		},
		{
			Name: "quota-held-locks-unbounded", Breaks: "the locks that a tenant holds are bounded",
			File: "service/view/room.go", Anchor: "t.holding = len(e.Claims)", Becomes: "t.holding = 0",
			In: "./service", Run: "^TestLimitOfHeldLocks$",
		},
		{
			Name: "quota-set-is-one-lock", Breaks: "of a set each lock counts as held",
			File: "service/view/room.go", Anchor: "t.holding = len(e.Claims)", Becomes: "t.holding = 1",
			In: "./service", Run: "^TestLimitOfHeldLocks$",
		},
		{
			Name: "quota-waiting-per-lock-unbounded", Breaks: "who waits for one lock is bounded",
			File: "service/view/room.go", Anchor: "n >= limits[quota.WaitingPerLock]", Becomes: "n >= 2*limits[quota.WaitingPerLock]",
			In: "./service", Run: "^TestLimitOfWaiting$",
		},
		{
			Name: "quota-tries-wait", Breaks: "who only tries is told that a lock is held, whoever waits",
			File: "service/view/room.go", Anchor: "more.waiting = 0 // it does not stay", Becomes: "more.waiting += 0",
			In: "./service", Run: "^TestTriesBesideWaiters$",
		},
		{
			Name: "quota-sets-unbounded", Breaks: "sets are bounded",
			File: "service/view/room.go", Anchor: "	if e.Set {\n", Becomes: "	if e.Set && e.Opaque {\n",
			In: "./service", Run: "^TestLimitOfSetsAndMetadata$",
		},
		{
			Name: "quota-metadata-unbounded", Breaks: "metadata are bounded",
			File: "service/view/room.go", Anchor: "t.metadata += len(key) + len(value)", Becomes: "t.metadata += 0 * len(key+value)",
			In: "./service", Run: "^TestLimitOfSetsAndMetadata$",
		},
		{
			Name: "quota-binds-replicas", Breaks: "what replicas agree on has no limit",
			File: "service/view/room.go", Anchor: "if e.Tenant == lock.OwnTenant {", Becomes: "if e.Opaque {",
			In: "./service", Run: "^TestOwnLocksHaveNoLimit$",
		},
		{
			Name: "quota-streams-unbounded", Breaks: "a tenant's event streams are bounded",
			File: "service/events/subscription.go", Anchor: "case n >= limits[quota.EventStreams]:", Becomes: "case n > 2*limits[quota.EventStreams]:",
			In: "./service/events", Run: "^TestPlaces$",
		},
		{
			Name: "quota-webhooks-unbounded", Breaks: "a tenant's webhooks are bounded by its quota",
			File: "webhook/subscription/subscriptions.go", Anchor: "	if c.Limits == nil {\n		standard", Becomes: "	if c.Limits != nil {\n		standard",
			In: "./handlers", Run: "^TestQuotaOfWebhooksAndStreams$", Needs: "etcd",
		},
		{
			Name: "quota-requests-refuse-renewals", Breaks: "new acquires that use up the quota of requests keep nobody from renewing",
			File: "handlers/admit.go", Anchor: "		return o.rate, true\n", Becomes: "		return quota.Requests, true\n",
			In: "./handlers", Run: "^TestRatesOfRequests$", Needs: "etcd",
		},
		{
			Name: "quota-keeps-operators-out", Breaks: "a quota that is used up can be mended",
			File: "handlers/admit.go", Anchor: "	case o.always:\n		return 0, false\n", Becomes: "",
			In: "./handlers", Run: "^TestRatesOfRequests$", Needs: "etcd",
		},
		{
			Name: "quota-made-up-tokens-renew", Breaks: "who makes tokens up does not use up the tenant's renewals and releases",
			File: "handlers/admit.go", Anchor: "case o.rate != 0 && r.genuine(o):", Becomes: "case o.rate != 0 && (r.genuine(o) || true):",
			In: "./handlers", Run: "^TestMadeUpTokens$", Needs: "etcd",
		},
		{
			Name: "quota-made-up-tokens-free", Breaks: "requests with tokens that are made up count",
			File: "handlers/admit.go", Anchor: "	case o.rate != 0: // or", Becomes: "	case o.rate != 0:\n		return 0, false\n	case o.page: // or",
			In: "./handlers", Run: "^TestMadeUpTokens$", Needs: "etcd",
		},
		{
			Name: "quota-shuts-operators-out", Breaks: "an operator of all tenants sees the quota of one that is at its limit",
			File: "handlers/admit.go", Anchor: " && !r.principal.Allows(auth.Admin)", Becomes: "",
			In: "./handlers", Run: "^TestOwnOperatorsCount$", Needs: "etcd",
		},
		{
			Name: "quota-callbacks-unbounded", Breaks: "the URLs of callbacks count as metadata",
			File: "service/view/room.go", Anchor: "		t.metadata += len(e.Callback.URL)\n", Becomes: "",
			In: "./service", Run: "^TestLimitOfHoldersAndCallbacks$",
		},
		{
			Name: "quota-holders-unbounded", Breaks: "holders that are named count as metadata",
			File: "service/view/room.go", Anchor: "		t.metadata += len(e.Holder)\n", Becomes: "",
			In: "./service", Run: "^TestLimitOfHoldersAndCallbacks$",
		},
		{
			Name: "quota-rates-shared", Breaks: "each rate has a bucket of its own",
			File: "service/quotas/rates.go", Anchor: "each[l-quota.Requests]\n	one.even(now)", Becomes: "each[0]\n	one.even(now)",
			In: "./service/quotas", Run: "^TestRates$",
		},
		{
			Name: "quota-rates-never-change", Breaks: "another quota holds for who asks already",
			File: "service/quotas/rates.go", Anchor: "one.limiter == nil || one.limiter.Burst() != most {", Becomes: "one.limiter == nil {",
			In: "./service/quotas", Run: "^TestRatesChange$",
		},
		{
			Name: "price-sets-cost-one", Breaks: "a set costs what its locks cost",
			File: "handlers/locksets.go", Anchor: "quota.PriceOfSet(min(len(req.Claims), lock.MaxSetSize))", Becomes: "quota.PriceOfSet(min(1, lock.MaxSetSize))",
			In: "./handlers", Run: "^TestPriceOfRequests$", Needs: "etcd",
		},
		{
			Name: "price-of-what-is-seen", Breaks: "who may see few of many locks pays for looking at all",
			File: "handlers/list.go", Anchor: "quota.PriceOfNames(page.Looked*req.Effort)", Becomes: "quota.PriceOfNames(len(page.Locks))",
			In: "./handlers", Run: "^TestPriceOfNarrowLists$",
		},
		{
			Name: "price-long-answers-free", Breaks: "long answers cost more than short ones",
			File: "handlers/answer.go", Anchor: "r.received + text.Len()", Becomes: "r.received",
			In: "./handlers", Run: "^TestPriceOfRequests$", Needs: "etcd",
		},
		{
			Name: "price-long-bodies-free", Breaks: "long bodies cost more than short ones",
			File: "handlers/body.go", Anchor: "	r.received = len(text)\n", Becomes: "",
			In: "./handlers", Run: "^TestPriceOfRequests$", Needs: "etcd",
		},
		{
			Name: "price-webhooks-cost-one", Breaks: "a list of webhooks costs what the store is asked",
			File: "handlers/webhooks.go", Anchor: "r.charge(len(all))", Becomes: "r.charge(0)",
			In: "./handlers", Run: "^TestPriceOfRequests$", Needs: "etcd",
		},
		{
			Name: "price-debt-forgiven", Breaks: "what costs more than there is, is paid for later",
			File: "service/quotas/rates.go", Anchor: "		p.limiter.ReserveN(now, part)\n", Becomes: "		p.limiter.AllowN(now, part)\n",
			In: "./service/quotas", Run: "^TestPrice$",
		},
		{
			Name: "price-dear-is-free", Breaks: "what costs more than may be used at once is counted in parts",
			File: "service/quotas/rates.go", Anchor: "part := min(n, most)", Becomes: "part := n",
			In: "./service/quotas", Run: "^TestPrice$",
		},
		{
			Name: "price-debt-upon-debt", Breaks: "nothing dear is begun by who owes",
			File: "service/quotas/rates.go", Anchor: "	if one.owes(now) {\n", Becomes: "	if one.limiter.Burst() == 0 {\n",
			In: "./service/quotas", Run: "^TestPrice$",
		},
		{
			Name: "price-dear-refused-for-ever", Breaks: "what costs more than may be used at once can be had",
			File: "service/quotas/rates.go", Anchor: "p.limiter.TokensAt(now) < -rounding", Becomes: "p.limiter.TokensAt(now) < 1",
			In: "./service/quotas", Run: "^TestPriceOfOneAtATime$",
		},
		{
			Name: "price-rounding-is-owed", Breaks: "who has used up what there is owes nothing",
			File: "service/quotas/rates.go", Anchor: "const rounding = 1e-6", Becomes: "const rounding = 0",
			In: "./service/quotas", Run: "^TestRoundingIsNoDebt$",
		},
		{
			Name: "rate-raised-and-used-up", Breaks: "what was not used of a limit is there of a higher one",
			File: "service/quotas/rates.go", Anchor: "used, owed := was.Burst()-int(max(0, left))", Becomes: "used, owed := most-int(max(0, left))",
			In: "./service/quotas", Run: "^TestRateChangesForWhoOwes$",
		},
		{
			Name: "rate-changed-debt-forgiven", Breaks: "what is owed stays owed under another limit",
			File: "service/quotas/rates.go", Anchor: "min(used, most)+owed", Becomes: "min(used, most)+0*owed",
			In: "./service/quotas", Run: "^TestRateChangesForWhoOwes$",
		},
		{
			Name: "price-renewals-by-length", Breaks: "a renewal costs one, however long it is",
			File: "handlers/admit.go", Anchor: "r.priced = rate == quota.Requests", Becomes: "r.priced = true",
			In: "./handlers", Run: "^TestPriceOfRequests$",
		},
		{
			Name: "price-debt-forgotten", Breaks: "who owes is not forgotten while there is room",
			File: "service/quotas/rates.go", Anchor: " && !p.owes(now)\n", Becomes: "\n",
			In: "./service/quotas", Run: "^TestDebtIsRemembered$",
		},
		{
			Name: "price-answers-all-at-once", Breaks: "large answers of a tenant are made one after the other",
			File: "handlers/turns.go", Anchor: "next: semaphore.NewWeighted(1)", Becomes: "next: semaphore.NewWeighted(100)",
			In: "./handlers", Run: "^TestTurnsOfAnswers$", Needs: "etcd",
		},
		{
			Name: "price-answers-out-of-turn", Breaks: "a large answer is made when it is its turn",
			File: "handlers/answer.go", Anchor: "	r.turn, err = r.endpoints.turns.take(r.context(), r.account())", Becomes: "	r.turn, err = newTurns(1).take(r.context(), r.account())",
			In: "./handlers", Run: "^TestLargeAnswersTakeTurns$", Needs: "etcd",
		},
		{
			Name: "price-turns-of-slow-readers", Breaks: "who takes an answer slowly keeps nobody waiting",
			File: "handlers/answer.go", Anchor: "r.endTurn() // a client that takes", Becomes: "_ = r.endTurn // a client that takes",
			In: "./handlers", Run: "^TestNeverRead$", Needs: "etcd",
		},
		{
			Name: "price-turns-kept", Breaks: "tenants that wait for no turn are forgotten",
			File: "handlers/turns.go", Anchor: "		delete(t.tenants, tenant)\n", Becomes: "",
			In: "./handlers", Run: "^TestTurnsOfAnswers$", Needs: "etcd",
		},
		{
			Name: "refusals-unpaced", Breaks: "who asks on and on is refused later",
			File: "handlers/quota.go", Anchor: "	r.pause(time.Duration(pauses) * (refusalPause/2 + rand.N(refusalPause)))\n", Becomes: "	_ = rand.N(refusalPause)\n",
			In: "./handlers", Run: "^TestRefusalsArePaced$", Needs: "etcd",
		},
		{
			Name: "refusals-paced-the-same", Breaks: "the more are refused the longer they wait",
			File: "handlers/quota.go", Anchor: "time.Duration(pauses) * (", Becomes: "time.Duration(min(pauses, 1)) * (",
			In: "./handlers", Run: "^TestRefusalsArePaced$", Needs: "etcd",
		},
		{
			Name: "refusals-of-very-many", Breaks: "no refusal is held back for much longer than others",
			File: "service/quotas/rates.go", Anchor: "min(p.silenced, mostMany) / many", Becomes: "p.silenced / many",
			In: "./service/quotas", Run: "^TestManyRefusals$",
		},
		{
			Name: "refusals-paced-alike", Breaks: "who was refused at the same moment comes back at another",
			File: "handlers/quota.go", Anchor: "refusalPause/2 + rand.N(refusalPause)", Becomes: "refusalPause + rand.N(time.Duration(1))",
			In: "./handlers", Run: "^TestRefusalsArePacedApart$", Needs: "etcd",
		},
		{
			Name: "refusals-paced-from-nothing", Breaks: "nobody who asks on and on is refused at once",
			File: "handlers/quota.go", Anchor: "refusalPause/2 + rand.N(refusalPause)", Becomes: "rand.N(refusalPause)",
			In: "./handlers", Run: "^TestRefusalsArePacedApart$", Needs: "etcd",
		},
		{
			Name: "refusals-never-many", Breaks: "who is refused again and again is told apart from who waits",
			File: "service/quotas/rates.go", Anchor: "min(p.silenced, mostMany) / many", Becomes: "min(p.silenced, 0) / many",
			In: "./service/quotas", Run: "^TestManyRefusals$",
		},
		{
			Name: "quota-tenants-unbounded", Breaks: "tenants that ask are remembered within a bound",
			File: "service/quotas/rates.go", Anchor: "		r.makeRoom(now)\n", Becomes: "",
			In: "./service/quotas", Run: "^TestManyTenants$",
		},
		{
			Name: "quota-forgets-who-asks", Breaks: "nobody is forgotten who has just asked, while there is room",
			File: "service/quotas/rates.go", Anchor: "now.Sub(p.asked) >= forgetAfter &&", Becomes: "p.asked.IsZero() &&",
			In: "./service/quotas", Run: "^TestManyTenants$",
		},
		{
			Name: "quota-refusals-fill-the-log", Breaks: "of refusals for a rate the log has one a second",
			File: "handlers/quota.go", Anchor: "	r.quiet = refused.Quiet\n", Becomes: "",
			In: "./handlers", Run: "^TestQuietRefusals$", Needs: "etcd",
		},
		{
			Name: "quota-damaged-is-none", Breaks: "where what is set cannot be read, that is told",
			File: "service/quotas/change.go", Anchor: "if out.Damaged = bad != nil; out.Damaged {", Becomes: "if bad != nil {",
			In: "./service/quotas", Run: "^TestDamaged$",
		},
		{
			Name: "quota-out-of-bounds-is-read", Breaks: "a number that nobody can have set is not heeded",
			File: "lock/quota/override.go", Anchor: "if wrong := l.Check(*n); wrong != \"\" {", Becomes: "if wrong := l.Check(0); wrong != \"\" {",
			In: "./lock/quota", Run: "^TestOverrides$",
		},
		{
			Name: "quota-not-on-record", Breaks: "each change of a quota is in the audit",
			File: "service/quotas/change.go", Anchor: "		if !noted {\n", Becomes: "		if noted {\n",
			In: "./service/quotas", Run: "^TestSet$",
		},
		{
			Name: "quota-version-unheeded", Breaks: "what was changed meanwhile is not replaced",
			File: "service/quotas/change.go", Anchor: "case c.Version != nil && *c.Version != was.Version:", Becomes: "case c.Version != nil && *c.Version > was.Version:",
			In: "./service/quotas", Run: "^TestVersions$",
		},
		{
			Name: "quota-set-by-the-tenant", Breaks: "a tenant's own operator does not set its quota",
			File: "handlers/quota.go", Anchor: "operation{scopes: []auth.Scope{auth.Admin}, always: true}", Becomes: "operation{scopes: []auth.Scope{auth.Admin, auth.TenantAdmin}, always: true}",
			In: "./handlers", Run: "^TestQuotaRefusals$", Needs: "etcd",
		},
		{
			Name: "quota-lists-hold-up-grants", Breaks: "a list of locks with many holders lets the view go",
			File: "service/view/look.go", Anchor: " || page.holders-before >= listedAtOnce", Becomes: " || page.holders < before",
			In: "./service/view", Run: "^TestListLetsGoOfHolders$",
		},
		{
			Name: "quota-lists-all-at-once", Breaks: "grants wait for one list and not for many",
			File: "service/view/look.go", Anchor: "	v.lists.Lock()\n	defer v.lists.Unlock()\n", Becomes: "",
			In: "./service/view", Run: "^TestListsTakeTurns$",
		},
		{
			Name: "quota-key-of-another", Breaks: "a request is not let in as another one of its key",
			File: "service/view/room.go", Anchor: "if x.entry.Request != e.Request {", Becomes: "if x.entry.Request != e.Request && x.entry == e {",
			In: "./service", Run: "^TestKeyOfAnother$",
		},
		{
			Name: "quota-seen-counted-twice", Breaks: "an entry that the view has is not counted again for its retry",
			File: "service/view/room.go", Anchor: "seen != nil && seen.Request == e.Request {", Becomes: "seen != nil && seen == e {",
			In: "./service/view", Run: "^TestRoomOfWhatIsSeen$",
		},
		{
			Name: "quota-refuses-what-is-there", Breaks: "a retry whose entry is there is that entry, also where the view is late",
			File: "service/acquire.go", Anchor: "\t\t\ts.settled(ctx)\n\t\t}\n\t\treturn s.refuseOrRejoin", Becomes: "\t\t}\n\t\treturn s.refuseOrRejoin",
			In: "./service", Run: "^TestKeyedRetryAtALateReplica$",
		},
		{
			Name: "price-operated-webhooks-free", Breaks: "what a tenant's operator asks the store about webhooks counts",
			File: "handlers/console_webhooks.go", Anchor: "o := operation{scopes: operators(), always: true, ofTenants: true}", Becomes: "o := operation{scopes: operators(), always: true}",
			In: "./handlers", Run: "^TestOperatedWebhooksCount$",
		},
		{
			Name: "price-time-goes-back", Breaks: "however many ask at once, no more is taken than the limit",
			File: "service/quotas/rates.go", Anchor: "	limits, r := b.Of(tenant), b.rates\n	r.mu.Lock()\n	defer r.mu.Unlock()\n	now := time.Now() // not before the lock: to a limiter that is told an older time the same second comes twice\n	one := &r.of(tenant, limits, now).each[l-quota.Requests]\n	one.even(now)", Becomes: "	limits, r, now := b.Of(tenant), b.rates, time.Now()\n	r.mu.Lock()\n	defer r.mu.Unlock()\n	one := &r.of(tenant, limits, now).each[l-quota.Requests]\n	one.even(now)",
			In: "./service/quotas", Run: "^TestRateAtOnce$",
		},
		{
			Name: "quota-in-vain-is-free", Breaks: "what is refused to who asks counts too",
			File: "handlers/admit.go", Anchor: "	case refused:\n		return quota.Requests, true\n", Becomes: "	case refused:\n		return 0, false\n",
			In: "./handlers", Run: "^TestAskedInVain$", Needs: "etcd",
		},
		{
			Name: "price-turn-of-who-owes", Breaks: "who is refused leaves his turn to the next at once",
			File: "handlers/answer.go", Anchor: "	r.endTurn()\n	r.turn = nil\n", Becomes: "",
			In: "./handlers", Run: "^TestTurnOfWhoOwes$", Needs: "etcd",
		},
		{
			Name: "price-large-answers-to-who-owes", Breaks: "no large answer is made for who owes",
			File: "handlers/answer.go", Anchor: "	err := r.charge(0)\n", Becomes: "	var err error\n",
			In: "./handlers", Run: "^TestTurnOfWhoOwes$", Needs: "etcd",
		},
		{
			Name: "price-room-of-who-owes", Breaks: "no room is kept for an answer that is refused",
			File: "handlers/answer.go", Anchor: "	r.turn = nil\n	r.giveRoom()\n", Becomes: "	r.turn = nil\n",
			In: "./handlers", Run: "^TestTurnOfWhoOwes$", Needs: "etcd",
		},
		{
			Name: "price-lists-for-who-owes", Breaks: "nothing is looked for to list it to who owes",
			File: "service/look.go", Anchor: "		if err := req.turn(); err != nil {\n			return page, err\n		}\n", Becomes: "		defer func() { _ = req.turn() }()\n",
			In: "./service", Run: "^TestListInTurn$",
		},
		{
			Name: "price-lists-out-of-turn", Breaks: "locks are looked at for a list when it is its turn",
			File: "handlers/list.go", Anchor: "	req.Turn = r.nextTurn\n", Becomes: "	req.Turn = func() error { return nil }\n",
			In: "./handlers", Run: "^TestListsLookInTurn$", Needs: "etcd",
		},
		{
			Name: "price-lists-in-one-turn", Breaks: "other tenants have their turns between the parts of a list",
			File: "handlers/answer.go", Anchor: "return r.turn.pass(r.context())", Becomes: "return nil",
			In: "./handlers", Run: "^TestListsInParts$", Needs: "etcd",
		},
		{
			Name: "price-lists-once-in-turn", Breaks: "a list waits for its turn before each of its parts",
			File: "service/look.go", Anchor: "		if err := req.turn(); err != nil {", Becomes: "		if err := req.turn(); err != nil && page.Looked == 0 {",
			In: "./service", Run: "^TestListInTurns$",
		},
		{
			Name: "price-turn-given-back-twice", Breaks: "who goes away between two parts gives no turn back that he has not",
			File: "handlers/turns.go", Anchor: "	t.ready = err == nil\n", Becomes: "",
			In: "./handlers", Run: "^TestTurnsInParts$", Needs: "etcd",
		},
		{
			Name: "price-patterns-free", Breaks: "a list costs more where it takes long to say which names may be seen",
			File: "handlers/list.go", Anchor: "page.Looked*req.Effort", Becomes: "page.Looked",
			In: "./handlers", Run: "^TestPriceOfNarrowLists$", Needs: "etcd",
		},
		{
			Name: "price-crowds-free", Breaks: "a list costs more where many hold each lock",
			File: "handlers/list.go", Anchor: " + quota.PriceOfHolders(page.MoreHolders())", Becomes: "",
			In: "./handlers", Run: "^TestPriceOfCrowds$", Needs: "etcd",
		},
		{
			Name: "price-first-holders-count", Breaks: "who lists locks with one holder each pays for names and bytes alone",
			File: "service/view/look.go", Anchor: "return p.holders - len(p.Locks)", Becomes: "return p.holders",
			In: "./handlers", Run: "^TestPriceOfCrowds$", Needs: "etcd",
		},
		{
			Name: "price-stars-free", Breaks: "each text between the stars of a pattern counts",
			File: "lock/pattern.go", Anchor: "		steps += stepsOf(len(piece))\n", Becomes: "		_ = piece\n",
			In: "./auth", Run: "^TestEffort$",
		},
		{
			Name: "price-long-texts-cost-as-short-ones", Breaks: "a long text between the stars of a pattern counts more than a short one",
			File: "lock/pattern.go", Anchor: "		steps += stepsOf(len(piece))\n", Becomes: "		steps += min(1, stepsOf(len(piece)))\n",
			In: "./auth", Run: "^TestEffort$",
		},
		{
			Name: "quota-patterns-hold-up-grants", Breaks: "a list lets the view go earlier where it takes long to say which names may be seen",
			File: "service/view/look.go", Anchor: "max(1, listChunk/max(1, req.Effort))", Becomes: "max(1, listChunk)",
			In: "./service/view", Run: "^TestListLetsGoOfNames$",
		},
		{
			Name: "price-shorter-is-refused", Breaks: "who is told less of who is in the way does not count as refused",
			File: "handlers/admit.go", Anchor: "r.priced && r.endpoints.Quotas.Owes(r.payer, quota.Requests)", Becomes: "r.charge(0) != nil",
			In: "./handlers", Run: "^TestShorterIsNoRefusal$", Needs: "etcd",
		},
		{
			Name: "quota-bursts-of-who-does-not-wait", Breaks: "who does not wait as he is told to gets no bursts",
			File: "service/quotas/rates.go", Anchor: "	one.even(now)\n", Becomes: "",
			In: "./service/quotas", Run: "^TestEvenly$",
		},
		{
			Name: "quota-bursts-once-more", Breaks: "who goes on being refused gets no bursts for as long",
			File: "service/quotas/rates.go", Anchor: "			p.manyAt = now\n", Becomes: "			if p.manyAt.IsZero() {\n				p.manyAt = now\n			}\n",
			In: "./service/quotas", Run: "^TestEvenlyForLong$",
		},
		{
			Name: "price-room-given-back-twice", Breaks: "what a refused request had is given back once",
			File: "handlers/answer.go", Anchor: "		r.taken = 0\n", Becomes: "",
			In: "./handlers", Run: "^TestShorterIsNoRefusal$", Needs: "etcd",
		},
		{
			Name: "quota-bursts-never-again", Breaks: "who waits as he is told to may use a second's worth at once",
			File: "service/quotas/rates.go", Anchor: "now.Sub(p.manyAt) >= evenFor", Becomes: "p.manyAt.IsZero()",
			In: "./service/quotas", Run: "^TestEvenly$",
		},
		{
			Name: "quota-bursts-of-small-limits", Breaks: "a rate below 50 a second is had also by who does not wait",
			File: "service/quotas/rates.go", Anchor: "max(1, p.limiter.Burst()/evenPart)", Becomes: "p.limiter.Burst()/evenPart",
			In: "./service/quotas", Run: "^TestEvenly$",
		},
		{
			Name: "price-turn-of-who-is-gone", Breaks: "who goes away leaves his turn to the next",
			File: "handlers/turns.go", Anchor: "		own.next.Release(1)\n		t.leave(tenant, own)\n		return nil, err", Becomes: "		t.leave(tenant, own)\n		return nil, err",
			In: "./handlers", Run: "^TestTurnOfWhoGoesAway$", Needs: "etcd",
		},
		{
			Name: "refusals-wait-in-a-crowd", Breaks: "no refusal waits where its tenant has too many requests under way",
			File: "handlers/quota.go", Anchor: "r.crowded || m != nil", Becomes: "m != nil",
			In: "./handlers", Run: "^TestNoRefusalWaitsInACrowd$", Needs: "etcd",
		},
		{
			Name: "refusals-wait-without-memory", Breaks: "no refusal waits while there is no memory for new work",
			File: "handlers/quota.go", Anchor: "m != nil && m.Full()", Becomes: "m != nil && !m.Full()",
			In: "./handlers", Run: "^TestNoRefusalWaitsInACrowd$", Needs: "etcd",
		},
		{
			Name: "refusals-wait-for-who-is-gone", Breaks: "no refusal waits for a client that has gone away",
			File: "handlers/quota.go", Anchor: "	case <-r.context().Done():\n", Becomes: "",
			In: "./handlers", Run: "^TestRefusalWaitsForNobodyWhoIsGone$", Needs: "etcd",
		},
		{
			Name: "strangers-unpaced", Breaks: "who asks on and on without being known is refused later",
			File: "handlers/problem.go", Anchor: "		r.pace(r.endpoints.anonymous)\n", Becomes: "",
			In: "./handlers", Run: "^TestStrangersArePaced$", Needs: "etcd",
		},
		{
			Name: "strangers-wait-in-a-crowd", Breaks: "no refusal waits where half of the requests are under way that those may have who are not known",
			File: "handlers/quota.go", Anchor: " || r.anonymous != nil && r.anonymous.crowded()", Becomes: "",
			In: "./handlers", Run: "^TestNoRefusalWaitsInACrowd$", Needs: "etcd",
		},
		{
			Name: "strangers-wait-among-too-many", Breaks: "who is refused as there are too many requests does not wait",
			File: "handlers/connections.go", Anchor: "if r.crowded = !conn.arrive(); r.crowded {", Becomes: "if !conn.arrive() {",
			In: "./handlers", Run: "^TestNoRefusalWaitsInACrowd$", Needs: "etcd",
		},
		{
			Name: "strangers-unbounded", Breaks: "addresses that are refused are remembered within a bound",
			File: "handlers/anonymous.go", Anchor: "		s.makeRoom(now)\n", Becomes: "",
			In: "./handlers", Run: "^TestManyStrangers$", Needs: "etcd",
		},
		{
			Name: "strangers-forgets-who-asks", Breaks: "nobody is forgotten who was just refused, while there is room",
			File: "handlers/anonymous.go", Anchor: "one.limiter.TokensAt(now) >= anonymousRefusals", Becomes: "one.limiter.TokensAt(now) >= 0",
			In: "./handlers", Run: "^TestManyStrangers$", Needs: "etcd",
		},
		{
			Name: "strangers-behind-a-proxy-are-one", Breaks: "clients behind a proxy that is trusted are told apart",
			File: "handlers/address.go", Anchor: "clientAddress(r.Request, r.endpoints.TrustedProxies)", Becomes: "clientAddress(r.Request, nil)",
			In: "./handlers", Run: "^TestAddressesOfStrangers$", Needs: "etcd",
		},
		{
			Name: "strangers-of-one-network", Breaks: "with IPv6 a client has not as many addresses as it likes",
			File: "handlers/anonymous.go", Anchor: "bits = 64", Becomes: "bits = 128",
			In: "./handlers", Run: "^TestAddressesOfStrangers$", Needs: "etcd",
		},
		{
			Name: "strangers-fill-the-log", Breaks: "of what is refused to who is not known the log has one line a second",
			File: "handlers/request.go", Anchor: " || r.silenced(status)", Becomes: "",
			In: "./handlers", Run: "^TestStrangersDoNotFillTheLog$", Needs: "etcd",
		},
		{
			Name: "visitors-unpaced", Breaks: "who asks on and on for what everybody gets is answered later",
			File: "handlers/anonymous.go", Anchor: "		r.pace(a.visitors)\n", Becomes: "",
			In: "./handlers", Run: "^TestVisitorsArePaced$", Needs: "etcd",
		},
		{
			Name: "visitors-wear-out-refusals", Breaks: "what everybody gets and what is refused count by themselves",
			File: "handlers/anonymous.go", Anchor: "		r.pace(a.visitors)\n", Becomes: "		r.pace(a.anonymous)\n",
			In: "./handlers", Run: "^TestVisitorsArePaced$", Needs: "etcd",
		},
		{
			Name: "visitors-fill-the-log", Breaks: "of what everybody is answered the log has one line a second",
			File: "handlers/anonymous.go", Anchor: "if r.principal != nil || status >= http.StatusInternalServerError {", Becomes: "if !r.strange(status) {",
			In: "./handlers", Run: "^TestVisitorsDoNotFillTheLog$", Needs: "etcd",
		},
		{
			Name: "visitors-hide-routes", Breaks: "of what everybody is answered each route has lines of its own",
			File: "handlers/anonymous.go", Anchor: "r.endpoints.visitors, r.FullPath()", Becomes: "r.endpoints.visitors, \"\"",
			In: "./handlers", Run: "^TestVisitorsDoNotFillTheLog$", Needs: "etcd",
		},
		{
			Name: "strangers-hide-addresses", Breaks: "an address that is refused on and on does not keep others out of the log",
			File: "handlers/anonymous.go", Anchor: "!t.limiter.AllowN(now, 1) && (t", Becomes: "!t.limiter.AllowN(now, 1) && (true || t",
			In: "./handlers", Run: "^TestNoAddressHidesAnother$", Needs: "etcd",
		},
		{
			Name: "strangers-always-new", Breaks: "an address that the log knows is none that it has not seen",
			File: "handlers/anonymous.go", Anchor: "	one.told = now\n", Becomes: "",
			In: "./handlers", Run: "^TestNoAddressHidesAnother$", Needs: "etcd",
		},
		{
			Name: "strangers-many-fill-the-log", Breaks: "very many addresses that the log has not seen do not fill it",
			File: "handlers/anonymous.go", Anchor: " || !t.newcomers.AllowN(now, 1))", Becomes: ")",
			In: "./handlers", Run: "^TestNoAddressHidesAnother$", Needs: "etcd",
		},
		{
			Name: "strangers-silence-untold", Breaks: "how many refusals had no line is told",
			File: "handlers/anonymous.go", Anchor: "slog.Int(\"silenced\", before)", Becomes: "slog.Int(\"silenced\", 0)",
			In: "./handlers", Run: "^TestStrangersDoNotFillTheLog$", Needs: "etcd",
		},
		{
			Name: "strangers-silence-errors", Breaks: "each error has a line in the log",
			File: "handlers/anonymous.go", Anchor: "if r.principal != nil || status >= http.StatusInternalServerError {", Becomes: "if r.principal != nil {",
			In: "./handlers", Run: "^TestStrangersDoNotFillTheLog$", Needs: "etcd",
		},
		{
			Name: "strangers-hide-causes", Breaks: "refusals for one cause do not hide those for another",
			File: "handlers/admit.go", Anchor: "	r.refused.auth = why.Reason\n", Becomes: "",
			In: "./handlers", Run: "^TestCausesHaveTheirOwnLines$", Needs: "etcd",
		},
		{
			Name: "answer-waits-for-its-body", Breaks: "a body that never comes keeps nothing for longer than an answer that is not read",
			File: "handlers/answer.go", Anchor: "		w.bodyDeadline(time.Now().Add(w.timeout / 2))\n", Becomes: "",
			In: "./handlers", Run: "^TestBodyThatNeverComes$", Needs: "etcd",
		},
		{
			Name: "scrape-waits-in-its-place", Breaks: "a body that never comes keeps nobody from the metrics",
			File: "handlers/operations.go", Anchor: "	if _, err := r.readBody(); err != nil { // before", Becomes: "	if err := error(nil); err != nil { // before",
			In: "./handlers", Run: "^TestScrapesWithoutTheirBodies$", Needs: "etcd",
		},
		{
			Name: "price-operated-looks-free", Breaks: "what a tenant's operator looks at counts",
			File: "handlers/admit.go", Anchor: "(o.ofTenants || r.Request.Method == http.MethodGet)", Becomes: "o.ofTenants",
			In: "./handlers", Run: "^TestOperatedLooksCount$", Needs: "etcd",
		},
		{
			Name: "price-operated-looks-of-workers", Breaks: "who works does not keep his tenant's operator from looking",
			File: "handlers/admit.go", Anchor: "			r.payer = quotas.Looking(r.payer)\n", Becomes: "			_ = quotas.Looking\n",
			In: "./handlers", Run: "^TestOperatedLooksCount$", Needs: "etcd",
		},
		{
			Name: "room-made-for-each", Breaks: "those who are remembered are not all looked at for each who comes",
			File: "lock/quota/room.go", Anchor: "now.Sub(*swept) >= sweepEvery", Becomes: "now.Sub(*swept) >= 0",
			In: "./lock/quota", Run: "^TestMakeRoom$",
		},
		{
			Name: "listener-fills-the-log", Breaks: "of what is not HTTP the log has one line a second",
			File: "handlers/listener.go", Anchor: "	if !ok {\n", Becomes: "	if !ok && silenced > 0 {\n",
			In: "./handlers", Run: "^TestNotHTTPDoesNotFillTheLog$", Needs: "etcd",
		},
	}
}
