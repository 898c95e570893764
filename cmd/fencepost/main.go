// Fencepost holds locks of a Fencepost server from shells, cron and CI.
package main

import (
	"os"

	"github.com/fencepost/fencepost/cmd/fencepost/internal/cli"
)

// version and commit are set by the linker: -X main.version=v1.2.3 -X main.commit=….
var version, commit string //nolint:gochecknoglobals // the linker sets nothing else

func main() {
	os.Exit(cli.Main(os.Args[1:], version, commit))
}
