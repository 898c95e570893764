package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"
)

// helpWidth is how many columns the help uses.
const helpWidth = 100

// helpAll is the flag that prints the help of all flags of the server.
const helpAll = "--help-all"

// flagGroup is the flags of one subject, in the order of the help. --help prints the common ones,
// --help-all and the reference also the rest.
type flagGroup struct{ subject, common, rest string }

// flagGroups returns the groups of the server's flags. Each flag is in one of them.
func flagGroups() []flagGroup {
	return []flagGroup{
		{"Start", configFlag + " dev " + printConfigFlag, "dev-insecure-listen"},
		{
			"Listen", "listen tls-cert tls-key",
			"ops-listen base-path trusted-proxy-hops debug-listen idle-timeout-seconds max-hold-seconds",
		},
		{
			"Store", "store data-dir fence-floor",
			"store-ca store-username store-password-file data-quota-mb store-cert store-key token-key-file",
		},
		{
			"Bearer tokens", "jwt-secret-file jwks jwt-issuer jwt-audience",
			"jwt-tenant-claim jwt-scope-claim jwt-scope-prefix jwt-locks-claim",
		},
		{"Client certificates and sign-in", "", "client-ca principals " + oidcFlag},
		{"Limits", "max-ttl-seconds " + quotasFlag, "audit-retention"},
		{"Webhooks", "webhook-allow", "webhook-allow-http webhook-ports"},
		{"Log and shutdown", "log-format drain-seconds", "log-level drain-delay-seconds"},
	}
}

// names returns the names of the group's flags, or only the names that most operators need.
func (g flagGroup) names(all bool) []string {
	if all {
		return strings.Fields(g.common + " " + g.rest)
	}
	return strings.Fields(g.common)
}

const serverUsage = `Fencepost is locks over HTTP.

  api [flags]            start the server; for a first try: api --dev
  api token [flags]      print a bearer token
  api backup [flags]     copy the embedded store to a file
  api restore [flags]    make an embedded store from a backup
  api health [flags]     exit with 0 if the server answers
  api version            print the version

Each flag has an environment variable (--data-dir is FENCEPOST_DATA_DIR) and a key in --config.
`

// called names the program in a help text as packages do, if it is started by that name.
func called(text string) string {
	if strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe") != "fencepost-server" {
		return text
	}
	return strings.ReplaceAll(text, serverFlags+" ", "fencepost-server ")
}

// printServerHelp prints the flags of the server by subject.
func printServerHelp(w io.Writer, f *pflag.FlagSet, all bool) {
	fmt.Fprint(w, called(serverUsage))
	for _, g := range flagGroups() {
		if names := g.names(all); len(names) > 0 {
			fmt.Fprintf(w, "\n%s\n%s", g.subject, flagUsages(f, names))
		}
	}
	if !all {
		fmt.Fprintf(w, "\n%s lists all flags.\n", helpAll)
	}
}

// flagUsages returns the help of some flags, in columns.
func flagUsages(f *pflag.FlagSet, names []string) string {
	some := pflag.NewFlagSet("", pflag.ContinueOnError)
	some.SortFlags = false
	for _, name := range names {
		some.AddFlag(f.Lookup(name))
	}
	return some.FlagUsagesWrapped(helpWidth)
}

// printCommandHelp prints the flags of a command.
func printCommandHelp(w io.Writer, f *pflag.FlagSet) {
	fmt.Fprintf(w, "Flags of %s. Each has an environment variable: --data-dir is "+
		"FENCEPOST_DATA_DIR.\n\n%s", called(f.Name()), f.FlagUsagesWrapped(helpWidth))
}
