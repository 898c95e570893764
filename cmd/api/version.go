package main

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
)

// version and commit are set by the linker: -X main.version=v1.2.3 -X main.commit=….
var version, commit string //nolint:gochecknoglobals // the linker sets nothing else

// build is what this program was made from.
type build struct {
	version string
	commit  string // empty if unknown
}

// thisBuild returns what the linker set, and for the rest what the go command noted.
func thisBuild() build {
	info, _ := debug.ReadBuildInfo() // nil in a program that was linked otherwise
	return build{version: version, commit: commit}.or(info)
}

// or fills in what is not known from the module's version and the working tree's commit.
func (b build) or(info *debug.BuildInfo) build {
	if info == nil {
		info = &debug.BuildInfo{}
	}
	if info.Main.Version != "(devel)" {
		b.version = cmp.Or(b.version, info.Main.Version)
	}
	b.version = cmp.Or(b.version, "dev")
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			b.commit = cmp.Or(b.commit, s.Value)
		}
	}
	return b
}

func printVersion(args []string, env environment, stdout io.Writer) error {
	if _, err := parse(newCommandFlags("api version", stdout), args, env); err != nil {
		return err
	}
	b := thisBuild()
	_, err := fmt.Fprintf(stdout, "%s (commit %s, %s %s/%s)\n",
		b.version, cmp.Or(b.commit, "unknown"), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
