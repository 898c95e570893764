package main

// pastBugs break what is remembered of entries that ended.
func pastBugs() []Bug {
	return []Bug{
		{
			Name: "etcd-notices-of-now", Breaks: "a feed that begins in the past has the notices that there were then",
			File: "store/etcd/notices.go", Anchor: "	page.request.Revision = revision\n", Becomes: "",
			In: "./store/etcd", Run: "^TestNoticesOfThen$", Needs: "etcd",
		},
		{
			Name: "etcd-feed-meets-a-change-again", Breaks: "a feed that starts over because of the store's own records begins behind that",
			File: "store/etcd/feed.go", Anchor: "			g.beginNow()\n", Becomes: "",
			In: "./store/etcd", Run: "^TestMeetsAChangeOnce$", Needs: "etcd",
		},
		{
			Name: "etcd-feed-never-behind", Breaks: "a feed that goes on where it was is behind until it has caught up",
			File: "store/etcd/gap.go", Anchor: "	if g.behind.IsZero() {\n		g.reached(time.Now())\n	}\n", Becomes: "	g.reached(time.Now())\n",
			In: "./store/etcd", Run: "^TestBehindUntilItHasCaughtUp$", Needs: "etcd",
		},
		{
			Name: "etcd-retold-end-recorded-again", Breaks: "what a feed tells of the past to have ended is not recorded before it has come to the record of that",
			File: "store/etcd/gap.go", Anchor: "unrecorded.hold(!since.IsZero())", Becomes: "unrecorded.hold(false)",
			In: "./store/etcd", Run: "^TestRetoldEndIsNotRecordedAgain$", Needs: "etcd",
		},
		{
			Name: "etcd-feed-catches-up-at-once", Breaks: "a feed that has no goal yet has not caught up",
			File: "store/etcd/gap.go", Anchor: "	if at.After(g.whole) {\n", Becomes: "	if g != nil {\n",
			In: "./store/etcd", Run: "^TestEndsAreRecordedWhenCaughtUp$",
		},
		{
			Name: "etcd-watch-goes-back", Breaks: "a watch does not go back by what comes late",
			File: "store/etcd/guard.go", Anchor: "	g.at = max(g.at, revision)\n", Becomes: "	g.at = revision\n",
			In: "./store/etcd", Run: "^TestGuardTellsHowLate$",
		},
		{
			Name: "etcd-watch-late-in-silence", Breaks: "a watch that is behind says for how long",
			File: "store/etcd/guard.go", Anchor: "		g.lags(late)\n", Becomes: "",
			In: "./store/etcd", Run: "^TestGuardTellsHowLate$",
		},
		{
			Name: "etcd-ends-held-for-ever", Breaks: "what has ended is recorded when the feed has caught up",
			File: "store/etcd/gap.go", Anchor: "unrecorded.hold(!since.IsZero())", Becomes: "unrecorded.hold(!since.IsZero() || g.told > 0)",
			In: "./store/etcd", Run: "^TestEndsAreRecordedWhenCaughtUp$",
		},
		{
			Name: "service-late-view-counts-as-whole", Breaks: "who waits is not held up by a feed that has much to tell before it comes to a release",
			File: "service/view/status.go", Anchor: "v.current && v.number >= v.goal {", Becomes: "v.current {",
			In: "./service", Run: "^TestGrantThatIsYetToBeTold$",
		},
		{
			Name: "service-late-view-had-everything", Breaks: "a view that begins in the past has not had everything",
			File: "service/view/view.go", Anchor: "	v.number = s.Number\n	if v.reach(s.Number); v.number >= v.goal {\n", Becomes: "	v.number = s.Number\n	if v.reach(s.Number); true {\n",
			In: "./service/view", Run: "^TestEndedInALongGap$",
		},
		{
			Name: "service-retelling-counts-as-everything", Breaks: "a view that is told of the past has not had everything",
			File: "service/view/view.go", Anchor: "	if v.reach(upTo); v.number >= v.goal {\n", Becomes: "	if v.reach(upTo); true {\n",
			In: "./service/view", Run: "^TestEndedInALongGap$",
		},
		{
			Name: "service-late-view-is-late-anew", Breaks: "a view that is interrupted before it has told what happened meanwhile is late since it was interrupted first",
			File: "service/view/view.go", Anchor: "		if v.number >= v.goal {\n			v.lateAt", Becomes: "		if true {\n			v.lateAt",
			In: "./service/view", Run: "^TestLateThroughInterruptions$",
		},
		{
			Name: "service-async-in-a-late-view", Breaks: "a replica that has long been yet to be told what happens accepts nothing that has to be kept",
			File: "service/async_given.go", Anchor: "s.view.LateFor() <= currentTimeout", Becomes: "s.view.LostFor() <= currentTimeout",
			In: "./service", Run: "^TestAsyncRefusedWithoutAView$",
		},
		{
			Name: "etcd-feed-says-not-how-late", Breaks: "a feed that begins in the past says up to where that is",
			File: "store/etcd/list.go", Anchor: "Newest: uint64(newest) + floor", Becomes: "Newest: uint64(newest) * 0",
			In: "./store/etcd", Run: "^TestConformanceEmbedded$/^resume$/^a_feed_that_begins_earlier", Needs: "etcd",
		},
		{
			Name: "zookeeper-feed-says-not-how-late", Breaks: "a feed that begins in the past says up to where that is",
			File: "store/zookeeper/resume.go", Anchor: "Newest: h.at.number, ", Becomes: "",
			In: "./store/zookeeper", Run: "^TestConformance$/^resume$/^a_feed_that_begins_earlier", Needs: "zookeeper",
		},
		{
			Name: "etcd-feed-goes-on-in-another-past", Breaks: "a feed does not go on where it was in a store that has lost its past",
			File: "store/etcd/earlier.go", Anchor: "g.store.trust.Refusal() != nil || number", Becomes: "number",
			In: "./store/etcd", Run: "^TestNotForEver$", Needs: "etcd",
		},
		{
			Name: "past-without-bound", Breaks: "what is remembered of an entry is bounded in bytes",
			File: "store/past.go", Anchor: "len(text) <= MaxPast {", Becomes: "len(text) <= 64*MaxPast {",
			In: "./store/memory", Run: "^TestConformance$/^past$/^a_set_that_is_too_large_is_remembered_by_its_id$",
		},
		{
			Name: "past-of-one-tenant", Breaks: "what one tenant's ends were is bounded",
			File: "store/past.go", Anchor: "p.spent[tenant]+bytes > pastBudget", Becomes: "bytes > pastBudget",
			In: "./store", Run: "^TestPastsOfOneTenant$",
		},
		{
			Name: "past-of-the-unknown", Breaks: "nothing is told of an entry that could not be read",
			File: "store/past.go", Anchor: "if e.Opaque {", Becomes: "if e.Opaque && position < 0 {",
			In: "./store", Run: "^TestPast$",
		},
		{
			Name: "etcd-past-of-expiries", Breaks: "what expired is read as it stood before",
			File: "store/etcd/ended.go", Anchor: "Revision: e.revision - 1", Becomes: "Revision: e.revision",
			In: "./store/etcd", Run: "^TestConformanceCluster$/^past$/^what_expired_is_told_to_who_starts_later$", Needs: "etcd",
		},
		{
			Name: "etcd-past-of-sets", Breaks: "of a set that expired its first key is read",
			File: "store/etcd/feed.go", Anchor: "min(last.key.Lock, k.Lock)", Becomes: "max(last.key.Lock, k.Lock)",
			In: "./store/etcd", Run: "^TestConformanceCluster$/^past$/^what_expired_is_told_to_who_starts_later$", Needs: "etcd",
		},
		{
			Name: "zookeeper-past-folded", Breaks: "what moving ends adds to a request is counted",
			File: "store/zookeeper/fold.go", Anchor: " + len(e.Was)", Becomes: "",
			In: "./store/zookeeper", Run: "^TestFoldCountsWhatEnded$",
		},
		{
			Name: "trace-is-lost", Breaks: "an entry says which request made it",
			File: "service/request.go", Anchor: "if lock.ValidTrace(req.Trace) {", Becomes: "if lock.ValidTrace(`-` + req.Trace) {",
			In: "./service", Run: "^TestTraceOfTheRequest$",
		},
		{
			Name: "past-ended-again-unseen", Breaks: "what the store remembers of an end counts more than what was seen before the list",
			File: "service/view/endings.go", Anchor: "known != why && e.byID[keyOf(id)].after != e.list", Becomes: "false",
			In: "./service/view", Run: "^TestEndedAgainUnseen$",
		},
		{
			Name: "past-seen-since-the-list", Breaks: "what was seen since the list counts more than what the store remembered at it",
			File: "service/view/endings.go", Anchor: "known != why && e.byID[keyOf(id)].after != e.list", Becomes: "known != why",
			In: "./service/view", Run: "^TestEndedAgainUnseen$",
		},
		{
			Name: "past-guess-over-seen", Breaks: "a guess about an end counts less than what was seen",
			File: "service/view/view.go", Anchor: "v.ended.guess(tenant, id, why, now)", Becomes: "v.ended.recall(tenant, id, why, now)",
			In: "./service/view", Run: "^TestGuessedEnd$",
		},
	}
}
