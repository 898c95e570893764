package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fencepost/fencepost/client"
	"github.com/fencepost/fencepost/cmd/fencepost/claims"
)

// sessionFlags say who claims.
type sessionFlags struct {
	claims.Config
	claims.Request
}

func (f *sessionFlags) bind(flags *pflag.FlagSet) {
	flags.SortFlags = false
	flags.StringVar(&f.Session, "session", "",
		"`name` of the session that has the claims ($FENCEPOST_SESSION, your user name)")
	flags.StringVar(&f.Repo, "repo", "",
		"`id` of the repository ($FENCEPOST_REPO, the address of its remote origin)")
}

func (f *sessionFlags) bindTTL(flags *pflag.FlagSet, wait time.Duration) {
	spanVar(flags, &f.TTL, "ttl", 10*time.Minute,
		"how long a claim lasts without a call of the session")
	spanVar(flags, &f.Wait, "wait", wait, "how long to wait for the end of another session's claim")
}

// open returns the session of the flags, the environment, or the name that an agent gave.
func (f *sessionFlags) open(to *client.Client, given string) (*claims.Session, error) {
	config := f.Config
	config.Client, config.Repo = to, cmp.Or(f.Repo, os.Getenv("FENCEPOST_REPO"))
	config.Session = cmp.Or(f.Session, os.Getenv("FENCEPOST_SESSION"), given)
	if config.Session == "" {
		who, err := user.Current()
		if err != nil {
			return nil, err
		}
		config.Session = who.Username
	}
	return claims.Open(config)
}

// claiming makes do the work of a command, with the session of the flags and the places of the
// arguments.
func (a *app) claiming(
	f *sessionFlags, do func(context.Context, *claims.Session, []claims.Place) error,
) func(*cobra.Command, []string) error {
	return a.using(func(ctx context.Context, to *client.Client, paths []string) error {
		s, err := f.open(to, "")
		if err != nil {
			return err
		}
		places, err := s.Places(paths...)
		if err != nil {
			return &exit{codeUsage, err}
		}
		return do(ctx, s, places)
	})
}

func (a *app) claimCommand() *cobra.Command {
	f := &sessionFlags{}
	command := &cobra.Command{
		Use:   "claim [flags] PATH…",
		Short: "Claim files and folders of a repository",
		Long: `Claim files and folders of a repository, so that other sessions cannot claim them.

The claims of a session end one --ttl after its last call, unless it releases
them. fencepost hook makes agents claim what they edit.`,
		Args: cobra.MinimumNArgs(1),
		RunE: a.claiming(f, func(ctx context.Context, s *claims.Session, places []claims.Place) error {
			if f.TTL < leastTTL || f.Wait < 0 || f.Wait > mostWait {
				return usage("--ttl must be 2s or more, --wait 0 to 24h")
			}
			f.Places = places
			err := s.Claim(ctx, f.Request)
			if taken := new(claims.TakenError); errors.As(err, &taken) {
				return &exit{codeNotAcquired, err}
			}
			return err
		}),
	}
	f.bind(command.Flags())
	f.bindTTL(command.Flags(), 0)
	command.Flags().BoolVar(&f.Read, "read", false, "share the paths with others that only read")
	command.Flags().StringVar(&f.Purpose, "for", "", "`task` that others see")
	return command
}

func (a *app) unclaimCommand() *cobra.Command {
	f := &sessionFlags{}
	command := &cobra.Command{
		Use:   "unclaim [PATH…]",
		Short: "Release claims: of the paths and of all in them, or all",
		RunE: a.claiming(f, func(ctx context.Context, s *claims.Session, places []claims.Place) error {
			released, err := s.Unclaim(ctx, places...)
			if err != nil {
				return err
			}
			return a.print(released, released, func(w *tabwriter.Writer) {
				for _, name := range released {
					row(w, "released", name)
				}
			})
		}),
	}
	f.bind(command.Flags())
	return command
}

func (a *app) claimsCommand() *cobra.Command {
	f, all := &sessionFlags{}, false
	command := &cobra.Command{
		Use:   "claims",
		Short: "List the claims of this session, or of all",
		Args:  cobra.NoArgs,
		RunE: a.claiming(f, func(ctx context.Context, s *claims.Session, _ []claims.Place) error {
			if !all {
				return a.printTree(s.Own())
			}
			seen, err := s.All(ctx, ".")
			if err != nil {
				return err
			}
			return a.printTree(seen)
		}),
	}
	f.bind(command.Flags())
	command.Flags().BoolVar(&all, "all", false, "those of all sessions on this repository")
	return command
}

// printTree indents each path below the folders that it shares with the one before.
func (a *app) printTree(seen []claims.Seen) error {
	names := namesOf(seen, func(s claims.Seen) string { return s.Path })
	return a.print(seen, names, func(w *tabwriter.Writer) {
		var before []string
		for _, s := range seen {
			steps, shared := strings.Split(s.Path, "/"), 0
			for shared < len(steps)-1 && shared < len(before) && steps[shared] == before[shared] {
				shared++
			}
			for ; shared < len(steps)-1; shared++ {
				row(w, strings.Repeat("  ", shared)+steps[shared]+"/")
			}
			cells := []any{
				strings.Repeat("  ", shared) + steps[shared], s.Holder, rounded(time.Since(s.Since)),
			}
			if s.Read {
				cells = append(cells, "read")
			}
			if s.Waiting > 0 {
				cells = append(cells, fmt.Sprintf("%d waiting", s.Waiting))
			}
			row(w, cells...)
			before = steps
		}
	})
}
