package cli

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// serverProgram is the server in packages.
const serverProgram = "fencepost-server"

func serverCommand() *cobra.Command {
	return &cobra.Command{
		Use:                "server [ARG…]",
		Short:              "Start the server, if " + serverProgram + " is installed",
		DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			path, err := findServer()
			if err != nil {
				return &exit{codeError, fmt.Errorf("%s is not next to this program or on PATH", serverProgram)}
			}
			return become(path, append([]string{serverProgram}, args...))
		},
	}
}

// findServer looks next to this program, then on PATH.
func findServer() (string, error) {
	if self, err := os.Executable(); err == nil {
		if path, err := exec.LookPath(filepath.Join(filepath.Dir(self), serverProgram)); err == nil {
			return path, nil
		}
	}
	return exec.LookPath(serverProgram)
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version of this program", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := a.version
			return a.printLine(v, v.Version, "%s (commit %s, %s %s)",
				v.Version, cmp.Or(v.Commit, "unknown"), v.Go, v.Platform)
		},
	}
}

// version is what this program was made from.
type version struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// versionOf returns what the linker set, or else what the go command noted.
func versionOf(tag, commit string) version {
	v := version{tag, commit, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		if info.Main.Version != "(devel)" {
			v.Version = cmp.Or(v.Version, info.Main.Version)
		}
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				v.Commit = cmp.Or(v.Commit, s.Value)
			}
		}
	}
	v.Version = cmp.Or(v.Version, "dev")
	return v
}
