package main

// operatorBugs break what operators may do, and what is on record of it.
func operatorBugs() []Bug {
	return []Bug{
		{
			Name: "operators-revoke-a-later-entry", Breaks: "exactly the entry that was seen is revoked",
			File: "service/revoke.go", Anchor: "case e.Number != r.Fence:", Becomes: "case e.Number < r.Fence:",
			In: "./service", Run: "^TestRevokeExactly$",
		},
		{
			Name: "operators-revoke-any-name", Breaks: "an operator's name patterns hold for what he revokes",
			File: "service/revoke.go", Anchor: "r.May != nil && !r.May(c.Name)", Becomes: "r.May == nil && len(c.Name) == 0",
			In: "./service", Run: "^TestRevokeExactly$",
		},
		{
			Name: "operators-tell-ends-of-others", Breaks: "of another tenant's entry not even its end is told",
			File: "service/view/status.go", Anchor: "v.ended.reasonOf(tenant, id, time.Now())", Becomes: "v.ended.reason(id, time.Now())",
			In: "./service", Run: "^TestRevokeExactly$",
		},
		{
			Name: "operators-say-nothing", Breaks: "every replica tells who revoked an entry, and why",
			File: "service/view/view.go", Anchor: "\tended.Note = c.Note\n", Becomes: "",
			In: "./service", Run: "^TestRevoke$",
		},
		{
			Name: "operators-flood-the-audit", Breaks: "what operators of a tenant do in a short time is bounded",
			File: "audit/pace.go", Anchor: "if !l.AllowN(now, 1) {", Becomes: "if !l.AllowN(now, 1) && l.Burst() == 0 {",
			In: "./service", Run: "^TestRevokeFlood$",
		},
		{
			Name: "operators-of-any-tenant", Breaks: "an operator of a tenant revokes nothing of another",
			File: "handlers/revoke.go", Anchor: "if err := r.operate(req.Tenant); err != nil {", Becomes: "if err := r.operate(req.Tenant); err != nil && r.principal == nil {",
			In: "./handlers", Run: "^TestHostileTenantAdmin$", Needs: "etcd",
		},
		{
			Name: "audit-forgets-the-newest", Breaks: "of what is too much on record the oldest goes",
			File: "audit/share.go", Anchor: "cmp.Compare(b.key.ID, a.key.ID)", Becomes: "cmp.Compare(a.key.ID, b.key.ID)",
			In: "./audit", Run: "^TestTrim$",
		},
		{
			Name: "audit-shows-all-names", Breaks: "who is limited to names sees what is on record of those",
			File: "audit/back.go", Anchor: " || s.q.May != nil && !one.MayKnow(s.q.May)", Becomes: "",
			In: "./audit", Run: "^TestPages$",
		},
		{
			Name: "audit-shows-foreign-addresses", Breaks: "a tenant is not told from where somebody else's operator came",
			File: "handlers/audit.go", Anchor: "if r.principal.MayOperate(one.By.Tenant) {", Becomes: "if one.By.Address != \"\" {",
			In: "./handlers", Run: "^TestAuditPages$", Needs: "etcd",
		},
		{
			Name: "operators-one-tenant-watches", Breaks: "however many operators a tenant has, others can watch",
			File: "handlers/watch.go", Anchor: "w.byTenant[tenant] >= maxWatchesOfTenant", Becomes: "w.byTenant[tenant] > maxWatches",
			In: "./handlers", Run: "^TestWatchPlacesOfTenant$", Needs: "etcd",
		},
		{
			Name: "operators-render-all-at-once", Breaks: "few answers are put together at once",
			File: "handlers/pages.go", Anchor: "newTurns(makersAtOnce)", Becomes: "newTurns(mostInLine)",
			In: "./handlers", Run: "^TestRenderingsOfManyAtOnce$", Needs: "etcd",
		},
		{
			Name: "operators-watch-in-file", Breaks: "however many watch the same, each is told soon",
			File: "handlers/watch.go", Anchor: "if at, taken := w.turns[key]; taken && !over(at) {", Becomes: "if at, taken := w.turns[key]; taken && over(at.Add(time.Hour)) {",
			In: "./handlers", Run: "^TestTurnsOfWatches$",
		},
		{
			Name: "operators-many-for-one-page", Breaks: "who asks for what is being made takes no place in the line",
			File: "handlers/pages.go", Anchor: "p.flight.Do(key, func() (any, error) {", Becomes: "p.flight.Do(key+strconv.Itoa(p.line.all), func() (any, error) {",
			In: "./handlers", Run: "^TestManyGetOnePage$",
		},
		{
			Name: "operators-page-of-who-is-gone", Breaks: "who waits for what another asked for gets it, also if that one goes",
			File: "handlers/pages.go", Anchor: "|| !ofAnother(err) {", Becomes: "|| err != nil {",
			In: "./handlers", Run: "^TestPageOfWhoIsGone$",
		},
		{
			Name: "operators-wait-in-line-for-ever", Breaks: "a tenant that asks for too many answers at once is refused",
			File: "handlers/pages.go", Anchor: "newShares(mostInLine, mostOfTenantInLine)", Becomes: "newShares(mostInLine, mostInLine)",
			In: "./handlers", Run: "^TestRenderingsAtOnce$", Needs: "etcd",
		},
		{
			Name: "operators-share-by-text", Breaks: "what one may see is not shown to who may see something else",
			File: "handlers/pages.go", Anchor: "strconv.Quote(p.String())", Becomes: "strconv.Quote(p.String())[1:len(p.String())+1]",
			In: "./handlers", Run: "^TestSharedWithin$", Needs: "etcd",
		},
		{
			Name: "operators-one-tenant-reads-the-audit", Breaks: "a tenant that reads the audit leaves room for others",
			File: "handlers/router.go", Anchor: "newShares(maxAuditPages, maxAuditPagesOfTenant)", Becomes: "newShares(maxAuditPages, maxAuditPages)",
			In: "./handlers", Run: "^TestAuditPagesOfTenant$", Needs: "etcd",
		},
		{
			Name: "operators-one-tenant-exports", Breaks: "a tenant that exports the audit leaves room for others",
			File: "handlers/audit.go", Anchor: "maxExportsOfTenant = 1", Becomes: "maxExportsOfTenant = maxExports",
			In: "./handlers", Run: "^TestExportsOfTenant$", Needs: "etcd",
		},
		{
			Name: "operators-cached", Breaks: "what is answered to a cookie is kept by no cache",
			File: "handlers/admit.go", Anchor: "if o.bySession() { // a cache", Becomes: "if o.bySession() && o.page { // a cache",
			In: "./handlers", Run: "^TestOperatorsNotCached$", Needs: "etcd",
		},
		{
			Name: "operators-see-old-rows-as-new", Breaks: "a page is said to be of a revision that it is not older than",
			File: "service/board/board.go", Anchor: "\tb.revision = number\n", Becomes: "\t_, _, b.revision = b.source.Touched()\n\t_ = number\n",
			In: "./service/board", Run: "^TestRevisionOfRows$",
		},
		{
			Name: "operators-share-with-any-tenant", Breaks: "what one tenant's operators are shown is not shared with another's",
			File: "handlers/pages.go", Anchor: "\t\tkey += r.principal.Tenant\n", Becomes: "\t\tkey += \"x\"\n",
			In: "./handlers", Run: "^TestSharedWithinTenant$", Needs: "etcd",
		},
		{
			Name: "operators-keep-no-count", Breaks: "answers that are forgotten leave room for others",
			File: "handlers/pages.go", Anchor: "\t\t\tp.bytes -= len(old.text)\n", Becomes: "\t\t\t_ = old.text\n",
			In: "./handlers", Run: "^TestSharedForLong$", Needs: "etcd",
		},
		{
			Name: "operators-revoke-with-the-client", Breaks: "a revocation is not given up with its client",
			File: "service/revoke.go", Anchor: "RemoveAndPut(context.WithoutCancel(ctx)", Becomes: "RemoveAndPut(ctx",
			In: "./service", Run: "^TestRevokeOutlivesItsOperator$",
		},
		{
			Name: "operators-revoke-by-a-late-view", Breaks: "a view that is late is not taken for what changed since an operator looked",
			File: "service/revoke.go", Anchor: " || found.Entry.Number < req.Fence", Becomes: "",
			In: "./service", Run: "^TestRevokeSeenElsewhere$",
		},
		{
			Name: "audit-reads-too-much-of-a-time", Breaks: "what is on record of a busy moment is read in parts",
			File: "audit/back.go", Anchor: "return !s.allOfIt && s.matched > enough", Becomes: "return s.allOfIt && s.matched > enough",
			In: "./audit", Run: "^TestReads$",
		},
		{
			Name: "records-walk-to-their-bounds", Breaks: "of a list within bounds what is beyond them is passed over",
			File: "store/etcd/records.go", Anchor: "	case k.ID < q.From:\n", Becomes: "	case k.ID < q.From && q.Kind == \"\":\n",
			In: "./store/etcd", Run: "^TestListWithinBounds$", Needs: "etcd",
		},
		{
			Name: "audit-hides-clocks-ahead", Breaks: "what is on record by a clock that is ahead is shown",
			File: "audit/back.go", Anchor: "weekOf(now) + 2) //", Becomes: "weekOf(now) + 1) //",
			In: "./audit", Run: "^TestClockAhead$",
		},
		{
			Name: "operators-revoke-keeps-the-lease", Breaks: "the lease of an entry that was revoked is free or ended",
			File: "store/etcd/remove_put.go", Anchor: "\t\ts.leases.left(e, why)\n", Becomes: "\t\t_ = why\n",
			In: "./store/etcd", Run: "^TestLeaseOfARevokedEntry$", Needs: "etcd",
		},
		{
			Name: "operators-watch-keeps-rows", Breaks: "who watches a list is told which rows are gone",
			File: "handlers/watch_parts.go", Anchor: "return changed, !slices.Equal(p.order, told.order),", Becomes: "return changed, len(changed) > 0 && !slices.Equal(p.order, told.order),",
			In: "./handlers", Run: "^TestSince$", Needs: "etcd",
		},
		{
			Name: "audit-webhooks-push-out-others", Breaks: "what users do to webhooks pushes out nothing of what operators did",
			File: "audit/trim.go", Anchor: "case !ok || !known.byUser():", Becomes: "case !ok || !known.byUser() || known.lasts() || !known.lasts():",
			In: "./audit", Run: "^TestTrimOfUsers$",
		},
		{
			Name: "audit-webhooks-own-tracks", Breaks: "nobody wipes out by tests and pauses that he made a webhook",
			File: "audit/trim.go", Anchor: "case known.lasts():", Becomes: "case !known.At.IsZero():",
			In: "./audit", Run: "^TestTrimOfUsers$",
		},
		{
			Name: "audit-operators-pause-as-users", Breaks: "what users do to webhooks pushes out nothing of what operators did to them",
			File: "audit/trim.go", Anchor: "return r.By.Scope == scopeOfUsers && strings", Becomes: "return strings",
			In: "./audit", Run: "^TestTrimOfUsers$",
		},
		{
			Name: "audit-tenants-push-out-others", Breaks: "many tenants that have much on record push out nothing of one that has little",
			File: "audit/share.go", Anchor: "gone := s.cut(s.fair())", Becomes: "gone := s.cut(s.mostOfTenant)",
			In: "./audit", Run: "^TestTrimIsFair$",
		},
		{
			Name: "audit-forgets-small-tenants", Breaks: "if there are more tenants than places, the newest records have them",
			File: "audit/share.go", Anchor: "return max(1, left/others)", Becomes: "return left / others",
			In: "./audit", Run: "^TestTrimManyTenants$",
		},
		{
			Name: "audit-forgets-one-by-one", Breaks: "records are forgotten faster than they can be written",
			File: "audit/trim.go", Anchor: "atOnce = 16", Becomes: "atOnce = 1",
			In: "./audit", Run: "^TestTrimPace$",
		},
		{
			Name: "audit-forgets-late", Breaks: "where many records were forgotten, the next round comes soon",
			File: "audit/trim.go", Anchor: "if forgotten >= many {", Becomes: "if forgotten > 10*many {",
			In: "./audit", Run: "^TestTrimPace$",
		},
		{
			Name: "audit-webhooks-too-fast", Breaks: "what a tenant does to webhooks in a short time is bounded",
			File: "audit/journal.go", Anchor: "if err := j.paceOf(r).Take(r.By.Tenant, r.At); err != nil {", Becomes: "if err := j.paceOf(r).Take(r.ID, r.At); err != nil && j.now == nil {",
			In: "./audit", Run: "^TestJournal$",
		},
		{
			Name: "audit-users-keep-operators-out", Breaks: "who uses webhooks keeps no operator from acting",
			File: "audit/journal.go", Anchor: "case !r.byUser():", Becomes: "case r.Action == RevokeEntry:",
			In: "./audit", Run: "^TestJournalOfUsers$",
		},
		{
			Name: "audit-users-keep-from-deleting", Breaks: "who uses webhooks keeps nobody from deleting one",
			File: "audit/journal.go", Anchor: "case r.Action == DeleteWebhook:", Becomes: "case r.Action == \"\":",
			In: "./audit", Run: "^TestJournalOfUsers$",
		},
		{
			Name: "webhook-change-not-on-record", Breaks: "each change of a webhook is in the audit",
			File: "webhook/subscription/subscriptions.go", Anchor: "			if err := r.record(next); err != nil {", Becomes: "			if err := r.record(next); err != nil && next.Paused {",
			In: "./webhook/subscription", Run: "^TestNothingWithoutRecord$",
		},
		{
			Name: "webhook-deleted-without-record", Breaks: "no webhook is deleted without its record",
			File: "webhook/subscription/subscriptions.go", Anchor: "s.record(ctx, who, audit.DeleteWebhook, was); err != nil {", Becomes: "s.record(ctx, who, audit.DeleteWebhook, was); err != nil && bad != nil {",
			In: "./webhook/subscription", Run: "^TestNothingWithoutRecord$",
		},
		{
			Name: "webhook-unchanged-on-record", Breaks: "who changes nothing fills no audit",
			File: "webhook/subscription/subscriptions.go", Anchor: "if bytes.Equal(next.encode(), was.encode()) {", Becomes: "if bytes.Equal(nil, was.encode()) {",
			In: "./webhook/subscription", Run: "^TestUnchangedIsNotOnRecord$",
		},
		{
			Name: "webhook-change-on-record-again", Breaks: "a change that is tried again is on record once",
			File: "webhook/subscription/subscriptions.go", Anchor: "if attempt == 0 {\n\t\t\tif err := r.record(next)", Becomes: "if attempt >= 0 {\n\t\t\tif err := r.record(next)",
			In: "./webhook/subscription", Run: "^TestOnRecordOnce$",
		},
		{
			Name: "webhook-deletion-on-record-again", Breaks: "a deletion that is tried again is on record once",
			File: "webhook/subscription/subscriptions.go", Anchor: "if attempt == 0 {\n\t\t\tif err := s.record(ctx, who, audit.DeleteWebhook", Becomes: "if attempt >= 0 {\n\t\t\tif err := s.record(ctx, who, audit.DeleteWebhook",
			In: "./webhook/subscription", Run: "^TestOnRecordOnce$",
		},
		{
			Name: "operators-are-shown-their-own-deliveries", Breaks: "an operator is shown the deliveries of the tenant he asked for",
			File: "handlers/deliveries.go", Anchor: "a.Deliveries.List(r.context(), who.Tenant, id", Becomes: "a.Deliveries.List(r.context(), r.principal.Tenant, id",
			In: "./handlers", Run: "^TestAdminWebhook$", Needs: "etcd",
		},
		{
			Name: "operators-redeliver-as-users", Breaks: "an operator has deliveries made again as an operator",
			File: "handlers/console_webhook.go", Anchor: "return a.deliverAgain(r, who)", Becomes: "who.By.Scope = \"webhooks:write\"\n\treturn a.deliverAgain(r, who)",
			In: "./handlers", Run: "^TestAdminWebhook$", Needs: "etcd",
		},
		{
			Name: "operators-see-webhooks-of-any-tenant", Breaks: "an operator of a tenant sees and pauses no other tenant's webhooks",
			File: "handlers/console_webhook.go", Anchor: "if err := r.operate(tenant); err != nil {", Becomes: "if err := r.operate(tenant); err != nil && r.principal == nil {",
			In: "./handlers", Run: "^TestAdminWebhookRefusals$", Needs: "etcd",
		},
		{
			Name: "operators-pause-webhooks-without-a-reason", Breaks: "an operator says why a tenant's webhook is paused",
			File: "handlers/console_webhook.go", Anchor: `lock.CheckExplanation(body.Reason); wrong != ""`, Becomes: `lock.CheckExplanation(body.Reason); wrong == "?"`,
			In: "./handlers", Run: "^TestAdminWebhookRefusals$", Needs: "etcd",
		},
		{
			Name: "webhook-secret-url-on-record", Breaks: "the audit has nothing of a webhook's URL but scheme and host",
			File: "webhook/subscription/record.go", Anchor: `return u.Scheme + "://" + u.Host`, Becomes: `return u.String()`,
			In: "./webhook/subscription", Run: "^TestOnRecord$",
		},
		{
			Name: "webhook-redelivery-not-on-record", Breaks: "who asks for a delivery is on record",
			File: "webhook/outbox/deliveries.go", Anchor: "d.journal.Put(ctx, record); err != nil {", Becomes: "d.journal.Put(ctx, record); err != nil && record.Tenant == \"\" {",
			In: "./webhook/outbox", Run: "^TestAskedIsOnRecord$",
		},
	}
}
