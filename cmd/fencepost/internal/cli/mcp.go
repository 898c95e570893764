package cli

import (
	"context"
	"crypto/rand"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/client"
	"github.com/fencepost/fencepost/cmd/fencepost/claims"
	"github.com/fencepost/fencepost/cmd/fencepost/mcp"
)

const mcpHelp = `Serve locks to an agent by the Model Context Protocol, on standard input and
output.

An agent starts this command, and gets the tools acquire, release, status, list
and who_blocks for locks, and claim, unclaim and claims for files. The command
renews the agent's locks, and releases them when the session ends. The agent
never sees a token.

The claims are those of the session --session, which hooks and commands share,
and stay when this command ends. Without a name they end with it.

  {"mcpServers": {"fencepost": {"command": "fencepost", "args": ["mcp"],
    "env": {"FENCEPOST_URL": "…", "FENCEPOST_TOKEN_FILE": "…"}}}}`

func (a *app) mcpCommand() *cobra.Command {
	f := &sessionFlags{}
	f.TTL = 10 * time.Minute
	command := &cobra.Command{
		Use:   "mcp",
		Short: "Serve locks to an agent by the Model Context Protocol",
		Long:  mcpHelp,
		Args:  cobra.NoArgs,
		RunE: a.using(func(ctx context.Context, to *client.Client, _ []string) error {
			ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
			defer stop()
			signal.Ignore(syscall.SIGPIPE) // a failed write releases the locks, and then ends the process
			own := "mcp-" + rand.Text()[:8]
			s, err := f.open(to, own)
			if err != nil {
				return err
			}
			if s.Name() == own {
				defer endClaims(ctx, s)
			}
			return mcp.Serve(ctx, to, s, a.version.Version, os.Stdin, os.Stdout)
		}),
	}
	f.bind(command.Flags())
	return command
}

// endClaims releases the claims of a session that no other process has. Otherwise they expire.
func endClaims(ctx context.Context, s *claims.Session) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_ = s.End(ctx)
}
