package main

// eventBugs break how events are kept for those who follow.
func eventBugs() []Bug {
	return []Bug{
		{
			Name: "events-before-the-log", Breaks: "whoever comes as the feed begins waits for the log",
			File: "service/events/log.go", Anchor: "	case <-l.begun:\n	case <-ctx.Done():", Becomes: "	default:\n	case <-ctx.Done():",
			In: "./service/events", Run: "^TestAwait$",
		},
		{
			Name: "events-of-one-write-are-too-many", Breaks: "what one write grants in a tenant makes no other tenant miss anything",
			File: "service/events/log.go", Anchor: "maxPending = 1 << 17", Becomes: "maxPending = 1 << 14",
			In: "./service/events", Run: "^TestManyOfOneWrite$",
		},
		{
			Name: "events-flood-takes-all", Breaks: "where there is no room, the tenant with most gives way",
			File: "service/events/ring.go", Anchor: "return r.bytes > other.bytes", Becomes: "return r.bytes < other.bytes",
			In: "./service/events", Run: "^TestOthersFlood$",
		},
		{
			Name: "events-without-bytes", Breaks: "what is kept is bounded in bytes",
			File: "service/events/log.go", Anchor: "l.kept.events > l.cfg.Events || l.kept.bytes > l.cfg.Bytes", Becomes: "l.kept.events > l.cfg.Events",
			In: "./service/events", Run: "^TestBytes$",
		},
		{
			Name: "events-tenants-add-up", Breaks: "tenants that have one event each do not add up",
			File: "service/events/log.go", Anchor: "\t\tl.kept.drop(most, 1)\n\t\tl.release(tenant, most)\n", Becomes: "\t\tl.kept.drop(most, 1)\n\t\t_ = tenant\n",
			In: "./service/events", Run: "^TestManyTenants$",
		},
		{
			Name: "events-loss-forgotten-with-its-tenant", Breaks: "who resumes is told what is missing, also of a tenant of whom nothing is kept",
			File: "service/events/log.go", Anchor: "\tl.oldest = l.oldest.later(r.floor)\n", Becomes: "",
			In: "./service/events", Run: "^TestManyTenants$",
		},
		{
			Name: "events-gap-in-silence", Breaks: "what the feed did not tell is said to be missed",
			File: "service/events/log.go", Anchor: "\t\tl.gaps = append(l.gaps, gap{", Becomes: "\t\t_ = append(l.gaps, gap{",
			In: "./service/events", Run: "^TestGaps$",
		},
		{
			Name: "events-past-in-silence", Breaks: "a store whose numbers go back is a gap",
			File: "service/events/log.go", Anchor: "\tl.life++\n", Becomes: "",
			In: "./service/events", Run: "^TestGaps$",
		},
		{
			Name: "events-of-two-pasts", Breaks: "what has ids that were told before is not kept once a fence floor is given",
			File: "service/events/log.go", Anchor: "case l.lost > 0 && number >= l.lost:", Becomes: "case l.lost > number:",
			In: "./service/events", Run: "^TestGaps$",
		},
		{
			Name: "events-restored-for-ever", Breaks: "after a fence floor gaps are told as before",
			File: "service/events/log.go", Anchor: "		l.lost = 0\n", Becomes: "",
			In: "./service/events", Run: "^TestGaps$",
		},
		{
			Name: "events-dropped-in-silence", Breaks: "what comes faster than it is filed is said to be missed",
			File: "service/events/log.go", Anchor: "append(steps, step{number: l.reached, begins: true}), false", Becomes: "append(steps, step{number: l.reached}), false",
			In: "./service/events", Run: "^TestMoreThanIsFiled$",
		},
		{
			Name: "events-behind-in-silence", Breaks: "who reads too slowly is told what it missed",
			File: "service/events/subscription.go", Anchor: "s.at.Compare(start.EventID) < 0", Becomes: "s.at.Compare(start.EventID) < 0 && s.req.After != nil",
			In: "./service/events", Run: "^TestSlowFollower$",
		},
		{
			Name: "events-over-a-gap", Breaks: "events behind a gap come after the word of it",
			File: "service/events/subscription.go", Anchor: "ahead != nil && rec.ID.Compare(ahead.before.EventID) > 0", Becomes: "ahead != nil && rec.ID.Compare(ahead.before.EventID) > 0 && room == nil",
			In: "./service/events", Run: "^TestGaps$",
		},
		{
			Name: "events-places-for-ever", Breaks: "who has ended makes room for another",
			File: "service/events/subscription.go", Anchor: "\tl.places.give(s.req.Of)\n", Becomes: "",
			In: "./service/events", Run: "^TestPlaces$",
		},
		{
			Name: "events-told-one-by-one", Breaks: "many streams are told what happened together",
			File: "handlers/event_stream.go", Anchor: "w.told.Add(w.stream.Spacing())", Becomes: "w.told.Add(0 * w.stream.Spacing())",
			In: "./handlers", Run: "^TestManyStreamsAreToldTogether$",
		},
		{
			Name: "events-few-are-spaced", Breaks: "where few follow, each is told at once",
			File: "service/events/subscription.go", Anchor: "if spacing <= pace {", Becomes: "if spacing <= 0 {",
			In: "./service/events", Run: "^TestSpacing$",
		},
		{
			Name: "events-followers-sleep", Breaks: "a tenant's followers are woken for its events",
			File: "service/events/ring.go", Anchor: "\t\ts.grown = append(s.grown, r)\n", Becomes: "",
			In: "./service/events", Run: "^TestFollow$",
		},
		{
			Name: "events-without-a-feed", Breaks: "who cannot be told what happens is refused",
			File: "service/follow.go", Anchor: "if s.view.LostFor() > 0 {", Becomes: "if s.view.LostFor() > 1<<40 {",
			In: "./service", Run: "^TestFollowOverAGap$",
		},
		{
			Name: "events-of-a-lost-past", Breaks: "who resumes after what the store does not know is told so",
			File: "service/follow.go", Anchor: "return id.Number > newest+1, err", Becomes: "return id.Number > 2*newest+1e9, err",
			In: "./service", Run: "^TestFollowFromAnotherHistory$",
		},
		{
			Name: "events-back-in-silence", Breaks: "followers of a feed that goes back without a word are told so",
			File: "service/events/log.go", Anchor: "l.began && s.event.ID.Number <= l.told {", Becomes: "l.began && s.event.ID.Number == 0 {",
			In: "./service/events", Run: "^TestBackInSilence$",
		},
		{
			Name: "events-id-of-two-pasts", Breaks: "who resumes by an id that names two events is told that he may miss something",
			File: "service/events/subscription.go", Anchor: " || req.After != nil && req.After.Number <= l.lost {", Becomes: " {",
			In: "./service/events", Run: "^TestResumeInAnotherPast$",
		},
		{
			Name: "events-gap-from-its-start", Breaks: "who resumes within a gap misses the rest of it",
			File: "service/events/subscription.go", Anchor: "s.miss(s.at.Later(ahead.after), ahead.before)", Becomes: "s.miss(ahead.after, ahead.before)",
			In: "./service/events", Run: "^TestResumeWithinAGap$",
		},
		{
			Name: "events-restored-once-more", Breaks: "a store that went back twice has reached again what it lost only beyond all that it showed",
			File: "service/events/log.go", Anchor: "l.lost = max(l.lost, was)", Becomes: "l.lost = was",
			In: "./service/events", Run: "^TestRestoredTwice$",
		},
		{
			Name: "events-all-sleep-over-a-gap", Breaks: "who follows all tenants is woken for a gap",
			File: "service/events/log.go", Anchor: "	l.all.changed = true\n	for _, r := range l.tenants {", Becomes: "	for _, r := range l.tenants {",
			In: "./service/events", Run: "^TestAllFollow$",
		},
		{
			Name: "events-all-behind-the-past", Breaks: "who follows all tenants is told on when numbers went back",
			File: "service/events/log.go", Anchor: "	l.all.floor = before // as", Becomes: "	_ = before // as",
			In: "./service/events", Run: "^TestAllFollow$",
		},
		{
			Name: "events-number-came-again", Breaks: "every replica gives an event the same id, also when numbers went back",
			File: "service/view/view.go", Anchor: "\tv.writing = writing{} // if numbers", Becomes: "\t// if numbers",
			In: "./service/view", Run: "^TestEventsOfANumberThatCameAgain$",
		},
		{
			Name: "events-forgotten-when-they-were-dropped", Breaks: "of what is kept no longer it is known when the last of it happened",
			File: "service/events/ring.go", Anchor: "r.floor = edge{rec.ID, rec.At}", Becomes: "r.floor = edge{rec.ID, time.Now()}",
			In: "./service/events", Run: "^TestMissedUntil$",
		},
		{
			Name: "events-gap-without-a-time", Breaks: "of what the feed did not tell it is known when that happened at the latest",
			File: "service/events/subscription.go", Anchor: "Before: before.EventID, Until: before.at}", Becomes: "Before: before.EventID}",
			In: "./service/events", Run: "^TestMissedUntil$",
		},
	}
}
