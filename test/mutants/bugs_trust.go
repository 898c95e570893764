package main

// trustBugs break the detection of a store that lost its past, and the fence floor.
func trustBugs() []Bug {
	return []Bug{
		{
			Name:    "trust-lower-answer-believed",
			Breaks:  "an answer below a received number proves a lost past",
			File:    "store/trust.go",
			Anchor:  "case number < mark:",
			Becomes: "case number < mark && expected == 1:",
			In:      "./store", Run: "^TestTrustAnswers$",
		},
		{
			Name:    "trust-overtaking-is-proof",
			Breaks:  "answers that overtake each other prove nothing",
			File:    "store/trust.go",
			Anchor:  "case number < mark:",
			Becomes: "case number < t.Sent():",
			In:      "./store", Run: "^TestTrustAnswers$",
		},
		{
			Name: "trust-other-cluster-believed", Breaks: "another cluster id proves a lost past",
			File:    "store/trust.go",
			Anchor:  "expected != 0 && cluster != expected",
			Becomes: "expected == 1 && cluster != expected",
			In:      "./store", Run: "^TestTrustAnswers$",
		},
		{
			Name: "trust-floor-falls", Breaks: "the floor only rises",
			File:    "store/trust.go",
			Anchor:  "floor := max(r.Floor, t.floor.Load())",
			Becomes: "floor := r.Floor",
			In:      "./store", Run: "^TestTrustReadsAnew$",
		},
		{
			Name:   "trust-compared-before-taken-over",
			Breaks: "a floor is added before writes compare it",
			File:   "store/trust.go",
			Anchor: "lost = t.takeOver(mark, before, r)\n" +
				"\tif r.Keep != nil {\n" +
				"\t\tr.Keep()\n" +
				"\t}",
			Becomes: "if r.Keep != nil {\n" +
				"\t\tr.Keep()\n" +
				"\t}\n" +
				"\tlost = t.takeOver(mark, before, r)",
			In: "./store", Run: "^TestTrustTakesOverFirst$",
		},
		{
			Name: "trust-view-grants", Breaks: "a distrusted store grants nothing from the view",
			File:    "service/wait.go",
			Anchor:  "if err := w.s.Store.Refusal(); err != nil {",
			Becomes: "if err := error(nil); err != nil {",
			In:      "./service", Run: "^TestNoGrantWithoutTrust$",
		},
		{
			Name: "trust-stops-holders", Breaks: "a holder from before the loss renews on",
			File:    "service/entry.go",
			Anchor:  "err != nil && st.Doubt {",
			Becomes: "err != nil {",
			In:      "./service", Run: "^TestHoldersWithoutTrust$",
		},
		{
			Name:    "etcd-doubted-entry-stays",
			Breaks:  "an entry whose own answer proves the loss is removed",
			File:    "store/engine/join.go",
			Anchor:  "if refusal.OutcomeUnknown && !e.Recoverable() {",
			Becomes: "if false {",
			In:      "./store/etcd", Run: "^TestDoubtedEntryIsTakenBack$",
		},
		{
			Name:   "etcd-floor-of-one-alone",
			Breaks: "each batch that puts an entry compares the floor",
			File:   "store/etcd/commit.go",
			Anchor: "if !b.puts {", Becomes: "if !b.puts || len(b.groups) > 1 {",
			In: "./store/etcd", Run: "^TestFloorIsComparedInEachBatch$",
		},
		{
			Name: "etcd-floor-overwritten", Breaks: "of two floors the higher one stays",
			File:    "store/engine/meta.go",
			Anchor:  "If: []If{{MetaKey(), was}}, ",
			Becomes: "",
			In:      "./store/etcd", Run: "^TestFloorThatComesLate$",
			Needs: "etcd",
		},
		{
			Name: "etcd-floor-not-listed", Breaks: "a list adds the floor to earlier entries",
			File:   "store/etcd/list.go",
			Anchor: "entries, number := read.at(at, floor)",
			Becomes: "entries, _ := read.at(at, 0)\n" +
				"\tnumber := fd.number(at)",
			In:  "./store/etcd",
			Run: "^TestConformanceEmbedded$/^trust$/^feeds_add_the_floor_to_what_was_there_before$",
		},
		{
			Name:    "zookeeper-floor-not-checked",
			Breaks:  "each transaction that joins checks the floor",
			File:    "store/zookeeper/commit.go",
			Anchor:  "if putsEntry(writes) {",
			Becomes: "if putsEntry(writes) && len(writes) == 0 {",
			In:      "./store/zookeeper", Run: "^TestFloorWithoutAFeed$",
			Needs: "zookeeper",
		},
		{
			Name:    "zookeeper-lower-zxid-believed",
			Breaks:  "a zxid below a received one proves a lost past",
			File:    "store/zookeeper/commit.go",
			Anchor:  "c.journal.trust.Received(mark, stat.Mzxid, 0)",
			Becomes: "c.journal.trust.Received(mark*0, stat.Mzxid, 0)",
			In:      "./store/zookeeper", Run: "^TestWriteShowsALostPast$",
			Needs: "zookeeper",
		},
	}
}
