package main

// zookeeperBugs break what the store on ZooKeeper promises.
func zookeeperBugs() []Bug {
	return []Bug{
		{
			Name: "zookeeper-all-end-at-once", Breaks: "of many leases that end together few entries are removed at a time",
			File: "store/zookeeper/expire.go", Anchor: "ending: make(chan struct{}, parallelEnds)", Becomes: "ending: make(chan struct{}, 1000*parallelEnds)",
			In: "./store/zookeeper", Run: "^TestFewEndAtOnce$",
		},
		{
			Name: "zookeeper-queue-among-all", Breaks: "a queue is found without looking at all entries, under the feed's lock",
			File: "store/zookeeper/index.go", Anchor: "{ return slices.Clone(x.queues[ref]) }",
			Becomes: "{\n\tvar all []*lock.Entry\n\tfor _, e := range x.byKey {\n\t\tif e.Tenant == ref.Tenant && slices.ContainsFunc(e.Claims, func(c lock.Claim) bool { return c.Name == ref.Name }) {\n\t\t\tall = append(all, e)\n\t\t}\n\t}\n\tslices.SortFunc(all, func(a, b *lock.Entry) int { return cmp.Compare(a.Number, b.Number) })\n\treturn all\n}",
			In:      "./store/zookeeper", Run: "^TestIndexLooksAtOneQueue$",
		},
		{
			Name: "zookeeper-empty-queues-stay", Breaks: "nothing is kept of a lock that nobody uses",
			File: "store/zookeeper/index.go", Anchor: "case len(queue) == 1:", Becomes: "case len(queue) == 0:",
			In: "./store/zookeeper", Run: "^TestIndex$",
		},
		{
			Name: "zookeeper-queue-in-order-of-coming", Breaks: "a queue is in order whatever a list brings first",
			File: "store/zookeeper/index.go", Anchor: "for at > 0 && queue[at-1].Number > e.Number {", Becomes: "for at < 0 {",
			In: "./store/zookeeper", Run: "^TestIndex$",
		},
		{
			Name: "zookeeper-close-waits-for-ever", Breaks: "a request that the library never ends does not keep a replica from another connection",
			File: "store/zookeeper/link.go", Anchor: "\t\tcase <-late.C:\n\t\t\treturn taken\n", Becomes: "",
			In: "./store/zookeeper", Run: "^TestCloseDoesNotWaitForEver$",
		},
		{
			Name: "zookeeper-refused-together", Breaks: "what one tenant has refused costs another no transaction for each",
			File: "store/zookeeper/commit.go", Anchor: "return apart(slices.Delete(slices.Clone(batch), at, at+1), batch[at].Tenant)", Becomes: "return [][]*write{slices.Delete(slices.Clone(batch), at, at+1)}",
			In: "./store/zookeeper", Run: "^TestRefusedWritesOfAnotherTenant$", Needs: "zookeeper",
		},
		{
			Name: "zookeeper-fold-too-large", Breaks: "no request is larger than what a server takes",
			File: "store/zookeeper/fold.go", Anchor: "n > 0 && (ends > foldEnds || bytes > foldBytes)", Becomes: "n < 0",
			In: "./store/zookeeper", Run: "^TestFoldManyEnds$", Needs: "zookeeper",
		},
		{
			Name: "zookeeper-fold-repeated-for-ever", Breaks: "a request that the server hangs up on is not repeated as it is",
			File: "store/zookeeper/fold.go", Anchor: "f.hangUps, f.most = 0, records/2", Becomes: "f.hangUps = 0",
			In: "./store/zookeeper", Run: "^TestFoldIsSplit$", Needs: "zookeeper",
		},
		{
			Name: "zookeeper-fold-never-gives-up", Breaks: "reasons that no request can move do not keep the log from being folded",
			File: "store/zookeeper/fold.go", Anchor: "records > 1 || f.hangUps < maxHangUps", Becomes: "records > 0 || f.hangUps < maxHangUps",
			In: "./store/zookeeper", Run: "^TestFoldGivesUp$", Needs: "zookeeper",
		},
		{
			Name: "zookeeper-fold-on-the-feeds-connection", Breaks: "the upkeep does not interrupt the feed",
			File: "store/zookeeper/fold.go", Anchor: "checks ...any) error {\n\tl, err := a.chores.get(ctx)",
			Becomes: "checks ...any) error {\n\tl, err := a.reads.get(ctx)",
			In:      "./store/zookeeper", Run: "^TestFoldIsSplit$", Needs: "zookeeper",
		},
		{
			Name: "zookeeper-list-with-what-went", Breaks: "a list that takes long is of one moment",
			File: "store/zookeeper/list.go", Anchor: "!(went && r.ends(change{Czxid: gone}, e))", Becomes: "(went || gone == 0)",
			In: "./store/zookeeper", Run: "^TestListUnderLoad$", Needs: "zookeeper",
		},
		{
			Name: "zookeeper-view-waits-for-reasons", Breaks: "a view does not wait for the reasons of ends",
			File: "store/zookeeper/list.go", Anchor: "\tstat, err := r.barrierOn(ctx, l)\n\tif err != nil {\n\t\treturn err\n\t}\n\tfor {\n",
			Becomes: "\tif _, err := children(ctx, l, r.root.ended()); err != nil {\n\t\treturn err\n\t}\n" +
				"\tstat, err := r.barrierOn(ctx, l)\n\tif err != nil {\n\t\treturn err\n\t}\n\tfor {\n",
			In: "./store/zookeeper", Run: "^TestReasonsComeLater$", Needs: "zookeeper",
		},
		{
			Name: "zookeeper-forget-by-a-replicas-clock", Breaks: "no replica forgets reasons by its own clock",
			File: "store/zookeeper/archive.go", Anchor: "if err == nil && stat.Ctime < before {",
			Becomes: "if err == nil && stat != nil && node[len(node)-22:][:13] < fmt.Sprint(before) {",
			In:      "./store/zookeeper", Run: "^TestForgetByTheServersClock$", Needs: "zookeeper",
		},
		{
			Name: "zookeeper-list-starts-leases-anew", Breaks: "a bad connection does not keep dead entries",
			File: "store/zookeeper/leases.go", Anchor: "e == nil || e.Number != l.entry.Number || e.Handle != l.entry.Handle {",
			Becomes: "e == nil || e.Number == l.entry.Number {",
			In:      "./store/zookeeper", Run: "^TestExpiresOnABadConnection$", Needs: "zookeeper",
		},
		{
			Name: "zookeeper-key-without-mark", Breaks: "a late write cannot use a key again that is used up",
			File: "store/zookeeper/join.go", Anchor: "j.claim(e, taken), ", Becomes: "",
			In: "./store/zookeeper", Run: "^TestLateCreate$", Needs: "zookeeper",
		},
		{
			Name: "zookeeper-key-in-use-forgotten", Breaks: "a key in use is not forgotten",
			File: "store/zookeeper/archive.go", Anchor: `(m.Reason == "" || n.stat.Mtime >= before)`, Becomes: "n.stat.Mtime >= before",
			In: "./store/zookeeper", Run: "^TestUsedUpKey$", Needs: "zookeeper",
		},
		{
			Name: "zookeeper-fresh-entry-written-twice", Breaks: "one call writes one entry, once",
			File: "store/zookeeper/join.go", Anchor: "if j.unseen && !e.Resumable() {", Becomes: "if j.unseen && e.Resumable() {",
			In: "./store/zookeeper", Run: "^TestWrittenOnce$", Needs: "zookeeper",
		},
		{
			Name: "zookeeper-number-of-an-end", Breaks: "an end has the number of the write that removed its entry",
			File: "store/zookeeper/feed.go", Anchor: "Number: r.number(w.zxid), Left", Becomes: "Number: e.Number, Left",
			In: "./store/zookeeper", Run: "^TestConformance$/^feed$/^changes_have_the_numbers", Needs: "zookeeper",
		},
		{
			Name: "zookeeper-place-of-another-log", Breaks: "an outcome is not looked for in another log than the feed's",
			File: "store/zookeeper/feed.go", Anchor: "return place{f.epoch, f.next}", Becomes: "return place{f.reader.epoch.Load(), f.next}",
			In: "./store/zookeeper", Run: "^TestOutcomeBesideAnotherLog$", Needs: "zookeeper",
		},
		{
			Name: "zookeeper-earlier-connection-alive", Breaks: "what was sent over a connection that broke is not executed any more",
			File: "store/zookeeper/nodes.go", Anchor: "for len(s.stale.paths) > 0 {", Becomes: "for false {",
			In: "./store/zookeeper", Run: "^TestWriteOfAnEarlierConnection$", Needs: "zookeeper",
		},
		{
			Name: "zookeeper-queue-of-the-past", Breaks: "a queue that is read is no older than the question",
			File: "store/zookeeper/snapshot.go", Anchor: "from, err := r.barrierOn(ctx, l)", Becomes: "from, err := r.readHead(ctx, l, snap.epoch)",
			In: "./store/zookeeper", Run: "^TestQueueOfALateFollower$", Needs: "zookeeper",
		},
		{
			Name: "zookeeper-all-read-all-leases", Breaks: "replicas share the reading of leases",
			File: "store/zookeeper/team.go", Anchor: "return before < watchers", Becomes: "return before >= 0",
			In: "./store/zookeeper", Run: "^TestReplicasShareLeases$", Needs: "zookeeper",
		},
		{
			Name: "zookeeper-witness-of-a-later-entry", Breaks: "what a removal was decided by is told from a later entry of its key",
			File: "store/zookeeper/remove.go", Anchor: "paths = append(paths, m.root.lease(keyOf(e), e.Handle))", Becomes: "paths = append(paths, m.root.primary(keyOf(e)))",
			In: "./store/zookeeper", Run: "^TestConformance$/^remove$/^only_while", Needs: "zookeeper",
		},
		{
			Name: "zookeeper-overload-is-certain", Breaks: "a refusal after a lost answer says that the entry may be there",
			File: "store/zookeeper/orphan.go", Anchor: "why.OutcomeUnknown = why.OutcomeUnknown || j.unknown", Becomes: "why.OutcomeUnknown = why.OutcomeUnknown && j.unknown",
			In: "./store/zookeeper", Run: "^TestOverloadAfterALostAnswer$",
		},
		{
			Name: "zookeeper-given-up-stays", Breaks: "an entry that was given up is taken back",
			File: "store/zookeeper/orphan.go", Anchor: "if len(j.open) > 0 && !j.entry.Resumable() {", Becomes: "if false {",
			In: "./store/zookeeper", Run: "^TestConformance$/^cut$/^deaf$/^what_was_given_up_is_taken_back$", Needs: "zookeeper",
		},
		{
			Name: "zookeeper-sweep-of-what-left", Breaks: "a replica that is behind removes nothing of a later entry of the same key",
			File: "store/zookeeper/sweep.go", Anchor: "return f.current && f.zxid >= zxid && known != nil", Becomes: "return known == nil || known != nil",
			In: "./store/zookeeper", Run: "^TestSweepOfWhatLeft$", Needs: "zookeeper",
		},
		{
			Name: "zookeeper-lease-of-another-taken-along", Breaks: "no removal takes the lease of another entry along",
			File: "store/zookeeper/remove.go", Anchor: "case path != r.lease && !fresh(r.entry) && namesLease(path):", Becomes: "case path != r.lease && !fresh(r.entry) && path == \"\":",
			In: "./store/zookeeper", Run: "^TestSweepByHand$", Needs: "zookeeper",
		},
		{
			Name: "zookeeper-end-by-a-number-of-another-floor", Breaks: "a release while the floor rises is seen by all",
			File: "store/zookeeper/remove.go", Anchor: "marked: anyVersion,\n", Becomes: "marked: anyVersion, czxid: m.zxid(e.Number),\n",
			In: "./store/zookeeper", Run: "^TestReleaseWhileTheFloorRises$", Needs: "zookeeper",
		},
		{
			Name: "zookeeper-key-forgotten-with-an-old-end", Breaks: "a key is used up for 10 minutes, whatever ended with it before",
			File: "store/zookeeper/archive.go", Anchor: `(m.Reason == "" || n.stat.Mtime >= before)`, Becomes: `m.Reason == ""`,
			In: "./store/zookeeper", Run: "^TestOldEndOfAUsedUpKey$", Needs: "zookeeper",
		},
		{
			Name: "zookeeper-resume-without-what-went", Breaks: "a feed that begins earlier tells what happened since",
			File: "store/zookeeper/remove.go", Anchor: "p.change.Gone = goneOf(r.entry, at)", Becomes: "_ = at",
			In: "./store/zookeeper", Run: "^TestConformance/resume$", Needs: "zookeeper",
		},
		{
			Name: "zookeeper-resume-says-all", Breaks: "a feed that begins earlier tells of entries as they were",
			File: "store/past.go", Anchor: "return len(e.Metadata) == 0 && !e.Async", Becomes: "return !e.Async",
			In: "./store", Run: "^TestSaysAll$",
		},
		{
			Name: "zookeeper-resume-with-what-came", Breaks: "a feed that begins earlier begins with what there was",
			File: "store/zookeeper/history.go", Anchor: "if r.zxid(e.Number) <= since {", Becomes: "if came[keyOf(e)] = e; true {",
			In: "./store/zookeeper", Run: "^TestConformance/resume$", Needs: "zookeeper",
		},
		{
			Name: "zookeeper-resume-over-a-gap", Breaks: "a log of which something is missing is not told as if that were all",
			File: "store/zookeeper/history.go", Anchor: "mark.N == first.n-1 && mark.Zxid <= since", Becomes: "mark.Zxid <= since",
			In: "./store/zookeeper", Run: "^TestResumeBehindWhatWasFolded$", Needs: "zookeeper",
		},
		{
			Name: "zookeeper-resume-of-what-was-folded", Breaks: "what was folded is missed, and that is said",
			File: "store/zookeeper/history.go", Anchor: "mark.N == first.n-1 && mark.Zxid <= since", Becomes: "mark.N == first.n-1",
			In: "./store/zookeeper", Run: "^TestResumeBehindWhatWasFolded$", Needs: "zookeeper",
		},
		{
			Name: "zookeeper-fold-without-a-mark", Breaks: "after a quiet time nothing is missed",
			File: "store/zookeeper/fold.go", Anchor: "epoch == a.epoch.Load() {", Becomes: "epoch < 0 {",
			In: "./store/zookeeper", Run: "^TestResumeBehindWhatWasFolded$", Needs: "zookeeper",
		},
		{
			Name: "zookeeper-resume-believes-an-older-version", Breaks: "an end that does not say what the entry was is not told",
			File: "store/zookeeper/history.go", Anchor: "if c.Whole {", Becomes: "if c.Gone == nil {",
			In: "./store/zookeeper", Run: "^TestResumeByHand$", Needs: "zookeeper",
		},
		{
			Name: "zookeeper-resume-loses-what-came-meanwhile", Breaks: "nothing is lost between what happened before and what follows",
			File: "store/zookeeper/held.go", Anchor: "if len(h.calls) == 0 {", Becomes: "if len(h.calls) >= 0 {",
			In: "./store/zookeeper", Run: "^TestHeldBackUntilTold$",
		},
		{
			Name: "zookeeper-interrupted-begins-now", Breaks: "a feed that was interrupted tells what happened meanwhile",
			File: "store/zookeeper/follow.go", Anchor: "if f.told.number == 0 {", Becomes: "if f.told.number == 0 || f.told.placed {",
			In: "./store/zookeeper", Run: "^TestInterruptedAgain$", Needs: "zookeeper",
		},
		{
			Name: "zookeeper-interrupted-once-only", Breaks: "a feed that is interrupted while it is told of the past goes on, too",
			File: "store/zookeeper/follow.go", Anchor: "\tif f.held = nil; f.stop != nil {", Becomes: "\tif f.held != nil {\n\t\tf.told = lastTold{}\n\t}\n\tif f.held = nil; f.stop != nil {",
			In: "./store/zookeeper", Run: "^TestInterruptedAgain$", Needs: "zookeeper",
		},
		{
			Name: "zookeeper-interrupted-is-held-up", Breaks: "requests do not wait for ever for what happened in an interruption to be read",
			File: "store/zookeeper/resume.go", Anchor: "ctx, cancel := context.WithTimeout(ctx, limit)", Becomes: "ctx, cancel := context.WithTimeout(ctx, 10*limit)",
			In: "./store/zookeeper", Run: "^TestInterruptedIsNotHeldUp$", Needs: "zookeeper",
		},
		{
			Name: "zookeeper-past-over-one-connection", Breaks: "a connection that breaks does not keep a feed from going on",
			File: "store/zookeeper/resume.go", Anchor: "if !broke(err) || store.Pause(ctx, firstPause) != nil {", Becomes: "if l != nil {",
			In: "./store/zookeeper", Run: "^TestInterruptedOverASilentServer$", Needs: "zookeeper",
		},
		{
			Name: "zookeeper-interrupted-in-another-past", Breaks: "a store that lost its past is not told as if nothing had been lost",
			File: "store/zookeeper/resume.go", Anchor: "if err := since.follows(last); err != nil {", Becomes: "if err := since.follows(last); err != nil && last.n < 0 {",
			In: "./store/zookeeper", Run: "^TestInterruptedInAnotherPast$", Needs: "zookeeper",
		},
		{
			Name: "zookeeper-unknown-record-before-the-feed", Breaks: "a feed that was told no record knows which was the last one before it",
			File: "store/zookeeper/history.go", Anchor: "	if n == 0 {", Becomes: "	if n >= 0 {",
			In: "./store/zookeeper", Run: "^TestInterruptedBeforeItWasToldAny$", Needs: "zookeeper",
		},
		{
			Name: "zookeeper-folded-record-of-earlier", Breaks: "a feed behind a record that it cannot read does not take an earlier one for that",
			File: "store/zookeeper/history.go", Anchor: "mark.N != n-1 {", Becomes: "mark.N > n {",
			In: "./store/zookeeper", Run: "^TestInterruptedBehindWhatCannotBeRead$", Needs: "zookeeper",
		},
		{
			Name: "zookeeper-gap-while-folding", Breaks: "what happened is told though records from before that are being folded",
			File: "store/zookeeper/history.go", Anchor: "	return errFolding\n", Becomes: "	return errUntold\n",
			In: "./store/zookeeper", Run: "^TestHistoryBesideFolding$", Needs: "zookeeper",
		},
		{
			Name: "zookeeper-gap-behind-what-is-folded", Breaks: "records that are folded while later ones are read are none that are missing",
			File: "store/zookeeper/history.go", Anchor: "errors.Is(err, zk.ErrNoNode) {\n			return nil\n", Becomes: "errors.Is(err, zk.ErrNoNode) {\n			return errUntold\n",
			In: "./store/zookeeper", Run: "^TestHistoryBesideFolding$", Needs: "zookeeper",
		},
		{
			Name: "zookeeper-interrupted-by-another-floor", Breaks: "a feed does not go on by numbers of another fence floor",
			File: "store/zookeeper/held.go", Anchor: "t.floor != to.floor || ", Becomes: "",
			In: "./store/zookeeper", Run: "^TestWhatLeadsOn$",
		},
		{
			Name: "zookeeper-interrupted-in-another-record", Breaks: "what the log has in the place of what was told last is that",
			File: "store/zookeeper/held.go", Anchor: "t.last.zxid == last.zxid && ", Becomes: "",
			In: "./store/zookeeper", Run: "^TestWhatLeadsOn$",
		},
		{
			Name: "zookeeper-behind-for-ever", Breaks: "a feed that does not catch up begins with what there is",
			File: "store/zookeeper/resume.go", Anchor: "time.Since(behind) > resumeTime", Becomes: "behind.IsZero()",
			In: "./store/zookeeper", Run: "^TestNotForEver$",
		},
		{
			Name: "zookeeper-held-back-without-bound", Breaks: "what is held back while the past is read has a bound",
			File: "store/zookeeper/held.go", Anchor: "return h.cost <= maxHeld", Becomes: "return true",
			In: "./store/zookeeper", Run: "^TestHeldBackHasABound$",
		},
		{
			Name: "zookeeper-held-back-of-nothing", Breaks: "what does not happen is not held back",
			File: "store/zookeeper/held.go", Anchor: "last >= 0 && len(one.changes) == 0", Becomes: "last < 0 && len(one.changes) == 0 && last > 0",
			In: "./store/zookeeper", Run: "^TestHeldBackHasABound$",
		},
		{
			Name: "zookeeper-interrupted-for-too-much", Breaks: "a feed that has too much to tell begins with what there is",
			File: "store/zookeeper/resume.go", Anchor: "since.placed && changesIn(records) > maxInterrupted", Becomes: "changesIn(records) < 0",
			In: "./store/zookeeper", Run: "^TestWhatIsNotTold$",
		},
		{
			Name: "zookeeper-interrupted-without-trust", Breaks: "a feed does not go on in a store that may have lost its past",
			File: "store/zookeeper/resume.go", Anchor: "since.placed && t.trust.Refusal() != nil", Becomes: "since.number == 0",
			In: "./store/zookeeper", Run: "^TestWhatIsNotTold$",
		},
		{
			Name: "zookeeper-forgets-what-was-told-last", Breaks: "what was told last is known for as long as nothing else is told",
			File: "store/zookeeper/held.go", Anchor: "one.to.last == nil && one.to.epoch", Becomes: "false && one.to.epoch",
			In: "./store/zookeeper", Run: "^TestLastToldIsKept$",
		},
		{
			Name: "zookeeper-past-short-of-the-view", Breaks: "what happened before a view is told up to that",
			File: "store/zookeeper/resume.go", Anchor: "append(t.retell(entries, records, p.at), retold{to: h.at})", Becomes: "t.retell(entries, records, p.at)",
			In: "./store/zookeeper", Run: "^TestPastLeadsToTheView$",
		},
		{
			Name: "zookeeper-past-by-another-floor", Breaks: "the past is not told by a floor that has risen meanwhile",
			File: "store/zookeeper/resume.go", Anchor: "case t.trust.Floor() != h.at.floor:", Becomes: "case false:",
			In: "./store/zookeeper", Run: "^TestPastLeadsToTheView$",
		},
		{
			Name: "zookeeper-notices-told-twice", Breaks: "what was noticed since is told once",
			File: "store/zookeeper/resume.go", Anchor: "return n.Number > since.number", Becomes: "return n.Number == 0",
			In: "./store/zookeeper", Run: "^TestPastLeadsToTheView$",
		},
		{
			Name: "zookeeper-behind-since-now", Breaks: "a follower that is given view after view is behind since the first",
			File: "store/zookeeper/follow.go", Anchor: "	if f.behind.IsZero() {\n		f.behind = time.Now()\n	}\n", Becomes: "	f.behind = time.Now()\n",
			In: "./store/zookeeper", Run: "^TestBehindOverAllViews$",
		},
		{
			Name: "zookeeper-behind-though-it-has-begun", Breaks: "a follower that begins with what there is is not behind",
			File: "store/zookeeper/follow.go", Anchor: "		f.behind = time.Time{}\n		f.reset(", Becomes: "		f.reset(",
			In: "./store/zookeeper", Run: "^TestHeldBackHasABound$",
		},
		{
			Name: "zookeeper-past-told-at-once", Breaks: "ZooKeeper's past is not told faster than it can be filed",
			File: "store/zookeeper/resume.go", Anchor: "pace.Pace(ctx, len(one.changes))", Becomes: "pace.Pace(ctx, 0)",
			In: "./store/zookeeper", Run: "^TestPastIsToldAtAPace$",
		},
		{
			Name: "zookeeper-recalls-before-a-view", Breaks: "a follower is told of ends once it has a view",
			File: "store/zookeeper/follow.go", Anchor: " || f.held != nil {", Becomes: " {",
			In: "./store/zookeeper", Run: "^TestHeldBackUntilTold$",
		},
		{
			Name: "zookeeper-fold-at-once", Breaks: "replicas that are started together can all begin where the last ones ended",
			File: "store/zookeeper/fold.go", Anchor: "records[i].at = max(records[i].at, began)", Becomes: "records[i].at = max(records[i].at, min(began, 0))",
			In: "./store/zookeeper", Run: "^TestFoldLeavesOthersTime$", Needs: "zookeeper",
		},
		{
			Name: "zookeeper-feed-of-two-pasts", Breaks: "a feed tells nothing below the number with which it began",
			File: "store/zookeeper/list.go", Anchor: "	f.number = r.number(f.zxid)\n", Becomes: "	f.number = max(f.number, r.number(f.zxid))\n",
			In: "./store/zookeeper", Run: "^TestFeedOfALostPast$", Needs: "zookeeper",
		},
	}
}
