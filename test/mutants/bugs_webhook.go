package main

// webhookBugs break what one delivery is: its signature, where it may go, the attempt, the
// schedule, and how receivers share a sender.
func webhookBugs() []Bug {
	return []Bug{
		{
			Name: "webhook-test-of-another-type", Breaks: "what receivers are sent is as the document describes it",
			File: "api/event.go", Anchor: "const WebhookTest = \"webhook.test\"", Becomes: "const WebhookTest = \"webhook.tests\"",
			In: "./test/receivers", Run: "^TestBodiesAreDescribed$",
		},
		{
			Name: "webhook-secret-is-printed", Breaks: "a secret is not shown by whatever prints what holds it",
			File: "webhook/secret.go", Anchor: "	key func() []byte\n}\n\nfunc secretOf(key []byte) Secret { return Secret{key: func() []byte { return key }} }",
			Becomes: "	key  func() []byte\n	text string\n}\n\nfunc secretOf(key []byte) Secret {\n	return Secret{key: func() []byte { return key }, text: secretPrefix + base64.StdEncoding.EncodeToString(key)}\n}",
			In:      "./webhook", Run: "^TestSecretIsNeverShown$",
		},
		{
			Name: "webhook-short-secret", Breaks: "a secret has at least 24 bytes",
			File: "webhook/secret.go", Anchor: "if len(key) < minKey || len(key) > maxKey {", Becomes: "if len(key) > maxKey {",
			In: "./webhook", Run: "^TestParseSecret$",
		},
		{
			Name: "webhook-signs-with-the-last-alone", Breaks: "during a rotation each secret signs",
			File: "webhook/sign.go", Anchor: "range secrets {\n		mac", Becomes: "range secrets[len(secrets)-1:] {\n		mac",
			In: "./webhook", Run: "^TestSignWithSeveral$",
		},
		{
			Name: "webhook-id-with-a-dot", Breaks: "what is signed can be read in one way only",
			File: "webhook/sign.go", Anchor: "c != '-' && c != '_' && (c < '0'", Becomes: "c != '-' && c != '.' && c != '_' && (c < '0'",
			In: "./webhook", Run: "^TestSignRefuses$",
		},
		{
			Name: "webhook-old-timestamp", Breaks: "the timestamp is that of the attempt, and signed",
			File: "webhook/sign.go", Anchor: `id + "." + timestamp + "."`, Becomes: `id + "."`,
			In: "./webhook", Run: "^TestSignVectors$",
		},
		{
			Name: "webhook-address-unchecked", Breaks: "the address is judged when the connection is made",
			File: "webhook/sender.go", Anchor: "Resolver: newResolver(nameServer), ControlContext: c.Policy.Control,", Becomes: "Resolver: newResolver(nameServer),",
			In: "./webhook", Run: "^TestNames$",
		},
		{
			Name: "webhook-mapped-address", Breaks: "IPv4 in IPv6's form is judged as IPv4",
			File: "webhook/address.go", Anchor: `addr.WithZone("").Unmap()`, Becomes: `addr.WithZone("")`,
			In: "./webhook", Run: "^TestSpecialAddressesAreClosed$|^TestOtherFormsOfIPv4$",
		},
		{
			Name: "webhook-address-with-a-zone", Breaks: "a zone takes an address out of no range",
			File: "webhook/address.go", Anchor: `addr.WithZone("").Unmap()`, Becomes: `addr.Unmap()`,
			In: "./webhook", Run: "^TestZones$",
		},
		{
			Name: "webhook-nat64", Breaks: "an address behind a NAT64 is judged by its IPv4 address",
			File: "webhook/policy.go", Anchor: "if what := p.notPublic(inner); what != \"\" {", Becomes: "if what := p.notPublic(inner); what != \"\" && !isNAT64(addr.As16()) {",
			In: "./webhook", Run: "^TestOtherFormsOfIPv4$",
		},
		{
			Name: "webhook-shared-addresses", Breaks: "every special range of IANA is closed",
			File: "webhook/address.go", Anchor: "	add(\"a shared address of a provider\", \"100.64.0.0/10\")\n", Becomes: "",
			In: "./webhook", Run: "^TestSpecialAddressesAreClosed$",
		},
		{
			Name: "webhook-metadata-in-a-range", Breaks: "an allowed range does not open a metadata service",
			File: "webhook/policy.go", Anchor: "if isMetadata(addr) && !slices.Contains(p.allow, netip.PrefixFrom(addr, addr.BitLen())) {", Becomes: "if isMetadata(addr) && !p.allowed(addr) {",
			In: "./webhook", Run: "^TestMetadataStaysClosed$",
		},
		{
			Name: "webhook-allowed-tunnel", Breaks: "an allowed tunnel does not lead to what is closed",
			File: "webhook/policy.go", Anchor: "if what := p.closed(inner); what != \"\" {", Becomes: "if what := p.closed(inner); what == metadataService {",
			In: "./webhook", Run: "^TestAllow$",
		},
		{
			Name: "webhook-number-for-a-host", Breaks: "numbers that a resolver takes for addresses are refused",
			File: "webhook/url.go", Anchor: "if isNumber(labels[len(labels)-1]) {", Becomes: "if false && isNumber(labels[len(labels)-1]) {",
			In: "./webhook", Run: "^TestCheckURL$|^FuzzCheckURL$",
		},
		{
			Name: "webhook-other-alphabets", Breaks: "a host that is not ASCII is refused, not mapped",
			File: "webhook/url.go", Anchor: "case c >= 0x80:", Becomes: "case c == 0x80:",
			In: "./webhook", Run: "^TestCheckURL$",
		},
		{
			Name: "webhook-any-port", Breaks: "requests go to open ports only, when the connection is made too",
			File: "webhook/policy.go", Anchor: "case !p.portOpen(at.Port()):", Becomes: "case at.Port() == 0:",
			In: "./webhook", Run: "^TestControl$",
		},
		{
			Name: "webhook-endless-head", Breaks: "the head of an answer is bounded",
			File: "webhook/exchange.go", Anchor: "bytes: maxHead,", Becomes: "bytes: 1 << 20,",
			In: "./webhook", Run: "^TestReadsNoMore$",
		},
		{
			Name: "webhook-endless-body", Breaks: "the body of an answer is bounded",
			File: "webhook/exchange.go", Anchor: "bytes: maxBody,", Becomes: "bytes: 1 << 20,",
			In: "./webhook", Run: "^TestReadsNoMore$",
		},
		{
			Name: "webhook-lines-without-bound", Breaks: "the head of an answer is bounded in lines",
			File: "webhook/exchange.go", Anchor: "lines: maxHeadLines,", Becomes: "lines: math.MaxInt,",
			In: "./webhook", Run: "^TestBadReceivers$/^too_many_headers$",
		},
		{
			Name: "webhook-endless-handshake", Breaks: "what is read for a TLS handshake is bounded",
			File: "webhook/sender.go", Anchor: "bytes: maxHandshake,", Becomes: "bytes: 1 << 20,",
			In: "./webhook", Run: "^TestTLS$",
		},
		{
			Name: "webhook-question-outlives-its-attempt", Breaks: "nothing goes on when an attempt is over",
			File: "webhook/resolve.go", Anchor: "context.AfterFunc(ctx, func() { _ = conn.SetDeadline(past) })", Becomes: "_ = past",
			In: "./webhook", Run: "^TestNames$",
		},
		{
			Name: "webhook-slow-goodbye", Breaks: "an attempt takes 15 s in all",
			File: "webhook/sender.go", Anchor: "func() { hangUp(conn) }", Becomes: "func() { _ = conn.Close() }",
			In: "./webhook", Run: "^TestGoodbyeIsBounded$",
		},
		{
			Name: "webhook-old-tls", Breaks: "TLS 1.2 or later",
			File: "webhook/sender.go", Anchor: "MinVersion: tls.VersionTLS12,", Becomes: "MinVersion: tls.VersionTLS10,",
			In: "./webhook", Run: "^TestTLS$",
		},
		{
			Name: "webhook-sent-too-late", Breaks: "what became too late while connecting is not sent",
			File: "webhook/sender.go", Anchor: "if m.Expired(s.now()) {", Becomes: "if m.Expired(now) {",
			In: "./webhook", Run: "^TestTooLateOnceConnected$",
		},
		{
			Name: "webhook-interrupted-is-failed", Breaks: "an attempt that its sender gave up is no fault of the receiver",
			File: "webhook/explain.go", Anchor: "if caller.Err() != nil {", Becomes: "if caller == nil {",
			In: "./webhook", Run: "^TestInterrupted$",
		},
		{
			Name: "webhook-retry-after-without-end", Breaks: "what a receiver asks for is bounded",
			File: "webhook/exchange.go", Anchor: "if err != nil || seconds > int64(maxRetryAfter/time.Second) {", Becomes: "if err != nil {",
			In: "./webhook", Run: "^TestRetryAfter$",
		},
		{
			Name: "webhook-retry-too-early-when-asked", Breaks: "Retry-After is obeyed after an attempt that was asked for",
			File: "webhook/schedule.go", Anchor: "at.After(p.Due) {\n		p.Due = at\n", Becomes: "at.After(p.Due) {\n		p.Due = p.Due.Add(0)\n",
			In: "./webhook", Run: "^TestAfterAsked$",
		},
		{
			Name: "webhook-retry-too-early", Breaks: "Retry-After is obeyed",
			File: "webhook/schedule.go", Anchor: "p.Due = now.Add(max(step, min(r.RetryAfter, maxRetryAfter)))", Becomes: "p.Due = now.Add(step)",
			In: "./webhook", Run: "^TestAfter$",
		},
		{
			Name: "webhook-retry-of-no-use", Breaks: "no attempt is planned for when the message is of no use",
			File: "webhook/schedule.go", Anchor: "		return p.unlessTooLate(p.Due)", Becomes: "return p.unlessTooLate(now)",
			In: "./webhook", Run: "^TestAfter$",
		},
		{
			Name: "webhook-disabled-by-a-clock", Breaks: "a clock that jumps disables no receiver",
			File: "webhook/schedule.go", Anchor: "case h.Failures >= disableFailures && now", Becomes: "case now",
			In: "./webhook", Run: "^TestHealth$",
		},
		{
			Name: "webhook-two-of-one-order", Breaks: "what has an order is delivered one at a time",
			File: "webhook/turns.go", Anchor: "fresh := at.order == nil", Becomes: "fresh := at.order == nil || at.order.jobs.empty()",
			In: "./webhook", Run: "^TestPoolKeepsItsPromises$",
		},
		{
			Name: "webhook-workers-without-shares", Breaks: "receivers of many tenants that hang leave a worker for another's",
			File: "webhook/turns.go", Anchor: "const share = 8", Becomes: "const share = 1",
			In: "./webhook", Run: "^TestDeadReceiversDelayNobodyElse$",
		},
		{
			Name: "webhook-tenant-takes-all-workers", Breaks: "the receivers of one tenant do not delay another's",
			File: "webhook/turns.go", Anchor: "if free := p.config.Workers - p.running; share*t.running >= free {", Becomes: "if free := p.config.Workers - p.running; free == 0 {",
			In: "./webhook", Run: "^TestDeadReceiversDelayNobodyElse$",
		},
		{
			Name: "webhook-paused-for-good", Breaks: "what waits for its tenant's turn is sent in the end",
			File: "webhook/turns.go", Anchor: "		p.ready.push(t)\n		p.dispatch()\n", Becomes: "		p.dispatch()\n",
			In: "./webhook", Run: "^TestPoolPacesTenants$",
		},
		{
			Name: "webhook-short-pauses", Breaks: "a tenant that waits for its turn is looked at a thousand times in a second at most",
			File: "webhook/turns.go", Anchor: "min(max(d, shortPause), longPause)", Becomes: "min(d, longPause)",
			In: "./webhook", Run: "^TestPausesAreNotShort$",
		},
		{
			Name: "webhook-pause-holds-up-others", Breaks: "who waits for a tenant's turn holds up no other",
			File: "webhook/turns.go", Anchor: "			p.pause(t, after)\n", Becomes: "			p.pause(t, after)\n			return\n",
			In: "./webhook", Run: "^TestPausedTenantHoldsUpNobody$",
		},
		{
			Name: "webhook-one-after-a-pause", Breaks: "a tenant that was paused has its attempts side by side again",
			File: "webhook/turns.go", Anchor: "	p.run(at, 1)\n	p.line(at)\n", Becomes: "	p.run(at, 1)\n",
			In: "./webhook", Run: "^TestAllBeginAfterAPause$",
		},
		{
			Name: "webhook-skipped-ends-the-turns", Breaks: "also beside one that may have no more workers",
			File: "webhook/turns.go", Anchor: "		skipped = 0\n", Becomes: "",
			In: "./webhook", Run: "^TestAllBeginAfterAPause$",
		},
		{
			Name: "webhook-asks-another", Breaks: "what is asked whether it attempts anything is what begins then",
			File: "webhook/turns.go", Anchor: "	o := t.ready.waiting[0].ready.waiting[0]\n", Becomes: "	all := t.ready.waiting[0].ready.waiting\n	o := all[len(all)-1]\n",
			In: "./webhook", Run: "^TestWhatRunsIsCounted$",
		},
		{
			Name: "webhook-begins-after-close", Breaks: "who waits for his tenant's turn begins nothing when the pool is closed",
			File: "webhook/turns.go", Anchor: "		if p.closed {\n			return\n		}\n		p.ready", Becomes: "		p.ready",
			In: "./webhook", Run: "^TestClosePoolWhilePaused$",
		},
		{
			Name: "webhook-attempts-without-pace", Breaks: "a tenant's attempts in a second are bounded",
			File: "cmd/api/webhooks.go", Anchor: "			return limits.Next(tenant, quota.WebhookAttempts)\n", Becomes: "			_ = limits.Next(tenant, quota.WebhookAttempts)\n			return 0\n",
			In: "./cmd/api", Run: "^TestWebhooksArePaced$",
		},
		{
			Name: "webhook-attempts-without-figures", Breaks: "the metrics show how many attempts of a second are used up",
			File: "cmd/api/quotas.go", Anchor: "range quota.Rates() {", Becomes: "range quota.Rates()[:3] {",
			In: "./cmd/api", Run: "^TestWebhooksArePaced$",
		},
		{
			Name: "webhook-attempts-not-shown", Breaks: "operators see how many attempts of a second are used up",
			File: "handlers/quota.go", Anchor: "range quota.Rates() {", Becomes: "range quota.Rates()[:3] {",
			In: "./cmd/api", Run: "^TestWebhooksArePaced$",
		},
		{
			Name: "webhook-attempts-are-requests", Breaks: "attempts to tell webhooks use up no requests",
			File: "service/quotas/rates.go", Anchor: "each[l-quota.Requests]\n	if one.limiter.AllowN(now, 1) {\n		return 0", Becomes: "each[0]\n	if one.limiter.AllowN(now, 1) {\n		return 0",
			In: "./service/quotas", Run: "^TestNext$",
		},
		{
			Name: "webhook-void-counted", Breaks: "what attempts nothing uses up no attempt of its tenant's second",
			File: "webhook/turns.go", Anchor: "void != nil && void() {", Becomes: "void == nil && p.closed {",
			In: "./webhook", Run: "^TestVoidJobsTakeNoTurn$",
		},
		{
			Name: "webhook-telling-costs-nothing", Breaks: "a tenant with many webhooks pays for having them told",
			File: "cmd/api/webhooks.go", Anchor: "quota.PriceOfTelling(c.Offered, c.Made, c.Kept)", Becomes: "0 * quota.PriceOfTelling(c.Offered, c.Made, c.Kept)",
			In: "./cmd/api", Run: "^TestWebhooksAreCharged$",
		},
		{
			Name: "outbox-offers-cost-nothing", Breaks: "it pays for each webhook that is looked at for an event",
			File: "webhook/outbox/tell.go", Anchor: "Cost{Offered: len(all)}", Becomes: "Cost{Offered: 1}",
			In: "./webhook/outbox", Run: "^TestCharge$",
		},
		{
			Name: "outbox-making-costs-nothing", Breaks: "it pays for each delivery that is made",
			File: "webhook/outbox/bill.go", Anchor: "Cost{Made: 1}", Becomes: "Cost{Made: 0}",
			In: "./webhook/outbox", Run: "^TestCharge$",
		},
		{
			Name: "outbox-given-later-for-nothing", Breaks: "it pays too for what is read again to be told, as after a gap",
			File: "webhook/outbox/tell.go", Anchor: "	if !it.again { // which is paid for\n		w.billMade", Becomes: "	if it.id == d.event() {\n		w.billMade",
			In: "./webhook/outbox", Run: "^TestGivenLaterIsPaidForOnce$",
		},
		{
			Name: "outbox-looked-at-later-for-nothing", Breaks: "and for the webhooks that are looked at for it",
			File: "webhook/outbox/tell.go", Anchor: "		w.bill.add(t.tenant, Cost{Offered: len(given)})\n", Becomes: "",
			In: "./webhook/outbox", Run: "^TestGivenLaterIsPaidForOnce$",
		},
		{
			Name: "outbox-again-paid-twice", Breaks: "what is told again is paid for when that is asked for, and not again",
			File: "webhook/outbox/tell.go", Anchor: "	if !it.again { // which is paid for\n		w.billMade", Becomes: "	if true {\n		w.billMade",
			In: "./webhook/outbox", Run: "^TestGivenLaterIsPaidForOnce$",
		},
		{
			Name: "outbox-charged-late", Breaks: "who has many made pays for them before it can have many more made",
			File: "webhook/outbox/bill.go", Anchor: "if w.bill[tenant].Made >= mostMade {", Becomes: "if false {",
			In: "./webhook/outbox", Run: "^TestManyAreChargedAtOnce$",
		},
		{
			Name: "webhook-bursts-after-pauses", Breaks: "a tenant's attempts begin evenly, and not some together",
			File: "webhook/turns.go", Anchor: "const shortPause, longPause = time.Millisecond, time.Second", Becomes: "const shortPause, longPause = 10 * time.Millisecond, time.Second",
			In: "./webhook", Run: "^TestNoBurstAfterPauses$",
		},
		{
			Name: "quota-telling-without-end", Breaks: "what is told to webhooks has no tenant refused for more than two seconds",
			File: "service/quotas/rates.go", Anchor: "float64(more) > most {", Becomes: "false {",
			In: "./service/quotas", Run: "^TestOweWithin$",
		},
		{
			Name: "webhook-told-and-refused-for-hours", Breaks: "and that goes for the server",
			File: "cmd/api/webhooks.go", Anchor: "limits.OweWithin(tenant, quota.Requests, n, secondsOfTelling)", Becomes: "limits.Owe(tenant, quota.Requests, n)",
			In: "./cmd/api", Run: "^TestWebhooksAreCharged$",
		},
		{
			Name: "config-port-beyond-all", Breaks: "an address that nobody can listen at is refused before anything starts",
			File: "cmd/api/config.go", Anchor: "	_, err = net.DefaultResolver.LookupPort(context.Background(), \"tcp\", port)\n", Becomes: "	_ = context.Background\n	_ = port\n",
			In: "./cmd/api", Run: "^TestAddressesToListenAt$",
		},
		{
			Name: "outbox-keeping-costs-nothing", Breaks: "and for what is put into the store",
			File: "webhook/outbox/owed.go", Anchor: "			w.bill.add(d.target.tenant, Cost{Kept: 1})\n", Becomes: "",
			In: "./webhook/outbox", Run: "^TestCharge$",
		},
		{
			Name: "outbox-forgets-what-is-little", Breaks: "who has a few webhooks in each shard pays too",
			File: "webhook/outbox/bill.go", Anchor: "len(w.targets.byTenant[tenant]) == 0 {", Becomes: "true {",
			In: "./webhook/outbox", Run: "^TestCharge$",
		},
		{
			Name: "outbox-charges-again", Breaks: "what was paid for is not charged again",
			File: "webhook/outbox/bill.go", Anchor: "w.bill[tenant] = (Cost{Offered: rest})", Becomes: "w.bill[tenant] = (Cost{rest, c.Made, c.Kept})",
			In: "./webhook/outbox", Run: "^TestCharge$",
		},
		{
			Name: "webhook-queue-without-bytes", Breaks: "what waits for a receiver is bounded in bytes",
			File: "webhook/pool.go", Anchor: "return b.Jobs+1 <= bound.Jobs && b.Bytes+bytes <= bound.Bytes", Becomes: "return b.Jobs+1 <= bound.Jobs",
			In: "./webhook", Run: "^TestPoolIsBounded$",
		},
		{
			Name: "webhook-close-leaves-a-job", Breaks: "Close waits for what runs",
			File: "webhook/pool.go", Anchor: "	p.cancel()\n	<-p.idle", Becomes: "	p.cancel()",
			In: "./webhook", Run: "^TestClosePool$",
		},
	}
}
