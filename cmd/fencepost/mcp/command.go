package mcp

import (
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/client"
)

const commandText = `Serve locks to an agent by the Model Context Protocol, on standard input and
output.

An agent starts this command, and gets the tools acquire, release, status, list
and who_blocks. Its locks are renewed while the session lives, and released when
it ends. The agent never sees a token.

  {"mcpServers": {"fencepost": {"command": "fencepost", "args": ["mcp"],
    "env": {"FENCEPOST_URL": "…", "FENCEPOST_TOKEN_FILE": "…"}}}}`

// Command returns the command mcp.
func Command(connect func() (*client.Client, error), version string) *cobra.Command {
	return &cobra.Command{
		Use:   "mcp",
		Short: "Serve locks to an agent by the Model Context Protocol",
		Long:  commandText,
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			to, err := connect()
			if err != nil {
				return err
			}
			defer func() { _ = to.Close() }() // returns nil
			ctx, stop := signal.NotifyContext(
				command.Context(), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP,
			)
			defer stop()
			return Serve(ctx, to, version, command.InOrStdin(), command.OutOrStdout())
		},
	}
}
