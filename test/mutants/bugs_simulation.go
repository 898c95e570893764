package main

// simulationBugs are found by the simulation, by no more histories than go test plays.
// Nobody wrote a test for them there.
func simulationBugs() []Bug {
	bugs := []Bug{
		{
			Name: "simulation-gives-way-to-nobody", Breaks: "a late view takes nothing away that was granted elsewhere",
			File: "service/withdraw.go", Anchor: "err := s.Store.Remove(ctx, e, why, blockers...)",
			Becomes: "err := s.Store.Remove(ctx, e, why, blockers[:0]...)",
		},
		{
			Name: "simulation-late-view-says-waiting", Breaks: "who was told that it holds is not told that it waits",
			File: "service/entry.go", Anchor: "if s.view.Reached(e.Number) && s.settled(ctx) {", Becomes: "if true {",
		},
		{
			Name: "simulation-waiter-lapses", Breaks: "while a request waits, its replica keeps the lease alive",
			File: "service/keep.go", Anchor: "third := k.entry.TTL / 3", Becomes: "third := k.entry.TTL * 3",
		},
		{
			Name: "simulation-async-lapses", Breaks: "the replicas keep what waits without a connection",
			File: "service/async.go", Anchor: "third := e.entry.TTL / 3", Becomes: "third := e.entry.TTL * 3",
		},
		{
			Name: "simulation-grant-for-less", Breaks: "a waited grant gets its full TTL",
			File: "service/wait.go", Anchor: "if time.Since(w.refreshed) > freshEnough && ", Becomes: "if w.refreshed.IsZero() && ",
		},
		{
			Name: "simulation-removes-all-the-same", Breaks: "the store removes only if what it was decided by is there",
			File: "store/memory/write.go", Anchor: "if slices.ContainsFunc(while, func(e *lock.Entry) bool { return s.find(e) == nil }) {",
			Becomes: "if false {",
		},
		{
			Name: "simulation-late-attempt-writes", Breaks: "no attempt of a call that was given up writes later",
			File: "store/memory/write.go", Anchor: "if s.attempts[this] == excluded {", Becomes: "if false {",
		},
		{
			Name: "simulation-late-try-after-its-withdrawal", Breaks: "a try that comes late, after it was repeated elsewhere and withdrawn, is not written",
			File: "store/memory/write.go", Anchor: "case r != nil && e.Resumable() && r.number != withdrawn:", Becomes: "case false:",
		},
		{
			Name: "simulation-given-up-stays", Breaks: "what was written by a call that was given up is taken back",
			File: "store/memory/enqueue.go", Anchor: "if unknown && (err == nil || !e.Resumable()) {", Becomes: "if false {",
		},
		{
			Name: "simulation-key-used-twice", Breaks: "an idempotency key is used once",
			File: "store/memory/write.go", Anchor: "case ended && (wroteBefore || e.Resumable()):", Becomes: "case ended && wroteBefore:",
		},
		{
			Name: "simulation-writes-over-a-lost-past", Breaks: "who has heard of more writes nothing to a store that went back",
			File: "store/memory/write.go", Anchor: "if known > s.number {", Becomes: "if false {",
		},
		{
			Name: "simulation-writes-untrusted", Breaks: "nothing is granted until a floor is given",
			File: "store/memory/write.go", Anchor: "if s.distrusted != 0 || s.foreign {", Becomes: "if false {",
		},
		{
			Name: "simulation-restore-unnoticed", Breaks: "a replica says so when it is shown that the store went back",
			File: "store/memory/ask.go", Anchor: "if c.note(known, got.number) && op != Distrust {", Becomes: "if c.note(known, got.number) && false {",
		},
		{
			Name: "simulation-floor-of-one", Breaks: "fences go on above the floor",
			File: "store/memory/history.go", Anchor: "\ts.shift(floor - s.floor)\n", Becomes: "\ts.shift(1)\n",
		},
		{
			Name: "simulation-deadlock-stands", Breaks: "who would wait for ever is refused",
			File: "lock/deadlock/detector.go", Anchor: "return &Rejection{Cycle: cycle}", Becomes: "return nil",
		},
		{
			Name: "simulation-deadlock-imagined", Breaks: "nobody waits for a try, which is taken back",
			File: "lock/deadlock/search.go", Anchor: "if !in.idle(ahead) && !ahead.leaving() {", Becomes: "if !in.idle(ahead) {",
		},
	}
	for i := range bugs {
		bugs[i].In, bugs[i].Run = "./test/simulation", "^TestHistories$"
	}
	return bugs
}
