package main

// subscriptionBugs break who is told what by webhook, and with which secret.
func subscriptionBugs() []Bug {
	return []Bug{
		{
			Name: "webhook-secret-without-generation", Breaks: "a rotation makes another secret",
			File: "webhook/subscription/keys.go", Anchor: "AppendUint64(text, uint64(generation))", Becomes: "AppendUint64(text, 1)",
			In: "./webhook/subscription", Run: "^TestSecretsAreDerived$",
		},
		{
			Name: "webhook-old-secret-for-ever", Breaks: "a secret that was replaced signs for a day",
			File: "webhook/subscription/rotation.go", Anchor: "now.Sub(at) < Overlap", Becomes: "!at.IsZero()",
			In: "./webhook/subscription", Run: "^TestRotation$",
		},
		{
			Name: "webhook-second-rotation-ends-the-first", Breaks: "who rotates again after a lost answer does not lock out a receiver",
			File: "webhook/subscription/rotation.go", Anchor: "rotated[:min(len(rotated), maxReplaced)]}", Becomes: "rotated[:1]}",
			In: "./webhook/subscription", Run: "^TestRotation$",
		},
		{
			Name: "webhook-pattern-beyond-the-token", Breaks: "a subscription selects no names that its bearer token may not use",
			File: "webhook/subscription/check.go", Anchor: "		if allowed.Covers(p) {", Becomes: "		if allowed.Covers(p) || p.Covers(allowed) {",
			In: "./webhook/subscription", Run: "^TestRefused$",
		},
		{
			Name: "webhook-covers-by-prefix", Breaks: "a pattern covers another only if it selects all that the other does",
			File: "lock/pattern.go", Anchor: `p.text != "" && p.Match(other.text)`, Becomes: `p.text != "" && strings.HasPrefix(other.prefix, p.prefix)`,
			In: "./auth", Run: "^TestCoversSelectsNoMore$",
		},
		{
			Name: "webhook-of-another-tenant", Breaks: "a tenant sees no other tenant's subscriptions",
			File: "webhook/subscription/subscriptions.go", Anchor: "listAll(ctx, s.Records, Kind, who.Tenant, maxListed())", Becomes: `listAll(ctx, s.Records, Kind, "", maxListed())`,
			In: "./webhook/subscription", Run: "^TestOthers$",
		},
		{
			Name: "webhook-limited-token-diverts", Breaks: "a limited bearer token does not send elsewhere what others are told",
			File: "webhook/subscription/subscriptions.go", Anchor: "	case !may(who, found, s.Now()):\n		return nil, errForbidden()", Becomes: "	case found == nil:\n		return nil, errForbidden()",
			In: "./webhook/subscription", Run: "^TestLimitedChange$",
		},
		{
			Name: "webhook-limit-races", Breaks: "a tenant has no more subscriptions than it may, however many it makes at once",
			File: "webhook/subscription/subscriptions.go", Anchor: "if before < most[quota.Webhooks] {", Becomes: "if before < 2*most[quota.Webhooks] {",
			In: "./webhook/subscription", Run: "^TestLimits$",
		},
		{
			Name: "webhook-limit-of-who-goes-away", Breaks: "who goes away while he makes many subscriptions has no more than he may",
			File: "webhook/subscription/subscriptions.go", Anchor: "	ctx = context.WithoutCancel(ctx) // each call", Becomes: "	// each call",
			In: "./webhook/subscription", Run: "^TestLimitOfWhoGoesAway$",
		},
		{
			Name: "webhook-damaged-takes-no-place", Breaks: "a subscription that cannot be read takes a place like another",
			File: "webhook/subscription/subscriptions.go", Anchor: " || err != nil && r.Version < made.From {", Becomes: " {",
			In: "./webhook/subscription", Run: "^TestDamagedCounts$",
		},
		{
			Name: "webhook-any-number-in-all", Breaks: "a server takes no more subscriptions of all tenants than it has memory for",
			File: "webhook/subscription/subscriptions.go", Anchor: "if s.Directory.count() >= MaxInAll {", Becomes: "if s.Directory.count() < 0 {",
			In: "./webhook/subscription", Run: "^TestFullServer$",
		},
		{
			Name: "webhook-any-number-of-callback-secrets", Breaks: "a server takes no more callback secrets of all tenants than it has memory for",
			File: "webhook/subscription/callbacks.go", Anchor: "if s.Directory.callbackCount() >= MaxInAll {", Becomes: "if s.Directory.callbackCount() < 0 {",
			In: "./webhook/subscription", Run: "^TestFullServer$",
		},
		{
			Name: "webhook-narrowed-is-diverted", Breaks: "a limited bearer token does not send elsewhere what a subscription is still owed of other names",
			File: "webhook/subscription/check.go", Anchor: "all = append(all, s.Was)", Becomes: "all = append(all, s.Locks)",
			In: "./webhook/subscription", Run: "^TestNarrowed$",
		},
		{
			Name: "webhook-narrowed-twice", Breaks: "of patterns that a subscription had one after the other none is forgotten while it may be owed something",
			File: "webhook/subscription/check.go", Anchor: "		s.Was = allLocks\n", Becomes: "		_ = allLocks\n",
			In: "./webhook/subscription", Run: "^TestNarrowed$",
		},
		{
			Name: "webhook-narrowed-for-ever", Breaks: "what a subscription was told of long ago keeps nobody from it",
			File: "webhook/subscription/check.go", Anchor: `s.Was != "" && now.Sub(s.Narrowed) < owedFor`, Becomes: `s.Was != ""`,
			In: "./webhook/subscription", Run: "^TestNarrowed$",
		},
		{
			Name: "webhook-disabled-for-good", Breaks: "a disabled subscription can be set going again",
			File: "webhook/subscription/check.go", Anchor: "			s.Enabled++ // it may have been disabled", Becomes: "			s.Enabled += 0",
			In: "./webhook/subscription", Run: "^TestUpdate$",
		},
		{
			Name: "webhook-begins-anew-with-each-change", Breaks: "a subscription is told what happened since it was made",
			File: "webhook/subscription/subscription.go", Anchor: "	if s.From == 0 {", Becomes: "	if s.Version > 0 {",
			In: "./webhook/subscription", Run: "^TestUpdate$",
		},
		{
			Name: "webhook-damaged-record-stops-all", Breaks: "a record that cannot be read is passed over",
			File: "store/record_follow.go", Anchor: "			f.complain(record, bad)\n			continue", Becomes: "			f.complain(record, bad)\n			return bad",
			In: "./webhook/subscription", Run: "^TestDirectoryPassesOver$",
		},
		{
			Name: "webhook-directory-always-new", Breaks: "the directory is the same until something changes",
			File: "store/record_follow.go", Anchor: "	if !same {", Becomes: "	if next != nil {",
			In: "./webhook/subscription", Run: "^TestDirectory$",
		},
		{
			Name: "webhook-list-shows-secrets", Breaks: "a secret is in no listing",
			File: "handlers/webhooks.go", Anchor: "		ID: s.ID, URL: s.URL, Events: eventNames(s.Events), Locks: s.Locks,", Becomes: "		ID: s.ID, URL: s.URL, Events: eventNames(s.Events), Locks: subscription.NewKeys(nil).Of(s, s.Created)[0].Reveal(),",
			In: "./handlers", Run: "^TestWebhook$",
		},
		{
			Name: "webhook-any-scope", Breaks: "subscriptions need the scope webhooks:write",
			File: "handlers/webhooks.go", Anchor: "scopes: []auth.Scope{auth.WebhooksWrite}", Becomes: "scopes: []auth.Scope{auth.WebhooksWrite, auth.LocksWrite}",
			In: "./handlers", Run: "^TestWebhookScope$",
		},
		{
			Name: "webhook-secret-is-cached", Breaks: "nothing on the way to the client keeps a secret",
			File: "handlers/admit.go", Anchor: "if o.bySession() { // a cache", Becomes: "if !o.bySession() { // a cache",
			In: "./handlers", Run: "^TestCallbackSecret$",
		},
		{
			Name: "webhook-callback-without-async", Breaks: "who is connected has no callback",
			File: "service/request.go", Anchor: "(!req.Async || req.Callback.Check() != nil)", Becomes: "(req.Callback.Check() != nil)",
			In: "./service", Run: "^TestBadCallbacks$",
		},
		{
			Name: "webhook-callback-is-no-parameter", Breaks: "a retry with another callback is another request",
			File: "service/request.go", Anchor: `writeParts(h, "callback", req.Callback.URL)`, Becomes: `writeParts(h, "callback")`,
			In: "./service", Run: "^TestKeyWithAnotherCallback$",
		},
		{
			Name: "webhook-callback-anywhere", Breaks: "a callback goes only where requests may go",
			File: "webhook/subscription/callbacks.go", Anchor: `	if err := s.Policy.CheckURL("callback_url", url); err != nil {`, Becomes: `	if err := s.Policy.CheckURL("callback_url", "https://example.org/"); err != nil {`,
			In: "./webhook/subscription", Run: "^TestCallbackSecret$",
		},
		{
			Name: "webhook-callback-secret-of-limited", Breaks: "who is limited to some names does not get the secret for all",
			File: "webhook/subscription/callbacks.go", Anchor: "	if who.Locks != nil {", Becomes: "	if who.Locks != nil && len(who.Locks) == 0 {",
			In: "./webhook/subscription", Run: "^TestCallbackSecret$",
		},
		{
			Name: "webhook-paused-tells-a-next-attempt", Breaks: "no attempt is announced while nothing is sent",
			File: "handlers/deliveries.go", Anchor: "	if sends && !d.Due.IsZero() {", Becomes: "	if !d.Due.IsZero() {",
			In: "./handlers", Run: "^TestNothingIsDueWhilePaused$",
		},
		{
			Name: "webhook-deliveries-show-names", Breaks: "deliveries show no names that the bearer token may not use",
			File: "handlers/deliveries.go", Anchor: "	if may(d.Lock) {", Becomes: "	if may != nil {",
			In: "./handlers", Run: "^TestDeliveries$",
		},
		{
			Name: "webhook-disabled-for-ever", Breaks: "a webhook that was set going again is not said to be disabled",
			File: "webhook/outbox/deliveries.go", Anchor: "if h.Enabled != enabled {", Becomes: "if h.Enabled > enabled {",
			In: "./handlers", Run: "^TestDisabled$",
		},
		{
			Name: "webhook-deliveries-of-others", Breaks: "a tenant sees no other tenant's deliveries",
			File: "handlers/deliveries.go", Anchor: "		of, err = a.Webhooks.Get(r.context(), who, id)\n		return id, of, err", Becomes: "		return id, nil, nil",
			In: "./handlers", Run: "^TestDeliveriesOfOthers$",
		},
		{
			Name: "webhook-callbacks-of-limited", Breaks: "a limited bearer token does not see what is sent to the callbacks of all",
			File: "handlers/deliveries.go", Anchor: "	if who.Locks != nil {", Becomes: "	if who.Locks != nil && len(who.Locks) == 0 {",
			In: "./handlers", Run: "^TestDeliveriesOfOthers$",
		},
		{
			Name: "webhook-not-wired", Breaks: "the server sends what is subscribed to",
			File: "cmd/api/webhooks.go", Anchor: "	running.Go(func() { box.Run(ctx) })", Becomes: "	running.Go(func() { <-ctx.Done() })\n	_ = box",
			In: "./cmd/api", Run: "^TestWebhooksAreSent$",
		},
	}
}
