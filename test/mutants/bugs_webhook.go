package main

// webhookBugs break webhook signatures and the rules for addresses.
func webhookBugs() []Bug {
	return []Bug{
		{
			Name: "webhook-old-timestamp", Breaks: "the signature covers the time of the attempt",
			File: "webhook/sign.go", Anchor: `id + "." + timestamp + "."`, Becomes: `id + "."`,
			In: "./webhook", Run: "^TestSignVectors$",
		},
		{
			Name: "webhook-id-with-a-dot", Breaks: "the signed text has one reading",
			File: "webhook/sign.go", Anchor: "c != '-' && c != '_' && (c < '0'",
			Becomes: "c != '-' && c != '.' && c != '_' && (c < '0'", In: "./webhook",
			Run: "^TestSignRefuses$",
		},
		{
			Name: "webhook-signs-with-the-last-alone", Breaks: "during a rotation each secret signs",
			File: "webhook/sign.go", Anchor: "range secrets {\n" + "\t\tmac",
			Becomes: "range secrets[len(secrets)-1:] {\n" + "\t\tmac", In: "./webhook",
			Run: "^TestSignWithSeveral$",
		},
		{
			Name: "webhook-secret-is-printed", Breaks: "printing a value shows no secret",
			File: "webhook/secret.go",
			Anchor: "\tkey func() []byte\n" + "}\n" + "\n" +
				"func secretOf(key []byte) Secret { return Secret{key: func() []byte { return key }} }",
			Becomes: "\tkey  func() []byte\n" + "\ttext string\n" + "}\n" + "\n" +
				"func secretOf(key []byte) Secret {\n" +
				"\ttext := secretPrefix + base64.StdEncoding.EncodeToString(key)\n" +
				"\treturn Secret{key: func() []byte { return key }, text: text}\n" + "}",
			In: "./webhook", Run: "^TestSecretIsNeverShown$",
		},
		{
			Name: "webhook-address-unchecked", Breaks: "the address is checked when the connection is made",
			File:    "webhook/sender.go",
			Anchor:  "Resolver: newResolver(nameServer), ControlContext: c.Policy.Control,",
			Becomes: "Resolver: newResolver(nameServer),", In: "./webhook", Run: "^TestNames$",
		},
		{
			Name: "webhook-nat64", Breaks: "an address behind NAT64 is checked as its IPv4 address",
			File: "webhook/policy.go", Anchor: `if what := p.notPublic(inner); what != "" {`,
			Becomes: `if what := p.notPublic(inner); what != "" && !isNAT64(addr.As16()) {`, In: "./webhook",
			Run: "^TestOtherFormsOfIPv4$",
		},
		{
			Name: "webhook-metadata-in-a-range", Breaks: "an allowed range does not open a metadata service",
			File:    "webhook/policy.go",
			Anchor:  "!slices.Contains(p.allow, netip.PrefixFrom(addr, addr.BitLen()))",
			Becomes: "!p.allowed(addr) && !slices.Contains(p.allow, netip.Prefix{})", In: "./webhook",
			Run: "^TestMetadataStaysClosed$",
		},
		{
			Name: "webhook-any-port", Breaks: "a request goes to open ports only", File: "webhook/policy.go",
			Anchor: "case !p.portOpen(at.Port()):", Becomes: "case at.Port() == 0:", In: "./webhook",
			Run: "^TestControl$",
		},
	}
}
