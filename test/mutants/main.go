// Mutants seeds known bugs into a copy of the tree, one at a time, and runs the test that must
// fail because of each. It fails if a bug survives or can no longer be seeded: then a documented
// protection has no test, or it is unknown whether it has one.
//
// README.md describes how to add a bug.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
)

// workers is how many bugs are tried at a time: each has compilers and perhaps a
// cluster to itself. On two cores two of them left four tenths of the processors idle, as
// many tests wait for servers.
const workers = 4

type options struct {
	root string // of the module
	run  *regexp.Regexp
	list bool
	fast bool

	explore bool   // the bugs that the explorer must find, instead of the others
	in      string // another package whose test has to catch them, or ""
	test    string // that test
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := try(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop was called
	}
}

func try(ctx context.Context, args []string) error {
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	all := table()
	if o.explore {
		all = exploreBugs()
	}
	chosen := choose(all, o)
	if len(chosen) == 0 {
		return errors.New("no bug is chosen")
	}
	if o.list {
		for _, b := range chosen {
			fmt.Printf("%-40s %s\n", b.Name, b.Breaks)
		}
		return nil
	}
	return seed(ctx, o.root, chosen)
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	pattern := flags.String("run", "", "only the bugs whose names match this regular expression")
	flags.BoolVar(&o.list, "list", false, "name the bugs and try none")
	flags.BoolVar(&o.fast, "fast", false, "leave out those whose tests start etcd or ZooKeeper")
	flags.BoolVar(&o.explore, "explore", false, "seed the bugs that the explorer must find")
	flags.StringVar(&o.in, "in", "", "`package` of another test that has to catch the bugs")
	flags.StringVar(&o.test, "test", "", "pattern of that test")
	flags.StringVar(&o.root, "root", ".", "folder of the module")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	var err error
	if o.run, err = regexp.Compile(*pattern); err != nil {
		return o, fmt.Errorf("-run: %w", err)
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("%q is one argument too many", flags.Arg(0))
	}
	if _, err := os.Stat(filepath.Join(o.root, "go.mod")); err != nil {
		return o, fmt.Errorf("-root: %w", err)
	}
	return o, nil
}

func choose(all []Bug, o options) []Bug {
	var chosen []Bug
	for _, b := range all {
		if o.run.MatchString(b.Name) && !(o.fast && b.Needs != "") {
			if o.in != "" {
				b.In, b.Run, b.Hangs = o.in, o.test, false
			}
			chosen = append(chosen, b)
		}
	}
	return chosen
}

// seed tries the bugs and prints the table of what became of them.
func seed(ctx context.Context, root string, bugs []Bug) error {
	for _, b := range bugs {
		if err := b.check(root); err != nil {
			return err // before an hour is spent
		}
	}
	temp, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp) //nolint:errcheck // a folder for temporary files
	trees, err := copies(root, temp, min(workers, len(bugs)))
	if err != nil {
		return err
	}
	if err := sound(ctx, trees, bugs); err != nil {
		return err
	}
	outcomes := tryAll(ctx, trees, bugs)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	fmt.Print(report(outcomes), stories(outcomes))
	return verdict(outcomes)
}
