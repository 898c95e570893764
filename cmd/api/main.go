// Command api is the Fencepost server: locks over HTTP.
//
//	api [flags]              serve
//	api token [flags]        print a bearer token signed with the HS256 secret
//	api backup [flags]       copy the embedded store to a file, while the server runs or not
//	api restore [flags]      make an embedded store from such a file
//	api health [flags]       exit 0 if the server at --listen lives
//	api version              print the version and the commit; --version does too
//
// It exits with 0 after a clean shutdown, 78 when its settings are wrong, and 1 when
// something else failed. The Go runtime exits with 2 after a panic.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/spf13/pflag"
)

// gcPercent lets the heap grow to four times what is live before it is collected,
// which is small beside what etcd maps: collection was a tenth of the processor
// time of a busy server at Go's default of 100. GOGC and GOMEMLIMIT still count.
const gcPercent = 300

// memoryShare is what Go's runtime may use of the container's memory. The rest is for what it does
// not count: pages of the store's file and the system's buffers.
const memoryShare = 0.8

// exitConfig is EX_CONFIG of sysexits.h. The runtime uses 2 for a panic, after which a
// supervisor has to restart the server.
const exitConfig = 78

func main() {
	if _, set := os.LookupEnv("GOGC"); !set {
		debug.SetGCPercent(gcPercent)
	}
	_, _ = memlimit.Set(memlimit.WithRatio(memoryShare)) // fails outside a container
	ctx, stop := handleSignals()
	defer stop()
	os.Exit(run(ctx, os.Args[1:], environmentOf(os.Environ()), os.Stdout, os.Stderr))
}

// run carries out one command line and returns the exit code.
func run(ctx context.Context, args []string, env environment, stdout, stderr io.Writer) int {
	err := dispatch(ctx, args, env, stdout, stderr)
	var usage *usageError
	switch {
	case err == nil:
		return 0
	case errors.Is(err, pflag.ErrHelp):
		return 0
	}
	// One line, also of several errors that were joined.
	text := strings.ReplaceAll(err.Error(), "\n", "; ") + remedy(err)
	lastWord(stderr, fmt.Sprintf("fencepost: %s\n", text))
	if errors.As(err, &usage) {
		return exitConfig
	}
	return 1
}

// remedy returns what to do about an error of the system, whose text only names the cause.
func remedy(err error) string {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return " (stop the program that listens there, or choose another address)"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return " (choose an address of this machine)"
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return " (check the path)"
	case errors.Is(err, fs.ErrPermission):
		return " (give this user access to it)"
	}
	return ""
}

// lastWordTime is for how long a reader of stderr is waited for that stands still.
const lastWordTime = time.Second

// lastWord says why the program ends. The program ends even if no reader takes it.
func lastWord(stderr io.Writer, line string) {
	said := make(chan struct{})
	go func() { // ends when it is read, or with the program
		defer close(said)
		_, _ = io.WriteString(stderr, line) // there is no other place to report it
	}()
	select {
	case <-said:
	case <-time.After(lastWordTime):
	}
}

func dispatch(ctx context.Context, args []string, env environment, stdout, stderr io.Writer) error {
	command := ""
	// as other programs have it
	if len(args) > 0 && (args[0] == "--version" || args[0] == "-version") {
		return printVersion(nil, env, stdout)
	}
	if len(args) > 0 && args[0] != "" && args[0][0] != '-' {
		command, args = args[0], args[1:]
	}
	switch command {
	case "", "serve":
		cfg, err := parseConfig(args, env, stdout)
		if err != nil || cfg.printOnly {
			return err
		}
		return serve(ctx, cfg, stdout, stderr)
	case "help":
		printServerHelp(stdout, newConfig().flags(stdout), false)
		return nil
	case "backup":
		return backup(ctx, args, env, stdout, stderr)
	case "restore":
		return restore(ctx, args, env, stdout)
	case "token":
		return printToken(args, env, stdout)
	case "health":
		return health(ctx, args, env, stdout)
	case "version":
		return printVersion(args, env, stdout)
	}
	return usagef(
		"there is no command %q; try backup, restore, token, health, version or --help", command,
	)
}

// usageError is a command line that makes no sense.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func usagef(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }
