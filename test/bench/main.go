// Command bench measures Fencepost against its peers on this machine:
//
//	go run ./test/bench                        # every row, about half an hour
//	go run ./test/bench -rows S1,S5 -rounds 3
//	go run ./test/bench -rows peers -publish docs/internals/performance.md
//	go run ./test/bench -charts docs/internals/charts
//	go run ./test/bench -rows older -older bin/older
//
// It starts every server as a process of its own, with fsync on, and makes the
// load itself. docs/internals/performance.md explains the rows and publishes a run. A peer that is
// not installed is an error that says how to get it.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/fencepost/fencepost/test/bench/row"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	exit(err)
}

func exit(err error) {
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

type options struct {
	row.Config
	rows, publish string
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(stderr)
	o.define(f)
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	if o.Rounds < 1 || o.Duration <= 0 || o.Warmup < 0 || o.Waiters < 100 || o.Entries < 1 {
		return o, errors.New("rounds, duration and entries must be positive, waiters at least 100")
	}
	return o, nil
}

func (o *options) define(f *flag.FlagSet) {
	f.StringVar(&o.rows, "rows", "", "rows to run, such as S1,S2; peers and stress are groups of them; "+
		"when empty all but older, or none with -charts")
	f.StringVar(&o.publish, "publish", "", "also write the table into this document, below the marker of -rows")
	f.StringVar(&o.Charts, "charts", "", "also measure and draw the charts, into this folder")
	f.DurationVar(&o.Duration, "duration", 3*time.Second,
		"of one round of one side; S9 takes 100 s at least")
	f.DurationVar(&o.Warmup, "warmup", time.Second, "before each round, not counted")
	f.IntVar(&o.Rounds, "rounds", 5, "of each side, in turns")
	f.IntVar(&o.Waiters, "waiters", 10_000,
		"waiting requests in S7, S8, S11 and the chart of memory, and at once in S14")
	f.IntVar(&o.Entries, "entries", 100_000, "held locks in S11 and S12, and in S9 up to 50 000")
	f.StringVar(&o.Dir, "dir", "", "where to make the folder for data and logs, on a real disk; "+
		"the system's temporary folder when empty")
	f.BoolVar(&o.Keep, "keep", false, "keep the folder")
	f.Func("ways", "of S17: parts of the names of those to run, separated by commas; all when not given",
		func(text string) error {
			o.Ways = strings.Split(text, ",")
			return nil
		})
	f.IntVar(&o.Limit, "limit", 1000,
		"requests a second that the hostile tenant of S17 may make; 0 is the server's default")
	f.StringVar(&o.Older, "older", "",
		"binary of an older revision of the API server, for the rows older and S18")
	f.StringVar(&o.Profiles, "profiles", "",
		"also write processor and heap profiles of Fencepost into this folder")
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	document, err := o.publishing()
	if err != nil {
		return err
	}
	o.Progress = stderr
	clean, err := o.prepare()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, clean()) }()
	if o.rows != "" || o.Charts == "" {
		if err := o.measure(ctx, stdout, document); err != nil {
			return err
		}
	}
	if o.Charts == "" {
		return nil
	}
	return row.Charts(ctx, o.Config)
}

// measure runs the rows, and prints their table. It publishes the table if all of them ran.
func (o *options) measure(ctx context.Context, stdout io.Writer, document *published) error {
	rows, err := row.Select(o.rows)
	if err != nil {
		return err
	}
	machine, err := row.Inspect(o.Dir)
	if err != nil {
		return err
	}
	outcomes, runErr := row.Run(ctx, o.Config, rows)
	table := row.Table(machine, o.Config, outcomes)
	if _, err = io.WriteString(stdout, table); runErr != nil || err != nil || document == nil {
		return errors.Join(runErr, err)
	}
	return document.write(table)
}

// prepare makes the folders, and returns what removes that for data and logs.
func (o *options) prepare() (clean func() error, err error) {
	for _, dir := range []string{o.Dir, o.Profiles, o.Charts} {
		if err := os.MkdirAll(cmp.Or(dir, "."), 0o755); err != nil {
			return nil, err
		}
	}
	if o.Dir, err = os.MkdirTemp(o.Dir, "fencepost-bench-"); err != nil {
		return nil, err
	}
	if o.Keep {
		fmt.Fprintln(o.Progress, "data and logs:", o.Dir)
		return func() error { return nil }, nil
	}
	return func() error { return os.RemoveAll(o.Dir) }, nil
}
