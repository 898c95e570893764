package main

// closureBugs break what closed locks are: who holds goes on, and nobody else comes to hold.
func closureBugs() []Bug {
	return []Bug{
		{
			Name: "closures-any-end-is-the-next", Breaks: "who may close no more locks is told when the next closure ends",
			File: "service/closing.go", Anchor: "next == nil || c.Entry.Closing.Until.Before(next.Until)", Becomes: "next == nil",
			In: "./service", Run: "^TestClosureIsChecked$",
		},
		{
			Name: "closures-let-newcomers-in", Breaks: "who came after a closure does not hold",
			File: "lock/closure.go", Anchor: "case e.Number >= c.Entry.Number:", Becomes: "case e.Number > c.Entry.Number+1:",
			In: "./lock", Run: "^TestTableMatchesModel$",
		},
		{
			Name: "closures-let-waiters-in", Breaks: "who waited when locks were closed does not come to hold",
			File: "lock/closure.go", Anchor: "return !listed || s.Last != 0 && before >= s.Last && !slices.Contains(s.But, before)",
			Becomes: "return !listed || s.Last != 0 && !slices.Contains(s.But, before)",
			In:      "./lock", Run: "^TestTableMatchesModel$",
		},
		{
			Name: "closures-forget-sets", Breaks: "a set that waited elsewhere when a lock was closed does not come to hold",
			File: "lock/closure.go", Anchor: "\t\tif !s.member.Holds() {\n\t\t\tseats.But", Becomes: "\t\tif !s.inFront {\n\t\t\tseats.But",
			In: "./lock", Run: "^TestRollOfSets$",
		},
		{
			Name: "closures-end-for-nobody", Breaks: "who is next holds when a closure ends",
			File: "service/view/closures.go", Anchor: "\tv.tellGrants(granted, s.Entry, now)\n", Becomes: "",
			In: "./service", Run: "^TestOpenLocks$",
		},
		{
			Name: "closures-roll-of-who-does-not-know", Breaks: "a replica that does not know who holds does not say so",
			File: "lock/closure.go", Anchor: "if doubtful[q] {", Becomes: "if doubtful[nil] {",
			In: "./lock", Run: "^TestTableMatchesModel$",
		},
		{
			Name: "closures-holder-told-to-wait", Breaks: "nobody who holds is told that he waits by a replica that does not know it",
			File: "service/entry.go", Anchor: "st = s.view.Status(e.ID, e.Number); st.InDoubt {", Becomes: "st = s.view.Status(e.ID, e.Number); false {",
			In: "./service", Run: "^TestRollOfAnother$",
		},
		{
			Name: "closures-pass-a-late-replica", Breaks: "a replica whose feed is late grants nothing that is closed",
			File: "service/entry.go", Anchor: "st.blockers, st.holds = by, len(by) == 0", Becomes: "st.blockers = by",
			In: "./service", Run: "^TestTryAtAReplicaThatIsLate$",
		},
		{
			Name: "closures-half-written", Breaks: "another replica tells who held if the one that was asked cannot",
			File: "service/closures.go", Anchor: "\tcase c.Roll != nil:\n", Becomes: "\tcase c.Roll != nil && c.Recorded:\n",
			In: "./service", Run: "^TestRollOfAnother$",
		},
		{
			Name: "closures-without-end", Breaks: "a closure ends with its time",
			File: "service/closures.go", Anchor: "c.Entry.Closing.Until.Sub(s.Now())", Becomes: "lock.MaxTTL",
			In: "./service", Run: "^TestClosure$",
		},
		{
			Name: "closures-without-bound", Breaks: "closures of a tenant are bounded",
			File: "service/closing.go", Anchor: ">= lock.MaxClosures:", Becomes: "> 10*lock.MaxClosures:",
			In: "./service", Run: "^TestClosureIsChecked$",
		},
		{
			Name: "closures-counted-as-locks", Breaks: "what a tenant holds is counted right when a closure ends",
			File: "service/view/closures.go", Anchor: "\ta.granted(granted)\n", Becomes: "\ta.granted(granted)\n\ta.take(tallyOf(s.Entry, true))\n",
			In: "./service/view", Run: "^TestClosuresCountAsNoLocks$",
		},
		{
			Name: "closures-stop-renewals", Breaks: "who may hold is renewed, though his wait would be over",
			File: "service/entry.go", Anchor: "st.State != view.Waiting || st.InDoubt ||", Becomes: "st.State != view.Waiting ||",
			In: "./service", Run: "^TestRenewalWhileInDoubt$",
		},
		{
			Name: "closures-given-up-too-early", Breaks: "a replica whose feed stands ends no closure of which the store tells who held",
			File: "service/closures.go", Anchor: "if known.Entry.ID == c.Entry.ID && known.Settled() {", Becomes: "if known.Entry.ID != c.Entry.ID {",
			In: "./service", Run: "^TestRollThatALateReplicaDoesNotSee$",
		},
		{
			Name: "closures-wait-for-rolls", Breaks: "a closure ends with its time though who held cannot be written",
			File: "service/closures.go", Anchor: "case c.Recorded, in <= 0:", Becomes: "case c.Recorded:",
			In: "./service", Run: "^TestClosureEndsWithoutRoll$",
		},
		{
			Name: "closures-show-holders-as-waiters", Breaks: "a consistent look shows no holder as one who waits",
			File: "service/look.go", Anchor: "if consistent && q.InDoubt {", Becomes: "if consistent && q.InDoubt && q.Waiting == 0 {",
			In: "./service", Run: "^TestLooksWhileInDoubt$",
		},
		{
			Name: "closures-revoke-who-may-hold", Breaks: "the record of a revocation says whether the entry held",
			File: "service/revoke.go", Anchor: "case found.InDoubt:", Becomes: "case found.InDoubt && found.State == view.Held:",
			In: "./service", Run: "^TestLooksWhileInDoubt$",
		},
		{
			Name: "closures-misread", Breaks: "who knows no closures stops granting",
			File: "store/form.go", Anchor: "\tcase e.Rules():\n\t\treturn formClosing\n", Becomes: "",
			In: "./store/memory", Run: "^TestConformance$/form",
		},
		{
			Name: "closures-of-any-tenant", Breaks: "an operator of a tenant ends no closure of another",
			File: "handlers/closures.go", Anchor: "err == nil && r.principal.MayOperate(tenant) && ", Becomes: "err == nil && ",
			In: "./handlers", Run: "^TestHostileCloser$", Needs: "etcd",
		},
		{
			Name: "closures-taken-back-from-a-grant", Breaks: "who gives way to a closure does so only while that stands",
			File: "service/withdraw.go", Anchor: "err := s.Store.Remove(ctx, e, why, blockers...)", Becomes: "if len(blockers) > 0 && blockers[0].Rules() {\n\t\t\treturn blockers, false, s.Store.Remove(ctx, e, why)\n\t\t}\n\t\terr := s.Store.Remove(ctx, e, why, blockers...)",
			In: "./service", Run: "^TestGivesWayWhileItStands$",
		},
		{
			Name: "closures-granted-by-two-reads", Breaks: "who left before a closure ended never held, whoever reads in between",
			File: "service/entry.go", Anchor: "if st.holds && at > number {", Becomes: "if st.holds && at == 0 {",
			In: "./service", Run: "^TestReadWhileAClosureEnds$",
		},
		{
			Name: "closures-blamed-that-end-first", Breaks: "who waits at a lock that several closures close waits for the last to end",
			File: "service/closed.go", Anchor: "one.Entry.Closing.Until.After(by.Closing.Until)", Becomes: "one.Entry.Closing.Until.Before(by.Closing.Until)",
			In: "./service", Run: "^TestLongestClosureIsToBlame$",
		},
	}
}
