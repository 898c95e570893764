package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/fencepost/claims"
	"github.com/fencepost/fencepost/cmd/fencepost/hook"
)

// retryHooks is how long a hook repeats a request: an agent waits for it.
const retryHooks = time.Second

func (a *app) hookCommand() *cobra.Command {
	f, h := &sessionFlags{}, &hook.Hook{}
	command := &cobra.Command{
		Use:   "hook [flags] AGENT | git pre-commit | git pre-push",
		Short: "Answer a hook of an agent or of git: refuse writes without a claim",
		Long: `Answer a hook of an agent, ` + hook.Agents() + `, or of git, on standard input
and output. What the agent writes is claimed, or refused.

If no server answers, --offline allows or denies it; without the flag it is
denied if another session of this machine claimed it, and allowed with a warning
otherwise.`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(command *cobra.Command, args []string) error {
			switch {
			case h.Offline != "" && h.Offline != "allow" && h.Offline != "deny":
				return usage("--offline is allow or deny, not %q", h.Offline)
			case (args[0] == "git") != (len(args) == 2):
				return usage("use: %s", command.UseLine())
			case args[0] == "git" && !command.Flags().Changed("wait"):
				f.Wait = 0 // a person waits
			}
			h.Wait = f.Wait
			to, err := a.settings.Client(retryHooks)
			if err != nil {
				return err
			}
			defer func() { _ = to.Close() }() // returns nil
			h.Open = func(session string) (*claims.Session, error) { return f.open(to, session) }
			if args[0] == "git" {
				if err := h.Git(command.Context(), args[1], os.Stdin, os.Stderr); err != nil {
					return &exit{codeNotAcquired, err}
				}
				return nil
			}
			return h.Answer(command.Context(), args[0], os.Stdin, os.Stdout)
		},
	}
	f.bind(command.Flags())
	f.bindTTL(command.Flags(), 20*time.Second)
	command.Flags().StringVar(&h.Offline, "offline", "", "`allow` or deny if no server answers")
	command.AddCommand(a.installCommand())
	return command
}

func (a *app) installCommand() *cobra.Command {
	var remove, yes bool
	command := &cobra.Command{
		Use:   "install [flags] AGENT",
		Short: "Add the hooks to the settings of an agent, or of git, in this repository",
		Args:  cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			top, err := exec.Command("git", "rev-parse", "--show-toplevel").Output()
			if err != nil {
				return fmt.Errorf("this is no work tree of git: %w", err)
			}
			changes, err := hook.Changes(args[0], strings.TrimSpace(string(top)), remove)
			if err != nil {
				return err
			}
			return install(command.Context(), changes, yes)
		},
	}
	command.Flags().BoolVar(&remove, "remove", false, "take the hooks out again")
	command.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return command
}

// install shows each change, then makes it.
func install(ctx context.Context, changes []hook.Change, yes bool) error {
	for _, c := range changes {
		if bytes.Equal(c.Before, c.After) {
			continue
		}
		if err := showDifference(ctx, c); err != nil {
			return err
		}
		if !yes && !confirmed("Change "+c.Path+"?") {
			return errors.New("not confirmed: use --yes")
		}
		if err := c.Write(); err != nil {
			return err
		}
	}
	return nil
}

// showDifference lets git compare the file with its new text.
func showDifference(ctx context.Context, c hook.Change) error {
	before := c.Path
	if c.Before == nil {
		before = os.DevNull
	}
	diff := exec.CommandContext(ctx, "git", "--no-pager", "diff", "--no-index", "--", before, "-")
	diff.Stdin, diff.Stdout, diff.Stderr = bytes.NewReader(c.After), os.Stdout, os.Stderr
	var exit *exec.ExitError
	if err := diff.Run(); !errors.As(err, &exit) || exit.ExitCode() != 1 { // 1 is that they differ
		return err
	}
	return nil
}
