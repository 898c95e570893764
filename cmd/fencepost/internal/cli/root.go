// Package cli has the commands of fencepost.
package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/client"
	"github.com/fencepost/fencepost/cmd/fencepost/internal/child"
	"github.com/fencepost/fencepost/cmd/fencepost/internal/settings"
)

// Exit codes, besides those of the command that run starts.
const (
	codeError       = 1
	codeUsage       = 64 // EX_USAGE
	codeNotAcquired = 75 // EX_TEMPFAIL: the lock is not free, or no server answers
	codeLost        = 76
	codeRefused     = 77 // EX_NOPERM
	codeSuperseded  = 79
	codeTimeout     = 124 // that of timeout(1)
	codeSignal      = 128 // and the number of the signal
)

// killed is the cause of an exit by a signal. It prints nothing.
type killed struct{ by os.Signal }

func (*killed) Error() string { return "" }

// exit is the error of a command that ends with a code. Without a cause it prints nothing.
type exit struct {
	code  int
	cause error
}

func (e *exit) Error() string {
	if e.cause == nil {
		return ""
	}
	return e.cause.Error()
}

func (e *exit) Unwrap() error { return e.cause }

func usage(format string, args ...any) error {
	return &exit{codeUsage, fmt.Errorf(format, args...)}
}

// app is what the commands share.
type app struct {
	settings settings.Settings
	output   string
	version  version
	parsed   bool // the arguments are valid
}

// Main runs the command of the arguments and returns the exit code. The tag and the commit are what
// the linker set, or empty.
func Main(args []string, tag, commit string) int {
	a := &app{version: versionOf(tag, commit)}
	root := a.root()
	root.SetArgs(args)
	command, err := root.ExecuteC()
	if err == nil {
		return 0
	}
	var known *exit
	if !errors.As(err, &known) {
		known = &exit{a.codeOf(err), err}
	}
	if text := known.Error(); text != "" {
		say("%s", sentence(known.cause))
	}
	if command.Name() == "acquire" && !isTerminal(os.Stdout) && a.output == "table" {
		fmt.Fprintf(os.Stdout, "(exit %d)\n", known.code) // eval of nothing would succeed
	}
	if cause, ok := errors.AsType[*killed](known); ok {
		child.Die(cause.by)
	}
	return known.code
}

func (a *app) root() *cobra.Command {
	cobra.EnableCommandSorting = false // the first of a group is the most used
	root := &cobra.Command{
		Use:   "fencepost",
		Short: "Hold locks of a Fencepost server",
		Long: `fencepost holds locks of a Fencepost server from shells, cron and CI.

  fencepost run reports:nightly -- make report

runs a command while it holds a lock, renews the lock meanwhile, and ends the
command before another holder can acquire the lock.`,
		SilenceErrors: true, SilenceUsage: true,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			a.parsed = true
			return a.checkOutput()
		},
	}
	a.settings.Bind(root.PersistentFlags())
	root.PersistentFlags().StringVarP(&a.output, "output", "o", "table",
		"print in this `format`: table, json or name")
	root.AddCommand(serverCommand(), manCommand(), a.versionCommand(), a.mcpCommand())
	group(root, "Hold locks:",
		a.runCommand(), a.terraformCommand(), a.acquireCommand(), a.renewCommand(), a.releaseCommand())
	group(root, "Look at locks:",
		a.statusCommand(), a.listCommand(), a.queueCommand(), a.whyCommand(), a.waitCommand(),
		a.watchCommand())
	group(root, "Share a repository:",
		a.claimCommand(), a.claimsCommand(), a.unclaimCommand(), a.hookCommand())
	group(root, "Operate:",
		a.revokeCommand(), a.closeCommand(), a.openCommand(), a.auditCommand(), a.webhooksCommand())
	group(root, "Set up:",
		a.loginCommand(), a.contextsCommand(), a.tokenCommand(), a.doctorCommand())
	root.AddCommand(&cobra.Command{
		Use: child.GuardCommand, Hidden: true, Args: cobra.NoArgs,
		Run: func(*cobra.Command, []string) { child.Guard(os.Stdin) },
	})
	root.AddCommand(&cobra.Command{
		Use: child.BeginCommand, Hidden: true, DisableFlagParsing: true, Args: cobra.MinimumNArgs(3),
		RunE: func(_ *cobra.Command, args []string) error {
			return &exit{child.NotExecutable, child.Begin(args)}
		},
	})
	root.InitDefaultCompletionCmd() // before what is done to all commands
	showUse(root)
	return root
}

// group adds commands under a title of the help.
func group(root *cobra.Command, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: title, Title: title})
	for _, command := range commands {
		command.GroupID = title
	}
	root.AddCommand(commands...)
}

// showUse returns the use of a command as the error of wrong arguments and unknown commands.
func showUse(command *cobra.Command) {
	if command.HasSubCommands() && command.HasParent() && !command.Runnable() {
		command.Args = cobra.NoArgs
		command.RunE = func(command *cobra.Command, _ []string) error { return command.Help() }
	}
	if check := command.Args; check != nil {
		command.Args = func(command *cobra.Command, args []string) error {
			if check(command, args) != nil {
				return usage("use: %s", command.UseLine())
			}
			return nil
		}
	}
	for _, below := range command.Commands() {
		showUse(below)
	}
}

func (a *app) checkOutput() error {
	switch a.output {
	case "table", "json", "name":
		return nil
	}
	return usage("--output must be table, json or name, not %q", a.output)
}

// retryLooks is how long commands other than run and acquire repeat a request.
const retryLooks = 5 * time.Second

// work is what a command does with a client and its arguments.
type work func(ctx context.Context, to *client.Client, args []string) error

// using connects for a command.
func (a *app) using(work work) func(*cobra.Command, []string) error {
	return func(command *cobra.Command, args []string) error {
		to, err := a.settings.Client(retryLooks)
		if err != nil {
			return err
		}
		defer func() { _ = to.Close() }() // returns nil
		return work(command.Context(), to, args)
	}
}

// pages reads the pages of a list. The function take keeps a page and returns the next cursor.
func pages[Page any](
	ctx context.Context, to *client.Client, path string, query url.Values, take func(*Page) string,
) error {
	for {
		page := new(Page)
		if err := to.Call(ctx, http.MethodGet, path+"?"+query.Encode(), nil, nil, page); err != nil {
			return err
		}
		cursor := take(page)
		if cursor == "" {
			return nil
		}
		query.Set("cursor", cursor)
	}
}

// codeOf returns the exit code of an error.
func (a *app) codeOf(err error) int {
	var problem *client.Error
	switch {
	case !a.parsed, errors.Is(err, settings.ErrNoServer), errors.Is(err, settings.ErrServer),
		errors.Is(err, settings.ErrToken):
		return codeUsage
	case client.CodeOf(err) == api.Lost, client.CodeOf(err) == client.NoAnswer:
		return codeNotAcquired
	case !errors.As(err, &problem):
		return codeError
	}
	switch status := problem.Status; {
	case problem.Code == api.Superseded:
		return codeSuperseded
	case status == http.StatusBadRequest, problem.Code == api.InvalidName,
		problem.Code == api.InvalidRequest:
		return codeUsage
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return codeRefused
	case status == http.StatusConflict, status == http.StatusLocked,
		status == http.StatusTooManyRequests, status >= http.StatusInternalServerError:
		return codeNotAcquired
	}
	return codeError
}

// say writes a line for a person.
func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "fencepost: "+format+"\n", args...)
}

// isTerminal reports whether a person reads the file, rather than a program.
func isTerminal(file *os.File) bool { return term.IsTerminal(int(file.Fd())) }
