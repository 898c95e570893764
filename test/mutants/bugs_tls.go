package main

// tlsBugs break what the server promises over TLS.
func tlsBugs() []Bug {
	return []Bug{
		{
			Name: "tls-ended-certificate", Breaks: "a certificate that has ended does not come into use",
			File: "certificate/pair.go", Anchor: "case now.After(c.Leaf.NotAfter):", Becomes: "case c.Leaf.NotAfter.IsZero():",
			In: "./certificate", Run: "^TestBadPairStaysOut$",
		},
		{
			Name: "tls-certificate-before-its-time", Breaks: "a certificate that begins later comes into use then",
			File: "certificate/pair.go", Anchor: "case now.Before(c.Leaf.NotBefore):", Becomes: "case c.Leaf.NotAfter.IsZero():",
			In: "./certificate", Run: "^TestNotBegunYet$",
		},
		{
			Name: "tls-read-once", Breaks: "certificates are read again",
			File: "certificate/pair.go", Anchor: "return p.current != nil && bytes.Equal(cert, p.cert) && bytes.Equal(key, p.key)", Becomes: "return p.current != nil && (bytes.Equal(cert, p.cert) || len(key) > 0)",
			In: "./certificate", Run: "^TestLinkIsSwapped$",
		},
		{
			Name: "tls-old-versions", Breaks: "the server speaks TLS 1.2 or later",
			File: "certificate/config.go", Anchor: "base := &tls.Config{MinVersion: tls.VersionTLS12,", Becomes: "base := &tls.Config{MinVersion: tls.VersionTLS10,",
			In: "./cmd/api", Run: "^TestTLS$",
		},
		{
			Name: "tls-never-reloaded", Breaks: "certificates that were replaced are shown, and it is logged and measured if they cannot be",
			File: "cmd/api/tls.go", Anchor: "				reload(files, t.Logger())", Becomes: "				reload(files[:0], t.Logger())",
			In: "./cmd/api", Run: "^TestReloadUnderLoad$",
		},
		{
			Name: "tls-principals-taken-for-certificates", Breaks: "a bad file of principals is not told as a bad certificate",
			File: "cmd/api/tls.go", Anchor: "of: telemetry.FilePrincipals", Becomes: "of: telemetry.FilePrincipals[:0]",
			In: "./cmd/api", Run: "^TestClientCertificates",
		},
		{
			Name: "tls-plain-text-untold", Breaks: "who speaks HTTP where TLS is spoken is told so",
			File: "handlers/secure.go", Anchor: "notTLS.Conn != nil && likeHTTP", Becomes: "notTLS.Conn == nil && likeHTTP",
			In: "./handlers", Run: "^TestPlainTextIsRefused$",
		},
		{
			Name: "tls-handshake-without-end", Breaks: "who is silent is let go",
			File: "handlers/secure.go", Anchor: "context.WithTimeout(l.ctx, handshakeTimeout)", Becomes: "context.WithTimeout(l.ctx, 100*handshakeTimeout)",
			In: "./handlers", Run: "^TestPlainTextIsRefused$",
		},
		{
			Name: "tls-one-handshake-at-a-time", Breaks: "who is silent holds up nobody",
			File: "handlers/secure.go", Anchor: "l.running.Go(func() { l.negotiate(conn) })", Becomes: "l.negotiate(conn)",
			In: "./handlers", Run: "^TestPlainTextIsRefused$",
		},
		{
			Name: "tls-net-http-answers", Breaks: "what net/http refuses by itself is a problem document over TLS too",
			File: "handlers/secure.go", Anchor: "if state.NegotiatedProtocol == \"h2\" {", Becomes: "if state.HandshakeComplete {",
			In: "./handlers", Run: "^TestSecureNotHTTP$",
		},
		{
			Name: "tls-close-does-not-end-handshakes", Breaks: "a shutdown does not wait for who is silent",
			File: "handlers/secure.go", Anchor: "	l.cancel()\n	err := l.Listener.Close()\n", Becomes: "	defer l.cancel()\n	err := l.Listener.Close()\n",
			In: "./handlers", Run: "^TestSecureListenerCloses$", Hangs: true,
		},
		{
			Name: "tls-one-request-a-connection", Breaks: "over HTTP/2 one connection has many requests",
			File: "handlers/connections.go", Anchor: "if c.closed || all.byTenant[tenant] >=", Becomes: "if c.closed || c.place == nil || all.byTenant[tenant] >=",
			In: "./handlers", Run: "^TestRequestsOfOneConnection$",
		},
		{
			Name: "tls-busy-connection-gives-way", Breaks: "a connection stays while any of its requests is under way",
			File: "handlers/connections.go", Anchor: "if c.busy--; c.busy == 0 && !c.closed {", Becomes: "if c.busy--; !c.closed {",
			In: "./handlers", Run: "^TestBusyOverHTTP2$",
		},
		{
			Name: "tls-strangers-without-bound", Breaks: "requests of nobody who is known are bounded over HTTP/2 as they are over HTTP/1.1",
			File: "handlers/connections.go", Anchor: "if c.anonymous > 0 && all.anonymous >= all.most {", Becomes: "if c.anonymous > 0 && all.anonymous < 0 {",
			In: "./handlers", Run: "^TestStrangersOfOneConnection$",
		},
		{
			Name: "tls-connection-that-stalls", Breaks: "who takes nothing over HTTP/2 is dropped with its connection",
			File: "handlers/secure.go", Anchor: "		WriteByteTimeout: defaultAnswerTimeout,\n", Becomes: "",
			In: "./handlers", Run: "^TestConnectionThatStalls$", Hangs: true,
		},
		{
			Name: "tls-client-certificate-before-token", Breaks: "a bearer token goes before a client's certificate",
			File: "handlers/admit.go", Anchor: "if len(values) == 0 && !r.bearsSession(o) {", Becomes: "if len(values) < 2 && !r.bearsSession(o) {",
			In: "./cmd/api", Run: "^TestClientCertificates$",
		},
		{
			Name: "tls-client-certificate-across-sites", Breaks: "a page of another site cannot use the certificate in a browser",
			File: "handlers/admit.go", Anchor: "	if err := r.sameOrigin(); err != nil {\n		return false, err\n	}\n", Becomes: "",
			In: "./cmd/api", Run: "^TestClientCertificates$",
		},
		{
			Name: "tls-connection-outlives-authority", Breaks: "a connection does not outlive the trust in its client's authority",
			File: "certificate/authorities.go", Anchor: "if a.trusted[string(chain[len(chain)-1].Raw)] {", Becomes: "if len(chain) > 0 {",
			In: "./cmd/api", Run: "^TestClientCertificates$",
		},
		{
			Name: "tls-client-certificate-ended", Breaks: "a connection does not outlive its client's certificate",
			File: "auth/principals.go", Anchor: "if now.After(c.NotAfter) || now.Before", Becomes: "if now.IsZero() || now.Before",
			In: "./auth", Run: "^TestIdentify$",
		},
		{
			Name: "tls-first-principal-counts", Breaks: "a certificate that stands for two principals stands for nobody",
			File: "auth/principals.go", Anchor: "if one != nil && found != nil {", Becomes: "if one != nil && found == p.find(identity{}) && found != nil {",
			In: "./auth", Run: "^TestIdentify$",
		},
		{
			Name: "tls-principal-without-limit", Breaks: "an empty list of locks lets a certificate use none",
			File: "auth/file.go", Anchor: "	patterns := []Pattern{}\n", Becomes: "	var patterns []Pattern\n",
			In: "./auth", Run: "^TestIdentify$",
		},
		{
			Name: "tls-principals-typo", Breaks: "a member that is not known is refused",
			File: "auth/file.go", Anchor: "if !slices.Contains(names, name) {", Becomes: "if !slices.Contains(names, name) && names == nil {",
			In: "./auth", Run: "^TestBadPrincipals$",
		},
		{
			Name: "ops-metrics-where-clients-are", Breaks: "with --ops-listen the metrics are not where clients are",
			File: "cmd/api/run.go", Anchor: "		routes.Exposition = nil\n", Becomes: "		routes.Exposition = t.MetricsHandler()\n",
			In: "./cmd/api", Run: "^TestOps$",
		},
		{
			Name: "ops-profiler-unasked", Breaks: "the profiler is served only if it was asked for",
			File: "cmd/api/beside.go", Anchor: "	if c.opsPprof {\n", Becomes: "	if c.opsListen != \"\" {\n",
			In: "./cmd/api", Run: "^TestOps$",
		},
		{
			Name: "memory-nothing-refused", Breaks: "what there is no memory for is refused",
			File: "handlers/admit.go", Anchor: "m != nil && !o.always && !o.goesOn && m.Full()", Becomes: "m != nil && !o.always && !o.goesOn && o.named && m.Full()",
			In: "./handlers", Run: "^TestNoMemory$",
		},
		{
			Name: "memory-waiters-refused", Breaks: "without memory for new work those who wait go on waiting",
			File: "handlers/admit.go", Anchor: "m != nil && !o.always && !o.goesOn && m.Full()", Becomes: "m != nil && !o.always && m.Full()",
			In: "./handlers", Run: "^TestNoMemory$",
		},
		{
			Name: "memory-holders-refused", Breaks: "without memory for new work those who hold renew and release",
			File: "handlers/admit.go", Anchor: "m != nil && !o.always && !o.goesOn && m.Full()", Becomes: "m != nil && !o.goesOn && m.Full()",
			In: "./handlers", Run: "^TestNoMemory$",
		},
		{
			Name: "memory-container-ignored", Breaks: "the container's limit counts",
			File: "ceiling/limit.go", Anchor: "if err == nil && n > 0 && (lowest == 0 || n < lowest) {", Becomes: "if err == nil && n > 0 && lowest == 0 {",
			In: "./ceiling", Run: "^TestLimit$",
		},
		{
			Name: "memory-never-collected", Breaks: "it is found out that there is room again",
			File: "ceiling/guard.go", Anchor: "now.Sub(g.since) >= collectAfter", Becomes: "now.Sub(g.since) < 0",
			In: "./ceiling", Run: "^TestGuard$",
		},
		{
			Name: "memory-on-and-off", Breaks: "there is room again only some way below",
			File: "ceiling/guard.go", Anchor: "case percent < roomAt:", Becomes: "case percent < fullAt:",
			In: "./ceiling", Run: "^TestGuard$",
		},
		{
			Name: "memory-guard-asleep", Breaks: "a server stays below its memory",
			File: "cmd/api/run.go", Anchor: "routes.Memory, routes.MaxAnswers = memory,", Becomes: "_, routes.MaxAnswers = memory,",
			In: "./test/ceiling", Run: "^TestFull$",
		},
	}
}
