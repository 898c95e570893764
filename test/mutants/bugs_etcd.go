package main

// etcdBugs break what the store on etcd promises.
func etcdBugs() []Bug {
	return []Bug{
		{
			Name: "etcd-closing-waits-for-removals", Breaks: "a store that is closed does not wait for answers to removals",
			File: "store/etcd/expirer.go", Anchor: "x.remove(x.ctx, l.entry", Becomes: "x.remove(context.WithoutCancel(x.ctx), l.entry",
			In: "./store/etcd", Run: "^TestClosingEndsRemovals$",
		},
		{
			Name: "etcd-ends-at-once", Breaks: "a tenant's entries that are over at the same time are removed one after the other",
			File: "store/etcd/lifetimes.go", Anchor: "x.turns.next(l.entry.Tenant, now), true", Becomes: "now, true",
			In: "./store/etcd", Run: "^TestManyOfATenantEndEvenly$",
		},
		{
			Name: "etcd-ends-behind-others", Breaks: "no tenant's entries that are over wait for another tenant's",
			File: "store/etcd/lifetimes.go", Anchor: "x.turns.next(l.entry.Tenant, now)", Becomes: "x.turns.next(\"\", now)",
			In: "./store/etcd", Run: "^TestManyOfATenantEndEvenly$",
		},
		{
			Name: "etcd-ends-too-late", Breaks: "an entry that is over waits for its turn for a second at most",
			File: "store/etcd/turns.go", Anchor: " || at.Sub(now) >= turnsWithin", Becomes: "",
			In: "./store/etcd", Run: "^TestManyOfATenantEndEvenly$",
		},
		{
			Name: "etcd-ends-behind-many", Breaks: "no tenant's entries that are over wait until all have been removed that another had over before",
			File: "store/etcd/lifetimes.go", Anchor: "x.due.Add(l.entry.Tenant, l)", Becomes: "x.due.Add(\"\", l)",
			In: "./store/etcd", Run: "^TestNobodyWaitsBehindMany$",
		},
		{
			Name: "etcd-ends-what-was-over", Breaks: "while much is removed, what is over by then does not wait for all of it",
			File: "store/etcd/expirer.go", Anchor: "\tfor ctx.Err() == nil {\n\t\tl, of := x.next(time.Now())\n", Becomes: "\tfor now := time.Now(); ctx.Err() == nil; {\n\t\tl, of := x.next(now)\n",
			In: "./store/etcd", Run: "^TestNobodyWaitsBehindMany$",
		},
		{
			Name: "etcd-looks-at-all-at-once", Breaks: "renewals do not wait until all entries have been looked at that are over",
			File: "store/etcd/lifetimes.go", Anchor: "\tif x.order.Len() > 0 && !x.order.First().look.After(now) {\n\t\tx.look(x.order.First(), now)\n\t\treturn nil, nil, false\n", Becomes: "\tfor x.order.Len() > 0 && !x.order.First().look.After(now) {\n\t\tx.look(x.order.First(), now)\n",
			In: "./store/etcd", Run: "^TestLooksAtOneAfterTheOther$",
		},
		{
			Name: "etcd-due-though-renewed", Breaks: "an entry that is renewed while others are removed before it goes on",
			File: "store/etcd/lifetimes.go", Anchor: "case l.renewing > 0 || l.until.After(now):", Becomes: "case l.renewing > 0:",
			In: "./store/etcd", Run: "^TestChangesWhileItIsDue$",
		},
		{
			Name: "etcd-due-behind-a-renewal", Breaks: "an entry is not removed while its renewal is under way, also where it was due before",
			File: "store/etcd/lifetimes.go", Anchor: "case l.renewing > 0 || l.until.After(now):", Becomes: "case l.until.After(now):",
			In: "./store/etcd", Run: "^TestChangesWhileItIsDue$",
		},
		{
			Name: "etcd-turn-lost-while-renewed", Breaks: "an entry whose renewal is under way at its turn waits for no other one",
			File: "store/etcd/lifetimes.go", Anchor: "\t\tl.look = now.Add(expiryTick)\n", Becomes: "\t\tl.look, l.hasTurn = now.Add(expiryTick), false\n",
			In: "./store/etcd", Run: "^TestTurnIsKept$",
		},
		{
			Name: "etcd-turn-of-before-a-renewal", Breaks: "an entry that was renewed while it waited for its turn waits for another one",
			File: "store/etcd/lifetimes.go", Anchor: "l.look, l.hasTurn = l.until, false", Becomes: "l.look = l.until",
			In: "./store/etcd", Run: "^TestRenewedWhileItWaitsForItsTurn$",
		},
		{
			Name: "etcd-turns-kept", Breaks: "tenants whose entries ended are forgotten",
			File: "store/etcd/turns.go", Anchor: "return now.Sub(at) > turnsApart", Becomes: "return now.Sub(at) > 1000*turnsWithin",
			In: "./store/etcd", Run: "^TestTurnsAreForgotten$",
		},
		{
			Name: "etcd-expiry-behind-a-renewal", Breaks: "an entry whose renewal is under way is not removed as over",
			File: "store/etcd/lifetimes.go", Anchor: "\tcase l.renewing > 0:\n", Becomes: "\tcase l.renewing > 1000:\n",
			In: "./store/etcd", Run: "^TestRenewalUnderWay$", Hangs: true,
		},
		{
			Name: "etcd-renews-what-it-removes", Breaks: "an entry that is being removed as over is not renewed",
			File: "store/etcd/lifetimes.go", Anchor: "\tif l.over {\n\t\treturn nil, false\n\t}\n", Becomes: "",
			In: "./store/etcd", Run: "^TestNoRenewalOfWhatIsRemoved$",
		},
		{
			Name: "etcd-renewal-unseen", Breaks: "a renewal by another store on the connection puts the end of an entry off",
			File: "store/etcd/embedded.go", Anchor: "\t\trenewed(err)\n", Becomes: "\t\trenewed(errLeaseGone)\n",
			In: "./store/etcd", Run: "^TestLeaseOfAnExpiredEntry$", Needs: "etcd",
		},
		{
			Name: "etcd-failed-renewal-counts", Breaks: "a renewal that failed puts the end of an entry off by nothing",
			File: "store/etcd/lifetimes.go", Anchor: "if l.renewing--; err == nil {", Becomes: "if l.renewing--; l != nil {",
			In: "./store/etcd", Run: "^TestRenewalUnderWay$",
		},
		{
			Name: "etcd-expires-another", Breaks: "a lease that carries another entry by now is not ended with the one before",
			File: "store/etcd/lifetimes.go", Anchor: "was != nil && was.entry.Number > e.Number", Becomes: "was != nil && was.entry.Number < e.Number",
			In: "./store/etcd", Run: "^TestLeaseCarriesAnother$",
		},
		{
			Name: "etcd-forgets-another", Breaks: "that an entry is gone says nothing of the next one under its lease",
			File: "store/etcd/lifetimes.go", Anchor: "\tif x.byLease[l.entry.Handle] == l {\n\t\tx.drop(l)", Becomes: "\tif l != nil {\n\t\tx.drop(x.byLease[l.entry.Handle])",
			In: "./store/etcd", Run: "^TestLeaseCarriesAnother$",
		},
		{
			Name: "etcd-expired-once", Breaks: "what is over and could not be removed is tried again",
			File: "store/etcd/expirer.go", Anchor: "\t\t\tx.times.again(l, time.Now().Add(expiryPause))\n", Becomes: "\t\t\tx.times.forgetEntry(l)\n",
			In: "./store/etcd", Run: "^TestNoRenewalOfWhatIsRemoved$",
		},
		{
			Name: "etcd-keeps-lifetimes", Breaks: "how long an entry lasts is forgotten when it is released",
			File: "store/etcd/conn.go", Anchor: "\t\tc.lifetimes.forget(lease)\n", Becomes: "\t\t_ = lease\n",
			In: "./store/etcd", Run: "^TestReleasedLeaveNoLifetime$", Needs: "etcd",
		},
		{
			Name: "etcd-keeps-places", Breaks: "nothing waits for the end of an entry that was released",
			File: "store/etcd/lifetimes.go", Anchor: "\tif l.Queued() {\n\t\tx.order.Remove(l)\n\t}\n", Becomes: "",
			In: "./store/etcd", Run: "^TestReleasedAreForgotten$",
		},
		{
			Name: "etcd-expires-after-close", Breaks: "a store that is closed removes nothing any more",
			File: "store/etcd/lifetimes.go", Anchor: "\t\tcase l.of != of:\n", Becomes: "\t\tcase true:\n",
			In: "./store/etcd", Run: "^TestClosedStoreRemovesNothing$",
		},
		{
			Name: "etcd-watches-after-close", Breaks: "a store that is closed takes up nothing any more",
			File: "store/etcd/lifetimes.go", Anchor: "was.entry.Number > e.Number || of.gone:", Becomes: "was.entry.Number > e.Number:",
			In: "./store/etcd", Run: "^TestClosedStoreRemovesNothing$",
		},
		{
			Name: "etcd-closed-leaves-nobody", Breaks: "what a closed store has left another one ends",
			File: "store/etcd/lifetimes.go", Anchor: "\t\tcase heir != nil:\n", Becomes: "\t\tcase heir != nil && l.over:\n",
			In: "./store/etcd", Run: "^TestClosedStoreRemovesNothing$",
		},
		{
			Name: "etcd-heir-of-others", Breaks: "no store ends what is another's",
			File: "store/etcd/lifetimes.go", Anchor: "return o.prefix == of.prefix", Becomes: "return o != nil",
			In: "./store/etcd", Run: "^TestClosedStoreRemovesNothing$",
		},
		{
			Name: "etcd-closing-forgets", Breaks: "what had not begun to be removed when its store was closed is removed by another one",
			File: "store/etcd/expirer.go", Anchor: "\t\tx.times.again(l, time.Now())\n", Becomes: "",
			In: "./store/etcd", Run: "^TestWaitingForRoomIsLeft$",
		},
		{
			Name: "etcd-listed-not-ended", Breaks: "what was there before a start ends in time",
			File: "store/etcd/list.go", Anchor: "\ts.expirer.watchListed(there)\n", Becomes: "\t_ = there\n",
			In: "./store/etcd", Run: "^TestEndsWhatItFinds$", Needs: "etcd",
		},
		{
			Name: "etcd-ends-the-past", Breaks: "where a feed begins in the past, what is there now ends in time, and nothing is kept of what has gone",
			File: "store/etcd/list.go", Anchor: "if at < newest {", Becomes: "if at < 0 {",
			In: "./store/etcd", Run: "^TestEndsNothingOfThePast$", Needs: "etcd",
		},
		{
			Name: "etcd-left-to-its-lease", Breaks: "an entry with a key whose call never learned of it ends in time, also if nobody comes back for it",
			File: "store/etcd/orphan.go", Anchor: "\t\ts.expirer.watch(found, time.Time{})\n", Becomes: "",
			In: "./store/etcd", Run: "^TestEndsWhatNobodyComesBackFor$", Needs: "etcd",
		},
		{
			Name: "etcd-ends-the-unreadable", Breaks: "an entry that cannot be read keeps its place until its lease ends",
			File: "store/etcd/expirer.go", Anchor: "x.times == nil || e.Opaque ||", Becomes: "x.times == nil ||",
			In: "./store/etcd", Run: "^TestUnreadableKeepsItsPlace$",
		},
		{
			Name: "etcd-listed-lasts-like-its-lease", Breaks: "what was listed is not told to last for longer than until it is removed",
			File: "store/etcd/store.go", Anchor: "min(time.Duration(resp.TTL)*time.Second, left)", Becomes: "min(time.Duration(resp.TTL)*time.Second, e.TTL)",
			In: "./store/etcd", Run: "^TestRemainingOfWhatIsListed$", Needs: "etcd",
		},
		{
			Name: "etcd-heir-that-did-not-open", Breaks: "nothing is left to a store that could not be opened",
			File: "store/etcd/store.go", Anchor: "\t\ts.stop()\n\t\ts.expirer.close()\n", Becomes: "\t\ts.stop()\n",
			In: "./store/etcd", Run: "^TestNotLeftToWhatDidNotOpen$", Needs: "etcd",
		},
		{
			Name: "etcd-tries-again-for-another", Breaks: "what could not be removed is not waited for when its lease carries another entry",
			File: "store/etcd/lifetimes.go", Anchor: "case x.byLease[l.entry.Handle] != l || l.of.gone:", Becomes: "case l.of.gone:",
			In: "./store/etcd", Run: "^TestNotTriedAgainForAnother$",
		},
		{
			Name: "etcd-waits-for-what-a-lease-carried", Breaks: "an entry is not waited for when its lease carries another one",
			File: "store/etcd/lifetimes.go", Anchor: "\tx.drop(was)\n\tl := ", Becomes: "\tl := ",
			In: "./store/etcd", Run: "^TestNotTriedAgainForAnother$",
		},
		{
			Name: "etcd-lasts-since-the-proof", Breaks: "how long an entry lasts is not counted from the proof that it is there",
			File: "store/etcd/store.go", Anchor: "if s.expirer.watch(e, start) {", Becomes: "if s.expirer.watch(e, time.Now()) {",
			In: "./store/etcd", Run: "^TestLastsSinceItIsAsked$", Needs: "etcd",
		},
		{
			Name: "etcd-written-lasts-unknown", Breaks: "how long an entry lasts that was just written is known without asking etcd",
			File: "store/etcd/store.go", Anchor: "s.expirer.watch(placed, s.leases.confirm(placed))", Becomes: "s.leases.confirm(placed)\n\t\ts.expirer.watch(placed, time.Time{})",
			In: "./store/etcd", Run: "^TestLastsSinceItIsAsked$", Needs: "etcd",
		},
		{
			Name: "etcd-lost-before-it-is-gone", Breaks: "a renewal is not answered that the entry is lost while it is being removed",
			File: "store/etcd/store.go", Anchor: "\t\t\terr = errLeaseGone // it is", Becomes: "\t\t\treturn store.Lost(\"it ends\") // it is",
			In: "./store/etcd", Run: "^TestRenewalBesideRemoval$", Needs: "etcd",
		},
		{
			Name: "etcd-asks-for-what-ends", Breaks: "an idle lease that is about to end is not asked for",
			File: "store/etcd/lease.go", Anchor: "margin = min(margin, localSlack/4)", Becomes: "margin = 0",
			In: "./store/etcd", Run: "^TestLeaseOfWhatExpired$",
		},
		{
			Name: "etcd-short-lease-lives", Breaks: "a lease that an earlier version granted is not said to live when its TTL is over",
			File: "store/etcd/lease.go", Anchor: "age < (c.ttl-p.conn.slack)*9/10", Becomes: "age < c.ttl*9/10",
			In: "./store/etcd", Run: "^TestLeaseOfAnEarlierVersion$",
		},
		{
			Name: "etcd-more-idle-with-slack", Breaks: "how many leases may be idle is by the TTL of their entries",
			File: "store/etcd/lease.go", Anchor: "int((class.ttl - p.conn.slack).Seconds() * idlePerSecond)", Becomes: "int(class.ttl.Seconds() * idlePerSecond)",
			In: "./store/etcd", Run: "^TestIdleLeasesAreBounded$",
		},
		{
			Name: "etcd-retried-not-ended", Breaks: "so does what a call wrote that never learned of it",
			File: "store/etcd/store.go", Anchor: "\t\ts.expirer.watch(placed, time.Time{})\n", Becomes: "",
			In: "./store/etcd", Run: "^TestEndsWhatItFinds$", Needs: "etcd",
		},
		{
			Name: "etcd-list-prolongs", Breaks: "reading the list again prolongs nothing",
			File: "store/etcd/lifetimes.go", Anchor: "was.entry.Number == e.Number && since.IsZero():", Becomes: "was.entry.Number == e.Number && now.IsZero():",
			In: "./store/etcd", Run: "^TestListProlongsNothing$",
		},
		{
			Name: "etcd-answer-after-the-list", Breaks: "an entry lasts for its TTL from the answer to its client on, though it was listed before",
			File: "store/etcd/lifetimes.go", Anchor: "was.until, was.lasts = later(was.until, until), later(was.lasts, lasts)", Becomes: "was.lasts = later(was.lasts, lasts)",
			In: "./store/etcd", Run: "^TestCallThatLearnsLate$",
		},
		{
			Name: "etcd-renews-beside-removal", Breaks: "what began to be removed while it was renewed is not answered to go on",
			File: "store/etcd/store.go", Anchor: "if s.expirer.watch(e, start) {", Becomes: "if s.expirer.watch(e, start); err == nil {",
			In: "./store/etcd", Run: "^TestRenewalBesideRemoval$", Needs: "etcd",
		},
		{
			Name: "etcd-idle-dropped-at-once", Breaks: "idle leases that nobody wanted are dropped a few at a time",
			File: "store/etcd/lease.go", Anchor: " && dropped < dropsAtOnce:", Becomes: ":",
			In: "./store/etcd", Run: "^TestIdleLeasesAreDroppedSlowly$",
		},
		{
			Name: "etcd-expired-lease-lapses", Breaks: "the lease of an entry that expired carries the next one",
			File: "store/etcd/embedded.go", Anchor: "slack: localSlack, ", Becomes: "",
			In: "./store/etcd", Run: "^TestLeaseOfAnExpiredEntry$", Needs: "etcd",
		},
		{
			Name: "etcd-key-freed-after-the-record", Breaks: "a key that an expired entry has used up is not freed when a second entry of it is withdrawn later",
			File: "store/etcd/keys.go", Anchor: "valued(key, store.Encode(living))}, Success: []*pb.RequestOp{add}", Becomes: "valued(key, store.Encode(living))}",
			In: "./store/etcd", Run: "^TestWithdrawnAfterTheRecord$", Needs: "etcd",
		},
		{
			Name: "etcd-sets-read-once", Breaks: "the queue of a lock that sets are in is read again if a member does not answer",
			File: "store/etcd/queue.go", Anchor: "resp, err := repeated(ctx, func() (*pb.TxnResponse, error) { return s.tryTxn(ctx, \"queue\", &pb.TxnRequest{Success: ranges}) })", Becomes: "resp, err := s.tryTxn(ctx, \"queue\", &pb.TxnRequest{Success: ranges})",
			In: "./store/etcd", Run: "^TestQueueOfASetIsReadAgain$", Needs: "etcd",
		},
		{
			Name: "etcd-waits-for-an-idle-lease", Breaks: "an entry is given a new lease where etcd does not renew an idle one soon",
			File: "store/etcd/lease.go", Anchor: "context.WithTimeout(ctx, renewalTimeout)", Becomes: "context.WithTimeout(ctx, 100*renewalTimeout)",
			In: "./store/etcd", Run: "^TestSlowRenewalOfAnIdleLease$",
		},
		{
			Name: "etcd-idle-lease-lapses", Breaks: "an idle lease that is not renewed soon stays for others",
			File: "store/etcd/lease.go", Anchor: "		case known:\n			p.put(class, []lease{l})\n", Becomes: "",
			In: "./store/etcd", Run: "^TestSlowRenewalOfAnIdleLease$",
		},
		{
			Name: "etcd-withdrawal-frees-any-key", Breaks: "what withdraws an entry leaves its key used up if one before it expired",
			File: "store/etcd/keys.go", Anchor: "	if why == lock.Withdrawn {", Becomes: "	if false {",
			In: "./store/etcd", Run: "^TestWithdrawnAfterTheRecord$", Needs: "etcd",
		},
		{
			Name: "etcd-full-store-frees-a-used-key", Breaks: "a key that an expired entry has used up is not freed when a second entry of it is withdrawn from a full store",
			File: "store/etcd/keys.go", Anchor: "	if why == lock.Withdrawn {", Becomes: "	if why == lock.Withdrawn && lease != 0 {",
			In: "./store/etcd", Run: "^TestWithdrawnFromAFullStore$", Needs: "etcd",
		},
		{
			Name: "etcd-expiry-behind-a-withdrawal", Breaks: "an entry that expired is not taken for withdrawn because one of its key was before, from a full store",
			File: "store/etcd/feed.go", Anchor: "	left.withdrawn = d.marked[markGone{k.ID, revision}]\n",
			Becomes: "	for mark := range d.marked {\n		left.withdrawn = left.withdrawn || mark.id == k.ID\n	}\n",
			In:      "./store/etcd", Run: "^TestReasonOfEachEnd$",
		},
		{
			Name: "etcd-withdrawal-looks-like-an-expiry", Breaks: "a key is free whoever records that its entry was withdrawn from a full store",
			File: "store/etcd/feed.go", Anchor: "if d.withdrawn && why == lock.Expired {", Becomes: "if false {",
			In: "./store/etcd", Run: "^TestOthersKnowOfAWithdrawalFromAFullStore$", Needs: "etcd",
		},
		{
			Name: "etcd-release-looks-like-a-withdrawal", Breaks: "a key is used up whoever records that its entry was released from a full store",
			File: "store/etcd/keys.go", Anchor: "if why == lock.Withdrawn && lease == 0 {", Becomes: "if lease == 0 {",
			In: "./store/etcd", Run: "^TestOthersKnowOfAWithdrawalFromAFullStore$", Needs: "etcd",
		},
		{
			Name: "etcd-expiry-looks-like-a-withdrawal", Breaks: "an entry whose lease is over has used its key up",
			File: "store/etcd/feed.go", Anchor: "why = lock.Withdrawn // by another replica\n\t}\n\ts.unrecorded.saw(", Becomes: "}\n\tif marked && why == lock.Expired {\n\t\twhy = lock.Withdrawn\n\t}\n\ts.unrecorded.saw(",
			In: "./store/etcd", Run: "^TestOthersKnowOfAWithdrawalFromAFullStore$", Needs: "etcd",
		},
		{
			Name: "etcd-withdrawal-recorded-late-uses-the-key", Breaks: "that an entry was withdrawn, recorded when its key is in use again, uses up nothing",
			File: "store/etcd/keys.go", Anchor: "	if end.Reason == lock.Withdrawn { // from", Becomes: "	if false { // from",
			In: "./store/etcd", Run: "^TestWithdrawalRecordedLate$", Needs: "etcd",
		},
		{
			Name: "etcd-mark-left-to-its-lease", Breaks: "what a withdrawal from a full store leaves of a used-up key is put down when there is room",
			File: "store/etcd/ended.go", Anchor: "		txn.Success = append(txn.Success, s.markLeft(e.End, e.key.Lock, memory))\n", Becomes: "",
			In: "./store/etcd", Run: "^TestWithdrawnFromAFullStore$", Needs: "etcd",
		},
		{
			Name: "etcd-mark-left-by-another", Breaks: "what a withdrawal from a full store leaves of a used-up key is put down by whoever records that the entry went",
			File: "store/etcd/ended.go", Anchor: "	default:\n		txn.Success = append(txn.Success, s.markLeft", Becomes: "	case e.Reason == lock.Withdrawn:\n		txn.Success = append(txn.Success, s.markLeft",
			In: "./store/etcd", Run: "^TestWithdrawnFromAFullStoreAndRecordedByAnother$", Needs: "etcd",
		},
		{
			Name: "etcd-mark-left-by-another-lapses", Breaks: "whoever saw an entry go whose mark stayed puts it down when that lapses, though it takes the entry for expired",
			File: "store/etcd/ended.go", Anchor: "ok && !e.marked {", Becomes: "ok && !e.marked && e.Reason == lock.Withdrawn {",
			In: "./store/etcd", Run: "^TestWithdrawnFromAFullStoreAndRecordedByAnother$", Needs: "etcd",
		},
		{
			Name: "etcd-mark-left-unseen", Breaks: "what a withdrawal from a full store leaves of a used-up key is put down by a replica whose feed did not tell of it",
			File: "store/etcd/keys.go", Anchor: "				Failure: []*pb.RequestOp{s.markLeft(end, name, lease)},\n", Becomes: "",
			In: "./store/etcd", Run: "^TestWithdrawnFromAFullStoreAndRecordedByAnother$", Needs: "etcd",
		},
		{
			Name: "etcd-mark-left-lapses", Breaks: "what a withdrawal from a full store left of a used-up key may lapse before there is room",
			File: "store/etcd/feed.go", Anchor: "		s.unrecorded.markGone(mark.id)\n", Becomes: "		_ = mark\n",
			In: "./store/etcd", Run: "^TestWithdrawnFromAFullStore$", Needs: "etcd",
		},
		{
			Name: "etcd-withdrawal-hides-an-open-end", Breaks: "an expiry that is yet to be recorded is not forgotten when another entry of its key is withdrawn from a full store",
			File: "store/etcd/ended.go", Anchor: "open != \"\" && open != lock.Withdrawn {", Becomes: "open == lock.Withdrawn {",
			In: "./store/etcd", Run: "^TestWithdrawnFromAFullStore$", Needs: "etcd",
		},
		{
			Name: "etcd-mark-without-its-lease", Breaks: "what is added to the mark of an entry leaves it the entry's lease",
			File: "store/etcd/keys.go", Anchor: "	add.GetRequestPut().IgnoreLease = true // it keeps the entry's\n", Becomes: "",
			In: "./store/etcd", Run: "^TestWithdrawnAfterTheRecord$", Needs: "etcd",
		},
		{
			Name: "etcd-handed-out-while-revoked", Breaks: "an entry whose lease is being revoked is handed out to nobody",
			File: "store/etcd/join.go", Anchor: "slices.Contains(j.revoking, l.found.Handle)", Becomes: "slices.Contains(j.revoking[:0], l.found.Handle)",
			In: "./store/etcd", Run: "^TestNotHandedOutWhileItIsRevoked$", Needs: "etcd",
		},
		{
			Name: "etcd-withdrawn-key-not-shut-out", Breaks: "what is given up with a key that was withdrawn before is shut out before its leases are revoked",
			File: "store/etcd/orphan.go", Anchor: "modified(key, x.withdrawn)", Becomes: "created(key, 0)",
			In: "./store/etcd", Run: "^TestWithdrawnKeyIsShutOut$", Needs: "etcd",
		},
		{
			Name: "etcd-long-elections", Breaks: "servers that keep leases for longer than promised are told",
			File: "store/etcd/least_lease.go", Anchor: "if least > MinTTL {", Becomes: "if least > 60*MinTTL {",
			In: "./store/etcd", Run: "^TestLongElections$", Needs: "etcd",
		},
		{
			Name: "etcd-goes-on-without-a-disk", Breaks: "a server whose embedded store cannot write ends",
			File: "store/etcd/log.go", Anchor: "		zapcore.WriteThenFatal.OnWrite(e, fields)", Becomes: "		return",
			In: "./test/faults", Run: "^TestDiskFull$",
		},
		{
			Name: "etcd-refused-together", Breaks: "of removals that fail together, a tenant's many are not for others to wait for",
			File: "store/etcd/commit.go", Anchor: "return batch.Apart(g.writes)", Becomes: "return [][]*write{g.writes[:len(g.writes)/2], g.writes[len(g.writes)/2:]}",
			In: "./store/etcd", Run: "^TestRefusedWritesOfAnotherTenant$",
		},
		{
			Name: "etcd-batch-fails-together", Breaks: "a write that cannot be done does not fail those that share its batch",
			File: "store/etcd/commit.go", Anchor: "return c.try(c.transaction(groups))", Becomes: "return nest(resp, len(groups)), nil",
			In: "./store/etcd", Run: "^TestOneOfABatchFails$",
		},
		{
			Name: "etcd-log-in-memory", Breaks: "what was written is not kept in memory",
			File: "store/etcd/embedded.go", Anchor: "c.SnapshotCatchUpEntries = keptInMemory", Becomes: "c.SnapshotCatchUpEntries = 5000",
			In: "./store/etcd", Run: "^TestMemoryOfWrites$", Needs: "etcd",
		},
		{
			Name: "etcd-errors-are-sampled", Breaks: "of etcd's errors each is in the log",
			File: "store/etcd/log.go", Anchor: "from: zapcore.WarnLevel, to: zapcore.WarnLevel,", Becomes: "from: zapcore.WarnLevel, to: zapcore.FatalLevel,",
			In: "./store/etcd", Run: "^TestLogIsSampled$",
		},
		{
			Name: "etcd-last-words-are-lost", Breaks: "why etcd ended the process is in the log",
			File: "store/etcd/log.go", Anchor: "to: zapcore.FatalLevel", Becomes: "to: zapcore.ErrorLevel",
			In: "./store/etcd", Run: "^TestLastWords$",
		},
		{
			Name: "etcd-silenced-was-never-said", Breaks: "what is never written is not counted as left out",
			File: "store/etcd/log.go", Anchor: "!c.Enabled(e.Level) || irrelevant(e.Message)", Becomes: "!c.Enabled(e.Level)",
			In: "./store/etcd", Run: "^TestSilencedIsWhatWouldBeSaid$",
		},
		{
			Name: "etcd-young-was-never-said", Breaks: "what is said of a new store only is not counted as left out",
			File: "store/etcd/log.go", Anchor: "if !young(e.Message, fields) {", Becomes: "if !young(e.Message, nil) {",
			In: "./store/etcd", Run: "^TestSilencedIsWhatWouldBeSaid$",
		},
		{
			Name: "etcd-floods-the-log", Breaks: "etcd's warnings while it is slow do not fill the log",
			File: "store/etcd/log.go", Anchor: "samplesOf    = 5", Becomes: "samplesOf    = 1 << 30",
			In: "./store/etcd", Run: "^TestLogIsSampled$",
		},
		{
			Name: "etcd-idle-leases-without-bound", Breaks: "what is kept of released leases is bounded, over all tenants and TTLs",
			File: "store/etcd/lease.go", Anchor: "return p.of[class.tenant] < maxIdle-p.spare && len", Becomes: "return len",
			In: "./store/etcd", Run: "^TestIdleLeasesAreBounded$", Needs: "etcd",
		},
		{
			Name: "etcd-idle-of-one-tenant", Breaks: "a tenant's idle leases leave room for those of others",
			File: "store/etcd/lease.go", Anchor: "return p.of[class.tenant] < maxIdle-p.spare && len", Becomes: "return p.spare < maxIdle && len",
			In: "./store/etcd", Run: "^TestIdleLeasesOfManyTTLs$",
		},
		{
			Name: "etcd-lease-that-another-call-may-end", Breaks: "a lease is used again only if no call is left that may end it",
			File: "store/etcd/lease.go", Anchor: "if confirmed || why == lock.Released && !e.Resumable() {", Becomes: "if confirmed || e.Handle != 0 {",
			In: "./store/etcd", Run: "^TestLeaseThatAnotherCallMayEnd$", Needs: "etcd",
		},
		{
			Name: "etcd-lease-of-a-joined-entry", Breaks: "who joins an entry does not know whether its writer will end its lease",
			File: "store/etcd/store.go", Anchor: "\tcase written: // what is taken back", Becomes: "\tcase placed != nil: // what is taken back",
			In: "./store/etcd", Run: "^TestLeaseThatAnotherCallMayEnd$", Needs: "etcd",
		},
		{
			Name: "etcd-lease-of-an-earlier-entry", Breaks: "what is known of an entry says nothing of the next one under its lease",
			File: "store/etcd/lease.go", Anchor: "confirmed := p.inUse[e.Handle].confirmed == e.Number", Becomes: "confirmed := p.inUse[e.Handle].confirmed != 0",
			In: "./store/etcd", Run: "^TestLeaseOfAnEarlierEntry$",
		},
		{
			Name: "etcd-spent-lease-lapses", Breaks: "leases that are not used again do not pile up in etcd",
			File: "store/etcd/lease.go", Anchor: "_ = p.revoke(ctx, id) // it lapses", Becomes: "_ = id",
			In: "./store/etcd", Run: "^TestLeaseIsUsedAgain$", Needs: "etcd",
		},
		{
			Name: "etcd-timed-out-is-refused", Breaks: "an unknown outcome is not reported as a refusal",
			File: "store/etcd/errors.go", Anchor: `"there is no address available", "there is no connection available":`,
			Becomes: `description(rpctypes.ErrGRPCTimeout), "there is no address available", "there is no connection available":`,
			In:      "./store/etcd", Run: "^TestTimedOutIsNotRefused$", Needs: "etcd",
		},
		{
			Name: "etcd-lease-of-an-unknown-outcome", Breaks: "what an abandoned write would need is taken away, not used again",
			File: "store/etcd/join.go", Anchor: "case err != nil && !certain(err):", Becomes: "case err != nil && false:",
			In: "./store/etcd", Run: "^TestLeaseOfAnUnknownOutcome$|^TestLateAttempt$", Needs: "etcd",
		},
		{
			Name: "etcd-late-write-lives", Breaks: "no write is left alive that could bring an entry back",
			File: "store/etcd/orphan.go", Anchor: "for len(x.leases) > 0 {", Becomes: "for false {",
			In: "./store/etcd", Run: "^TestLateAttempt$|^TestGivenUp$",
		},
		{
			Name: "etcd-late-write-lives-at-a-late-follower", Breaks: "no write is left alive that could bring an entry back: three real members",
			File: "store/etcd/orphan.go", Anchor: "for len(x.leases) > 0 {", Becomes: "for false {",
			In: "./store/etcd", Run: "^TestLateFollower$", Needs: "etcd",
		},
		{
			Name: "etcd-old-server-untold", Breaks: "a server that is too old is told of at the start",
			File: "store/etcd/version.go", Anchor: "case !supported(version):", Becomes: "case !supported(endpoint):",
			In: "./store/etcd", Run: "^TestOldServersAreTold$",
		},
		{
			Name: "etcd-batch-without-bytes", Breaks: "what tenants share is bounded in bytes",
			File: "store/batch/pending.go", Anchor: "(ops > p.limits.Ops || bytes > p.limits.Bytes)", Becomes: "(ops > p.limits.Ops)",
			In: "./store/etcd", Run: "^TestLargeValues$",
		},
		{
			Name: "etcd-value-for-html", Breaks: "a value is as long as what is in it",
			File: "store/value.go", Anchor: "\te.SetEscapeHTML(false)\n", Becomes: "",
			In: "./store/etcd", Run: "^TestLargeValues$",
		},
		{
			Name: "etcd-given-up-stays", Breaks: "an entry that was given up is taken back",
			File: "store/etcd/join.go", Anchor: "\tif unknown {\n", Becomes: "\tif false {\n",
			In: "./store/etcd", Run: "^TestGivenUp$",
		},
		{
			Name: "etcd-late-try-lives", Breaks: "a try with a key that was given up is not written later, when its client has gone elsewhere",
			File: "store/etcd/orphan.go", Anchor: "\tcase x.entry.Resumable():\n", Becomes: "\tcase x.entry.Resumable():\n\t\treturn nil\n\tcase x.leases == nil:\n",
			In: "./store/etcd", Run: "^TestGivenUp$/^StillOutWithAKey$",
		},
		{
			Name: "etcd-given-up-with-a-key-is-ended", Breaks: "an entry that was given up and written stays for the retry of its key",
			File: "store/etcd/orphan.go", Anchor: "return l == found.Handle", Becomes: "return l != found.Handle",
			In: "./store/etcd", Run: "^TestGivenUp$/^CommittedWithAKey$",
		},
		{
			Name: "etcd-late-try-after-its-withdrawal", Breaks: "a try that comes late, after it was repeated elsewhere and withdrawn, is not written",
			File: "store/etcd/keys.go", Anchor: "\tif lease != 0 {\n", Becomes: "\tif lease != 0 && why != lock.Withdrawn {\n",
			In: "./store/etcd", Run: "^TestLateAttemptOfAKey$",
		},
		{
			Name: "etcd-taken-back-is-lost", Breaks: "who is told that an entry is lost had one that somebody else ended",
			File: "store/etcd/past.go", Anchor: "case gone != nil && joined > j.absent && gone.Reason == lock.Expired:", Becomes: "case gone != nil && joined < 0:",
			In: "./store/etcd", Run: "^TestNotHandedOutWhileItIsRevoked$", Needs: "etcd",
		},
		{
			Name: "etcd-lost-is-taken-back", Breaks: "who lost an entry that somebody else ended is told so, and why",
			File: "store/etcd/past.go", Anchor: "case gone != nil && joined > j.absent && gone.Reason == lock.Expired:", Becomes: "case gone != nil && joined > 0:",
			In: "./store/etcd", Run: "^TestWrittenOnce$", Needs: "etcd",
		},
		{
			Name: "etcd-past-without-bound", Breaks: "who reads what was written before does so beside few others",
			File: "store/etcd/past.go", Anchor: "case s.readingPast <- struct{}{}:\n\t\tdefer func() { <-s.readingPast }()", Becomes: "default:",
			In: "./store/etcd", Run: "^TestPastIsReadBySomeAtOnce$",
		},
		{
			Name: "etcd-past-over-the-feed", Breaks: "who reads what was written before does not hold up the feed",
			File: "store/etcd/past.go", Anchor: "s.conn.watchPast(ctx, first, end, from)", Becomes: "s.conn.watch(ctx, first, from)",
			In: "./store/etcd", Run: "^TestPastIsReadBySomeAtOnce$",
		},
		{
			Name: "etcd-past-outlives-its-call", Breaks: "who waits for others that read what was written before keeps his deadline",
			File: "store/etcd/past.go", Anchor: "\t\tdefer func() { <-s.readingPast }()\n\tcase <-ctx.Done():", Becomes: "\t\tdefer func() { <-s.readingPast }()\n\tcase <-s.closing.Done():",
			In: "./store/etcd", Run: "^TestPastIsReadBySomeAtOnce$",
		},
		{
			Name: "etcd-asks-one-member", Breaks: "one member that is late does not use up the time of a call",
			File: "store/etcd/hedge.go", Anchor: "if asked < mostHedges {", Becomes: "if false {",
			In: "./store/etcd", Run: "^TestHedged$",
		},
		{
			Name: "etcd-withdrawal-hides-an-expiry", Breaks: "a key whose entry expired is used up, also if one that was written before the record of it is withdrawn",
			File: "store/etcd/keys.go", Anchor: "Compare: goesOn(key, mark{Reason: lock.Withdrawn}), Success: put", Becomes: "Compare: goesOn(key, mark{Reason: lock.Withdrawn})",
			In: "./store/etcd", Run: "^TestConformanceCluster$/^enqueue$/^a_withdrawal_does_not_hide", Needs: "etcd",
		},
		{
			Name: "etcd-withdrawal-is-the-record-of-an-expiry", Breaks: "that an entry expired is recorded, also if a later one of its key was withdrawn meanwhile",
			File: "store/etcd/ended.go", Anchor: "if e.Reason != lock.Withdrawn || x.open[e.ID].Reason == lock.Withdrawn {", Becomes: "if true {",
			In: "./store/etcd", Run: "^TestConformanceCluster$/^enqueue$/^a_withdrawal_does_not_hide", Needs: "etcd",
		},
		{
			Name: "etcd-written-twice", Breaks: "one call writes a fresh id once, also if its entry was removed before it learned of it",
			File: "store/etcd/join.go", Anchor: "if len(j.open) > 0 && !j.entry.Resumable() {", Becomes: "if false {",
			In: "./store/etcd", Run: "^TestWrittenOnce$",
		},
		{
			Name: "etcd-written-again-if-forgotten", Breaks: "what may have been written is not written again when nobody can tell",
			File: "store/etcd/past.go", Anchor: "return errors.Join(errForgotten, m.err)", Becomes: "return nil",
			In: "./store/etcd", Run: "^TestWrittenOrNotIsForgotten$",
		},
		{
			Name: "etcd-doubted-entry-stays", Breaks: "an entry that is not handed out, as the store may have lost its past, is taken back when it answers",
			File: "store/trust.go", Anchor: "if refusal.OutcomeUnknown && !e.Resumable() {", Becomes: "if false {",
			In: "./store/etcd", Run: "^TestDoubtedEntryIsTakenBack$",
		},
		{
			Name: "etcd-silent-watch", Breaks: "a feed that stays behind the store is begun anew",
			File: "store/etcd/guard.go", Anchor: "feedTimeout = 2 * time.Second", Becomes: "feedTimeout = 2000 * time.Second",
			In: "./store/etcd", Run: "^TestSilentWatch$", Needs: "etcd",
		},
		{
			Name: "etcd-watch-waits-for-word", Breaks: "a watch that nobody answers is there, and is found late",
			File: "store/etcd/remote.go", Anchor: "\tgo func() { // ends with the responses, which end with ctx\n", Becomes: "\t_ = c.Watch(ctx, first)\n\tgo func() {\n",
			In: "./store/etcd", Run: "^TestWatchOverASilentConnection$",
		},
		{
			Name: "etcd-number-of-an-end", Breaks: "an end has the number of the write that removed its entry",
			File: "store/etcd/feed.go", Anchor: "Number: s.number(ev.Kv.ModRevision), Left", Becomes: "Number: s.number(ev.Kv.CreateRevision), Left",
			In: "./store/etcd", Run: "^TestConformanceEmbedded$/^feed$/^changes_have_the_numbers", Needs: "etcd",
		},
		{
			Name: "etcd-feed-without-a-leader", Breaks: "watches carry require-leader",
			File: "store/etcd/remote.go", Anchor: "\tctx = clientv3.WithRequireLeader(ctx)\n", Becomes: "",
			In: "./store/etcd", Run: "^TestFeedRequiresALeader$", Needs: "etcd",
		},
		{
			Name: "etcd-renewed-without-proof", Breaks: "a lease that answers is no proof that its entry is there",
			File: "store/etcd/store.go", Anchor: "\t\t\tif err := s.prove(ctx, e); err != nil {\n\t\t\t\treturn err\n\t\t\t}\n\t\t\tif s.expirer", Becomes: "\t\t\tif s.expirer",
			In: "./store/etcd", Run: "^TestConformanceEmbedded$/^renew", Needs: "etcd",
		},
		{
			Name: "etcd-watch-begins-late", Breaks: "a watch begins at the list's revision + 1",
			File: "store/etcd/feed.go", Anchor: "s.conn.watch(ctx, s.prefix, at+1)", Becomes: "s.conn.watch(ctx, s.prefix, at+2)",
			In: "./store/etcd", Run: "^TestConformanceEmbedded$/^feed$/^nothing_is_lost", Needs: "etcd",
		},
		{
			Name: "etcd-key-used-twice", Breaks: "an idempotency key is used once",
			File: "store/etcd/keys.go", Anchor: "\tw.Payload.compares = append(w.Payload.compares, modified([]byte(key), withdrawn))\n", Becomes: "",
			In: "./store/etcd", Run: "^TestConformanceEmbedded$/^enqueue$/^a_used-up_key", Needs: "etcd",
		},
		{
			Name: "etcd-expiry-leaves-the-key", Breaks: "the key of an entry that expired is used up",
			File: "store/etcd/ended.go", Anchor: "case e.marked:", Becomes: "case false:",
			In: "./store/etcd", Run: "^TestConformanceCluster$/^enqueue$/^the_key_of_an_entry", Needs: "etcd",
		},
		{
			Name: "etcd-withdrawal-uses-the-key", Breaks: "the key of a withdrawn entry is free",
			File: "store/etcd/keys.go", Anchor: "case m.Reason == lock.Withdrawn:", Becomes: "case m.Reason == lock.Withdrawn && m.Lock != \"\":",
			In: "./store/etcd", Run: "^TestConformanceEmbedded$/^enqueue$/^the_key_of_a_withdrawn", Needs: "etcd",
		},
		{
			Name: "etcd-room-forgets-what-is-pending", Breaks: "what is being written counts until it is in what the store says that it uses",
			File: "store/etcd/room.go", Anchor: "used+r.pending+r.answered+r.before+bytes", Becomes: "used+r.answered+bytes",
			In: "./store/etcd", Run: "^TestRoom$",
		},
		{
			Name: "etcd-overload-is-certain", Breaks: "a refusal after a lost answer says that the entry may be there, and takes it back",
			File: "store/etcd/join.go", Anchor: "\t\t\tfull.OutcomeUnknown = j.giveUp()\n", Becomes: "",
			In: "./store/etcd", Run: "^TestOverloadAfterALostAnswer$",
		},
		{
			Name: "etcd-reason-of-another-end", Breaks: "an expiry is not told as the end before it of the same key, and uses the key up",
			File: "store/etcd/feed.go", Anchor: "recorded: d.ends[k.ID].revision == revision}", Becomes: "recorded: d.ends[k.ID].revision != 0}",
			In: "./store/etcd", Run: "^TestReasonOfEachEnd$",
		},
		{
			Name: "etcd-idle-lease-half-over", Breaks: "an entry's lease lasts for its TTL from the call on",
			File: "store/etcd/lease.go", Anchor: "age < class.ttl-e.TTL", Becomes: "age < class.ttl/2",
			In: "./store/etcd", Run: "^TestIdleLeaseIsWhole$",
		},
		{
			Name: "etcd-lapsed-idle-lease", Breaks: "an idle lease that lapses while others are renewed is not asked for",
			File: "store/etcd/lease.go", Anchor: "if p.lapsed(class, age) {\n\t\treturn errLeaseGone", Becomes: "if p.lapsed(class, age-class.ttl) {\n\t\treturn errLeaseGone",
			In: "./store/etcd", Run: "^TestLapsedIdleLeaseIsNotRenewed$",
		},
		{
			Name: "etcd-ends-wait-for-idle-leases", Breaks: "ends are put down whatever becomes of idle leases",
			File: "store/etcd/store.go", Anchor: "\ts.tasks.Go(s.upkeep)\n\ts.tasks.Go(s.renewIdle)\n",
			Becomes: "\ts.tasks.Go(func() { s.each(upkeepInterval, func() { s.leases.maintain(s.closing); s.recordEnds() }) })\n",
			In:      "./store/etcd", Run: "^TestEndsDoNotWaitForIdleLeases$",
		},
		{
			Name: "etcd-frozen-keepalives", Breaks: "a member that is frozen costs no lease",
			File: "store/etcd/renew.go", Anchor: "\t\t\t\tsession.fail(errStalled)\n", Becomes: "",
			In: "./store/etcd", Run: "^TestFrozenKeepalives$",
		},
		{
			Name: "etcd-slow-is-frozen", Breaks: "a keepalive stream that is slow is not replaced while it answers",
			File: "store/etcd/renew.go", Anchor: "if silent >= renewStall {", Becomes: "if silent >= 0 {",
			In: "./store/etcd", Run: "^TestSlowKeepalives$",
		},
		{
			Name: "etcd-renewals-all-ahead", Breaks: "few renewals wait at a member, where they have to be done though nobody waits any more",
			File: "store/etcd/renew.go", Anchor: "renewAhead = 64", Becomes: "renewAhead = 8192",
			In: "./store/etcd", Run: "^TestAbandonedKeepalives$",
		},
		{
			Name: "etcd-renewal-for-nobody", Breaks: "a renewal that nobody waits for any more is not sent",
			File: "store/etcd/renew_session.go", Anchor: "if len(r.calls) == 0 || s.broken != nil {", Becomes: "if s.broken != nil {",
			In: "./store/etcd", Run: "^TestAbandonedKeepalives$",
		},
		{
			Name: "etcd-renewal-that-began-before", Breaks: "a renewal that was sent before a call began does not count for it",
			File: "store/etcd/renew_session.go", Anchor: "	delete(s.queued, r.id)\n", Becomes: "	defer time.AfterFunc(200*time.Millisecond, func() { s.mu.Lock(); delete(s.queued, r.id); s.mu.Unlock() })\n",
			In: "./store/etcd", Run: "^TestSharedKeepalive$",
		},
		{
			Name: "etcd-renewal-of-each-call", Breaks: "calls for a lease that come before its renewal is sent share it",
			File: "store/etcd/renew_session.go", Anchor: "	if r == nil {\n", Becomes: "	if r != nil || r == nil {\n",
			In: "./store/etcd", Run: "^TestSharedKeepalive$",
		},
		{
			Name: "etcd-expiry-in-a-gap", Breaks: "the key of an entry that expired is used up, also if no feed was up then",
			File: "store/etcd/gap.go", Anchor: "g.missing[id] = e\n", Becomes: "_ = e\n",
			In: "./store/etcd", Run: "^TestExpiryInAGap$",
		},
		{
			Name: "etcd-gap-counts-from-its-end", Breaks: "nobody calls expired what went while he stood still for long",
			File: "store/etcd/gap.go", Anchor: "g.since = g.whole", Becomes: "g.since = time.Now()",
			In: "./store/etcd", Run: "^TestEndsOfALongPause$",
		},
		{
			Name: "etcd-quiet-feed-is-a-gap", Breaks: "a feed that has had nothing to tell for long is no gap",
			File: "store/etcd/guard.go", Anchor: "\tg.reached(g.goalSet)\n", Becomes: "",
			In: "./store/etcd", Run: "^TestEndsOfALongPause$",
		},
		{
			Name: "etcd-end-told-by-clocks", Breaks: "which entry of a key an end is of does not depend on clocks",
			File: "store/etcd/gap.go", Anchor: "return at == k.position || at == 0",
			Becomes: "return at != 0 && e.Reason != lock.Withdrawn || !e.At.Before(k.entry.EnqueuedAt)",
			In:      "./store/etcd", Run: "^TestExpiryInAGap$",
		},
		{
			Name: "etcd-withdrawal-without-its-place", Breaks: "a withdrawal is not taken for the end of the next entry of its key",
			File: "store/etcd/commit.go", Anchor: "case e.Resumable(): // its", Becomes: "case e.Resumable() && memory < 0: // its",
			In: "./store/etcd", Run: "^TestExpiryInAGap$",
		},
		{
			Name: "etcd-full-lease-of-a-key", Breaks: "beyond the quota a lease is used again only if nobody can have found its entry",
			File: "store/etcd/join.go", Anchor: "found == nil && !j.entry.Resumable():", Becomes: "found == nil:",
			In: "./store/etcd", Run: "^TestTakenAwayBeyondTheQuota$",
		},
		{
			Name: "etcd-full-record-is-another", Breaks: "a record that was there before is not taken for one that was refused",
			File: "store/etcd/records.go", Anchor: "now.Found && now.Mark == w.Mark:", Becomes: "now.Found:",
			In: "./store/etcd", Run: "^TestRefusedRecordBeyondTheQuota$",
		},
		{
			Name: "etcd-gap-by-another-floor", Breaks: "which entry an end is of does not depend on when a floor is known",
			File: "store/etcd/gap.go", Anchor: "int64(e.Number - g.floor)", Becomes: "g.store.revision(e.Number)",
			In: "./store/etcd", Run: "^TestFloorKnownBeforeItsFeed$",
		},
		{
			Name: "etcd-feed-of-two-floors", Breaks: "what a feed tells has its numbers by one floor",
			File: "store/etcd/feed.go", Anchor: "if s.trust.Floor() != g.floor {", Becomes: "if s.trust.Floor() < g.floor {",
			In: "./store/etcd", Run: "^TestFloorKnownBeforeItsFeed$",
		},
		{
			Name: "etcd-gap-over-a-key-in-use", Breaks: "nobody is told that what has a key ended, because one before it did",
			File: "store/etcd/gap.go", Anchor: "\t\tdelete(g.missing, e.ID)\n\t}\n}\n\n// Recall", Becomes: "\t}\n}\n\n// Recall",
			In: "./store/etcd", Run: "^TestKeyInUseAfterAGap$",
		},
		{
			Name: "etcd-full-given-up-stays", Breaks: "an entry that was given up is taken back from a full store too",
			File: "store/etcd/orphan.go", Anchor: "err := s.Remove(ctx, found, lock.Withdrawn); !",
			Becomes: "_, err := s.commits.Do(ctx, s.deleteWrite(found, lock.Withdrawn, found.Handle, nil)); !",
			In:      "./store/etcd", Run: "^TestUnseenBeyondTheQuota$",
		},
		{
			Name: "etcd-full-reason-kept", Breaks: "a reason that the store has is not kept in memory for an end to come",
			File: "store/etcd/store.go", Anchor: "if !unknown.bare || errors.Is(err, lock.Changed) {", Becomes: "if unknown.bare {",
			In: "./store/etcd", Run: "^TestReasonBeyondTheQuotaIsNotKept$",
		},
		{
			Name: "etcd-full-reason-told-and-kept", Breaks: "a reason that the feed has told is not kept in memory for an end to come",
			File: "store/etcd/feed.go", Anchor: "\t\t\ts.unrecordedReasons.Delete(left.key.ID)\n", Becomes: "\t\t\t_ = left\n",
			In: "./store/etcd", Run: "^TestReasonBeyondTheQuotaIsNotKept$",
		},
		{
			Name: "etcd-ends-wait-for-the-past", Breaks: "many expiries are put down soon, also if etcd does not tell what they were",
			File: "store/etcd/ended.go", Anchor: "return isCompacted(err)", Becomes: "return true",
			In: "./store/etcd", Run: "^TestEndsDoNotWaitForThePast$",
		},
		{
			Name: "etcd-expiry-beside-a-record", Breaks: "an expiry is put down also if the one before it of its key is being so",
			File: "store/etcd/ended.go", Anchor: "s.unrecorded.written(e)", Becomes: "s.unrecorded.recorded(e.End)",
			In: "./store/etcd", Run: "^TestExpiryBesideARecord$",
		},
		{
			Name: "etcd-full-is-refused", Breaks: "what took etcd beyond its quota was executed, and is not called refused",
			File: "store/etcd/join.go", Anchor: "return j.beyondQuota(ctx, l, err)", Becomes: "s.leases.give(e.Tenant, e.TTL, l)\n\t\treturn nil, err",
			In: "./store/etcd", Run: "^TestJoinBeyondTheQuota$",
		},
		{
			Name: "etcd-full-release-denied", Breaks: "a release that took etcd beyond its quota is not 410",
			File: "store/etcd/store.go", Anchor: "unknown.add(out.endKey, false)", Becomes: "unknown.any = withoutRecord",
			In: "./store/etcd", Run: "^TestReleaseBeyondTheQuota$",
		},
		{
			Name: "etcd-full-release-sent-again", Breaks: "a release that is sent again may have been done before",
			File: "store/etcd/commit.go", Anchor: "w.Payload.again = true\n", Becomes: "",
			In: "./store/etcd", Run: "^TestSharedBeyondTheQuota$",
		},
		{
			Name: "etcd-full-record-is-refused", Breaks: "a record that took etcd beyond its quota was written",
			File: "store/etcd/records.go", Anchor: "return r.beyondQuota(ctx, w, err)", Becomes: "return 0, unavailable(err, \"write a record\", false)",
			In: "./store/etcd", Run: "^TestRecordBeyondTheQuota$",
		},
		{
			Name: "etcd-own-reason-kept", Breaks: "reasons in a replica's memory only are not kept for ever",
			File: "store/etcd/gap.go", Anchor: "	g.forgetOwn(s.Entries)\n", Becomes: "",
			In: "./store/etcd", Run: "^TestOwnReasonsAreForgotten$",
		},
		{
			Name: "etcd-floor-of-the-first", Breaks: "no entry is written without a comparison of the floor, wherever in a batch it is",
			File: "store/etcd/commit.go", Anchor: "all, puts := together(groups), slices.ContainsFunc(groups, (*group).puts)", Becomes: "all, puts := together(groups), groups[0].puts()",
			In: "./store/etcd", Run: "^TestFloorIsComparedInEachBatch$",
		},
		{
			Name: "etcd-floor-of-one-alone", Breaks: "no entry is written without a comparison of the floor, however many are written together",
			File: "store/etcd/commit.go", Anchor: "\tif puts {\n\t\ttxn.Compare = append(txn.Compare, c.trusted.unchanged()...)", Becomes: "\tif puts && len(groups) == 1 {\n\t\ttxn.Compare = append(txn.Compare, c.trusted.unchanged()...)",
			In: "./store/etcd", Run: "^TestFloorIsComparedInEachBatch$",
		},
		{
			Name: "etcd-floor-of-the-last", Breaks: "no entry is written without a comparison of the floor, also where each write is compared alone",
			File: "store/etcd/commit.go", Anchor: "puts = puts || g.puts()", Becomes: "puts = g.puts()",
			In: "./store/etcd", Run: "^TestFloorIsComparedInEachBatch$",
		},
		{
			Name: "etcd-ends-nowhere", Breaks: "a removal of unknown outcome is looked up where its end would be",
			File: "store/etcd/commit.go", Anchor: "\t\tg.endKey = all.endKey\n", Becomes: "\t\t_ = g\n",
			In: "./store/etcd", Run: "^TestEndsOfABatch$",
		},
		{
			Name: "etcd-batch-too-large", Breaks: "etcd takes the largest batch",
			File: "store/etcd/commit.go", Anchor: "batchOps = maxTxnOps - 8", Becomes: "batchOps = maxTxnOps - 2",
			In: "./store/etcd", Run: "^TestLargestBatch$",
		},
		{
			Name: "etcd-batch-cut-short", Breaks: "all of a batch is written",
			File: "store/etcd/commit.go", Anchor: "\tfor _, g := range groups {\n\t\tall.writes", Becomes: "\tfor _, g := range groups[:min(len(groups), batchOps-1)] {\n\t\tall.writes",
			In: "./store/etcd", Run: "^TestEndsOfABatch$",
		},
		{
			Name: "etcd-one-deadline-for-both", Breaks: "one write that cannot be done leaves the outcome of others known, also where etcd is slow",
			File: "store/etcd/commit.go", Anchor: "\t\treturn c.try(c.transaction(groups))", Becomes: "\t\tctx, cancel := context.WithTimeout(c.ctx, attemptTimeout/3)\n\t\tdefer cancel()\n\t\treturn c.kv.Txn(ctx, c.transaction(groups))",
			In: "./store/etcd", Run: "^TestSlowAndOneFails$",
		},
		{
			Name: "etcd-history-forgotten-at-once", Breaks: "the embedded store keeps a minute of its history",
			File: "store/etcd/history.go", Anchor: "now.at.Sub(h.marks[0].at) >= keepHistory", Becomes: "now.at.Sub(h.marks[0].at) >= compactInterval",
			In: "./store/etcd", Run: "^TestHistoryIsKept/a_quiet_store$",
		},
		{
			Name: "etcd-history-without-a-bound", Breaks: "the embedded store keeps so many bytes of its history at most",
			File: "store/etcd/history.go", Anchor: " || now.written-h.cut.written > most", Becomes: "",
			In: "./store/etcd", Run: "^TestHistoryIsKept/a_busy_one$",
		},
		{
			Name: "etcd-history-in-the-way", Breaks: "history takes no room that entries need",
			File: "store/etcd/history.go", Anchor: "used > quota/100*historyUpTo", Becomes: "used > quota",
			In: "./store/etcd", Run: "^TestHistoryGivesWay$",
		},
		{
			Name: "etcd-history-of-what-failed", Breaks: "what a transaction did not write is no history",
			File: "store/etcd/history.go", Anchor: "		c.written.Add(historyOf(r.Failure))", Becomes: "		c.written.Add(historyOf(r.Success) + historyOf(r.Failure))",
			In: "./store/etcd", Run: "^TestHistoryOfWhatIsDone$",
		},
		{
			Name: "etcd-history-of-one-branch", Breaks: "of a transaction of which nothing is known the larger branch is history",
			File: "store/etcd/history.go", Anchor: "max(historyOf(r.Success), historyOf(r.Failure))", Becomes: "historyOf(r.Success)",
			In: "./store/etcd", Run: "^TestHistoryOfWhatIsDone$",
		},
		{
			Name: "etcd-history-uncounted", Breaks: "what a nested transaction writes is counted",
			File: "store/etcd/history.go", Anchor: "bytes += historyOf(r.RequestTxn.Success) + historyOf(r.RequestTxn.Failure)", Becomes: "bytes += 0",
			In: "./store/etcd", Run: "^TestHistoryIsCounted$",
		},
		{
			Name: "etcd-compactions-in-line", Breaks: "the embedded store is not told to forget more while it still deletes",
			File: "store/etcd/history.go", Anchor: "\tif busy {\n", Becomes: "\tif false {\n",
			In: "./store/etcd", Run: "^TestOneCompactionAtATime$",
		},
		{
			Name: "etcd-compaction-unnoted", Breaks: "how long a compaction takes is known",
			File: "store/etcd/history.go", Anchor: "\tc.asked = now\n", Becomes: "",
			In: "./store/etcd", Run: "^TestCompactionsRest$",
		},
		{
			Name: "etcd-compacts-without-rest", Breaks: "history is forgotten for half of the time at most",
			File: "store/etcd/history.go", Anchor: "c.next = now.Add(now.Sub(c.asked))", Becomes: "c.next = now",
			In: "./store/etcd", Run: "^TestCompactionsRest$",
		},
		{
			Name: "etcd-compacting-unseen", Breaks: "a compaction is known to go on after it was answered",
			File: "store/etcd/history.go", Anchor: "return scheduled != finished", Becomes: "return scheduled != 0 && finished == 0",
			In: "./store/etcd", Run: "^TestOneCompactionAtATime$",
		},
		{
			Name: "etcd-unbegun-stays", Breaks: "a server whose first start ended at once starts the next time",
			File: "store/etcd/begun.go", Anchor: "return err != nil || committed > 0", Becomes: "return err != nil || committed < 1<<40",
			In: "./store/etcd", Run: "^TestStartedAfterAnEndAtOnce$/^EmptyFile$",
		},
		{
			Name: "etcd-log-is-nothing", Breaks: "what is committed is never taken for nothing",
			File: "store/etcd/begun.go", Anchor: "return err != nil || committed > 0", Becomes: "return err != nil || committed > 1<<40",
			In: "./store/etcd", Run: "^TestLogHasEverything$",
		},
		{
			Name: "etcd-rests-for-nothing", Breaks: "a compaction that was over at once puts off none",
			File: "store/etcd/history.go", Anchor: "if c.seen && !c.asked.IsZero() {", Becomes: "if !c.asked.IsZero() && now.Sub(c.asked) > compactInterval {",
			In: "./store/etcd", Run: "^TestCompactionsNeedNoRest$",
		},
		{
			Name: "etcd-interrupted-begins-now", Breaks: "a feed that was interrupted tells what happened meanwhile",
			File: "store/etcd/earlier.go", Anchor: "} else if g.floor != floor {", Becomes: "} else {",
			In: "./store/etcd", Run: "^TestInterruptedGoesOn$",
		},
		{
			Name: "etcd-earlier-tried-once", Breaks: "a store that does not answer once has not forgotten its history",
			File: "store/etcd/earlier.go", Anchor: "return 0, picture{}, err", Becomes: "return 0, picture{}, nil",
			In: "./store/etcd", Run: "^TestInterruptedGoesOn$",
		},
		{
			Name: "etcd-slice-beyond-its-end", Breaks: "what happened is told once, by whichever watch it is read",
			File: "store/etcd/retell.go", Anchor: "if ev.Kv.ModRevision <= last && ", Becomes: "if ",
			In: "./store/etcd", Run: "^TestManyRevisionsRetold$",
		},
		{
			Name: "etcd-past-by-one-watch", Breaks: "much of the past is read by watches that etcd answers at once, not by one",
			File: "store/etcd/retell.go", Anchor: "newest-at <= slice {", Becomes: "newest-at <= 1000*slice {",
			In: "./store/etcd", Run: "^TestManyRevisionsRetold$",
		},
		{
			Name: "etcd-past-without-bound-in-bytes", Breaks: "what is read of the past has a bound in bytes",
			File: "store/etcd/retell.go", Anchor: "if err == nil && bytes.Load() > s.sliceBytes {", Becomes: "if false {",
			In: "./store/etcd", Run: "^TestTooMuchToRetell$",
		},
		{
			Name: "etcd-too-much-again", Breaks: "a feed that cannot tell of the past begins with what there is",
			File: "store/etcd/feed.go", Anchor: " || errors.Is(err, errMuchInPast)", Becomes: "",
			In: "./store/etcd", Run: "^TestTooMuchToRetell$",
		},
		{
			Name: "etcd-watches-share-a-stream", Breaks: "a watch is not taken to have had what it was never told",
			File: "store/etcd/remote.go", Anchor: "clientv3.NewWatcher(c)", Becomes: "c.Watcher",
			In: "./store/etcd", Run: "^TestWatchIsNotToldOfAnothersProgress$",
		},
		{
			Name: "etcd-resumed-by-an-earlier-floor", Breaks: "a feed does not begin at a number from before the fence floor was given",
			File: "store/etcd/earlier.go", Anchor: "int64(number-floor) < g.store.meta.floorGiven()", Becomes: "g.store.meta.floorGiven() < 0",
			In: "./store/etcd", Run: "^TestResumedBehindAFloor$",
		},
		{
			Name: "etcd-forgets-what-is-told-yet", Breaks: "a feed that goes on where it was tells why this replica's entries went, also where etcd was full",
			File: "store/etcd/gap.go", Anchor: "	if !g.behind.IsZero() {\n		return\n	}\n", Becomes: "",
			In: "./store/etcd", Run: "^TestOwnReasonsAreToldYet$",
		},
		{
			Name: "etcd-feed-of-a-future", Breaks: "a feed begins anew in a store that is behind what it has told",
			File: "store/etcd/guard.go", Anchor: "	if goal < g.at {", Becomes: "	if goal < 0 {",
			In: "./store/etcd", Run: "^TestStoreThatWentBack$",
		},
		{
			Name: "etcd-records-of-a-lost-past", Breaks: "a store that is behind what a watch of small records has told of has lost its past",
			File: "store/etcd/guard.go", Anchor: "	g.store.trust.Saw(revision)\n", Becomes: "",
			In: "./store/etcd", Run: "^TestRecordsOfALostPast$", Needs: "etcd",
		},
		{
			Name: "etcd-past-too-large-at-once", Breaks: "what is too large to be read at once is read a part at a time",
			File: "store/etcd/retell.go", Anchor: "errors.Is(err, errMuchInPast) && atOnce > 1", Becomes: "false",
			In: "./store/etcd", Run: "^TestLargePartsRetold$",
		},
		{
			Name: "etcd-parts-with-a-gap", Breaks: "what is read of the past a part at a time is told without a gap",
			File: "store/etcd/retell.go", Anchor: "			at = upTo\n", Becomes: "			at = upTo + 1\n",
			In: "./store/etcd", Run: "^TestPartsRetold$",
		},
		{
			Name: "etcd-past-told-at-once", Breaks: "etcd's past is not told faster than it can be filed",
			File: "store/etcd/retell.go", Anchor: "pace.Pace(ctx, len(events))", Becomes: "pace.Pace(ctx, 0)",
			In: "./store/etcd", Run: "^TestPartsRetold$",
		},
		{
			Name: "etcd-past-tried-for-ever", Breaks: "a feed does not try for ever to read what happened",
			File: "store/etcd/retell.go", Anchor: "context.WithTimeout(ctx, resumeTime)", Becomes: "context.WithTimeout(ctx, 100*resumeTime)",
			In: "./store/etcd", Run: "^TestRetellIsGivenUp$",
		},
		{
			Name: "etcd-behind-for-ever", Breaks: "a feed that does not catch up begins with what there is",
			File: "store/etcd/earlier.go", Anchor: "now.Sub(g.behind) > resumeTime", Becomes: "false",
			In: "./store/etcd", Run: "^TestNotForEver$",
		},
		{
			Name: "etcd-lapses-what-expired", Breaks: "where entries are ended before their leases, those are used again, whatever their TTL",
			File: "store/etcd/lease.go", Anchor: `	if p.conn.local {
		margin =`, Becomes: `	if false {
		margin =`,
			In: "./store/etcd", Run: "^TestLeaseOfWhatExpired$",
		},
		{
			Name: "etcd-slack-used-up", Breaks: "in this process an entry is given the whole of a lease",
			File: "store/etcd/lease.go", Anchor: `if !p.conn.local && age <`, Becomes: `if age <`,
			In: "./store/etcd", Run: "^TestLeaseOfWhatExpired$",
		},
		{
			Name: "etcd-lasts-beyond-its-lease", Breaks: "nobody is told that an entry lasts longer than its lease",
			File: "store/etcd/lifetimes.go", Anchor: `max(0, l.lasts.Sub(now))`, Becomes: `max(0, l.until.Sub(now))`,
			In: "./store/etcd", Run: "^TestLastsWhileItsLeaseDoes$",
		},
		{
			Name: "etcd-lasts-since-the-answer", Breaks: "how long an entry lasts is counted from when its renewal was sent",
			File: "store/etcd/lifetimes.go", Anchor: `later(l.lasts, sent.Add(l.entry.TTL))`, Becomes: `later(sent, time.Now().Add(l.entry.TTL))`,
			In: "./store/etcd", Run: "^TestLastsWhileItsLeaseDoes$",
		},
		{
			Name: "etcd-renewed-while-closing", Breaks: "an entry that a store which closes may yet remove is renewed by nobody",
			File: "store/etcd/lifetimes.go", Anchor: `		case !l.over:
`, Becomes: `		default:
`,
			In: "./store/etcd", Run: "^TestNoRenewalWhileItsStoreCloses$",
		},
		{
			Name: "etcd-removes-when-closed", Breaks: "a store that is closed removes nothing",
			File: "store/etcd/lifetimes.go", Anchor: "case x.byLease[l.entry.Handle] != l || l.of.gone:", Becomes: "case x.byLease[l.entry.Handle] != l:",
			In: "./store/etcd", Run: "^TestClosedWhileItWaits$",
		},
		{
			Name: "etcd-begins-while-removed", Breaks: "a late answer does not have an entry go on that is being removed",
			File: "store/etcd/lifetimes.go", Anchor: `	case was != nil && was.entry.Number == e.Number && was.over:
		return false
	case was != nil && was.entry.Number == e.Number && since.IsZero():
		return true // it is no news
	case was != nil && was.entry.Number == e.Number:
		was.until, was.lasts = later(was.until, until), later(was.lasts, lasts)
		return true
`, Becomes: ``,
			In: "./store/etcd", Run: "^TestNoRenewalOfWhatIsRemoved$",
		},
		{
			Name: "etcd-renewed-not-ended", Breaks: "what this process has renewed it ends in time, whoever wrote it",
			File: "store/etcd/store.go", Anchor: `if s.expirer.watch(e, start) {`, Becomes: `if s.expirer != nil {`,
			In: "./store/etcd", Run: "^TestEndsWhatItFinds$", Needs: "etcd",
		},
		{
			Name: "etcd-failed-renewal-goes-on", Breaks: "a renewal that has failed does not keep an entry from its end",
			File: "store/etcd/embedded.go", Anchor: `		renewed(err)
`, Becomes: `		if err == nil {
			renewed(err)
		}
`,
			In: "./store/etcd", Run: "^TestRenewalThatFails$",
		},
		{
			Name: "etcd-lifetime-of-the-revoked", Breaks: "nothing is kept of how long an entry lasts that is gone",
			File: "store/etcd/lease.go", Anchor: `	p.conn.forgetLifetime(id)
	select {`, Becomes: `	select {`,
			In: "./store/etcd", Run: "^TestRevokedLeaveNoLifetime$",
		},
		{
			Name: "etcd-closed-while-it-removes", Breaks: "a store that is closed has nothing under way",
			File: "store/etcd/expirer.go", Anchor: `	x.ends.Wait()
`, Becomes: ``,
			In: "./store/etcd", Run: "^TestNoRenewalWhileItsStoreCloses$",
		},
	}
}
