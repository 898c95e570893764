package main

// noticesBugs break what is told to all without changing a queue.
func noticesBugs() []Bug {
	return []Bug{
		{
			Name: "notices-held-by-memory", Breaks: "who asks for a release is not told to hold by a view of what the store has lost",
			File: "service/ask.go", Anchor: "return s.holdsAlready(ctx, e)", Becomes: "return lock.Errorf(lock.AlreadyHeld, \"the entry holds: nobody is in its way\")",
			In: "./service", Run: "^TestAskOfWhoHeld$",
		},
		{
			Name: "notices-held-in-what-is-lost", Breaks: "who asks for a release is not told to hold by a store that has lost its past",
			File: "service/ask.go", Anchor: "	if err := s.Store.Refusal(); err != nil {\n		return err\n	}\n	return lock.Errorf(lock.AlreadyHeld", Becomes: "	return lock.Errorf(lock.AlreadyHeld",
			In: "./service", Run: "^TestAskOfWhoHeld$",
		},
		{
			Name: "etcd-notice-twice", Breaks: "a notice is written once",
			File: "store/etcd/notices.go", Anchor: "compares: []*pb.Compare{created(key, 0)}", Becomes: "compares: []*pb.Compare{}",
			In: "./store/etcd", Run: "^TestConformanceEmbedded$/^notices$/^one_that_is_repeated_is_written_once$", Needs: "etcd",
		},
		{
			Name: "etcd-notice-of-nobody", Breaks: "a notice of an entry is written only if that is there",
			File: "store/etcd/notices.go", Anchor: "p.compares = append(p.compares, created(s.primaryKey(of), s.revision(of.Number)))", Becomes: "_ = of.Number",
			In: "./store/etcd", Run: "^TestConformanceEmbedded$/^notices$/^belongs_to_an_entry_that_is_there$", Needs: "etcd",
		},
		{
			Name: "etcd-notice-left-over", Breaks: "the notices of an entry go with it",
			File: "store/etcd/gap.go", Anchor: "g.store.spent.add(g.store.noticeKeys(g.attached.Leave(c.Left)))", Becomes: "g.attached.Leave(c.Left)",
			In: "./store/etcd", Run: "^TestNoticesOfEntriesThatWent$", Needs: "etcd",
		},
		{
			Name: "ask-of-oneself", Breaks: "who holds is told of those who ask, and not of itself",
			File: "service/view/asks.go", Anchor: "known || id == e.ID || m == nil", Becomes: "known || m == nil",
			In: "./service/view", Run: "^TestAskAgain$",
		},
		{
			Name: "notice-of-a-later-entry", Breaks: "a later entry of the same id has none of the earlier one's notices",
			File: "store/notice.go", Anchor: "ok && number < n.Number", Becomes: "ok && number != n.Number",
			In: "./store/zookeeper", Run: "^TestConformance$/^notices$/^of_an_id_that_comes_again$", Needs: "zookeeper",
		},
		{
			Name: "zookeeper-notice-unlisted", Breaks: "who lists has the notices of the entries",
			File: "store/zookeeper/list.go", Anchor: "	f.attach(notices)\n", Becomes: "",
			In: "./store/zookeeper", Run: "^TestConformance$/^notices$/^who_lists_has_those_of_entries_that_are_there$", Needs: "zookeeper",
		},
		{
			Name: "zookeeper-notice-for-ever", Breaks: "notices are forgotten",
			File: "store/zookeeper/notices.go", Anchor: "Keyed: of == nil, Notice: v", Becomes: "Notice: v",
			In: "./store/zookeeper", Run: "^TestNoticesAreForgotten$", Needs: "zookeeper",
		},
		{
			Name: "ask-of-who-is-gone", Breaks: "only those count who wait at that moment, also for the bound",
			File: "service/view/view.go", Anchor: "	v.forgetAsk(e)\n\ta := ", Becomes: "	a := ",
			In: "./service", Run: "^TestTooManyAsk$",
		},
		{
			Name: "ask-unknown-after-a-list", Breaks: "a replica that has started since knows who asks",
			File: "service/view/asks.go", Anchor: "	for _, n := range notices {", Becomes: "	for _, n := range notices[:0] {",
			In: "./service", Run: "^TestAskLater$",
		},
		{
			Name: "ask-again-counts", Breaks: "the first request of an entry counts",
			File: "service/view/asks.go", Anchor: "		return false\n\t}\n\tv.asks.of[e.ID] = ask", Becomes: "	}\n\tv.asks.of[e.ID] = ask",
			In: "./service/view", Run: "^TestReplicasTellTheSameEvents$|^TestAskAgain$",
		},
		{
			Name: "ask-of-all-locks", Breaks: "only those are asked who hold what a set waits for",
			File: "service/view/asks.go", Anchor: "|| m == nil || !waitsFor(m, c.Name)", Becomes: "|| m == nil",
			In: "./service", Run: "^TestAskOfASet$",
		},
		{
			Name: "ask-without-bound", Breaks: "how many ask for one lock is bounded, also when they join",
			File: "service/acquire.go", Anchor: "	if err := s.letAsk(e); err != nil {", Becomes: "	if err := s.view.Room(e); err != nil {",
			In: "./service", Run: "^TestTooManyAsk$",
		},
		{
			Name: "ask-in-another-case", Breaks: "names of fields within request_release are read strictly",
			File: "handlers/body.go", Anchor: "checkMember(name, open[inner], !chosen(open))", Becomes: "checkMember(name, open[inner], inner == 0)",
			In: "./handlers", Run: "^TestBadReleaseRequests$",
		},
		{
			Name: "stale-write-twice", Breaks: "equal reports within a minute are one, at whatever replica",
			File: "service/stale.go", Anchor: `Truncate(staleSpan).Format("200601021504")`, Becomes: `Format("20060102150405")`,
			In: "./service", Run: "^TestStaleWrites$",
		},
		{
			Name: "stale-write-without-bound", Breaks: "what one tenant reports in a minute is bounded",
			File: "service/stale.go", Anchor: "recent >= maxStaleReports", Becomes: "recent >= 2*maxStaleReports",
			In: "./service", Run: "^TestTooManyStaleWrites$",
		},
		{
			Name: "stale-write-kept-from-retry", Breaks: "a report that could not be written can be made again",
			File: "service/stale.go", Anchor: "s.stale.done(r.Tenant, key, err == nil)", Becomes: "s.stale.done(r.Tenant, key, true)",
			In: "./service", Run: "^TestTooManyStaleWrites$",
		},
		{
			Name: "ring-told-by-each", Breaks: "what several replicas notice is told once",
			File: "service/contradictions.go", Anchor: `"ring:"+c.ID()`, Becomes: `"ring:"+string(newID(systemRand{}))`,
			In: "./service", Run: "^TestOrdersAreLearnt$",
		},
		{
			Name: "ring-shows-all-names", Breaks: "names that a reader may not use are left out of a contradiction",
			File: "api/event/event.go", Anchor: "		if sees(s.Taken) {", Becomes: "		if sees(s.Taken) || s.At.IsZero() == false {",
			In: "./handlers", Run: "^TestContradictionIsTold$",
		},
		{
			Name: "notices-stale-by-late-clocks", Breaks: "what a tenant reports in a minute is bounded, in whichever order it comes",
			File: "service/stale.go", Anchor: "return ago > -staleSkew && ago", Becomes: "return ago >= 0 && ago",
			In: "./service", Run: "^TestStaleWritesAtOnce$",
		},
		{
			Name: "notices-stale-believed-early", Breaks: "a report repeats another one only if that was written",
			File: "service/stale.go", Anchor: "return was.at, was.written, nil", Becomes: "return was.at, true, nil",
			In: "./service", Run: "^TestStaleWriteBesideOneThatFails$",
		},
		{
			Name: "notices-asks-when-it-holds", Breaks: "who holds asks for nothing any more, and counts for no bound",
			File: "service/view/view.go", Anchor: "\t\tv.forgetAsk(g)\n", Becomes: "",
			In: "./service/view", Run: "^TestAskEnds$",
		},
		{
			Name: "notices-asks-of-tenant", Breaks: "how much one tenant's entries ask is bounded",
			File: "service/view/asking.go", Anchor: "a.asks+v.asking.byTenant[e.Tenant] >= MaxAsksPerTenant", Becomes: "a.asks > 100*MaxAsksPerTenant",
			In: "./service/view", Run: "^TestAsksOfTenant$",
		},
		{
			Name: "notices-asks-counted-twice", Breaks: "a list counts anew what entries ask",
			File: "service/view/accounts.go", Anchor: "a.tally, a.asks, a.uses, a.names = tally{}, 0,", Becomes: "a.tally, a.uses, a.names = tally{},",
			In: "./service/view", Run: "^TestAsksOfTenant$",
		},
		{
			Name: "notices-spent-tried-once", Breaks: "notices whose entries went are deleted, if need be later",
			File: "store/etcd/notices.go", Anchor: "\t\t\ts.spent.add(some)\n", Becomes: "\t\t\t_ = some\n",
			In: "./store/etcd", Run: "^TestSpentNotices$", Needs: "etcd",
		},
		{
			Name: "asks-of-a-burst", Breaks: "of many who come at once no more ask than there is room for",
			File: "service/view/asking.go", Anchor: "	v.asking.add(e, now.Add(askingTime))\n", Becomes: "	_ = now\n",
			In: "./service", Run: "^TestBurst",
		},
		{
			Name: "asks-let-for-ever", Breaks: "who was let ask and does not counts for no bound",
			File: "service/view/asks.go", Anchor: "func (v *View) forgetAsk(e *lock.Entry) {\n	v.asking.drop(e.ID)\n", Becomes: "func (v *View) forgetAsk(e *lock.Entry) {\n",
			In: "./service/view", Run: "^TestLetAsk$",
		},
		{
			Name: "asks-counted-twice", Breaks: "who asks counts once, also before and after the view has him",
			File: "service/view/asks.go", Anchor: "func (v *View) keepAsk(e *lock.Entry, ask lock.Ask) bool {\n	v.asking.drop(e.ID)\n", Becomes: "func (v *View) keepAsk(e *lock.Entry, ask lock.Ask) bool {\n",
			In: "./service/view", Run: "^TestLetAsk$",
		},
	}
}
