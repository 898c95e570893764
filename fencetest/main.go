// Fencetest judges locks by what happens to a resource that they protect: when a holder pauses, the
// server dies, an answer gets lost. README.md says how, and how to judge a lock of your own.
package main

import (
	"debug/buildinfo"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// options are the flags of the command.
type options struct {
	home, systems, worker, server, claims, rows, must string
	json, histories, markdown, from                   string
	times                                             int
}

func main() {
	code, err := command(os.Args[1:], os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "fencetest:", err)
	}
	os.Exit(code)
}

func parse(args []string) (o options, err error) {
	f := flag.NewFlagSet("fencetest", flag.ContinueOnError)
	f.StringVar(&o.home, "home", "", "folder of systems and servers (default: . or ./fencetest)")
	f.StringVar(&o.systems, "system", "", "systems to test, with commas (default: all)")
	f.StringVar(&o.worker, "worker", "", "test this program, or the folder of its system.json")
	f.StringVar(&o.server, "server", "", "with -worker: host:port of its server, or a folder of scripts")
	f.StringVar(&o.claims, "claims", "", "with -worker: what the lock claims besides exclusion, such as fence,order")
	f.StringVar(&o.rows, "row", "", "rows to run, with commas (default: all)")
	f.IntVar(&o.times, "times", 1, "run each row so many times")
	f.StringVar(&o.must, "must", "", "systems that must not fail, with commas: exit 1 if one does")
	f.StringVar(&o.json, "json", "", "write the results to this file; it keeps those of other systems")
	f.StringVar(&o.histories, "histories", "", "write the history of each row to this folder, as text and SVG")
	f.StringVar(&o.markdown, "markdown", "", "write the results of -from into this document, and test nothing")
	f.StringVar(&o.from, "from", "", "file that -json wrote")
	if err = f.Parse(args); err == nil && f.NArg() > 0 {
		err = fmt.Errorf("%q is not a flag", f.Arg(0))
	}
	for _, id := range list(o.rows) {
		if !slices.ContainsFunc(rows(), func(w row) bool { return w.id == id }) && err == nil {
			err = fmt.Errorf("there is no row %q", id)
		}
	}
	return o, err
}

// list splits a flag's value.
func list(value string) []string {
	return strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' })
}

// command runs the test, and returns the exit code.
func command(args []string, out io.Writer) (int, error) {
	o, err := parse(args)
	if err != nil {
		return 2, err
	}
	if o.markdown != "" {
		return failure(writeMarkdown(o.markdown, o.from))
	}
	systems, err := o.chosen()
	if err != nil {
		return 2, err
	}
	procs := &processes{}
	defer procs.end()
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-stop
		procs.end()
		os.Exit(130)
	}()
	t := &tester{options: o, procs: procs, out: out, command: "fencetest " + strings.Join(args, " ")}
	var reports []report
	for _, s := range systems {
		reports = append(reports, t.test(s))
		if err := t.save(reports[len(reports)-1]); err != nil {
			return 2, err
		}
	}
	fmt.Fprint(out, "\n"+matrix(reports))
	return o.code(reports), nil
}

func failure(err error) (int, error) {
	if err != nil {
		return 2, err
	}
	return 0, nil
}

// code is 1 if a system could not be tested, or one that must not fail does.
func (o *options) code(reports []report) int {
	for _, r := range reports {
		must := o.worker != "" || slices.Contains(list(o.must), r.System)
		failed := slices.ContainsFunc(r.Rows, func(w result) bool { return w.Verdict == bad })
		if r.Problem != "" || must && failed {
			return 1
		}
	}
	return 0
}

// chosen returns the systems that the flags name.
func (o *options) chosen() ([]*system, error) {
	if o.home == "" {
		o.home = "."
		if _, err := os.Stat("fencetest/systems"); err == nil {
			o.home = "fencetest"
		}
	}
	home, err := filepath.Abs(o.home)
	if err != nil {
		return nil, err
	}
	o.home = home
	if o.worker != "" {
		s, err := o.ownSystem()
		return []*system{s}, err
	}
	names := list(o.systems)
	if len(names) == 0 {
		all, _ := filepath.Glob(filepath.Join(o.home, "systems", "*", "system.json"))
		for _, file := range all {
			names = append(names, filepath.Base(filepath.Dir(file)))
		}
	}
	var systems []*system
	for _, name := range names {
		s, err := readSystem(filepath.Join(o.home, "systems", name))
		if err != nil {
			return nil, err
		}
		systems = append(systems, s)
	}
	if len(systems) == 0 {
		return nil, fmt.Errorf("there are no systems in %s; -home names their folder", o.home)
	}
	return systems, nil
}

// ownSystem is the system of a worker that is not in the list.
func (o *options) ownSystem() (*system, error) {
	path, err := filepath.Abs(o.worker)
	if err != nil {
		return nil, err
	}
	folder, name := filepath.Split(path)
	_, notGo := buildinfo.ReadFile(path) // Go programs read the clock without the C library
	s := &system{
		Title: o.worker, Worker: []string{path}, name: name, folder: folder, FakeTime: notGo != nil,
	}
	if info, err := os.Stat(path); err != nil || info.IsDir() {
		if s, err = readSystem(path); err != nil {
			return nil, err
		}
	}
	if s.Claims == nil {
		s.Claims = map[string]string{}
	}
	for _, claim := range list(o.claims) {
		if _, known := defaultClaims()[claim]; !known {
			return nil, fmt.Errorf("no row asks for the claim %q", claim)
		}
		s.Claims[claim] = "yes"
	}
	if strings.Contains(o.server, ":") {
		s.address = o.server
	} else if o.server != "" {
		s.Server, err = filepath.Abs(o.server)
		if strings.Contains(o.server, "/") {
			s.folder, s.Server = "/", strings.TrimPrefix(s.Server, "/")
		} else {
			s.Server = o.server
		}
	}
	return s, err
}
