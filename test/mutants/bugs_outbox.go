package main

// outboxBugs break what is promised of deliveries: something is lost, sent to whom it is not for, or
// grows without end.
func outboxBugs() []Bug {
	const in = "./webhook/outbox"
	return []Bug{
		{
			Name: "outbox-cursor-of-a-lost-past", Breaks: "who finds that the store has lost its past writes no cursor any more",
			File: "webhook/outbox/cursor.go", Anchor: "	if c.lost || c.writing ||", Becomes: "	if c.writing ||",
			In: in, Run: "^TestNoCursorOfALostPast$",
		},
		{
			Name: "outbox-parked-is-not-kept", Breaks: "what a receiver is given that was waited for is kept when its attempt takes long",
			File: "webhook/outbox/parking.go", Anchor: "	p.item.kept = false // it has more deliveries now\n", Becomes: "",
			In: in, Run: "^TestParkedIsKept$",
		},
		{
			Name: "outbox-lag-of-what-is-settled", Breaks: "what is settled and needs no cursor is no lag",
			File: "webhook/outbox/backlog.go", Anchor: "		c.since = w.window.oldest()\n", Becomes: "",
			In: in, Run: "^TestSettledWithoutAWriteIsNoLag$",
		},
		{
			Name: "outbox-who-fails-is-our-delay", Breaks: "what is due for a receiver that fails is no delay of the server",
			File: "webhook/outbox/receiver.go", Anchor: "return r.fails || !r.until", Becomes: "return !r.until",
			In: in, Run: "^TestDueAtWhoFails$",
		},
		{
			Name: "outbox-asked-for-lost-by-a-kill", Breaks: "an attempt that somebody asked for is made by whoever takes over before it is",
			File: "webhook/outbox/owed.go", Anchor: "Attempts: d.attempts, Asked: d.asked,", Becomes: "Attempts: d.attempts,",
			In: in, Run: "^TestAskedForBeforeTheKill$",
		},
		{
			Name: "outbox-asked-for-and-not-kept", Breaks: "a request for an attempt is carried out once it is kept that it is asked for",
			File: "webhook/outbox/requests.go", Anchor: "if w.hasten(d); d.asked && !d.over {", Becomes: "if w.hasten(d); false {",
			In: in, Run: "^TestAskedForBeforeTheKill$",
		},
		{
			Name: "outbox-asked-for-made-when-due", Breaks: "who takes over makes an attempt now that somebody asked for",
			File: "webhook/outbox/owed.go", Anchor: "		due = time.Now()\n	}\n	w.schedule(d, due)", Becomes: "	}\n	w.schedule(d, due)",
			In: in, Run: "^TestAskedForBeforeTheKill$",
		},
		{
			Name: "outbox-told-again-though-deleted", Breaks: "a subscription that is deleted while everything is told to it again is told no more, and nothing is kept for nobody",
			File: "webhook/outbox/replay.go", Anchor: "if w.targets.all[targetName(t.tenant, t.id)] != t { // it was deleted", Becomes: "if false { // it was deleted",
			In: in, Run: "^TestDeletedWhileToldAgain$",
		},
		{
			Name: "outbox-replays-found-together", Breaks: "requests that are found together have everything told again to few targets, and once to each, at a time",
			File: "webhook/outbox/requests.go", Anchor: "	if r.replays() {\n		w.asked.replays[", Becomes: "	if r.replays() && false {\n		w.asked.replays[",
			In: in, Run: "^TestReplaysAskedForAtOnce$",
		},
		{
			Name: "outbox-replay-never-over", Breaks: "once everything was told again it can be asked for again",
			File: "webhook/outbox/replay.go", Anchor: "	delete(w.asked.replays, targetName(t.tenant, t.id))\n", Becomes: "",
			In: in, Run: "^TestReplaysAskedForAtOnce$",
		},
		{
			Name: "outbox-parked-before-a-gap-lost", Breaks: "what a receiver was not given before a gap, and is not known any more, is told as missed",
			File: "webhook/outbox/parking.go", Anchor: " && m.After.Compare(p.lacks.After) >= 0 {", Becomes: " {",
			In: in, Run: "^TestParkedBehindAGapLosesNothing$",
		},
		{
			Name: "outbox-passes-what-is-asked-for-and-not-kept", Breaks: "the cursor waits for a delivery that somebody else's request has made and that is not kept yet",
			File: "webhook/outbox/tell.go", Anchor: "len(was.items) > 0 && !slices.Contains(was.items, it)", Becomes: "len(was.items) > 1000 && !slices.Contains(was.items, it)",
			In: "./webhook/outbox", Run: "^TestAskedForBeforeItIsRead$",
		},
		{
			Name: "outbox-many-urls-are-no-crowd", Breaks: "callbacks to very many URLs are waited for as those to one are",
			File: "webhook/outbox/parking.go", Anchor: "all := t.before(url) < parkAt", Becomes: "all := false",
			In: "./webhook/outbox", Run: "^TestManyURLsAreACrowd$",
		},
		{
			Name: "outbox-cursor-past-the-open", Breaks: "the cursor stays behind what is neither delivered nor kept",
			File: "webhook/outbox/window.go", Anchor: "	return justBefore(w.items[w.head].id)", Becomes: "	return w.last",
			In: in, Run: "^TestDiesAtOnce$",
		},
		{
			Name: "outbox-settled-before-it-is-kept", Breaks: "what has failed is settled only once it is kept",
			File: "webhook/outbox/owed.go", Anchor: "		d.stale = true\n	}\n	switch {\n	case d.over:\n		w.erase(d)\n	case d.stale && err != nil:", Becomes: "		w.settle(d)\n	}\n	switch {\n	case d.over:\n		w.erase(d)\n	case d.stale && err != nil:",
			In: in, Run: "^TestKeptOnlyInTheStore$",
		},
		{
			Name: "outbox-cursor-of-anybody", Breaks: "who has lost a shard does not write its cursor",
			File: "webhook/outbox/cursor.go", Anchor: "by, w.cursor.stored)",
			Becomes: "by, stored{version: func() uint64 { now, _ := w.Records.Get(ctx, w.cursorKey()); return now.Version }()})",
			In:      in, Run: "^TestOldOwner$",
		},
		{
			Name: "outbox-changed-is-fine", Breaks: "who finds what it writes changed has lost the shard",
			File: "webhook/outbox/put.go", Anchor: "case bytes.Equal(is.Value, value):", Becomes: "case bytes.Equal(is.Value, value) || is.Version > 0:",
			In: in, Run: "^TestNotOverwritten$",
		},
		{
			Name: "outbox-owed-not-taken-over", Breaks: "what the owner before has kept is sent by the next",
			File: "webhook/outbox/owner.go", Anchor: "errors.Join(w.claim(), w.loadStates(), w.loadOwed())", Becomes: "errors.Join(w.claim(), w.loadStates())",
			In: in, Run: "^TestFirstInOrder$",
		},
		{
			Name: "outbox-no-order", Breaks: "first attempts about one lock are made in order",
			File: "webhook/outbox/delivery.go", Anchor: "			d.waitsFor++\n", Becomes: "",
			In: in, Run: "^TestFirstInOrder$",
		},
		{
			Name: "outbox-no-order-of-the-kept", Breaks: "first attempts are in order also of who takes over",
			File: "webhook/outbox/owed.go", Anchor: "if f.Tried == 0 && f.MissedAfter == \"\" {", Becomes: "if f.Tried < 0 {",
			In: in, Run: "^TestFirstInOrder$",
		},
		{
			Name: "outbox-without-bounds", Breaks: "what is owed to a subscription is bounded",
			File: "webhook/outbox/target.go", Anchor: "len(t.pending) >= maxOfTarget || ", Becomes: "",
			In: in, Run: "^TestDeadReceiver$",
		},
		{
			Name: "outbox-no-room-for-a-backlog", Breaks: "what happened while a shard had no owner is told",
			File: "webhook/outbox/config.go", Anchor: "maxOfTarget = 3000", Becomes: "maxOfTarget = 1000",
			In: in, Run: "^TestBacklog$/slow",
		},
		{
			Name: "outbox-late-because-of-a-receiver", Breaks: "a receiver that fails raises no age of what is due",
			File: "webhook/outbox/backlog.go", Anchor: "if due := d.progress.Due; !due.After(now) && !t.receiverOf(d).holdsUp(now) {", Becomes: "if due := d.made; true {",
			In: in, Run: "^TestDeadReceiverIsNoDelay$",
		},
		{
			Name: "outbox-late-because-of-an-answer", Breaks: "a receiver that is slow to answer raises no age of what is due",
			File: "webhook/outbox/receiver.go", Anchor: " || r.asked.Load() > 0", Becomes: "",
			In: in, Run: "^TestDeadReceiverIsNoDelay$",
		},
		{
			Name: "outbox-no-lag-of-the-cursor", Breaks: "a cursor that cannot be written is seen to lag",
			File: "webhook/outbox/backlog.go", Anchor: "return first(c.since, w.window.oldest())", Becomes: "return w.window.oldest()",
			In: in, Run: "^TestStuckOwnerLags$",
		},
		{
			Name: "outbox-stuck-before-it-begins", Breaks: "an owner that cannot begin is seen to lag",
			File: "webhook/outbox/backlog.go", Anchor: "now.Sub(b.looked) < silentTime", Becomes: "now.Before(b.looked)==false",
			In: in, Run: "^TestCannotBegin$",
		},
		{
			Name: "outbox-revoked-waiter-not-told", Breaks: "who waits is told of an end of its wait that is not its own doing",
			File: "webhook/outbox/callback.go", Anchor: "case lock.EventExpired, lock.EventRevoked, lock.EventWaitTimeout, lock.EventDeadlockRefused:", Becomes: "case lock.EventExpired, lock.EventWaitTimeout, lock.EventDeadlockRefused:",
			In: in, Run: "^TestCallbackOfEachEnd$",
		},
		{
			Name: "outbox-token-of-a-wait-that-ended", Breaks: "a token is told with a grant alone",
			File: "webhook/outbox/callback.go", Anchor: " || e.Data.Entry == nil || !c.Held {", Becomes: " || e.Data.Entry == nil {",
			In: in, Run: "^TestCallbackOfEachEnd$",
		},
		{
			Name: "outbox-token-of-one-lock-of-a-set", Breaks: "the token of a set's callback releases the set",
			File: "webhook/outbox/callback.go", Anchor: "Number: c.Number, Set: c.Set, Claims", Becomes: "Number: c.Number, Claims",
			In: in, Run: "^TestCallbackOfASet$",
		},
		{
			Name: "outbox-doubt-forgotten", Breaks: "who held in a gap when the lock was closed is called back",
			File: "webhook/outbox/owner.go", Anchor: "	w.lookAtDoubts()\n", Becomes: "",
			In: in, Run: "^TestCallbackInDoubt$",
		},
		{
			Name: "outbox-doubt-behind-the-cursor", Breaks: "the cursor waits for callers in doubt",
			File: "webhook/outbox/doubt.go", Anchor: "	it.open++\n", Becomes: "	it.open, it.done = it.open+0, func() {}\n",
			In: in, Run: "^TestCallbackInDoubt$",
		},
		{
			Name: "outbox-cursor-behind-a-gap", Breaks: "who takes over learns of what was missed, as long as not all of it was told",
			File: "webhook/outbox/missed.go", Anchor: "item{id: m.After,", Becomes: "item{id: m.Before,",
			In: in, Run: "^TestCallbackInDoubt$",
		},
		{
			Name: "outbox-no-room-for-another", Breaks: "tenants whose receivers are gone leave room for another",
			File: "webhook/outbox/target.go", Anchor: "share*of.count >= maxInAll-in.count", Becomes: "in.count >= maxInAll",
			In: in, Run: "^TestRoomForAnother$/number",
		},
		{
			Name: "outbox-missed-in-silence", Breaks: "a subscription learns for what there was no room",
			File: "webhook/outbox/missed.go", Anchor: "		w.note(d.target, gapAt(d.event()), api.MissedForRoom, it)", Becomes: "		_ = gapAt(d.event())",
			In: in, Run: "^TestDeadReceiver$",
		},
		{
			Name: "outbox-missed-by-a-callback", Breaks: "too many callbacks do not end the server",
			File: "webhook/outbox/missed.go", Anchor: "	case d.grant != nil, d.event() == lock.EventID{}:", Becomes: "	case d.event() == lock.EventID{}:",
			In: in, Run: "^TestManyCallbacks$",
		},
		{
			Name: "outbox-any-text-is-a-gap", Breaks: "only the id of a delivery is taken for one, and put on record",
			File: "webhook/outbox/missed.go", Anchor: "if _, ok := gapOf(delivery); ok {", Becomes: `if strings.Contains(delivery, "_") {`,
			In: in, Run: "^TestMissedAskedFor$",
		},
		{
			Name: "outbox-missed-by-one-end", Breaks: "who is told that something is missed is told when it is more",
			File: "webhook/outbox/missed.go", Anchor: `return m.After.String() + "_" + m.Before.String()`, Becomes: `return m.Before.String()`,
			In: in, Run: "^TestMissedBefore$",
		},
		{
			Name: "outbox-missed-as-kept-once", Breaks: "what an earlier version has kept of what is missed is told with what is missed since",
			File: "webhook/outbox/owed.go", Anchor: "		m.After, _ = lock.ParseEventID(f.MissedAfter)\n", Becomes: "",
			In: in, Run: "^TestMissedAsItWasKept$",
		},
		{
			Name: "outbox-one-more-is-asked-for", Breaks: "so many requests about webhooks wait to be taken up, and no more",
			File: "webhook/outbox/deliveries.go", Anchor: "len(page.Records) >= maxRequests", Becomes: "len(page.Records) > maxRequests",
			In: "./webhook/outbox", Run: "^TestManyAskedFor$",
		},
		{
			Name: "outbox-missed-waits", Breaks: "a receiver that is slow to learn what it misses holds up no cursor",
			File: "webhook/outbox/missed.go", Anchor: "	l := t.lost\n	t.lost = nil\n", Becomes: "	if d != nil && d.running {\n		return\n	}\n	l := t.lost\n	t.lost = nil\n",
			In: in, Run: "^TestMissedMeanwhile$",
		},
		{
			Name: "outbox-no-catching-up", Breaks: "what a change asks for is told from then on",
			File: "webhook/outbox/target.go", Anchor: "		if t.Taken < sub.Version {", Becomes: "		if t.Taken == 0 {",
			In: in, Run: "^TestChangedJustNow$",
		},
		{
			Name: "outbox-new-one-from-now", Breaks: "a subscription is told what happened since it was made",
			File: "webhook/outbox/target.go", Anchor: "		if t.Taken < sub.Version {", Becomes: "		if t.Taken > 0 && t.Taken < sub.Version {",
			In: in, Run: "^TestMadeJustNow$",
		},
		{
			Name: "outbox-pause-counts-back", Breaks: "what happened before a pause waits for its end",
			File: "webhook/outbox/target.go", Anchor: "!t.disabled() && id.Number < t.sub.Version", Becomes: "!t.disabled() && id.Number == 0",
			In: in, Run: "^TestPausedJustNow$",
		},
		{
			Name: "outbox-calls-nobody-after-a-gap", Breaks: "who was granted while nobody saw it is called back",
			File: "webhook/outbox/owner.go", Anchor: "if w.callBackHeld(it.id, it, anyEntry); it.open > 0 {", Becomes: "if it.open > 0 {",
			In: in, Run: "^TestCallbackAtOnce$",
		},
		{
			Name: "outbox-token-for-everybody", Breaks: "a token is told to its caller only, and not kept",
			File: "webhook/outbox/callback.go", Anchor: "	payload, id := short(what, webhook.MaxPayload-roomForToken), idOfCall(e)",
			Becomes: "	payload, id := short(what, webhook.MaxPayload-roomForToken), idOfCall(e)\n	payload = c.complete(payload, w.Locks)",
			In:      in, Run: "^TestNoTokenIsKept$",
		},
		{
			Name: "outbox-grant-too-late", Breaks: "the notice of a grant whose lease is over is not sent",
			File: "webhook/outbox/tell.go", Anchor: "d.grant != nil && d.grant.Held {", Becomes: "d.grant != nil && d.grant.Number == 0 {",
			In: in, Run: "^TestCallTells$",
		},
		{
			Name: "outbox-disabled-still-sent", Breaks: "who answers 410 is sent nothing more",
			File: "webhook/outbox/target.go", Anchor: "t.sub != nil && !t.sub.Paused && !t.disabled()", Becomes: "t.sub != nil && !t.sub.Paused",
			In: in, Run: "^TestGone$",
		},
		{
			Name: "outbox-waiting-still-sent", Breaks: "what waits for its turn goes by the subscription as it is then",
			File: "webhook/outbox/target.go", Anchor: "		t.now.Store(nil)\n	}\n}", Becomes: "		t.now.Store(t.sub)\n	}\n}",
			In: in, Run: "^TestStopsAtOnce$",
		},
		{
			Name: "outbox-deleted-still-sent", Breaks: "nothing is sent to a subscription that was deleted",
			File: "webhook/outbox/target.go", Anchor: "func (w *owner) forget(t *target) {\n	t.now.Store(nil)\n", Becomes: "func (w *owner) forget(t *target) {\n",
			In: in, Run: "^TestStopsAtOnce$/deleted",
		},
		{
			Name: "outbox-old-answer-disables", Breaks: "an answer to what was sent before does not disable who was set going",
			File: "webhook/outbox/target.go", Anchor: "|| then.Enabled != t.sub.Enabled)", Becomes: "|| then.Enabled > t.sub.Enabled)",
			In: in, Run: "^TestGoneElsewhere$",
		},
		{
			Name: "outbox-asked-of-two", Breaks: "what is asked for is done by one",
			File: "webhook/outbox/requests.go", Anchor: "if err != nil {\n				delete(w.asked.busy, key) // another", Becomes: "if err != nil && version > 0 {\n				delete(w.asked.busy, key) // another",
			In: in, Run: "^TestAskedOnce$",
		},
		{
			Name: "outbox-asked-too-early", Breaks: "a test that is asked for at once is sent",
			File: "webhook/outbox/requests.go", Anchor: "	if time.Since(since) < strangeTime {", Becomes: "	if time.Since(since) < 0 {",
			In: in, Run: "^TestAskedJustNow$",
		},
		{
			Name: "outbox-record-of-before", Breaks: "what is told again is kept once the record of the time before is gone",
			File: "webhook/outbox/owed.go", Anchor: " || d.target.leaving[d.record] != nil {", Becomes: " {",
			In: in, Run: "^TestAskedTwice$",
		},
		{
			Name: "outbox-over-while-read", Breaks: "nothing is left of a delivery that is over while it is read again",
			File: "webhook/outbox/owed.go", Anchor: "			case d.over: // and left this record to be erased\n				w.erase(d)\n", Becomes: "",
			In: in, Run: "^TestOverWhileRead$",
		},
		{
			Name: "outbox-more-missed-while-read", Breaks: "what is missed while the payload is read again is told",
			File: "webhook/outbox/owed.go", Anchor: "			case d.payload != nil: // more is missed, and what is read tells of less\n				w.keep(d)\n", Becomes: "",
			In: in, Run: "^TestMoreMissedWhileRead$",
		},
		{
			Name: "outbox-asked-uses-up", Breaks: "attempts that are asked for take no steps of the schedule",
			File: "webhook/outbox/requests.go", Anchor: "	d.asked = true\n", Becomes: "",
			In: in, Run: "^TestAskedTakesNoStep$",
		},
		{
			Name: "outbox-asked-when-due", Breaks: "an attempt that is due takes its step, asked for or not",
			File: "webhook/outbox/delivery.go", Anchor: "d.asked && now.Before(d.progress.Due)", Becomes: "d.asked",
			In: in, Run: "^TestAskedWhenDue$",
		},
		{
			Name: "outbox-asked-not-counted", Breaks: "who takes over knows of attempts that were asked for",
			File: "webhook/outbox/owed.go", Anchor: " beside: f.Beside,", Becomes: "",
			In: in, Run: "^TestAskedWhenDue$",
		},
		{
			Name: "outbox-missed-given-up", Breaks: "what tells that something is missed is tried until it is told",
			File: "webhook/outbox/delivery.go", Anchor: "	if next.State == webhook.StateFailed && d.tellsMissed() {", Becomes: "	if false {",
			In: in, Run: "^TestMissedStays$",
		},
		{
			Name: "outbox-given-up-in-silence", Breaks: "a subscription learns what it was not delivered in the time of the schedule",
			File: "webhook/outbox/delivery.go", Anchor: "	case webhook.StateFailed, webhook.StateGone:\n		w.giveUp(d)", Becomes: "	case webhook.StateFailed, webhook.StateGone:\n		w.end(d)",
			In: in, Run: "^TestGivenUp$/schedule",
		},
		{
			Name: "outbox-too-old-in-silence", Breaks: "a subscription learns what waited for it for too long",
			File: "webhook/outbox/delivery.go", Anchor: "		t.remember(d)\n		w.giveUp(d)", Becomes: "		t.remember(d)\n		w.end(d)",
			In: in, Run: "^TestGivenUp$/old",
		},
		{
			Name: "outbox-given-up-before-it-is-kept", Breaks: "what is given up is kept until it is kept that it is missed",
			File: "webhook/outbox/owed.go", Anchor: "	if d.writing || d.untold {", Becomes: "	if d.writing {",
			In: in, Run: "^TestGivenUp$",
		},
		{
			Name: "outbox-given-up-and-settled", Breaks: "the cursor stays behind what is given up until it is kept that it is missed",
			File: "webhook/outbox/delivery.go", Anchor: "	d.over, d.untold = true, true\n", Becomes: "	d.over, d.untold = true, true\n	w.settle(d)\n",
			In: in, Run: "^TestGivenUpUnkept$",
		},
		{
			Name: "outbox-crowd-stops-the-shard", Breaks: "a receiver that takes its time delays nobody else of its shard",
			File: "webhook/outbox/owner.go", Anchor: "	if w.window.len() >= maxWindow || ", Becomes: "	if w.window.len() >= maxWindow || len(w.parking.parked) > 0 || ",
			In: in, Run: "^TestHangsForOthers$",
		},
		{
			Name: "outbox-crowd-of-all-urls", Breaks: "a tenant's callbacks to a URL that hangs keep none from those to another",
			File: "webhook/outbox/parking.go", Anchor: "p != nil && (p.all || p.url == url)", Becomes: "p != nil",
			In: in, Run: "^TestOnlyItsOwnURLWaits$",
		},
		{
			Name: "outbox-crowd-behind-the-cursor", Breaks: "the cursor waits for what a crowded receiver is not given yet",
			File: "webhook/outbox/parking.go", Anchor: "	w.window.add(it)\n", Becomes: "",
			In: in, Run: "^TestWaitedFor$",
		},
		{
			Name: "outbox-crowd-by-what-it-is-now", Breaks: "a receiver that is changed while it is crowded is given what it asked for before",
			File: "webhook/outbox/target.go", Anchor: "		w.goOn(t, true) // by what it was until now\n", Becomes: "",
			In: in, Run: "^TestWaitedFor$/changed",
		},
		{
			Name: "outbox-crowd-that-fails", Breaks: "a receiver that is disabled while it is crowded is owed what happened before",
			File: "webhook/outbox/target.go", Anchor: "		w.goOn(t, true) // as long as it is told what happens\n", Becomes: "",
			In: in, Run: "^TestWaitedFor$/fails",
		},
		{
			Name: "outbox-due-by-the-wall-clock", Breaks: "what is tried again is tried in time, whatever the wall clock does",
			File: "webhook/outbox/delivery.go", Anchor: "	now := time.Now()\n	if d.asked", Becomes: "	now := w.Now()\n	if d.asked",
			In: in, Run: "^TestClockJumps$",
		},
		{
			Name: "outbox-told-after-its-end", Breaks: "the notice of a grant is not sent once the entry has ended",
			File: "webhook/outbox/delivery.go", Anchor: "c.Held && w.Locks.Gone(c.Entry, c.Number)", Becomes: "c.Held && c.Number == 0",
			In: in, Run: "^TestEndedMeanwhile$",
		},
		{
			Name: "outbox-first-secret-takes-a-step", Breaks: "a callback waits for the tenant's first secret",
			File: "webhook/outbox/delivery.go", Anchor: "w.Now().Sub(d.made) < secretTime {", Becomes: "w.Now().Sub(d.made) < 0 {",
			In: in, Run: "^TestFirstSecret$",
		},
		{
			Name: "outbox-no-secret-and-no-word", Breaks: "who has no secret sees why nothing comes",
			File: "webhook/outbox/delivery.go", Anchor: " && w.Now().Sub(d.made) < secretTime {", Becomes: " {",
			In: in, Run: "^TestNoSecretEver$",
		},
		{
			Name: "outbox-kept-before-what-was-not", Breaks: "what was kept comes behind what happened before and was not",
			File: "webhook/outbox/owed.go", Anchor: "end < len(w.late) && w.late[end].event().Compare(upTo) <= 0", Becomes: "end < len(w.late)",
			In: in, Run: "^TestKeptInPart$",
		},
		{
			Name: "outbox-kept-for-its-event", Breaks: "what was kept is sent also if its event is not told again",
			File: "webhook/outbox/missed.go", Anchor: "	w.startLate(w.window.last)\n", Becomes: "",
			In: in, Run: "^TestKeptOfWhatIsNotTold$",
		},
		{
			Name: "outbox-asked-for-and-no-room", Breaks: "who asks for everything again is told for what there was no room",
			File: "webhook/outbox/replay.go", Anchor: "			w.note(t, events.Missed{After: justBefore(e.ID), Before: r.upTo}, api.MissedForRoom, r.item)\n", Becomes: "",
			In: in, Run: "^TestAgainLeavesRoom$",
		},
		{
			Name: "outbox-asked-for-and-not-known", Breaks: "who asks for everything again is told what is not known any more",
			File: "webhook/outbox/replay.go", Anchor: "			w.note(t, m, api.MissedUnknown, r.item)\n", Becomes: "",
			In: in, Run: "^TestAgainOfWhatIsNotKnown$",
		},
		{
			Name: "outbox-caller-told-once", Breaks: "a caller is told of his grant again when the tenant asks",
			File: "webhook/outbox/requests.go", Anchor: "			w.callBack(&told, it)\n", Becomes: "",
			In: in, Run: "^TestCallbackAgain$",
		},
		{
			Name: "outbox-again-of-anything", Breaks: "there is no delivery of what a target is not told",
			File: "webhook/outbox/deliveries.go", Anchor: "(e == nil || !tells(o.Of, e))", Becomes: "e == nil",
			In: in, Run: "^TestCallbackAgain$",
		},
		{
			Name: "outbox-gap-of-two-ids", Breaks: "what ends before it begins is no gap",
			File: "webhook/outbox/missed.go", Anchor: " && m.After.Compare(m.Before) <= 0\n", Becomes: " && m.After != m.Before\n",
			In: in, Run: "^TestMissedAskedFor$",
		},
		{
			Name: "outbox-record-is-no-delivery", Breaks: "the name of a record is not taken for a delivery, and put on record",
			File: "webhook/outbox/deliveries.go", Anchor: " || delivery == missedRecord {", Becomes: " {",
			In: in, Run: "^TestMissedAskedFor$",
		},
		{
			Name: "outbox-missed-from-the-latest", Breaks: "what is missed is told from its first end on",
			File: "webhook/outbox/missed.go", Anchor: "earlier(l.After, d.missed.After)", Becomes: "l.After",
			In: in, Run: "^TestMoreIsMissed$",
		},
		{
			Name: "outbox-missed-to-the-latest", Breaks: "what is missed is told up to its last end",
			File: "webhook/outbox/missed.go", Anchor: "l.Before.Later(d.missed.Before)", Becomes: "l.Before",
			In: in, Run: "^TestMoreIsMissed$",
		},
		{
			Name: "outbox-missed-takes-more-room", Breaks: "what is missed takes the room of one delivery",
			File: "webhook/outbox/missed.go", Anchor: "		w.targets.drop(d)\n	}\n	d.missed", Becomes: "	}\n	d.missed",
			In: in, Run: "^TestMoreIsMissed$",
		},
		{
			Name: "outbox-missed-of-one-size", Breaks: "what is missed takes the room that it needs",
			File: "webhook/outbox/missed.go", Anchor: "	d.size = len(d.payload)\n", Becomes: "",
			In: in, Run: "^TestMoreIsMissed$",
		},
		{
			Name: "outbox-missed-waits-for-ever", Breaks: "the cursor waits for nothing missed that is kept",
			File: "webhook/outbox/missed.go", Anchor: "d.items = append(d.items, l.items...)", Becomes: "d.items = l.items",
			In: in, Run: "^TestMoreIsMissed$",
		},
		{
			Name: "outbox-less-missed-is-shown", Breaks: "nobody is shown as pending what will not come",
			File: "webhook/outbox/state.go", Anchor: " || d.tellsMissed() && r.Kind == d.kind && r.State == webhook.StatePending", Becomes: "",
			In: in, Run: "^TestMoreIsShown$",
		},
		{
			Name: "outbox-more-missed-not-shown", Breaks: "people are shown what is told of a gap now",
			File: "webhook/outbox/missed.go", Anchor: "	} else {\n		t.remember(d)\n	}\n", Becomes: "	}\n",
			In: in, Run: "^TestMoreIsShown$",
		},
		{
			Name: "outbox-rows-of-who-died", Breaks: "nobody is shown as pending what was delivered before who sent it died",
			File: "webhook/outbox/owner.go", Anchor: "	w.forgetRows()\n", Becomes: "",
			In: in, Run: "^TestRowsOfWhoDied$",
		},
		{
			Name: "outbox-rows-of-what-is-owed", Breaks: "what was attempted last is shown on, whoever sends then",
			File: "webhook/outbox/state.go", Anchor: "isPending(r) && !t.owes(r)", Becomes: "isPending(r)",
			In: in, Run: "^TestRowsOfWhoDied$",
		},
		{
			Name: "outbox-gap-from-before", Breaks: "a gap that begins before what is missed is no delivery",
			File: "webhook/outbox/deliveries.go", Anchor: "is.After.Compare(gap.After) <= 0 && ", Becomes: "",
			In: in, Run: "^TestMissedAskedFor$",
		},
		{
			Name: "outbox-gap-to-afterwards", Breaks: "a gap that ends after what is missed is no delivery",
			File: "webhook/outbox/deliveries.go", Anchor: " && gap.Before.Compare(is.Before) <= 0", Becomes: "",
			In: in, Run: "^TestMissedAskedFor$",
		},
		{
			Name: "outbox-missed-a-day-late", Breaks: "what is missed is told soon once the receiver takes something",
			File: "webhook/outbox/delivery.go", Anchor: "		w.answers(d.target)\n", Becomes: "",
			In: in, Run: "^TestMissedIsToldToWhoAnswers$",
		},
		{
			Name: "outbox-missed-with-each-answer", Breaks: "what is missed is not told again with each delivery that is taken",
			File: "webhook/outbox/missed.go", Anchor: "max(missedPause, ", Becomes: "max(0, ",
			In: in, Run: "^TestMissedIsToldToWhoAnswers$",
		},
		{
			Name: "outbox-missed-too-early", Breaks: "what is missed is told when the receiver wants it",
			File: "webhook/outbox/delivery.go", Anchor: ", RetryS: int64(r.RetryAfter.Seconds())", Becomes: "",
			In: in, Run: "^TestMissedIsToldToWhoAnswers$",
		},
		{
			Name: "outbox-restored-as-made-later", Breaks: "what was owed when the store was restored is told, or told to be missed",
			File: "webhook/outbox/target.go", Anchor: "cmp.Or(t.From, sub.From)", Becomes: "cmp.Or(sub.From, t.From)",
			In: in, Run: "^TestRestored$",
		},
		{
			Name: "outbox-gap-to-the-past", Breaks: "who sends when numbers go back leaves that to who begins with what the store has",
			File: "webhook/outbox/missed.go", Anchor: "		w.lostPast()\n		return\n", Becomes: "",
			In: in, Run: "^TestNumbersGoBack$",
		},
		{
			Name: "outbox-kept-after-all", Breaks: "nothing is left of a delivery that was over before it was known whether it is kept",
			File: "webhook/outbox/owed.go", Anchor: "	if d.version == 0 {\n		w.eraseIfKept(d)", Becomes: "	if d.version == 0 {\n		w.hasLeft(d)",
			In: in, Run: "^TestOverBeforeItIsKnown$",
		},
		{
			Name: "outbox-fails-anew", Breaks: "a receiver that is away is not asked at once again while more comes to be missed",
			File: "webhook/outbox/delivery.go", Anchor: "r.Outcome == webhook.Delivered && d.id != r.id:", Becomes: "d.id != r.id:",
			In: in, Run: "^TestFailsWhileMoreIsMissed$",
		},
		{
			Name: "outbox-missed-in-one-burst", Breaks: "many that miss something at the same moment are not told so in one burst",
			File: "webhook/outbox/missed.go", Anchor: "due[:(len(due)+parts-1)/parts]", Becomes: "due[:len(due)+0*parts]",
			In: in, Run: "^TestMissedIsToldInParts$",
		},
		{
			Name: "outbox-missed-of-the-same", Breaks: "and who waits longest is told first",
			File: "webhook/outbox/missed.go", Anchor: "return a.flushed.Compare(b.flushed)", Becomes: "return strings.Compare(a.id, b.id)",
			In: in, Run: "^TestMissedIsToldInParts$",
		},
		{
			Name: "outbox-not-read-again", Breaks: "what changed is kept although the store was away when the rest was read",
			File: "webhook/outbox/owed.go", Anchor: "			case err != nil:\n				w.keepLater(d)\n			default:", Becomes: "			case err != nil:\n			default:",
			In: in, Run: "^TestReadAgainLater$",
		},
		{
			Name: "outbox-asked-out-of-order", Breaks: "what is asked for is not told before what happened earlier",
			File: "webhook/outbox/requests.go", Anchor: "if d.first || d.running {", Becomes: "if d.running {",
			In: in, Run: "^TestAskedInOrder$",
		},
		{
			Name: "outbox-states-for-ever", Breaks: "nothing is left of a subscription that was deleted",
			File: "webhook/outbox/state.go", Anchor: "t.stored = now; t.gone {", Becomes: "t.stored = now; t.gone && t.version == 0 {",
			In: in, Run: "^TestDeletedWhileWritten$",
		},
		{
			Name: "outbox-of-other-tenants", Breaks: "a tenant is told of its own locks only",
			File: "webhook/outbox/target.go", Anchor: "byTenant[sub.Tenant] = append(byTenant[sub.Tenant], t)", Becomes: `byTenant[sub.Tenant] = append(byTenant[sub.Tenant], t); byTenant["acme"] = append(byTenant["acme"], t)`,
			In: in, Run: "^TestDelivers$",
		},
		{
			Name: "outbox-own-write-is-anothers", Breaks: "who learns late that a write was executed loses no shard by it",
			File: "webhook/outbox/put.go", Anchor: "	case !w.wroteSince(was, is):\n", Becomes: "	case true:\n",
			In: in, Run: "^TestOwnWriteAfterAll$",
		},
		{
			Name: "outbox-anothers-write-is-own", Breaks: "who is no owner any more writes over nothing of the next",
			File: "webhook/outbox/put.go", Anchor: "	case !w.wroteSince(was, is):\n", Becomes: "	case false:\n",
			In: in, Run: "^TestOldOwner$",
		},
		{
			Name: "outbox-restored-is-own", Breaks: "what a backup brings back is not taken for what its owner has just written",
			File: "webhook/outbox/put.go", Anchor: " && by.Write > was.wrote\n", Becomes: "\n",
			In: in, Run: "^TestRestored$/fails_for_long",
		},
		{
			Name: "outbox-unsure-and-over", Breaks: "nothing is left of a delivery that is over before its write is tried again",
			File: "webhook/outbox/delivery.go", Anchor: " || d.unsure {", Becomes: " {",
			In: in, Run: "^TestOverWhileUnsure$/not_kept",
		},
		{
			Name: "outbox-lost-to-its-own-write", Breaks: "who learns late that a write was executed loses no shard when the delivery is over",
			File: "webhook/outbox/owed.go", Anchor: "perhaps by what seemed to fail\n				w.eraseIfKept(d)", Becomes: "perhaps by what seemed to fail\n				w.lostShard()",
			In: in, Run: "^TestOverWhileUnsure$/kept_before",
		},
		{
			Name: "outbox-erases-anothers", Breaks: "who is no owner any more erases nothing of the next",
			File: "webhook/outbox/owed.go", Anchor: "case err == nil && w.wroteSince(d.stored, is):", Becomes: "case err == nil:",
			In: in, Run: "^TestErasedByAnother$",
		},
		{
			Name: "outbox-asked-in-vain", Breaks: "what is asked for while a receiver is disabled waits until it is set going",
			File: "webhook/outbox/tell.go", Anchor: "!it.again && !t.sends()", Becomes: "!t.sends()",
			In: in, Run: "^TestAskedWhileItGetsNothing$/disabled",
		},
		{
			Name: "outbox-reads-on-without-its-lock", Breaks: "who may have lost a shard tells nobody of what only he has missed",
			File: "webhook/outbox/owner.go", Anchor: " || !w.lease.holds() {", Becomes: " {",
			In: in, Run: "^TestOldOwnerComesBack$/gap",
		},
		{
			Name: "outbox-keeps-without-its-lock", Breaks: "who may have lost a shard keeps nothing new in it",
			File: "webhook/outbox/owed.go", Anchor: "if d.version == 0 && !w.lease.holds() {", Becomes: "if d.version == 0 && w.cursor.lost {",
			In: in, Run: "^TestOldOwnerComesBack$/could_not_keep",
		},
		{
			Name: "outbox-begins-without-its-lock", Breaks: "who has lost a shard before he could begin does not begin",
			File: "webhook/outbox/owner.go", Anchor: "	if !w.lease.holds() {\n		return false", Becomes: "	if w.cursor.lost {\n		return false",
			In: in, Run: "^TestOldOwnerBegins$",
		},
		{
			Name: "outbox-lease-from-the-answer", Breaks: "a lease counts from when its renewal was sent, and ends",
			File: "webhook/outbox/shard.go", Anchor: "			l.renewed(sent)", Becomes: "			l.renewed(sent.Add(time.Hour))",
			In: in, Run: "^TestOldOwnerComesBack$",
		},
		{
			Name: "outbox-catches-up-with-another-past", Breaks: "who learns of a change when numbers went back tells nobody of a gap that ends before it begins",
			File: "webhook/outbox/tell.go", Anchor: "missed != nil && missed.Backwards()", Becomes: "missed != nil && missed.Backwards() && stream == nil",
			In: in, Run: "^TestCatchesUpWithAnotherPast$",
		},
		{
			Name: "outbox-unreadable-in-silence", Breaks: "a subscription learns that it misses what is kept and cannot be read",
			File: "webhook/outbox/owed.go", Anchor: "			w.unreadable(r)\n", Becomes: "",
			In: in, Run: "^TestUnreadable$/an_event",
		},
		{
			Name: "outbox-unreadable-in-the-way", Breaks: "what cannot be read is in the way of nothing once it is told to be missed",
			File: "webhook/outbox/unreadable.go", Anchor: "item{read: time.Now(), done: func() { w.erase(d) }}", Becomes: "item{read: time.Now()}",
			In: in, Run: "^TestUnreadable$/an_event",
		},
		{
			Name: "outbox-unreadable-gap-in-the-way", Breaks: "what is missed can be kept where what was missed before cannot be read",
			File: "webhook/outbox/unreadable.go", Anchor: "	if d.tellsMissed() {\n		w.missesAll(d)\n		return\n	}\n", Becomes: "	if d.tellsMissed() {\n		return\n	}\n",
			In: in, Run: "^TestUnreadable$/something_missed",
		},
		{
			Name: "outbox-tried-less-than-never", Breaks: "a count that nobody can have written ends no server",
			File: "webhook/outbox/unreadable.go", Anchor: " || f.Tried < 0", Becomes: "",
			In: in, Run: "^TestUnreadable$/impossible_count",
		},
		{
			Name: "outbox-damaged-for-ever", Breaks: "what is damaged while it is owned is not tried again and again",
			File: "webhook/outbox/owed.go", Anchor: "		w.bring(func() { w.vanished(d) }) // who loads", Becomes: "		// who loads",
			In: in, Run: "^TestDamagedWhileOwned$",
		},
		{
			Name: "outbox-rows-that-are-none", Breaks: "a damaged list of what was sent last ends no server",
			File: "webhook/outbox/state.go", Anchor: "func(row *recent) bool { return row == nil }", Becomes: "func(row *recent) bool { return row != nil && row.ID == \"\" }",
			In: in, Run: "^TestRowsThatAreNone$",
		},
		{
			Name: "outbox-kept-late", Breaks: "what is kept late is not left to whoever has the shard days later",
			File: "webhook/outbox/target.go", Anchor: "		w.lookForLate(\"\")\n", Becomes: "",
			In: in, Run: "^TestKeptLate$",
		},
		{
			Name: "outbox-reads-before-it-claims", Breaks: "who takes a shard over claims it before it reads what is owed",
			File: "webhook/outbox/owner.go", Anchor: "errors.Join(w.claim(), w.loadStates(), w.loadOwed())", Becomes: "errors.Join(w.loadStates(), w.loadOwed(), w.claim())",
			In: in, Run: "^TestClaimsFirst$",
		},
		{
			Name: "outbox-claims-without-a-write", Breaks: "from when a shard is taken over on, who had it moves its cursor no more",
			File: "webhook/outbox/cursor.go", Anchor: "	now, err := w.putCursor(ctx, at, w.stamp())\n	if err == nil {\n		w.cursor.stored = now\n	}\n	return err\n", Becomes: "	return err\n",
			In: in, Run: "^TestClaimsFirst$",
		},
		{
			Name: "outbox-grant-too-late-for-the-next", Breaks: "who takes over sends no notice of a grant whose lease is over",
			File: "webhook/outbox/owed.go", Anchor: "	if f.NotAfter > 0 {", Becomes: "	if f.NotAfter < 0 {",
			In: in, Run: "^TestTakenOver$/a_grant",
		},
		{
			Name: "outbox-due-by-another-clock", Breaks: "what is taken over is tried within the schedule's longest step, whatever clock it was kept by",
			File: "webhook/outbox/owed.go", Anchor: "min(max(0, time.UnixMilli(f.Due).Sub(w.Now())), maxWait)", Becomes: "max(0, time.UnixMilli(f.Due).Sub(w.Now()))",
			In: in, Run: "^TestTakenOver$/by_a_bad_clock",
		},
		{
			Name: "outbox-paused-for-ever", Breaks: "what waits for a receiver is given up in the end",
			File: "webhook/outbox/delivery.go", Anchor: "w.Now().Sub(d.made) > maxAge &&", Becomes: "w.Now().Sub(d.made) > 100*maxAge &&",
			In: in, Run: "^TestGivenUp$",
		},
		{
			Name: "outbox-deleted-holds-the-cursor", Breaks: "the cursor waits for nothing of a subscription that was deleted",
			File: "webhook/outbox/target.go", Anchor: "	if t.lost != nil {\n		t.lost.settle()\n	}\n", Becomes: "",
			In: in, Run: "^TestForgottenWhileItMisses$",
		},
		{
			Name: "outbox-missed-before-it-was-made", Breaks: "a subscription misses nothing that happened before it was made",
			File: "webhook/outbox/missed.go", Anchor: "m.Before.Number > t.From && (", Becomes: "(",
			In: in, Run: "^TestMissesNothingFromBefore$",
		},
		{
			Name: "outbox-flood-of-another", Breaks: "a tenant of which much happens at once keeps nothing from the webhooks of others",
			File: "webhook/outbox/missed.go", Anchor: "	w.offerPast(t, m, nil, it)\n", Becomes: "	w.note(t, m, api.MissedUnknown, it)\n",
			In: in, Run: "^TestFloodOfAnother$",
		},
		{
			Name: "outbox-gap-of-nobody-again", Breaks: "the cursor passes a gap that concerns nobody",
			File: "webhook/outbox/missed.go", Anchor: "	w.cursor.passed = true\n", Becomes: "",
			In: in, Run: "^TestMissesNothingFromBefore$",
		},
		{
			Name: "outbox-again-and-anyway", Breaks: "who asks for everything again is not told twice of what is yet to be read",
			File: "webhook/outbox/replay.go", Anchor: "p.over = one.ID.Compare(r.upTo) > 0; p.over || len(p.events)", Becomes: "len(p.events)",
			In: in, Run: "^TestAgainUpToWhereItIs$",
		},
		{
			Name: "outbox-again-takes-all-room", Breaks: "who asks for everything again leaves room for what comes",
			File: "webhook/outbox/replay.go", Anchor: "if len(t.pending) >= maxAgain &&", Becomes: "if len(t.pending) < 0 &&",
			In: in, Run: "^TestAgainLeavesRoom$",
		},
		{
			Name: "outbox-again-waits-for-the-receiver", Breaks: "what is told again goes on when it is kept, whatever its receiver does",
			File: "webhook/outbox/tell.go", Anchor: "		if !d.over {\n			w.keep(d)\n		}\n	}\n	it.its = nil\n}\n\n// keepLate", Becomes: "		_ = d\n	}\n	it.its = nil\n}\n\n// keepLate",
			In: in, Run: "^TestAgainLeavesRoom$",
		},
		{
			Name: "outbox-state-too-large", Breaks: "how a target does fits into a record",
			File: "webhook/outbox/state.go", Anchor: "	for len(value) > store.MaxRecordValue &&", Becomes: "	for len(value) > 2*store.MaxRecordValue &&",
			In: in, Run: "^TestStateFits$",
		},
		{
			Name: "outbox-state-not-tried-again", Breaks: "how a target does is written when the store takes it again",
			File: "webhook/outbox/state.go", Anchor: "			default:\n				t.dirty = true\n", Becomes: "			default:\n",
			In: in, Run: "^TestStateIsTriedAgain$",
		},
		{
			Name: "outbox-cursor-not-tried-again", Breaks: "a cursor that could not be written is written later",
			File: "webhook/outbox/cursor.go", Anchor: "	default:\n		c.behind = true\n", Becomes: "	default:\n",
			In: in, Run: "^TestCursorIsTriedAgain$",
		},
		{
			Name: "outbox-lock-not-released", Breaks: "who ends leaves its shards to the next at once",
			File: "webhook/outbox/shard.go", Anchor: "	s.release(ctx, grant)\n", Becomes: "",
			In: in, Run: "^TestHandsOver$",
		},
		{
			Name: "webhook-ask-without-its-words", Breaks: "each kind of event is delivered with what is documented of it",
			File: "api/event/event.go", Anchor: "case e.Ask != nil:", Becomes: "case e.Ask != nil && e.Held:",
			In: "./cmd/api", Run: "^TestEveryKindIsSent$",
		},
		{
			Name: "outbox-since-asked-once", Breaks: "a replica that starts beside a busy store learns where webhooks were told last",
			File: "webhook/outbox/cursor.go", Anchor: "if !pause(ctx, retryPause) {", Becomes: "if ctx != nil {",
			In: in, Run: "^TestSinceOfABusyStore$",
		},
		{
			Name: "outbox-gone-elsewhere", Breaks: "a 410 of the URL that a subscription had does not disable it",
			File: "webhook/outbox/target.go", Anchor: "then.URL != t.sub.URL || ", Becomes: "",
			In: in, Run: "^TestGoneElsewhere$",
		},
		{
			Name: "outbox-gone-in-silence", Breaks: "what was answered with 410 is told as missed",
			File: "webhook/outbox/delivery.go", Anchor: "case webhook.StateFailed, webhook.StateGone:", Becomes: "case webhook.StateGone:\n\t\tw.end(d)\n\t\treturn\n\tcase webhook.StateFailed:",
			In: in, Run: "^TestGoneIsMissed$",
		},
		{
			Name: "outbox-gone-with-what-is-missed", Breaks: "what tells of a gap outlives a 410",
			File: "webhook/outbox/delivery.go", Anchor: "d.progress.State == webhook.StateGone && d.tellsMissed()", Becomes: "false",
			In: in, Run: "^TestGoneIsMissed$",
		},
		{
			Name: "outbox-parked-reads-its-tenant", Breaks: "a receiver that was waited for is given what the shard has read",
			File: "webhook/outbox/parking.go", Anchor: "service.EventsRequest{Of: lock.OwnTenant, After: &p.after}", Becomes: "service.EventsRequest{Of: lock.OwnTenant, Tenant: t.tenant, After: &p.after}",
			In: in, Run: "^TestParkedReadsWhatTheShardReads$",
		},
		{
			Name: "outbox-parked-for-ever", Breaks: "the cursor does not wait for ever for what cannot be read again",
			File: "webhook/outbox/parking.go", Anchor: "time.Since(p.item.read) >= parkMost", Becomes: "false",
			In: in, Run: "^TestParkedWithoutAStream$",
		},
		{
			Name: "outbox-parked-calls-everybody", Breaks: "only callers that were not told are called of a gap",
			File: "webhook/outbox/parking.go", Anchor: "return e.Tenant == t.tenant && p.has(e)", Becomes: "return true",
			In: in, Run: "^TestParkedCallsNobodyElse$",
		},
		{
			Name: "outbox-parked-calls-again", Breaks: "callers are called once of a gap that the shard has met",
			File: "webhook/outbox/parking.go", Anchor: " || m.Before.Compare(p.lacks.Before) <= 0 && m.After.Compare(p.lacks.After) >= 0", Becomes: "",
			In: in, Run: "^TestParkedCallsNobodyElse$",
		},
		{
			Name: "outbox-late-overtakes-parked", Breaks: "first attempts about a lock are in order although their receiver is waited for",
			File: "webhook/outbox/owed.go", Anchor: "return !w.parking.holds(d)", Becomes: "return true",
			In: in, Run: "^TestLateBehindWhatIsParked$",
		},
		{
			Name: "outbox-asked-for-and-forgotten", Breaks: "a request outlives its owner until what it asks for is kept",
			File: "webhook/outbox/requests.go", Anchor: "w.serve(key.Tenant, &r, func() { w.executed(key, version) })", Becomes: "w.executed(key, version)\n\t\t\tw.serve(key.Tenant, &r, func() {})",
			In: in, Run: "^TestAskedForUntilItIsKept$",
		},
		{
			Name: "outbox-replays-without-bound", Breaks: "everything is told again to few targets at a time",
			File: "webhook/outbox/replay.go", Anchor: "if len(r.replays)+turn >= replaysAtOnce {", Becomes: "if len(r.replays)+turn < 0 {",
			In: in, Run: "^TestFewReplaysAtOnce$",
		},
		{
			Name: "outbox-replay-twice-at-once", Breaks: "everything is told again to one target once at a time",
			File: "webhook/outbox/replay.go", Anchor: "r.replays[targetName(tenant, webhook)] || ", Becomes: "",
			In: in, Run: "^TestAllAgainInParts$",
		},
		{
			Name: "outbox-requests-of-one-page", Breaks: "requests that do not fit into one page are carried out in a moment",
			File: "webhook/outbox/requests.go", Anchor: `if err != nil || page.Next != "" || r.listed() {`, Becomes: `if err != nil || page.Next == "" && r.listed() {`,
			In: in, Run: "^TestRequestsOfManyPages$",
		},
		{
			Name: "outbox-strange-remembered", Breaks: "of requests about what is not there nothing is remembered",
			File: "webhook/outbox/requests.go", Anchor: "	delete(r.strange, k)\n	return false\n}\n\n// execute", Becomes: "	return false\n}\n\n// execute",
			In: in, Run: "^TestStrangeIsForgotten$",
		},
		{
			Name: "outbox-names-not-told", Breaks: "of a set a delivery remembers the names that it tells, which its bytes count for",
			File: "webhook/outbox/tell.go", Anchor: "namesOf(claims)", Becomes: "namesOf(e.Entry.Claims)",
			In: in, Run: "^TestNamesThatAreTold$",
		},
		{
			Name: "outbox-full-fills-the-log", Breaks: "a tenant without room for its callbacks does not fill the log",
			File: "webhook/outbox/missed.go", Anchor: "time.Since(t.warned) < warnPause {", Becomes: "time.Since(t.warned) < 0 {",
			In: in, Run: "^TestFullIsSaidOnce$",
		},
		{
			Name: "outbox-receivers-remembered", Breaks: "of URLs of callbacks nothing is remembered once nothing is sent there",
			File: "webhook/outbox/receiver.go", Anchor: "t.calls[d.grant.URL] == 0 {", Becomes: "t.calls[d.grant.URL] < 0 {",
			In: in, Run: "^TestReceiversOfCallersAreForgotten$",
		},
		{
			Name: "outbox-quiet-for-less", Breaks: "who asks for time by Retry-After has all of it",
			File: "webhook/outbox/receiver.go", Anchor: " && until.After(to.until(now)) {", Becomes: " {",
			In: in, Run: "^TestShorterRetryAfter$",
		},
		{
			Name: "outbox-quiet-of-another", Breaks: "a subscription with another URL is told at once, whatever the one before asked for",
			File: "webhook/outbox/target.go", Anchor: "			clear(t.receivers)\n", Becomes: "			_ = t.receivers\n",
			In: in, Run: "^TestRetryAfterOfAnother$",
		},
		{
			Name: "outbox-replay-unread-in-silence", Breaks: "who asks for everything again where it cannot be read is told that he misses it",
			File: "webhook/outbox/replay.go", Anchor: "	if p.err != nil {\n", Becomes: "	if p.err != nil && len(p.gaps) > 0 {\n",
			In: in, Run: "^TestAgainWithoutAStream$",
		},
		{
			Name: "outbox-replays-of-one-tenant", Breaks: "a tenant that has everything told again to many leaves places for others",
			File: "webhook/outbox/replay.go", Anchor: " || r.replaysOf(tenant) >= replaysOfTenant {", Becomes: " {",
			In: in, Run: "^TestReplaysOfOneTenant$",
		},
		{
			Name: "outbox-replays-without-turns", Breaks: "who waits to have everything told again has his turn before who had one",
			File: "webhook/outbox/replay.go", Anchor: "len(r.replays)+turn >= replaysAtOnce", Becomes: "len(r.replays) >= replaysAtOnce",
			In: in, Run: "^TestReplaysOfOneTenant$",
		},
		{
			Name: "outbox-turn-of-nobody", Breaks: "no place is kept free for a tenant that asks for nothing any more",
			File: "webhook/outbox/requests.go", Anchor: " || r.listed() {", Becomes: " {",
			In: in, Run: "^TestTurnOfNobody$",
		},
		{
			Name: "outbox-replay-misses-what-is-to-come", Breaks: "who asks for everything again is not told to miss what is yet to be read",
			File: "webhook/outbox/replay.go", Anchor: "earlier(missed.Before, r.upTo)", Becomes: "missed.Before",
			In: in, Run: "^TestAgainOfWhatTheShardHasNotRead$",
		},
		{
			Name: "outbox-quiet-for-one", Breaks: "who asks for time by Retry-After is left alone by all that goes to it",
			File: "webhook/outbox/receiver.go", Anchor: "to.quiet.Store(&until)", Becomes: "_ = until",
			In: in, Run: "^TestRetryAfterOf",
		},
		{
			Name: "outbox-quiet-without-bound", Breaks: "one answer has a receiver be told nothing for an hour at most",
			File: "webhook/outbox/receiver.go", Anchor: "min(r.RetryAfter, maxQuiet)", Becomes: "r.RetryAfter",
			In: in, Run: "^TestRetryAfterOfAReceiver$",
		},
		{
			Name: "outbox-patterns-without-end", Breaks: "a tenant with many dear patterns keeps a shard from others for a part of each second",
			File: "webhook/outbox/tell.go", Anchor: "if len(all) > 0 && !w.match.may(", Becomes: "if len(all) > 1<<20 && !w.match.may(",
			In: in, Run: "^TestDearPatterns$",
		},
		{
			Name: "outbox-patterns-of-many-tenants", Breaks: "many tenants with dear patterns leave room for one more",
			File: "webhook/outbox/matching.go", Anchor: "< stepsInAll-m.steps[\"\"]", Becomes: "< stepsInAll",
			In: in, Run: "^TestManyDearPatterns$",
		},
		{
			Name: "outbox-patterns-passed-in-silence", Breaks: "what a tenant's subscriptions were not held against is told as missed",
			File: "webhook/outbox/matching.go", Anchor: "			if p.Before.Number > t.From && (t.sends()", Becomes: "			if p.Before.Number < t.From && (t.sends()",
			In: in, Run: "^TestDearPatterns$",
		},
		{
			Name: "outbox-patterns-passed-by-the-cursor", Breaks: "the cursor waits until it is kept what subscriptions were not held against",
			File: "webhook/outbox/matching.go", Anchor: "		w.window.add(p.item)\n", Becomes: "",
			In: in, Run: "^TestDearPatterns$",
		},
		{
			Name: "outbox-patterns-passed-then-disabled", Breaks: "what a subscription was not held against is told as missed, though its receiver is found to want nothing any more in between",
			File: "webhook/outbox/target.go", Anchor: "		w.tellPassed() // which is from before\n", Becomes: "",
			In: in, Run: "^TestPassedOverBeforeItIsDisabled$",
		},
		{
			Name: "outbox-patterns-passed-before-it-was-made", Breaks: "a subscription misses nothing of what happened before it was made",
			File: "webhook/outbox/matching.go", Anchor: "After: p.After.Later(lock.Before(t.From + 1))", Becomes: "After: p.After",
			In: in, Run: "^TestWhoIsPassedOver$",
		},
		{
			Name: "outbox-patterns-passed-then-paused", Breaks: "what a subscription was not held against before it was paused is told as missed",
			File: "webhook/outbox/matching.go", Anchor: "(t.sends() || t.pausedAfter(p.After))", Becomes: "t.sends()",
			In: in, Run: "^TestWhoIsPassedOver$",
		},
		{
			Name: "outbox-patterns-passed-just-now", Breaks: "what subscriptions were not held against is behind since it happened",
			File: "webhook/outbox/matching.go", Anchor: "read: now, at: e.At, open: 1", Becomes: "read: now, open: 1",
			In: in, Run: "^TestWhoIsPassedOver$",
		},
		{
			Name: "outbox-patterns-paid-twice", Breaks: "what is told again, and paid for, uses up nothing of what patterns may take",
			File: "webhook/outbox/tell.go", Anchor: "	if !it.again { // which is paid for\n		w.match", Becomes: "	if it != nil {\n		w.match",
			In: in, Run: "^TestAgainIsNotCounted$",
		},
		{
			Name: "outbox-patterns-of-a-gap", Breaks: "who has used up what it takes to hold events against its patterns has none of a gap held against them",
			File: "webhook/outbox/missed.go", Anchor: " || !w.match.may(t.tenant, it.read) {", Becomes: " {",
			In: in, Run: "^TestGapOfDearPatterns$",
		},
		{
			Name: "outbox-patterns-of-unwanted-kinds", Breaks: "kinds of events that a subscription does not want use up nothing of what its patterns may take",
			File: "webhook/outbox/matching.go", Anchor: "	if !t.filter.Wants(e.Kind) {\n", Becomes: "	if false {\n",
			In: in, Run: "^TestDearPatternsOfTheUnwanted$",
		},
		{
			Name: "outbox-old-gaps-told-again", Breaks: "who has everything told again since an instant is told of no gaps from before",
			File: "webhook/outbox/replay.go", Anchor: "if !m.Until.IsZero() && m.Until.Before(r.since) || !r.since", Becomes: "if !r.since",
			In: in, Run: "^TestOldGaps$",
		},
		{
			Name: "outbox-states-of-one-tenant", Breaks: "how the webhooks of one tenant do costs the store few writes a second, however many they are",
			File: "webhook/outbox/state.go", Anchor: "return p[tenant].Sub(now) < time.Second && ", Becomes: "return ",
			In: in, Run: "^TestManyStates$",
		},
		{
			Name: "outbox-states-of-all", Breaks: "how all webhooks do costs the store few writes a second, however many they are",
			File: "webhook/outbox/state.go", Anchor: " && p[\"\"].Sub(now) < time.Second", Becomes: "",
			In: in, Run: "^TestManyStates$",
		},
		{
			Name: "outbox-large-states", Breaks: "how webhooks do takes few bytes of the store's writes a second",
			File: "webhook/outbox/state.go", Anchor: "max(time.Second/statesOfTenant, time.Duration(bytes)*time.Second/stateBytesOfTenant)", Becomes: "time.Second/statesOfTenant",
			In: in, Run: "^TestManyStates$",
		},
		{
			Name: "outbox-last-states-at-once", Breaks: "who gives a shard up writes no more of how webhooks do than is said",
			File: "webhook/outbox/state.go", Anchor: "case w.paces.may(t.tenant, now):", Becomes: "case w.paces != nil:",
			In: in, Run: "^TestLastStates$",
		},
		{
			Name: "outbox-last-states-of-another", Breaks: "who gives a shard up writes nothing when that may be another one's",
			File: "webhook/outbox/state.go", Anchor: "case ctx.Err() != nil || !w.lease.holds():", Becomes: "case ctx.Err() != nil:",
			In: in, Run: "^TestLastStates$",
		},
		{
			Name: "outbox-quiet-receiver-counted", Breaks: "what its receiver wants no more uses up no attempts of the tenant",
			File: "webhook/outbox/delivery.go", Anchor: "idle = !ok || moot()", Becomes: "idle = !ok",
			In: "./webhook/outbox", Run: "^TestWhatIsNotSentIsNotCounted$",
		},
		{
			Name: "outbox-paused-counted", Breaks: "nor does what goes to a subscription that is paused",
			File: "webhook/outbox/delivery.go", Anchor: "idle = !ok || moot()", Becomes: "idle = ok && moot()",
			In: "./webhook/outbox", Run: "^TestWhatIsNotSentIsNotCounted$",
		},
		{
			Name: "outbox-sent-and-not-counted", Breaks: "what uses up no attempt is not sent either",
			File: "webhook/outbox/delivery.go", Anchor: "ok && !idle && !moot()", Becomes: "ok && !moot()",
			In: "./webhook/outbox", Run: "^TestWhatWasNotCountedIsNotSent$",
		},
		{
			Name: "outbox-too-late-counted", Breaks: "nor does what is too late when its turn comes",
			File: "webhook/outbox/delivery.go", Anchor: " || message.Expired(time.Now())", Becomes: "",
			In: "./webhook/outbox", Run: "^TestEndsWhileItsTenantWaits$",
		},
		{
			Name: "outbox-states-written-twice", Breaks: "a state is not written again while it is being written",
			File: "webhook/outbox/state.go", Anchor: "if t.dirty && !t.writing && ", Becomes: "if t.dirty && ",
			In: "./webhook/outbox", Run: "^TestOneWriteOfAStateAtATime$",
		},
		{
			Name: "outbox-states-of-a-crowd-first", Breaks: "how a tenant's few webhooks do is written as soon as ever, beside tenants with very many",
			File: "webhook/outbox/state.go", Anchor: "p[t.tenant].Add(n * time.Second / statesOfTenant)", Becomes: "t.written",
			In: in, Run: "^TestStatesBesideManyOthers$",
		},
		{
			Name: "outbox-turns-forgotten", Breaks: "a tenant that has had its turn is behind those that have not, also when what it had is paid for",
			File: "webhook/outbox/state.go", Anchor: "now.Sub(at) > turnsKept", Becomes: "now.After(at)",
			In: in, Run: "^TestStatesBesideManyOthers$",
		},
		{
			Name: "outbox-states-by-chance", Breaks: "how each webhook does is written in its turn, however many change all the time",
			File: "webhook/outbox/state.go", Anchor: "	slices.SortFunc(due, func(a, b *target) int { return a.written.Compare(b.written) })\n", Becomes: "	slices.SortFunc(due, func(a, b *target) int { return b.written.Compare(a.written) })\n",
			In: in, Run: "^TestManyStates$",
		},
		{
			Name: "outbox-asked-for-at-once", Breaks: "of requests about webhooks that come at the same moment a tenant has no more than are put on record at once",
			File: "webhook/outbox/deliveries.go", Anchor: "	if err := d.journal.Put(ctx, record); err != nil {\n", Becomes: "	if err := d.journal.Put(ctx, record); err != nil && !errors.Is(err, lock.RateLimited) {\n",
			In: in, Run: "^TestManyAskedForAtOnce$",
		},
		{
			Name: "outbox-too-late-and-pending", Breaks: "what is of no use any more ends then, and takes no room until its receiver wants something again",
			File: "webhook/outbox/delivery.go", Anchor: "		if d.tooLate(until) {", Becomes: "		if false {",
			In: in, Run: "^TestEndsThoughItsReceiverIsLeftAlone$",
		},
		{
			Name: "outbox-too-late-and-in-the-way", Breaks: "what is of no use any more holds up nothing that waits for its attempt",
			File: "webhook/outbox/delivery.go", Anchor: "		d.progress.State = webhook.StateExpired\n		w.pass(d)\n", Becomes: "		d.progress.State = webhook.StateExpired\n",
			In: in, Run: "^TestEndsBeforeAnother$",
		},
		{
			Name: "outbox-not-sent-and-counted", Breaks: "what was asked for and not sent counts as no attempt",
			File: "webhook/outbox/delivery.go", Anchor: " && r.Outcome != webhook.Expired {", Becomes: " {",
			In: in, Run: "^TestEndsAtItsDeadline$",
		},
		{
			Name: "outbox-too-late-and-attempted", Breaks: "what is of no use any more is not attempted",
			File: "webhook/outbox/delivery.go", Anchor: "	case d.tooLate(time.Now()):\n", Becomes: "	case false:\n",
			In: in, Run: "^TestEndsAtItsDeadline$",
		},
		{
			Name: "outbox-expired-takes-room", Breaks: "what ends at its deadline leaves its room to others",
			File: "webhook/outbox/delivery.go", Anchor: "	w.settle(d)\n	w.targets.drop(d)\n	if d.version > 0", Becomes: "	w.settle(d)\n	if d.version > 0",
			In: in, Run: "^TestEndsAtItsDeadline$",
		},
		{
			Name: "outbox-keeps-all-at-once", Breaks: "a tenant's deliveries are put into the store in turns",
			File: "webhook/outbox/turns.go", Anchor: "all == nil && w.keeping.take(tenant, time.Now())", Becomes: "all == nil",
			In: in, Run: "^TestDeliveriesAreKeptInTurns$",
		},
		{
			Name: "outbox-turns-of-all", Breaks: "a tenant whose deliveries are kept in turns does not keep those of others waiting",
			File: "webhook/outbox/keeping.go", Anchor: "\tt := k.of[name]\n\tif t == nil {\n\t\tif", Becomes: "\tname = \"\"\n\tt := k.of[name]\n\tif t == nil {\n\t\tif",
			In: in, Run: "^TestKeepsInASecond$",
		},
		{
			Name: "outbox-overtakes-turns", Breaks: "what comes to be kept later comes behind what waits",
			File: "webhook/outbox/keeping.go", Anchor: "if t.queues > 0 || t.spent", Becomes: "if t.spent",
			In: in, Run: "^TestKeepsOfManyOwners$",
		},
		{
			Name: "outbox-turns-not-shared", Breaks: "owners share what a tenant may have kept",
			File: "webhook/outbox/keeping.go", Anchor: "later(t.spent, now).Add(time.Second / keepsOfTenant)\n\treturn t.spent", Becomes: "now.Add(time.Second / keepsOfTenant)\n\treturn t.spent",
			In: in, Run: "^TestKeepsOfManyOwners$",
		},
		{
			Name: "outbox-turns-made-up-for", Breaks: "turns that were not used are not made up for by a burst",
			File: "webhook/outbox/keeping.go", Anchor: "later(t.spent, now).Add(time.Second / keepsOfTenant)\n\treturn t.spent", Becomes: "t.spent.Add(time.Second / keepsOfTenant)\n\treturn t.spent",
			In: in, Run: "^TestKeepsOfManyOwners$",
		},
		{
			Name: "outbox-turns-saved-up", Breaks: "a tenant that had nothing kept for long may not have all of that kept at once",
			File: "webhook/outbox/keeping.go", Anchor: "later(t.spent, now.Add(-keepsAtOnce*time.Second/keepsOfTenant))", Becomes: "t.spent",
			In: in, Run: "^TestKeepsInASecond$",
		},
		{
			Name: "outbox-keeps-what-was-made", Breaks: "what is made before its turn is not put into the store",
			File: "webhook/outbox/turns.go", Anchor: "\tif !d.stale || d.over {\n\t\treturn false\n\t}\n", Becomes: "",
			In: in, Run: "^TestDeliveriesAreKeptInTurns$",
		},
		{
			Name: "outbox-cursor-comes-last", Breaks: "what holds up the cursor is kept before what does not",
			File: "webhook/outbox/turns.go", Anchor: "\tif len(d.items) > 0 {\n", Becomes: "\tif false {\n",
			In: in, Run: "^TestCursorComesFirst$",
		},
		{
			Name: "outbox-owes-without-bound", Breaks: "what of a tenant is neither made nor kept is bounded",
			File: "webhook/outbox/target.go", Anchor: "!w.mayOwe(t.tenant) || ", Becomes: "",
			In: in, Run: "^TestOwedIsBounded$",
		},
		{
			Name: "outbox-owes-for-ever", Breaks: "what is made or kept leaves room for more",
			File: "webhook/outbox/delivery.go", Anchor: "\tw.owesNoMore(d)\n", Becomes: "",
			In: in, Run: "^TestOwedIsBounded$",
		},
		{
			Name: "outbox-owes-for-the-gone", Breaks: "an owner that is gone owes nothing",
			File: "webhook/outbox/turns.go", Anchor: "\t\tw.keeping.owe(tenant, -n)\n", Becomes: "\t\t_, _ = tenant, n\n",
			In: in, Run: "^TestOwedIsBounded$",
		},
		{
			Name: "outbox-waits-when-gone", Breaks: "nobody shares turns with an owner that is gone",
			File: "webhook/outbox/turns.go", Anchor: "\tfor tenant := range w.turns.waiting {\n\t\tw.keeping.wait(tenant, -1)\n\t}\n", Becomes: "",
			In: in, Run: "^TestOwnerLeavesItsTurns$",
		},
		{
			Name: "outbox-turn-for-ever", Breaks: "what has changed since it was written waits for another turn",
			File: "webhook/outbox/owed.go", Anchor: "d.writing, d.stale, d.turn = true, false, false", Becomes: "d.writing, d.stale = true, false",
			In: in, Run: "^TestWrittenAgainInTurn$",
		},
		{
			Name: "outbox-turns-of-a-lost-lease", Breaks: "turns that come while it is not sure whose the shard is are not made up for",
			File: "webhook/outbox/owed.go", Anchor: "\td.turn = false\n\tif d.later {", Becomes: "\tif d.later {",
			In: in, Run: "^TestNoBurstAfterAnOutage$",
		},
		{
			Name: "outbox-turns-of-the-last", Breaks: "who has his turn soon does not wait for who has it later",
			File: "webhook/outbox/turns.go", Anchor: "at.Before(q.next)", Becomes: "at.After(q.next)",
			In: in, Run: "^TestTurnsComeInTime$",
		},
		{
			Name: "outbox-woken-all-the-time", Breaks: "an owner is woken for turns alone, and not all the time",
			File: "webhook/outbox/turns.go", Anchor: "\tw.turns.next = time.Time{}\n", Becomes: "",
			In: in, Run: "^TestTurnsComeInTime$",
		},
		{
			Name: "outbox-missed-all-the-time", Breaks: "what a target misses all the time is put into the store once in a while",
			File: "webhook/outbox/missed.go", Anchor: " && now.Sub(t.flushed) >= flushPause {", Becomes: " {",
			In: in, Run: "^TestMissedIsKeptNowAndThen$",
		},
		{
			Name: "outbox-remembers-turns", Breaks: "tenants of whom nothing is left to know are forgotten",
			File: "webhook/outbox/keeping.go", Anchor: "\t\t\tdelete(k.of, name)\n", Becomes: "\t\t\t_ = name\n",
			In: in, Run: "^TestKeepingForgets$",
		},
		{
			Name: "outbox-window-of-the-slow", Breaks: "a shard does not wait for tenants whose deliveries wait to be kept",
			File: "webhook/outbox/turns.go", Anchor: "windowShare*w.turns.owed[tenant] < maxWindow-w.window.len() && ", Becomes: "",
			In: in, Run: "^TestShardWaitsForNobody$",
		},
		{
			Name: "outbox-missed-fill-the-window", Breaks: "what a target misses takes one place of the window until it is put down",
			File: "webhook/outbox/missed.go", Anchor: "l.first != nil && l.first.id.Compare(it.id) <= 0", Becomes: "false",
			In: in, Run: "^TestShardWaitsForNobody$",
		},
		{
			Name: "outbox-missed-earlier-not-held", Breaks: "the cursor waits for what was missed earlier and is known later",
			File: "webhook/outbox/missed.go", Anchor: "l.first != nil && l.first.id.Compare(it.id) <= 0", Becomes: "l.first != nil",
			In: in, Run: "^TestOneHoldsUpTheCursor$",
		},
		{
			Name: "outbox-window-of-the-settled", Breaks: "a tenant whose deliveries wait for their turns does not keep a shard from reading what happens to others",
			File: "webhook/outbox/window.go", Anchor: "\tif w.len() < max(w.sweep, sweepAfter) {\n", Becomes: "\tif true {\n",
			In: in, Run: "^TestShardReadsOn$",
		},
		{
			Name: "outbox-window-forgets-the-open", Breaks: "the cursor stays before what is neither made nor kept",
			File: "webhook/outbox/window.go", Anchor: "return it.open == 0 })", Becomes: "return it.open <= 1 })",
			In: in, Run: "^TestShardReadsOn$",
		},
		{
			Name: "outbox-made-has-no-turn", Breaks: "what has become of deliveries is put down also while more come that hold up the cursor",
			File: "webhook/outbox/turns.go", Anchor: "if q.turns%turnOfOther == 0 {", Becomes: "if false {",
			In: in, Run: "^TestMadeWaitsForNoTurn$",
		},
		{
			Name: "outbox-remembers-the-made", Breaks: "deliveries that are made are not remembered until their turns come",
			File: "webhook/outbox/turns.go", Anchor: "if q.over++; 2*q.over <= len(q.fresh)+len(q.other) {", Becomes: "if q.over++; q.over > 0 {",
			In: in, Run: "^TestMadeWaitsForNoTurn$",
		},
		{
			Name: "outbox-pays-for-failures", Breaks: "a tenant does not pay for a store that does not take its deliveries",
			File: "webhook/outbox/owed.go", Anchor: "	d.writing, d.unsure = false, err != nil\n", Becomes: "	d.writing, d.unsure = false, err != nil\n	if err != nil {\n		w.bill.add(d.target.tenant, Cost{Kept: 1})\n	}\n",
			In: in, Run: "^TestStoreThatFailsCostsNothing$",
		},
		{
			Name: "outbox-rest-not-paid", Breaks: "what is too little to be paid for is paid for with what comes next",
			File: "webhook/outbox/bill.go", Anchor: "(Cost{Offered: rest}); rest == 0", Becomes: "(Cost{}); true",
			In: in, Run: "^TestCharge$",
		},
		{
			Name: "outbox-owner-that-ends-waits", Breaks: "however an owner ends, nobody shares with it",
			File: "webhook/outbox/owner.go", Anchor: `	defer w.leaveTurns()
`, Becomes: ``,
			In: "./webhook/outbox", Run: "^TestOwnerThatEnds$",
		},
		{
			Name: "outbox-owner-that-ends-pays-nothing", Breaks: "what an owner has made since its last beat is paid for when it ends",
			File: "webhook/outbox/owner.go", Anchor: "	defer w.charge()\n", Becomes: "",
			In: "./webhook/outbox", Run: "^TestOwnerThatEnds$",
		},
		{
			Name: "outbox-missed-waits-for-a-turn", Breaks: "what tells that something is missed waits for no turn",
			File: "webhook/outbox/turns.go", Anchor: `d.turn || d.tellsMissed()`, Becomes: `d.turn`,
			In: "./webhook/outbox", Run: "^TestOnlyMadeWait$",
		},
		{
			Name: "outbox-waits-twice", Breaks: "what waits for its turn has one",
			File: "webhook/outbox/turns.go", Anchor: `	case d.queued:
		return false
`, Becomes: ``,
			In: "./webhook/outbox", Run: "^TestOnlyMadeWait$",
		},
		{
			Name: "outbox-given-up-waits", Breaks: "what is given up is not remembered until its turn",
			File: "webhook/outbox/delivery.go", Anchor: `	d.over, d.untold = true, true
	w.needsNoTurn(d)
`, Becomes: `	d.over, d.untold = true, true
`,
			In: "./webhook/outbox", Run: "^TestOnlyMadeWait$",
		},
	}
}
