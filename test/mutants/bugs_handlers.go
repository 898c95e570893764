package main

// handlersBugs break what HTTP promises.
func handlersBugs() []Bug {
	return []Bug{
		{
			Name: "handlers-refused-set-counted-once", Breaks: "what a refusal of a set takes is counted, of which each holder is told twice",
			File: "handlers/fit.go", Anchor: "return 2*(maxRefusalBytes/2-left) + rowBytes", Becomes: "return maxRefusalBytes/2 - left + rowBytes",
			In: "./handlers", Run: "^TestRefusalOfASetFits$",
		},
		{
			Name: "handlers-refused-set-without-bound", Breaks: "a refusal of a set is bounded as that of a lock is",
			File: "handlers/fit.go", Anchor: "	left := maxRefusalBytes / 2\n	for", Becomes: "	left := maxRefusalBytes\n	for",
			In: "./handlers", Run: "^TestRefusalOfASetFits$",
		},
		{
			Name: "openapi-example-is-refused", Breaks: "what stands as an example of a body is what the server takes",
			File: "openapi/openapi.json", Anchor: `"mode": "semaphore",`, Becomes: `"mode": "exclusive",`,
			In: "./openapi", Run: "^TestExamplesOfBodies$",
		},
		{
			Name: "openapi-null-of-some", Breaks: "null is the same as leaving an optional field out, whichever it is",
			File: "openapi/openapi.json", Anchor: "\"nullable\": true,\n            \"type\": \"number\"\n          }\n        },\n        \"type\": \"object\"\n      },\n      \"AdminBlocker\"",
			Becomes: "\"type\": \"number\"\n          }\n        },\n        \"type\": \"object\"\n      },\n      \"AdminBlocker\"",
			In:      "./openapi", Run: "^TestNullIsLeavingOut$",
		},
		{
			Name: "log-samples-refusals", Breaks: "what is refused or fails has a line in the log, also if not each request has",
			File: "handlers/request.go", Anchor: "every <= 1 || status >= http.StatusBadRequest || ", Becomes: "every <= 1 || ",
			In: "./handlers", Run: "^TestLogEvery$",
		},
		{
			Name: "handlers-key-is-new-work", Breaks: "a key gets its place back from a server that has no memory for new work",
			File: "handlers/admit.go", Anchor: " && !(o.keyed && r.resumes())", Becomes: "",
			In: "./handlers", Run: "^TestKeyGoesOnWithoutMemory$", Needs: "etcd",
		},
		{
			Name: "handlers-any-key-is-known", Breaks: "a key that is not known is new work",
			File: "service/acquire.go", Anchor: "return state != view.Unseen && state != view.Gone", Becomes: "return state != view.Gone",
			In: "./handlers", Run: "^TestKeyGoesOnWithoutMemory$", Needs: "etcd",
		},
		{
			Name: "latency-of-slow-bodies", Breaks: "how slowly a client sends its body says nothing of how fast the server is",
			File: "handlers/request.go", Anchor: "r.waits, took-r.arriving)", Becomes: "r.waits, took)",
			In: "./handlers", Run: "^TestSlowBodyIsNotSlow$", Needs: "etcd",
		},
		{
			Name: "latency-of-acquires-that-wait", Breaks: "an acquire that waits does not count as slow",
			File: "handlers/locks.go", Anchor: "r.waits = req.Wait > 0 && !req.Async", Becomes: "r.waits = false",
			In: "./handlers", Run: "^TestWaitsAreNotSlow$", Needs: "etcd",
		},
		{
			Name: "latency-of-entries-that-wait", Breaks: "a long poll of an entry does not count as slow",
			File: "handlers/locks.go", Anchor: "r.waits = wait > 0", Becomes: "r.waits = false",
			In: "./handlers", Run: "^TestWaitsAreNotSlow$", Needs: "etcd",
		},
		{
			Name: "latency-of-event-streams", Breaks: "a stream of events does not count as slow",
			File: "handlers/events.go", Anchor: "r.waits = true", Becomes: "r.waits = false",
			In: "./handlers", Run: "^TestWaitsAreNotSlow$", Needs: "etcd",
		},
		{
			Name: "latency-of-watches", Breaks: "a watch does not count as slow",
			File: "handlers/watch.go", Anchor: "r.waits = true", Becomes: "r.waits = false",
			In: "./handlers", Run: "^TestWaitsAreNotSlow$", Needs: "etcd",
		},
		{
			Name: "looking-forgets-locks-of-sets", Breaks: "of a set that worked after its lease each lock has the evidence",
			File: "service/events.go", Anchor: "		if entry.Set {\n", Becomes: "		if entry == nil {\n",
			In: "./handlers", Run: "^TestEvidenceOfSets$", Needs: "etcd",
		},
		{
			Name: "deadlocks-since-ever", Breaks: "deadlocks and orders say since when they are known",
			File: "handlers/deadlocks.go", Anchor: "api.InstantOf(a.Locks.Started())", Becomes: "api.InstantOf(time.Time{})",
			In: "./handlers", Run: "^TestLockOrder$", Needs: "etcd",
		},
		{
			Name: "audit-closure-opened-without-reason", Breaks: "why a closure was ended is on record",
			File: "handlers/closures.go", Anchor: "Reason: reason,", Becomes: "Reason: reason[:0],",
			In: "./handlers", Run: "^TestClosures$", Needs: "etcd",
		},
		{
			Name: "audit-quota-reset-without-reason", Breaks: "why a quota was reset is on record",
			File: "handlers/quota.go", Anchor: "By: r.who(), Reason: reason}", Becomes: "By: r.who(), Reason: reason[:0]}",
			In: "./handlers", Run: "^TestQuota$", Needs: "etcd",
		},
		{
			Name: "audit-webhooks-without-reason", Breaks: "why something was done to a webhook is on record",
			File: "handlers/webhooks.go", Anchor: "who.Reason, err = r.reasonParam()", Becomes: "_, err = r.reasonParam()",
			In: "./handlers", Run: "^TestWebhooksOnRecord$", Needs: "etcd",
		},
		{
			Name: "handlers-any-scope", Breaks: "a request needs its scope",
			File: "handlers/admit.go", Anchor: "if !slices.ContainsFunc(o.scopes, r.principal.Allows) {", Becomes: "if len(o.scopes) == 0 {",
			In: "./handlers", Run: "^TestScopes$", Needs: "etcd",
		},
		{
			Name: "handlers-any-name", Breaks: "a token is limited to the names of its patterns",
			File: "handlers/admit.go", Anchor: "if !r.principal.MayUse(name) {", Becomes: "if false {",
			In: "./handlers", Run: "^TestPatterns$", Needs: "etcd",
		},
		{
			Name: "handlers-any-set", Breaks: "a token is limited to the names of its patterns, in sets too",
			File: "handlers/locks.go", Anchor: ", May: r.principal.MayUse}", Becomes: "}",
			In: "./handlers", Run: "^TestPatternsOfSets$", Needs: "etcd",
		},
		{
			Name: "handlers-list-shows-all", Breaks: "a list has only the locks that the token may use",
			File: "handlers/list.go", Anchor: ", May: r.principal.MayUse, Effort", Becomes: ", Effort",
			In: "./handlers", Run: "^TestListIsFiltered$", Needs: "etcd",
		},
		{
			Name: "handlers-admin-for-all", Breaks: "what is for operators needs the scope `admin`",
			File: "handlers/operators.go", Anchor: "[]auth.Scope{auth.Admin, auth.TenantAdmin}", Becomes: "[]auth.Scope{auth.Admin, auth.TenantAdmin, auth.LocksRead}",
			In: "./handlers", Run: "^TestAdminIsForAdmins$", Needs: "etcd",
		},
		{
			Name: "handlers-tenant-admin-sees-all", Breaks: "the scope `tenant-admin` is for the token's own tenant",
			File: "auth/principal.go", Anchor: "p.Allows(TenantAdmin) && tenant == p.Tenant", Becomes: "p.Allows(TenantAdmin) && tenant != \"\"",
			In: "./handlers", Run: "^TestTenantAdminSeesOwnTenant$", Needs: "etcd",
		},
		{
			Name: "handlers-operator-any-name", Breaks: "a token's name patterns hold for operators too",
			File: "handlers/deadlocks.go", Anchor: "if may(claim.Name) {", Becomes: "if true {",
			In: "./handlers", Run: "^TestOperatorsPatterns$", Needs: "etcd",
		},
		{
			Name: "handlers-long-body", Breaks: "a body is 16 KiB at most",
			File: "handlers/body.go", Anchor: "maxBody     = 16 << 10", Becomes: "maxBody     = 16 << 20",
			In: "./handlers", Run: "^TestTooLarge$", Needs: "etcd",
		},
		{
			Name: "handlers-unknown-field", Breaks: "a field that is not known is refused, not passed over",
			File: "handlers/body.go", Anchor: "\td.DisallowUnknownFields()\n", Becomes: "",
			In: "./handlers", Run: "^TestBadBodies$", Needs: "etcd",
		},
		{
			Name: "handlers-field-twice", Breaks: "a field that is there twice is refused",
			File: "handlers/body.go", Anchor: "case len(before) < manyMembers && slices.Contains(before, name):",
			Becomes: "case len(before) > manyMembers && slices.Contains(before, name):",
			In:      "./handlers", Run: "^TestBadBodies$", Needs: "etcd",
		},
		{
			Name: "handlers-unknown-parameter", Breaks: "a query parameter that is not known is refused",
			File: "handlers/admit.go", Anchor: "case !slices.Contains(known, name):", Becomes: "case false && !slices.Contains(known, name):",
			In: "./handlers", Run: "^TestQueryIsStrict$", Needs: "etcd",
		},
		{
			Name: "handlers-two-bearers", Breaks: "one bearer token speaks for a request",
			File: "handlers/admit.go", Anchor: "if len(values) != 1 {\n\t\treturn lock.Errorf(lock.Unauthenticated,",
			Becomes: "if len(values) == 0 {\n\t\treturn lock.Errorf(lock.Unauthenticated,",
			In:      "./handlers", Run: "^TestBadBearers$", Needs: "etcd",
		},
		{
			Name: "handlers-encoded-slash", Breaks: "a path has one reading",
			File: "handlers/admit.go", Anchor: "if slash(sent) && !slash(r.URL.EscapedPath()) {", Becomes: "if false && slash(sent) {",
			In: "./handlers", Run: "^TestEncodedSlashBesideABrace$", Needs: "etcd",
		},
		{
			Name: "handlers-request-id-as-sent", Breaks: "a client writes nothing of its own into the log",
			File: "handlers/request.go", Anchor: "len(given) <= maxLength && strings.IndexFunc(given, func(c rune) bool { return !harmless(c) }) < 0",
			Becomes: "(len(given) <= maxLength || harmless(' '))",
			In:      "./handlers", Run: "^TestRequestID$", Needs: "etcd",
		},
		{
			Name: "handlers-cause-in-the-answer", Breaks: "an internal error's text stays in the log",
			File: "handlers/problem.go", Anchor: `Detail: "something went wrong in the server; the request id finds it in the log"`,
			Becomes: `Detail: err.Error()`,
			In:      "./handlers", Run: "^TestInternal$", Needs: "etcd",
		},
		{
			Name: "handlers-sure-of-the-unknown", Breaks: "a 503 says whether it may have taken effect",
			File: "handlers/problem.go", Anchor: "p.MayHaveTakenEffect = &e.OutcomeUnknown", Becomes: "p.MayHaveTakenEffect = new(bool)",
			In: "./handlers", Run: "^TestStoreUnavailable", Needs: "etcd",
		},
		{
			Name: "handlers-endless-page", Breaks: "a page is bounded in bytes",
			File: "handlers/fit.go", Anchor: "p.Locks, p.Next = p.Locks[:n], p.Locks[n-1].Name", Becomes: "_ = n",
			In: "./handlers", Run: "^TestPageIsBounded$", Needs: "etcd",
		},
		{
			Name: "handlers-endless-look", Breaks: "what is told of a lock is bounded in bytes",
			File: "handlers/fit.go", Anchor: "v.Waiters = v.Waiters[:fit(", Becomes: "_ = v.Waiters[:fit(",
			In: "./handlers", Run: "^TestLockIsBounded$", Needs: "etcd",
		},
		{
			Name: "handlers-endless-refusal", Breaks: "what a refusal tells is bounded in bytes",
			File: "handlers/fit.go", Anchor: "\t\tg.Holders = fitHolders(g.Holders, &left, true)\n", Becomes: "\t\tfitHolders(g.Holders, &left, true)\n",
			In: "./handlers", Run: "^TestRefusalIsBounded$", Needs: "etcd",
		},
		{
			Name: "handlers-endless-cycle", Breaks: "a cycle is told of in part",
			File: "handlers/deadlocks.go", Anchor: "cycle[:min(len(cycle), maxShownWaits)]", Becomes: "cycle",
			In: "./handlers", Run: "^TestLongCycleIsBounded$", Needs: "etcd",
		},
		{
			Name: "handlers-metadata-in-lists", Breaks: "lists are without metadata",
			File: "handlers/dto.go", Anchor: "out[i].Metadata = nil", Becomes: "_ = i",
			In: "./handlers", Run: "^TestListsAreWithoutMetadata$", Needs: "etcd",
		},
		{
			Name: "handlers-html", Breaks: "answers are not escaped for HTML, which makes them six times as long",
			File: "api/json.go", Anchor: "\te.SetEscapeHTML(false)\n", Becomes: "",
			In: "./handlers", Run: "^TestListsAreWithoutMetadata$", Needs: "etcd",
		},
		{
			Name: "handlers-no-write-deadline", Breaks: "a client that does not read its answer is cut off",
			File: "handlers/answer.go", Anchor: "		w.deadline(time.Now().Add(w.timeout))", Becomes: "_ = w.timeout",
			In: "./handlers", Run: "^TestNeverRead$", Needs: "etcd",
		},
		{
			Name: "handlers-answers-unbounded", Breaks: "a tenant's unread answers are bounded",
			File: "handlers/shares.go", Anchor: "s.byTenant[tenant]+size > s.mostOfTenant", Becomes: "s.byTenant[tenant] < 0",
			In: "./handlers", Run: "^TestNoRoom$", Needs: "etcd",
		},
		{
			Name: "handlers-answers-kept", Breaks: "what an answer took is given back",
			File: "handlers/request.go", Anchor: "\t\tdefer a.give(r)\n", Becomes: "",
			In: "./handlers", Run: "^TestNeverRead$", Needs: "etcd",
		},
		{
			Name: "handlers-499-sent", Breaks: "a client that closed its side of the connection gets no answer",
			File: "handlers/answer.go", Anchor: "if status == statusClientGone {", Becomes: "if false {",
			In: "./handlers", Run: "^TestHalfClosed$", Needs: "etcd",
		},
		{
			Name: "handlers-half-a-pair", Breaks: "half of a surrogate pair is refused, not replaced",
			File: "handlers/body.go", Anchor: "if halved(text[i+1 : end]) {", Becomes: "if false && halved(text[i+1:end]) {",
			In: "./handlers", Run: "^TestBadBodies$", Needs: "etcd",
		},
		{
			Name: "handlers-compressed", Breaks: "a Content-Encoding is refused",
			File: "handlers/body.go", Anchor: `if !strings.EqualFold(coding, "identity") {`, Becomes: `if strings.EqualFold(coding, "x") {`,
			In: "./handlers", Run: "^TestContentEncoding$", Needs: "etcd",
		},
		{
			Name: "handlers-any-charset", Breaks: "another charset than UTF-8 is refused",
			File: "handlers/body.go", Anchor: `case named && !strings.EqualFold(charset, "utf-8"):`, Becomes: `case named && charset == "x":`,
			In: "./handlers", Run: "^TestCharsets$", Needs: "etcd",
		},
		{
			Name: "handlers-state-empty", Breaks: "a state is one of its enum",
			File: "handlers/list.go", Anchor: `if _, sent := r.GetQuery("state"); sent &&`, Becomes: `if req.State != "" &&`,
			In: "./handlers", Run: "^TestBadLists$", Needs: "etcd",
		},
		{
			Name: "handlers-zero-without-samples", Breaks: "without samples there are no percentiles",
			File: "handlers/dto.go", Anchor: "if p.Samples == 0 {", Becomes: "if p.Samples < 0 {",
			In: "./handlers", Run: "^TestLockFree$", Needs: "etcd",
		},
		{
			Name: "handlers-scrapes-unbounded", Breaks: "few may ask for the metrics at once",
			File: "handlers/operations.go", Anchor: "const maxScrapes = 4", Becomes: "const maxScrapes = 1 << 20",
			In: "./handlers", Run: "^TestScrapesAreBounded$", Needs: "etcd",
		},
		{
			Name: "handlers-anybody-is-a-proxy", Breaks: "X-Forwarded-For is believed only of trusted proxies",
			File: "handlers/address.go", Anchor: "if !within(addr, trusted) {", Becomes: "if false && !within(addr, trusted) {",
			In: "./handlers", Run: "^TestClientAddress$", Needs: "etcd",
		},
		{
			Name: "handlers-plain-refusals", Breaks: "what net/http refuses is a problem document",
			File: "handlers/listener.go", Anchor: "if status == 0 {", Becomes: "if status >= 0 {",
			In: "./handlers", Run: "^TestNotHTTP$", Needs: "etcd",
		},
		{
			Name: "handlers-busy-connections-give-way", Breaks: "the connection gives way over which nobody asks for anything",
			File: "handlers/connections.go", Anchor: "\tif c.place != nil {\n\t\tall.spare.Remove(c.place)\n\t\tc.place = nil\n\t}\n\tc.busy++\n", Becomes: "\tc.busy++\n",
			In: "./handlers", Run: "^TestIdleConnectionsGiveWay$",
		},
		{
			Name: "handlers-connections-without-bound", Breaks: "there are files left for the store",
			File: "handlers/connections.go", Anchor: "\tif c.all < c.most {\n", Becomes: "\tif c.most > 0 {\n",
			In: "./handlers", Run: "^TestIdleConnectionsGiveWay$",
		},
		{
			Name: "handlers-tenant-takes-all-connections", Breaks: "requests of one tenant leave connections for others",
			File: "handlers/connections.go", Anchor: "all.byTenant[tenant] >= share*(all.most-all.busy)", Becomes: "all.busy >= share*all.most",
			In: "./handlers", Run: "^TestConnectionsOfOneTenant$",
		},
		{
			Name: "handlers-headers-unbounded", Breaks: "a request that waits keeps few headers",
			File: "handlers/admit.go", Anchor: "if fields > maxHeaders {", Becomes: "if len(h) > 40*maxHeaders {",
			In: "./handlers", Run: "^TestHeadersAreFew$", Needs: "etcd",
		},
		{
			Name: "handlers-trailers-unbounded", Breaks: "nor header fields that come behind the body",
			File: "handlers/body.go", Anchor: "checkHeaders(r.arrived.Trailer)", Becomes: "checkHeaders(r.Request.Trailer)",
			In: "./handlers", Run: "^TestHeadersAreFew$", Needs: "etcd",
		},
		{
			Name: "handlers-used-last-gives-way", Breaks: "the connection gives way over which for longest nobody asked for anything",
			File: "handlers/connections.go", Anchor: "c.place = all.spare.PushBack(c)", Becomes: "c.place = all.spare.PushFront(c)",
			In: "./handlers", Run: "^TestUsedLastGivesWayLast$",
		},
		{
			Name: "prefer-split-in-quotes", Breaks: "a comma in a quoted string parts no preferences",
			File: "handlers/prefer.go", Anchor: "case s[i] == sep && !quoted:", Becomes: "case s[i] == sep:",
			In: "./handlers", Run: "^TestPrefer$",
		},
		{
			Name: "log-without-address", Breaks: "the access log tells who called, by address",
			File: "handlers/request.go", Anchor: `slog.String("client", textOfAddress(r.address())),`, Becomes: `slog.String("client", ""),`,
			In: "./handlers", Run: "^TestLog$",
		},
		{
			Name: "log-without-subject", Breaks: "the access log tells who called, by subject",
			File: "handlers/request.go", Anchor: `, slog.String("subject", r.principal.Subject))`, Becomes: ")",
			In: "./handlers", Run: "^TestLog$",
		},
		{
			Name: "log-without-key", Breaks: "the access log of a refused token names its key",
			File: "handlers/admit.go", Anchor: `r.note(slog.String("kid", refused.KeyID))`, Becomes: `r.note(slog.String("kid", ""))`,
			In: "./handlers", Run: "^TestKeyOfAStranger$",
		},
		{
			Name: "docs-unknown-page-as-text", Breaks: "an unknown page below /docs/ is answered with a problem",
			File: "handlers/operations.go", Anchor: `if !openapi.IsDocsFile(r.Param("file")) {`, Becomes: `if !openapi.IsDocsFile(r.Param("file")) && false {`,
			In: "./handlers", Run: "^TestDocs$",
		},
		{
			Name: "number-rounded-into-its-bounds", Breaks: "a number is compared with a bound as it was sent",
			File: "api/number.go", Anchor: "\t\treturn sign, false\n", Becomes: "\t\treturn 0, false\n",
			In: "./api", Run: "^TestDecimals$",
		},
		{
			Name: "number-overflows", Breaks: "a number that no duration can be is out of all bounds",
			File: "api/number.go", Anchor: "return sign * math.MaxInt64, true", Becomes: "return 0, true",
			In: "./api", Run: "^TestDecimals$",
		},
		{
			Name: "number-with-a-fraction-is-whole", Breaks: "a whole number of a request has no fraction",
			File: "api/number.go", Anchor: "func (w *Whole) UnmarshalJSON(text []byte) error {\n\tn, exact := scaled(string(text), 0)\n",
			Becomes: "func (w *Whole) UnmarshalJSON(text []byte) error {\n\tn, exact := scaled(string(text), 0)\n\texact = true\n",
			In:      "./handlers", Run: "^TestBadBodies$",
		},
		{
			Name: "mismatch-does-not-say-with-what", Breaks: "mode_mismatch says as what the lock is in use",
			File: "lock/errors.go", Anchor: `Detail: "the lock " + inUse.Name + " is in use " + as, `, Becomes: `Detail: "the lock is in use in another mode" + as[:0], `,
			In: "./handlers", Run: "^TestModeMismatch$",
		},
		{
			Name: "held-says-its-title", Breaks: "423 says that a request with wait_seconds would queue",
			File: "lock/errors.go", Anchor: `Detail: "others are in front; with wait_seconds the request would queue"`, Becomes: `Detail: "the lock is held"`,
			In: "./handlers", Run: "^TestLockSetRefused$",
		},
		{
			Name: "refusal-without-holders", Breaks: "a refusal says that nobody holds",
			File: "api/problem.go", Anchor: "`json:\"holders,omitzero\" validate:\"optional\"`", Becomes: "`json:\"holders,omitempty\"`",
			In: "./handlers", Run: "^TestNobodyHolds$", Needs: "etcd",
		},
		{
			Name: "refusal-of-a-set-without-locks", Breaks: "the refusal of a set whose locks nobody uses says so",
			File: "handlers/locksets.go", Anchor: "	out := []api.BusyLock{}\n", Becomes: "	var out []api.BusyLock\n",
			In: "./handlers", Run: "^TestNobodyHolds$", Needs: "etcd",
		},
		{
			Name: "refusal-of-a-set-hides-locks", Breaks: "the refusal of a set names the locks in the way where it does without their holders",
			File: "handlers/locksets.go", Anchor: "	for _, b := range busy {\n",
			Becomes: "	for _, b := range busy {\n		if len(b.Holders) == 0 && b.Waiters == 0 {\n			continue\n		}\n",
			In:      "./handlers", Run: "^TestRefusalIsBounded$",
		},
		{
			Name: "refusal-of-a-set-names-free-locks", Breaks: "the refusal of a set names no locks that nobody uses",
			File: "service/refusal.go", Anchor: "		case len(b.Holders) > 0 || b.Waiters > 0:", Becomes: "		default:",
			In: "./handlers", Run: "^TestSetIsRefusedAsOneLock$", Needs: "etcd",
		},
		{
			Name: "refusal-of-a-set-holder-twice", Breaks: "who holds several locks of a set that is refused is named once",
			File: "handlers/locksets.go", Anchor: "				seen[h.Entry.ID] = true\n", Becomes: "				_ = h\n",
			In: "./handlers", Run: "^TestSetIsRefusedAsOneLock$", Needs: "etcd",
		},
		{
			Name: "refusal-of-a-set-counts-one-lock", Breaks: "the refusal of a set counts who waits for any of its locks",
			File: "handlers/locksets.go", Anchor: "		*p.Waiting += b.Waiters\n", Becomes: "		*p.Waiting = b.Waiters\n",
			In: "./handlers", Run: "^TestSetIsRefusedAsOneLock$", Needs: "etcd",
		},
		{
			Name: "refusal-of-a-set-counts-holders-once", Breaks: "what the refusal of a set tells is bounded in bytes, though it tells of holders twice",
			File: "handlers/fit.go", Anchor: "	left := maxRefusalBytes / 2\n", Becomes: "	left := maxRefusalBytes\n",
			In: "./handlers", Run: "^TestRefusalIsBounded$", Needs: "etcd",
		},
		{
			Name: "closures-too-many-without-when", Breaks: "who closes too often is told when to come again",
			File: "service/closing.go", Anchor: "		err.RetryAfter = s.reopens(next)\n", Becomes: "		_ = next\n",
			In: "./service", Run: "^TestClosureIsChecked$",
		},
		{
			Name: "default-ttl-beyond-the-longest", Breaks: "the default lease is one that can be had",
			File: "service/service.go", Anchor: "min(orDuration(c.DefaultTTL, 30*time.Second), c.MaxTTL)", Becomes: "orDuration(c.DefaultTTL, 30*time.Second)",
			In: "./handlers", Run: "^TestDefaultTTLFits$", Needs: "etcd",
		},
		{
			Name: "quota-version-below-none", Breaks: "what cannot be a version of a quota is refused",
			File: "api/number.go", Anchor: "!exact || n < 0 {", Becomes: "!exact {",
			In: "./handlers", Run: "^TestQuotaVersions$", Needs: "etcd",
		},
	}
}
