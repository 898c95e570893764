package main

// lookingBugs break what operators are shown.
func lookingBugs() []Bug {
	return []Bug{
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
	}
}
