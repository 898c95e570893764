package main

// configBugs break what settings promise.
func configBugs() []Bug {
	return []Bug{
		{
			Name: "config-unknown-key", Breaks: "a key of the configuration file that means nothing is refused",
			File: "cmd/api/settings.go", Anchor: "		case fl == nil:\n", Becomes: "		case fl == nil && s.line == 0:\n		case fl == nil:\n			continue\n",
			In: "./cmd/api", Run: "^TestBadSettingsFile$",
		},
		{
			Name: "config-file-first", Breaks: "the environment goes before the file",
			File: "cmd/api/settings.go", Anchor: "case o.of(s.name) == byDefault:", Becomes: "case o.of(s.name) != byFlag:",
			In: "./cmd/api", Run: "^TestEveryFlagByEnvironment$",
		},
		{
			Name: "config-first-problem", Breaks: "every problem of a configuration is in the message",
			File: "cmd/api/config.go", Anchor: "		err = errors.Join(err, c.resolveStore(set), c.resolveKeys(env), c.resolveRest())\n",
			Becomes: "	if err == nil {\n		err = c.resolveStore(set)\n	}\n	if err == nil {\n		err = errors.Join(c.resolveKeys(env), c.resolveRest())\n	}\n",
			In:      "./cmd/api", Run: "^TestEveryProblem$",
		},
		{
			Name: "config-guesses-on", Breaks: "of a settings file that could not be read the message does not say what is missing without it",
			File: "cmd/api/config.go", Anchor: "; !unread { // else", Becomes: "; !unread || true { // else",
			In: "./cmd/api", Run: "^TestNothingBesideAProblem$",
		},
		{
			Name: "config-wrong-number-counts", Breaks: "a number that is none is told of once",
			File: "cmd/api/settings.go", Anchor: "	_ = fl.Value.Set(before) // which it has taken before\n", Becomes: "	_ = before\n",
			In: "./cmd/api", Run: "^TestNothingBesideAProblem$",
		},
		{
			Name: "config-first-wrong-principal", Breaks: "every problem of a file of principals is in the message",
			File: "auth/file.go", Anchor: "err != nil && len(wrong) == maxWrongPrincipals", Becomes: "err != nil && len(wrong) == 1",
			In: "./auth", Run: "^TestBadPrincipals$",
		},
		{
			Name: "secrets-in-the-log", Breaks: "the log has no query of a URL, in which secrets come by mistake",
			File: "handlers/request.go", Anchor: "slog.String(\"route\", r.FullPath()),", Becomes: "slog.String(\"route\", r.FullPath()+r.Request.URL.RawQuery),",
			In: "./cmd/api", Run: "^TestSecretsAreNowhere$",
		},
		{
			Name: "secrets-in-traces", Breaks: "no trace has the URL of a request",
			File: "handlers/request.go", Anchor: "tracer.Start(ctx, r.Request.Method+\" \"+r.FullPath(), ", Becomes: "tracer.Start(ctx, r.Request.Method+\" \"+r.Request.URL.String(), ",
			In: "./cmd/api", Run: "^TestSecretsAreNowhere$",
		},
		{
			Name: "config-prints-credentials", Breaks: "--print-config shows no secret",
			File: "cmd/api/settings.go", Anchor: "strconv.Quote(withoutCredentials(fl.Value.String()))", Becomes: "strconv.Quote(fl.Value.String())",
			In: "./cmd/api", Run: "^TestPrintedWithoutSecrets$",
		},
		{
			Name: "config-prints-unchecked", Breaks: "--print-config checks what it prints",
			File: "cmd/api/main.go", Anchor: "if err != nil || cfg.printOnly {\n			return err", Becomes: "if cfg != nil && cfg.printOnly {\n			return nil\n		}\n		if err != nil {\n			return err",
			In: "./cmd/api", Run: "^TestPrintedWithoutSecrets$",
		},
		{
			Name: "api-newer-version-unsaid", Breaks: "a store of a newer version is told from one that lost its past",
			File: "cmd/api/store.go", Anchor: "		return telemetry.RefusedNewerVersion\n", Becomes: "		return telemetry.RefusedLostPast\n",
			In: "./cmd/api", Run: "^TestReasonOf$",
		},
		{
			Name: "config-dev-for-everybody", Breaks: "--dev is refused on an address that others may reach",
			File: "cmd/api/config.go", Anchor: "if c.dev && !c.devOpen && !isLoopback(c.listen) {", Becomes: "if false {",
			In: "./cmd/api", Run: "^TestContradictions$",
		},
		{
			Name: "config-open-secrets-untold", Breaks: "a secret file of the operator's that others may read is warned about",
			File: "cmd/api/config.go", Anchor: "\tc.checkFiles()\n", Becomes: "",
			In: "./cmd/api", Run: "^TestWarnings$",
		},
		{
			Name: "config-any-token-of-the-keys", Breaks: "--jwks without an issuer or an audience is warned about",
			File: "cmd/api/config_keys.go", Anchor: `if c.jwks != "" && (c.issuer == "" || c.audience == "") {`, Becomes: `if c.jwks != "" && c.issuer == "" && c.audience == "" {`,
			In: "./cmd/api", Run: "^TestWarnings$",
		},
		{
			Name: "config-own-secrets-stay-open", Breaks: "a secret that --dev made, and others could read, is closed",
			File: "cmd/api/token.go", Anchor: "err := os.Chmod(path, was&^forNotOurs); err != nil {", Becomes: "err := os.Chmod(path, was); err != nil {",
			In: "./cmd/api", Run: "^TestOwnFilesAreClosed$",
		},
		{
			Name: "config-jwks-unread", Breaks: "the keys for bearer tokens are read before anything starts",
			File: "cmd/api/config_keys.go", Anchor: "if failed := auth.CheckKeySet(c.jwks); failed != nil {", Becomes: "if failed := auth.CheckKeySet(\"https://keys.example\"); failed != nil {",
			In: "./cmd/api", Run: "^TestEveryProblem$",
		},
		{
			Name: "config-ends-at-a-value", Breaks: "what comes behind an unknown flag and its value is checked too",
			File: "cmd/api/settings.go", Anchor: "f.Parse(behindValue(f.Args()))", Becomes: "f.Parse(f.Args())",
			In: "./cmd/api", Run: "^TestEveryProblem$",
		},
	}
}
