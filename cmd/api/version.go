package main

import (
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
	commit  string // empty if nobody knows
}

// thisBuild says what the linker was told, and for the rest what the go command noted.
func thisBuild() build {
	info, _ := debug.ReadBuildInfo() // nil in a program that was linked otherwise
	return build{version: version, commit: commit}.or(info)
}

// or fills in what is not known from the module's version and the working tree's commit.
func (b build) or(info *debug.BuildInfo) build {
	if info == nil {
		info = &debug.BuildInfo{}
	}
	if b.version == "" && info.Main.Version != "(devel)" {
		b.version = info.Main.Version
	}
	if b.version == "" {
		b.version = "dev"
	}
	if b.commit == "" {
		b.commit = commitOf(info)
	}
	return b
}

// commitOf returns the commit that the go command built in, and whether files were changed
// since.
func commitOf(info *debug.BuildInfo) string {
	found, changed := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			found = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = "-dirty"
		}
	}
	if found == "" {
		return ""
	}
	return found + changed
}

func printVersion(args []string, env environment, stdout io.Writer) error {
	if _, err := parse(newCommandFlags("api version", stdout), args, env); err != nil {
		return err
	}
	b := thisBuild()
	if b.commit == "" {
		b.commit = "unknown"
	}
	_, err := fmt.Fprintf(stdout, "%s (commit %s, %s %s/%s)\n", b.version, b.commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
