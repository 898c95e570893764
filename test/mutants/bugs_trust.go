package main

// trustBugs break how a store finds out that it lost its past, and how the floor is
// kept.
func trustBugs() []Bug {
	return []Bug{
		{
			Name: "trust-low-floor-in-silence", Breaks: "who gives a floor below what the store has handed out is told of it",
			File: "store/trust.go", Anchor: "max(position+r.Floor, r.Distrust); floor < newest {", Becomes: "max(position+r.Floor, r.Distrust); floor < r.Floor {",
			In: "./store", Run: "^TestLowFloorIsTold$",
		},
		{
			Name: "etcd-low-floor-in-silence", Breaks: "who gives etcd a floor below what it has handed out is told of it",
			File: "store/etcd/meta.go", Anchor: "		m.records(header).TellLow(mk.log, floor, RestoredBump)\n", Becomes: "",
			In: "./store/etcd", Run: "^TestLowFloorIsTold$", Needs: "etcd",
		},
		{
			Name: "etcd-floor-of-a-restore-is-low", Breaks: "a floor that is right after a restore is not told to be low",
			File: "store/etcd/meta.go", Anchor: "TellLow(mk.log, floor, RestoredBump)", Becomes: "TellLow(mk.log, floor, 0)",
			In: "./store/etcd", Run: "^TestFloorOfARestore$", Needs: "etcd",
		},
		{
			Name: "zookeeper-low-floor-in-silence", Breaks: "who gives ZooKeeper a floor below what it has handed out is told of it",
			File: "store/zookeeper/meta.go", Anchor: "		was.TellLow(k.log, floor, epochJump)\n", Becomes: "",
			In: "./store/zookeeper", Run: "^TestLowFloorIsTold$", Needs: "zookeeper",
		},
		{
			Name: "trust-refuses-in-silence", Breaks: "a metric says that nothing is granted, as the store lost its past",
			File: "cmd/api/run.go", Anchor: "return reasonOf(opened.Refusal())", Becomes: "return reasonOf(nil)",
			In: "./test/faults", Run: "^TestRestoredBackup$",
		},
		{
			Name: "trust-lower-answer-believed", Breaks: "an answer below what was received before is a lost past",
			File: "store/trust.go", Anchor: "case number < mark:", Becomes: "case number < mark && expected == 1:",
			In: "./store", Run: "^TestTrustAnswers$",
		},
		{
			Name: "trust-older-copy-believed", Breaks: "nothing is granted by replicas that run when an older copy is put under them",
			File: "store/trust.go", Anchor: "case number < mark:", Becomes: "case number < mark && expected == 1:",
			In: "./test/faults", Run: "^TestF15OlderCopy$", Needs: "etcd",
		},
		{
			Name: "trust-overtaking-is-proof", Breaks: "answers that overtake each other prove nothing",
			File: "store/trust.go", Anchor: "case number < mark:", Becomes: "case number < t.Sent():",
			In: "./store", Run: "^TestTrustAnswers$",
		},
		{
			Name: "trust-other-cluster-believed", Breaks: "another cluster's answer is a lost past",
			File: "store/trust.go", Anchor: "expected != 0 && cluster != expected", Becomes: "expected == 1 && cluster != expected",
			In: "./store", Run: "^TestTrustAnswers$",
		},
		{
			Name: "trust-floor-falls", Breaks: "the floor only rises",
			File: "store/trust.go", Anchor: "t.floor.Store(max(r.Floor, t.floor.Load()))", Becomes: "t.floor.Store(r.Floor)",
			In: "./store", Run: "^TestTrustReadsAnew$",
		},
		{
			Name: "trust-newer-doubt-lost", Breaks: "a proof that comes while records are read stays",
			File: "store/trust.go", Anchor: "t.refusal.CompareAndSwap(before, nil)", Becomes: "t.refusal.Store(nil)",
			In: "./store", Run: "^TestTrustDoubtWhileReading$",
		},
		{
			Name: "trust-compared-before-taken-over", Breaks: "a floor is added before writes are compared with it",
			File: "store/trust.go", Anchor: "v := t.takeOver(mark, before, r)\n\tif r.Keep != nil {\n\t\tr.Keep()\n\t}",
			Becomes: "if r.Keep != nil {\n\t\tr.Keep()\n\t}\n\tv := t.takeOver(mark, before, r)",
			In:      "./store", Run: "^TestTrustTakesOverFirst$",
		},
		{
			Name: "trust-loss-not-looked-into", Breaks: "a lost past is looked into until it is recorded",
			File: "store/trust.go", Anchor: "\t\tt.wake() // until it is recorded\n", Becomes: "",
			In: "./store", Run: "^TestTrustLooksUntilItIsRecorded$",
		},
		{
			Name: "service-token-above-a-floor-is-lost", Breaks: "who holds is not told otherwise by a replica that does not know of a floor yet",
			File: "service/entry.go", Anchor: "if s.Store.Refusal() == nil {\n\t\treturn nil\n\t}", Becomes: "_ = newest",
			In: "./service", Run: "^TestTokenAboveAFloorThatIsNotKnown$",
		},
		{
			Name: "etcd-floor-mixed-in-a-list", Breaks: "the order of a queue is that of the store, also while the floor rises",
			File: "store/etcd/list.go", Anchor: "e.Number = uint64(p.revisions[i]) + floor", Becomes: "e.Number = max(e.Number, uint64(p.revisions[i]))",
			In: "./store/etcd", Run: "^TestFloorRisesDuringAList$",
		},
		{
			Name: "zookeeper-floor-risen-before-the-feed", Breaks: "a feed does not begin with a floor that has risen",
			File: "store/zookeeper/list.go", Anchor: "stat, err := f.meta.barrierAsKnown(ctx, l)", Becomes: "stat, err := f.reader.barrierOn(ctx, l)",
			In: "./store/zookeeper", Run: "^TestFloorRisesBeforeTheFeedBegins$", Needs: "zookeeper",
		},
		{
			Name: "zookeeper-floor-risen-under-the-feed", Breaks: "no end is passed over because of a floor that has risen",
			File: "store/zookeeper/feed.go", Anchor: "if f.reader.trust.Floor() != f.floor {", Becomes: "if f.reader.trust.Floor() < f.floor {",
			In: "./store/zookeeper", Run: "^TestFloorRisesUnderAFeed$",
		},
		{
			Name: "zookeeper-floor-mixed-in-a-list", Breaks: "the order of a queue is that of the store, also while the floor rises",
			File: "store/zookeeper/list.go", Anchor: "if r.trust.Floor() != f.floor {", Becomes: "if r.trust.Floor() < f.floor {",
			In: "./store/zookeeper", Run: "^TestFloorRisesDuringAList$",
		},
		{
			Name: "zookeeper-floor-mixed-in-a-queue", Breaks: "the order of a queue is that of the store, also while the floor rises",
			File: "store/zookeeper/snapshot.go", Anchor: "case r.trust.Floor() != floor:", Becomes: "case r.trust.Floor() < floor:",
			In: "./store/zookeeper", Run: "^TestFloorRisesWhileAQueueIsRead$", Needs: "zookeeper",
		},
		{
			Name: "etcd-floor-compared-early", Breaks: "a floor is added before writes are compared with it",
			File: "store/etcd/meta.go", Anchor: "r.Keep = func() { mk.known.Store(m) }", Becomes: "mk.known.Store(m)",
			In: "./store/etcd", Run: "^TestFloorIsAddedBeforeItIsCompared$", Needs: "etcd",
		},
		{
			Name: "zookeeper-floor-compared-early", Breaks: "a floor is added before writes are compared with it",
			File: "store/zookeeper/meta.go", Anchor: "r.Keep = func() { k.known.Store(m) }", Becomes: "k.known.Store(m)",
			In: "./store/zookeeper", Run: "^TestFloorIsAddedBeforeItIsCompared$", Needs: "zookeeper",
		},
		{
			Name: "etcd-other-token-key", Breaks: "the tokens that a replica gave out stay good",
			File: "store/etcd/meta.go", Anchor: "m.tokenKey = known.tokenKey // the", Becomes: "_ = known // the",
			In: "./store/etcd", Run: "^TestTokenKeyByHand$", Needs: "etcd",
		},
		{
			Name: "etcd-late-expiry-over-a-key-in-use", Breaks: "an expiry that is recorded late leaves a key that is in use again",
			File: "store/etcd/keys.go", Anchor: "Compare: []*pb.Compare{created(key, 0)}, Success: put,", Becomes: "Success: put,",
			In: "./store/etcd", Run: "^TestExpiryIsRecordedLate$", Needs: "etcd",
		},
		{
			Name: "trust-floor-overflows", Breaks: "an absurd floor is refused",
			File: "store/trust.go", Anchor: "(floor > maxFloor || position > maxFloor-floor)", Becomes: "floor+position > maxFloor",
			In: "./store", Run: "^TestFloors$",
		},
		{
			Name: "etcd-floor-not-compared", Breaks: "each transaction that puts an entry compares the floor",
			File: "store/etcd/commit.go", Anchor: "outer.Compare = c.trusted.unchanged()", Becomes: "_ = c.trusted",
			In: "./store/etcd", Run: "^TestConformanceEmbedded$/^trust$/^a_floor_binds_all_at_once$",
		},
		{
			Name: "etcd-floor-not-compared-at-first", Breaks: "a plain transaction that puts an entry compares the floor too",
			File: "store/etcd/commit.go", Anchor: "txn.Compare = append(txn.Compare, c.trusted.unchanged()...)", Becomes: "_ = c.trusted",
			In: "./store/etcd", Run: "^TestConformanceEmbedded$/^trust$/^a_floor_binds_all_at_once$",
		},
		{
			Name: "etcd-floor-overwritten", Breaks: "of two floors the higher one stays",
			File: "store/etcd/meta.go", Anchor: "modified([]byte(mk.prefix+name), read.keys[name].revision)", Becomes: "modified([]byte(mk.prefix+name+\"x\"), 0)",
			In: "./store/etcd", Run: "^TestFloorThatComesLate$", Needs: "etcd",
		},
		{
			Name: "etcd-distrusts-late-replica", Breaks: "distrust is declared only after reading anew",
			File: "store/trust.go", Anchor: "number := t.Number(int64(r.Position))", Becomes: "number := r.Position",
			In: "./store/etcd", Run: "^TestConformanceEmbedded$/^trust$/^a_floor_that_a_client_does_not_know_yet_is_no_lost_past$",
		},
		{
			Name: "etcd-proof-handed-out", Breaks: "a grant whose own answer proves the lost past is not handed out",
			File: "store/trust.go", Anchor: "	if refusal == nil {\n		return e, written, nil", Becomes: "	if refusal == nil || written {\n		return e, written, nil",
			In: "./store/etcd", Run: "^TestConformanceCluster$/^trust$/^a_store_that_went_back_is_noticed$", Needs: "etcd",
		},
		{
			Name: "etcd-unknown-lease-is-gone", Breaks: "a renewal that is answered with a TTL of 0 is 410 only if the entry is gone",
			File: "store/etcd/store.go", Anchor: "if err := s.proveLeased(ctx, e); err != nil {\n\t\t\treturn err", Becomes: "if s.proveLeased(ctx, e); true {\n\t\t\treturn store.Lost(``)",
			In: "./store/etcd", Run: "^TestLeaderThatDoesNotKnowALease$",
		},
		{
			Name: "etcd-grant-counts-late", Breaks: "a lease runs since the first attempt to grant it",
			File: "store/etcd/lease.go", Anchor: "\t\terr := p.tryGrant(", Becomes: "\t\tl.renewed = time.Now()\n\t\terr := p.tryGrant(",
			In: "./store/etcd", Run: "^TestGrantCountsFromItsFirstAttempt$",
		},
		{
			Name: "etcd-floor-not-listed", Breaks: "the floor is added to entries from before it",
			File: "store/etcd/list.go", Anchor: "entries, number := read.at(at, floor)", Becomes: "entries, _ := read.at(at, 0)\n\tnumber := s.number(at)",
			In: "./store/etcd", Run: "^TestConformanceEmbedded$/^trust$/^feeds_add_the_floor_to_what_was_there_before$",
		},
		{
			Name: "etcd-set-stored-in-full", Breaks: "a set's value is stored once",
			File: "store/etcd/codec.go", Anchor: "if i == 0 {\n\t\treturn val", Becomes: "if i >= 0 {\n\t\treturn val",
			In: "./store/etcd", Run: "^TestSetIsStoredOnce$",
		},
		{
			Name: "etcd-set-in-first-queue-only", Breaks: "a set is found by each of its locks",
			File: "store/etcd/queue.go", Anchor: "found = append(found, kvs...)", Becomes: "_ = kvs",
			In: "./store/etcd", Run: "^TestSetIsStoredOnce$",
		},
		{
			Name: "etcd-no-headroom", Breaks: "renewing and releasing have room in a full embedded store",
			File: "store/etcd/room.go", Anchor: "if used+r.pending+r.answered+r.before+bytes > quota/100*forEntries {", Becomes: "if used+r.pending+r.answered+r.before+bytes > 2*quota/100*forEntries {",
			In: "./store/etcd", Run: "^TestFullAtItsQuota$",
		},
		{
			Name: "etcd-full-keeps-all", Breaks: "a full store lets go of what it has, with what is on record of that",
			File: "store/etcd/records.go", Anchor: "	if !p.Frees {\n", Becomes: "	if p.Version == 0 {\n",
			In: "./store/etcd", Run: "^TestFullStoreLetsGo$",
		},
		{
			Name: "audit-nothing-frees", Breaks: "what takes something out of the store may be put on record in a full one",
			File: "audit/record.go", Anchor: "		Frees: r.frees(),\n", Becomes: "",
			In: "./audit", Run: "^TestFrees$",
		},
		{
			Name: "etcd-defragments-what-is-live", Breaks: "a full store is defragmented only if that helps",
			File: "store/etcd/room.go", Anchor: "if used > quota/100*forEntries || now.Before(r.next) {", Becomes: "if used > 2*quota || now.Before(r.next) {",
			In: "./store/etcd", Run: "^TestDefragmentsWhenItHelps$",
		},
		{
			Name: "etcd-bare-removal-denied", Breaks: "a release that was done in a full store is not 410",
			File: "store/etcd/store.go", Anchor: "if unknown.bare || unknown.any && len(unknown.endKeys) == 0 {", Becomes: "if unknown.any && len(unknown.endKeys) == 0 {",
			In: "./store/etcd", Run: "^TestBareRemovalOfUnknownOutcome$",
		},
		{
			Name: "zookeeper-floor-not-checked", Breaks: "each transaction with a join checks meta",
			File: "store/zookeeper/commit.go", Anchor: "if joining(batch) {", Becomes: "if joining(batch) && len(batch) == 0 {",
			In: "./store/zookeeper", Run: "^TestFloorWithoutAFeed$", Needs: "zookeeper",
		},
		{
			Name: "zookeeper-lower-zxid-believed", Breaks: "a write's number below what was received before is a lost past",
			File: "store/zookeeper/commit.go", Anchor: "c.trust.Received(mark, stat.Mzxid, 0)", Becomes: "c.trust.Received(mark*0, stat.Mzxid, 0)",
			In: "./store/zookeeper", Run: "^TestWriteShowsALostPast$", Needs: "zookeeper",
		},
		{
			Name: "zookeeper-floor-not-taken-over", Breaks: "a floor that an operator gave is added to every fence",
			File: "store/zookeeper/meta.go", Anchor: "\tr := m.records(stat.Mzxid)", Becomes: "\tm.Floor = 0\n\tr := m.records(stat.Mzxid)",
			In: "./store/zookeeper", Run: "^TestConformance$/^trust$/^a_floor_binds_all_at_once$", Needs: "zookeeper",
		},
		{
			Name: "etcd-reasons-pinned", Breaks: "a long list of reasons outlives compactions",
			File: "store/etcd/list.go", Anchor: "page := newPager(s.prefix + endedDir)", Becomes: "page := newPager(s.prefix + endedDir)\n\t\tpage.request.Revision = at",
			In: "./store/etcd", Run: "^TestListUnderLoad$", Needs: "etcd",
		},
		{
			Name: "etcd-compacts-under-lists", Breaks: "the embedded store does not compact while entries are listed",
			File: "store/etcd/history.go", Anchor: "if m.holds.any() {", Becomes: "if m.holds.any() && upTo < 0 {",
			In: "./store/etcd", Run: "^TestCompactionWaitsForLists$",
		},
		{
			Name: "trust-view-grants", Breaks: "nothing is granted from the view while the store is not trusted",
			File: "service/wait.go", Anchor: "if err := w.s.Store.Refusal(); err != nil {", Becomes: "if err := error(nil); err != nil {",
			In: "./service", Run: "^TestNoGrantWithoutTrust$",
		},
		{
			Name: "trust-renewal-tells-a-grant", Breaks: "nothing is granted by a renewal while the store is not trusted",
			File: "service/entry.go", Anchor: "err != nil && st.Doubt {", Becomes: "err != nil && !st.Doubt {",
			In: "./service", Run: "^TestNoGrantWithoutTrust$",
		},
		{
			Name: "trust-list-grants", Breaks: "nothing is granted by a list while the store is not trusted",
			File: "service/view/view.go", Anchor: "doubt || !known {", Becomes: "doubt || !known && id == \"\" {",
			In: "./service", Run: "^TestNoGrantWithoutTrust$/^List$",
		},
		{
			Name: "trust-stops-holders", Breaks: "who held before the store lost its past goes on to",
			File: "service/entry.go", Anchor: "err != nil && st.Doubt {", Becomes: "err != nil {",
			In: "./service", Run: "^TestHoldersWithoutTrust$",
		},
	}
}
