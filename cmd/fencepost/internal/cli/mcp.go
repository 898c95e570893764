package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/client"
	"github.com/fencepost/fencepost/cmd/fencepost/mcp"
)

const mcpHelp = `Serve locks to an agent by the Model Context Protocol, on standard input and
output.

An agent starts this command, and gets the tools acquire, release, status, list
and who_blocks. The command renews the agent's locks, and releases them when the
session ends. The agent never sees a token.

  {"mcpServers": {"fencepost": {"command": "fencepost", "args": ["mcp"],
    "env": {"FENCEPOST_URL": "…", "FENCEPOST_TOKEN_FILE": "…"}}}}`

func (a *app) mcpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "mcp",
		Short: "Serve locks to an agent by the Model Context Protocol",
		Long:  mcpHelp,
		Args:  cobra.NoArgs,
		RunE: a.using(func(ctx context.Context, to *client.Client, _ []string) error {
			ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
			defer stop()
			signal.Ignore(syscall.SIGPIPE) // a failed write releases the locks, and then ends the process
			return mcp.Serve(ctx, to, a.version.Version, os.Stdin, os.Stdout)
		}),
	}
}
