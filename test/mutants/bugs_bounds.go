package main

// boundsBugs let one tenant, or one reader of the log, take more than its share.
func boundsBugs() []Bug {
	return []Bug{
		{
			Name: "bounds-store-before-the-ceiling", Breaks: "the collector keeps to the ceiling before the store is opened",
			File: "cmd/api/run.go", Anchor: "	memory, stopGuard := guardMemory(c.ceilingBytes(), t)\n	defer stopGuard()\n	opened, err := openStore(ctx, c, t)\n	if err != nil {\n		return err\n	}\n	defer func() { err = errors.Join(err, opened.Close()) }()\n",
			Becomes: "	opened, err := openStore(ctx, c, t)\n	if err != nil {\n		return err\n	}\n	defer func() { err = errors.Join(err, opened.Close()) }()\n	memory, stopGuard := guardMemory(c.ceilingBytes(), t)\n	defer stopGuard()\n",
			In:      "./cmd/api", Run: "^TestBeforeTheStore$",
		},
		{
			Name: "bounds-pending-of-its-own-in-etcd", Breaks: "with little memory fewer writes may wait to be sent",
			File: "cmd/api/store.go", Anchor: "Observer: observeStore(t), Pending: roomIn(c.ceilingBytes()).pending,\n	}\n}\n\n// etcdStore", Becomes: "Observer: observeStore(t),\n	}\n}\n\n// etcdStore",
			In: "./cmd/api", Run: "^TestRoomIsPassedOn$",
		},
		{
			Name: "bounds-pending-is-etcds-own", Breaks: "writes that wait to be sent have the bounds that the store was given",
			File: "store/etcd/commit.go", Anchor: "Inline: local, Pending: c.pending,", Becomes: "Inline: local,",
			In: "./store/etcd", Run: "^TestPendingIsBounded$",
		},
		{
			Name: "bounds-pending-is-zookeepers-own", Breaks: "writes that wait to be sent have the bounds that the store was given, on ZooKeeper",
			File: "store/zookeeper/commit.go", Anchor: "Linger: gather, Pending: pending,", Becomes: "Linger: gather,",
			In: "./store/zookeeper", Run: "^TestPendingIsBounded$",
		},
		{
			Name: "bounds-kept-of-its-own", Breaks: "with little memory less is kept of what is over",
			File: "cmd/api/run.go", Anchor: "Kept: room.kept, ", Becomes: "",
			In: "./cmd/api", Run: "^TestRoomIsPassedOn$",
		},
		{
			Name: "bounds-ends-of-its-own", Breaks: "a view keeps no more ends and figures than it is told to",
			File: "service/view/view.go", Anchor: "all, bounds := accounts{}, cfg.Bounds.orDefault()", Becomes: "all, bounds := accounts{}, Bounds{}.orDefault()",
			In: "./service/view", Run: "^TestBounds$",
		},
		{
			Name: "bounds-tenant-has-all-of-the-writes", Breaks: "with little memory one tenant cannot have all writes that may wait",
			File: "cmd/api/memory.go", Anchor: "Writes: writes / 2, Bytes: bytes / 4", Becomes: "Writes: writes / 2, Bytes: bytes",
			In: "./cmd/api", Run: "^TestRoom$",
		},
		{
			Name: "looking-semaphore-in-a-cycle", Breaks: "who can take another place of a semaphore is in no cycle",
			File: "lock/blocking/forest.go", Anchor: "		g.choose(q)\n", Becomes: "",
			In: "./lock/blocking", Run: "^TestForest$",
		},
		{
			Name: "trace-without-blocker", Breaks: "the trace of a request that waits leads to what it waits for",
			File: "service/links.go", Anchor: "link(span, traceOf(blockers[0]), blockedBy, w.blocker)", Becomes: "_ = blockers",
			In: "./service", Run: "^TestLinks$",
		},
		{
			Name: "trace-without-release", Breaks: "the trace of a request that waited leads to the release",
			File: "service/links.go", Anchor: "to, ok := w.s.ending.of(before.ID)", Becomes: "to, ok := traceOf(before), false",
			In: "./service", Run: "^TestLinks$",
		},
		{
			Name: "trace-of-unsampled-batch", Breaks: "only requests that are traced make a batch traced",
			File: "store/batch/committer.go", Anchor: "if w.request.IsSampled() {", Becomes: "if w.request.IsValid() {",
			In: "./store", Run: "^TestSending$",
		},
		{
			Name: "service-tells-under-the-lock", Breaks: "a log that stands still stops no grant",
			File: "service/events.go", Anchor: "func (e *dispatcher) note(what noted) {\n", Becomes: "func (e *dispatcher) note(what noted) {\n\te.tell(what)\n",
			In: "./service", Run: "^TestLogThatStandsStill$", Hangs: true,
		},
		{
			Name: "service-events-without-bound", Breaks: "events that nobody takes are dropped and counted",
			File: "service/events.go", Anchor: "full, first := len(e.pending) >= maxEvents, ", Becomes: "full, first := false, ",
			In: "./service", Run: "^TestMoreEventsThanTheLogTakes$",
		},
		{
			Name: "service-crowd-on-one-entry", Breaks: "100 requests wait for one entry, and no more",
			File: "service/view/watch.go", Anchor: "if len(v.watchers[id]) >= maxAttending {", Becomes: "if len(v.watchers[id]) < 0 {",
			In: "./service", Run: "^TestManyOfOneKey$",
		},
		{
			Name: "service-ends-of-one-tenant-without-bound", Breaks: "a tenant's newest million ends are remembered, and no more",
			File: "service/view/endings.go", Anchor: `case tenant != "" && a.ends.size > e.ofTenant:`, Becomes: "case false:",
			In: "./service/view", Run: "^TestEndsAreBounded$",
		},
		{
			Name: "service-ends-of-others-give-way", Breaks: "where there is no room, the tenant with most gives way",
			File: "service/view/endings.go", Anchor: "e.forget(e.shares.largest())", Becomes: "e.forget(a)",
			In: "./service/view", Run: "^TestEndsAreBounded$",
		},
		{
			Name: "service-old-ends-stay", Breaks: "what is forgotten takes no memory",
			File: "service/view/endings.go", Anchor: "\t\te.sweep(minute)\n", Becomes: "",
			In: "./service/view", Run: "^TestOldEndsMakeRoom$",
		},
		{
			Name: "bounds-recalled-ends-are-nobodys", Breaks: "one tenant's ends do not push out another's, those from before a replica started neither",
			File: "service/view/view.go", Anchor: "cmp.Or(e.Tenant, v.unexplained[e.ID])", Becomes: `cmp.Or("", v.unexplained[e.ID])`,
			In: "./service/view", Run: "^TestRecalledEndsAreTheirTenants$",
		},
		{
			Name: "service-figures-of-others-give-way", Breaks: "a tenant does not push out the figures of others",
			File: "service/view/accounts.go", Anchor: "return s.size > other.size", Becomes: "return s.size < other.size",
			In: "./service", Run: "^TestFiguresOfOtherTenants$",
		},
		{
			Name: "service-look-asks-for-everybody", Breaks: "a look asks the store about 10 holders at most",
			File: "service/look.go", Anchor: "s.addExpiries(ctx, q.Holders, askedPerLook)",
			Becomes: "s.addExpiries(ctx, q.Holders, view.MaxShownHolders)",
			In:      "./service", Run: "^TestLooksAskTheStoreLittle$",
		},
		{
			Name: "service-looks-ask-each-for-itself", Breaks: "the store is asked about a holder once a second, however many look",
			File: "service/expiries.go", Anchor: "\t\tx.remember(key, known, time.Now())\n", Becomes: "",
			In: "./service", Run: "^TestLooksAskTheStoreLittle$",
		},
		{
			Name: "service-refused-set-asks-for-all", Breaks: "a refusal asks the store about 3 holders at most",
			File: "service/refusal.go", Anchor: "\t\tasks = max(0, asks-len(q.Holders))\n", Becomes: "",
			In: "./service", Run: "^TestRefusedSetAsksLittle$",
		},
		{
			Name: "service-contended-list-walks-all", Breaks: "a list of contended locks costs what it shows",
			File: "service/view/look.go", Anchor: "case \"contended\":\n\t\treturn contended\n", Becomes: "case \"contended\":\n\t\treturn inUse\n",
			In: "./service", Run: "^TestContendedList$",
		},
		{
			Name: "service-contradictions-flood-the-log", Breaks: "a tenant's contradictions are one line in 10 s",
			File: "service/view/rejections.go", Anchor: "contradictions.pass(now, betweenContradictions)", Becomes: "contradictions.pass(now, 0)",
			In: "./service", Run: "^TestContradictionsOfOneTenant$",
		},
		{
			Name: "lock-merged-holders-forgotten", Breaks: "who holds in a long queue is found, whoever has left",
			File: "lock/block.go", Anchor: "	into.holding += b.holding\n", Becomes: "",
			In: "./lock", Run: "^TestWhoHoldsInALongQueue$",
		},
		{
			Name: "lock-merged-first-forgotten", Breaks: "nobody in a long queue is passed over, whoever has left",
			File: "lock/block.go", Anchor: "		into.first = b.first\n", Becomes: "		_ = b.first\n",
			In: "./lock", Run: "^TestWhoHoldsInALongQueue$",
		},
		{
			Name: "lock-first-of-a-block-left", Breaks: "nobody in a long queue is passed over whose neighbour has left",
			File: "lock/block.go", Anchor: "		b.first = s.next\n", Becomes: "		_ = s.next\n",
			In: "./lock", Run: "^TestWhoHoldsInALongQueue$",
		},
		{
			Name: "lock-place-in-a-long-queue", Breaks: "a waiter's position is its place among those that wait",
			File: "lock/block.go", Anchor: "\tinto.waiting += b.waiting\n", Becomes: "",
			In: "./lock", Run: "^TestPositionsInALongQueue$",
		},
		{
			Name: "lock-ring-reported-again", Breaks: "a contradiction is reported once",
			File: "lock/order/graph.go", Anchor: "\t\ti := g.dispensable()\n", Becomes: "\t\ti := g.dispensable()\n\t\tdelete(g.cycles, g.found[i].Tenant)\n",
			In: "./lock/order", Run: "^TestRingsAreReportedOnce$",
		},
		{
			Name: "lock-endless-rings", Breaks: "what is kept of a contradiction is bounded",
			File: "lock/order/cycle.go", Anchor: "way == nil || len(way) >= maxCycle", Becomes: "way == nil",
			In: "./lock/order", Run: "^TestLongRingsAreNotReported$",
		},
		{
			Name: "telemetry-log-without-bound", Breaks: "of a log that nobody reads at most 1 MiB is kept",
			File: "telemetry/linewriter.go", Anchor: "case len(w.pending) > 0 && len(w.pending)+len(lines) > lineCapacity:", Becomes: "case false:",
			In: "./telemetry", Run: "^TestReaderThatStandsStill$",
		},
		{
			Name: "telemetry-warnings-wait", Breaks: "whoever logs a warning does not wait for a reader that stands still",
			File: "telemetry/linewriter.go", Anchor: "w.stalled = w.stalled || over && w.passed < target", Becomes: "_ = over",
			In: "./telemetry", Run: "^TestWarningsAndAReaderThatStandsStill$",
		},
		{
			Name: "telemetry-loss-untold", Breaks: "the log says how many of its lines were dropped",
			File: "telemetry/linewriter.go", Anchor: "\t\tw.confess()\n", Becomes: "",
			In: "./telemetry", Run: "^TestReaderThatStandsStill$",
		},
		{
			Name: "bounds-places-of-a-tenant", Breaks: "a tenant's entries are bounded",
			File: "service/view/room.go", Anchor: "t := tally{places: len(e.Claims)}", Becomes: "t := tally{places: 1}",
			In: "./service", Run: "^TestTenantWithoutPlaces$",
		},
		{
			Name: "bounds-renewals-after-a-list", Breaks: "what is renewed for a tenant is counted anew by a list",
			File: "service/view/accounts.go", Anchor: "a.tally, a.asks, a.uses, a.names = tally{}, 0,", Becomes: "a.tally, a.asks, a.uses, a.names = tally{renewed: a.renewed}, 0,",
			In: "./service", Run: "^TestTenantWithoutRenewals$",
		},
		{
			Name: "bounds-places-after-a-list", Breaks: "a tenant's entries are counted anew by a list",
			File: "service/view/accounts.go", Anchor: "a.tally, a.asks, a.uses, a.names = tally{}, 0,", Becomes: "a.tally, a.asks, a.uses, a.names = tally{places: a.places}, 0,",
			In: "./service", Run: "^TestTenantWithoutPlaces$",
		},
		{
			Name: "service-page-of-all-holders", Breaks: "a page ends after 2000 holders",
			File: "service/view/look.go", Anchor: " || page.holders+len(sum.Holders) > maxListedHolders", Becomes: "",
			In: "./service", Run: "^TestPageOfManyHolders$",
		},
		{
			Name: "service-list-in-one-go", Breaks: "a list holds the view for 1000 names at a time",
			File: "service/view/look.go", Anchor: "if page.Looked-looked == chunk ||", Becomes: "if page.Looked-looked < min(0, chunk) ||",
			In: "./service", Run: "^TestListLetsTheViewGo$",
		},
		{
			Name: "handlers-page-without-pauses", Breaks: "a long page leaves the processor to others again and again",
			File: "handlers/page.go", Anchor: "part >= partBytes {", Becomes: "part < 0 {",
			In: "./handlers", Run: "^TestPageLetsOthersCome$",
		},
		{
			Name: "handlers-page-pauses-for-each-lock", Breaks: "a page of many short locks takes few pauses",
			File: "handlers/page.go", Anchor: "\t\t\tpart = 0\n", Becomes: "",
			In: "./handlers", Run: "^TestPageLetsOthersCome$",
		},
		{
			Name: "service-expiries-without-bound", Breaks: "what looks remember of leases has a bound",
			File: "service/expiries.go", Anchor: "len(x.newer) >= maxExpiries/2 || ", Becomes: "",
			In: "./service", Run: "^TestExpiriesAreBounded$",
		},
		{
			Name: "handlers-body-without-end", Breaks: "a body has 10 s to arrive",
			File: "handlers/body.go", Anchor: "control.SetReadDeadline(time.Now().Add(bodyTimeout))", Becomes: "control.SetReadDeadline(time.Time{})",
			In: "./handlers", Run: "^TestBodyThatDoesNotCome$",
		},
		{
			Name: "handlers-requests-counted-for-ever", Breaks: "a tenant's requests are counted while they are under way",
			File: "handlers/connections.go", Anchor: "if all.byTenant[tenant]--; all.byTenant[tenant] == 0 {", Becomes: "if all.byTenant[tenant] == 0 {",
			In: "./handlers", Run: "^TestConnectionsOfOneTenant$",
		},
		{
			Name: "bounds-rings-of-one-tenant", Breaks: "one tenant's contradictions do not keep another's from being told",
			File: "service/contradictions.go", Anchor: "q.waiting.Len() == maxContradictionsToTell && !q.waiting.Drop(q.waiting.Of(c.Tenant)+1)", Becomes: "q.waiting.Len() == maxContradictionsToTell",
			In: "./service", Run: "^TestRingsTakeTurns$",
		},
		{
			Name: "bounds-rings-oldest-gives-way", Breaks: "of a tenant with too many contradictions the newest give way",
			File: "store/turns.go", Anchor: "t.leave(most, all[:last])", Becomes: "t.leave(most, all[1:])",
			In: "./service", Run: "^TestRingsTakeTurns$",
		},
		{
			Name: "bounds-lists-are-counted-to-zero", Breaks: "what was seen is told from what the store remembers, after however many lists",
			File: "service/view/endings.go", Anchor: "\tif e.list++; e.list == 0 {\n\t\te.list = 1\n\t}\n", Becomes: "\te.list++\n",
			In: "./service/view", Run: "^TestLatestEndCounts$",
		},
		{
			Name: "bounds-rings-in-turns", Breaks: "tenants take turns in being told of their contradictions",
			File: "store/turns.go", Anchor: "t.turns = append(t.turns, tenant)\n\t}\n\treturn x, true", Becomes: "t.turns = append([]string{tenant}, t.turns...)\n\t}\n\treturn x, true",
			In: "./service", Run: "^TestRingsTakeTurns$",
		},
		{
			Name: "bounds-rings-of-many-tenants", Breaks: "who comes later does not take the place of who waits",
			File: "service/contradictions.go", Anchor: "q.waiting.Of(c.Tenant)+1)", Becomes: "0*q.waiting.Of(c.Tenant))",
			In: "./service", Run: "^TestRingsAreTold$",
		},
		{
			Name: "bounds-expired-sets", Breaks: "of so many sets that expired the locks are known, and no more",
			File: "service/expired_sets.go", Anchor: "len(x.byID) > maxSets", Becomes: "false",
			In: "./service", Run: "^TestExpiredSets$",
		},
		{
			Name: "bounds-evidence-of-one-tenant", Breaks: "evidence of one tenant's locks does not have that of others' forgotten",
			File: "service/evidence.go", Anchor: "x.share.add(r.Tenant, t)", Becomes: `x.share.add("", t)`,
			In: "./service", Run: "^TestEvidenceOfTenants$",
		},
		{
			Name: "bounds-evidence-by-when-it-began", Breaks: "of tenants who have as much as each other the one gives way who has what was touched longest ago",
			File: "service/tenant_lists.go", Anchor: "	in.since = x.count\n", Becomes: "",
			In: "./service", Run: "^TestEvidenceOfManyTenants$",
		},
		{
			Name: "bounds-expired-sets-by-name", Breaks: "of tenants who have as much as each other the one gives way who has what is oldest",
			File: "service/tenant_lists.go", Anchor: "return t.last().since < other.last().since", Becomes: "return t.tenant < other.tenant",
			In: "./service", Run: "^TestExpiredSetsOfManyTenants$",
		},
		{
			Name: "bounds-expired-sets-of-one-tenant", Breaks: "one tenant's sets that expired do not have those of others forgotten",
			File: "service/expired_sets.go", Anchor: "x.share.add(strings.Clone(e.Tenant), set)", Becomes: `x.share.add("", set)`,
			In: "./service", Run: "^TestExpiredSetsOfTenants$",
		},
		{
			Name: "bounds-callbacks-that-are-over", Breaks: "whom to call is not known of entries that are gone",
			File: "service/view/async.go", Anchor: "\t\tdelete(a.called, key)\n", Becomes: "\t\t_ = key\n",
			In: "./service/view", Run: "^TestCallbacksThatAreOver$",
		},
		{
			Name: "bounds-rows-of-one-tenant", Breaks: "the rows of one tenant leave room for those of others",
			File: "service/row_expiries.go", Anchor: "len(x.known) >= maxEnds && !x.drop(e.Tenant)", Becomes: "len(x.known) >= maxEnds",
			In: "./service", Run: "^TestRowsOfOneTenant$",
		},
		{
			Name: "bounds-rows-of-who-has-no-more", Breaks: "of who has no more rows than others none gives way",
			File: "service/row_expiries.go", Anchor: "most <= x.share.len(tenant)+1", Becomes: "most < 0",
			In: "./service", Run: "^TestRowsOfOneTenant$",
		},
		{
			Name: "bounds-rows-shown-last-give-way", Breaks: "of a tenant's rows those give way that were shown longest ago",
			File: "service/row_expiries.go", Anchor: "\tx.share.touch(one.listed)\n", Becomes: "",
			In: "./service", Run: "^TestRowsOfOneTenant$",
		},
		{
			Name: "bounds-expired-sets-whole", Breaks: "of a set that expired only names are kept",
			File: "service/expired_sets.go", Anchor: "strings.Clone(c.Name)", Becomes: "c.Name",
			In: "./service", Run: "^TestExpiredSetsAreSmall$",
		},
	}
}
