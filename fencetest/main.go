// Fencetest judges locks by what happens to a resource that they protect: when a holder pauses, the
// server dies, an answer gets lost. README.md says how, and how to judge a lock of your own.
package main

import (
	"debug/buildinfo"
	"errors"
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
	home, systems, worker, server, claims, rows, json, histories, markdown, from string
	strict                                                                       bool
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
	f.StringVar(&o.home, "home", ".", "folder that has systems and servers")
	f.StringVar(&o.systems, "system", "", "systems to test, with commas (default: all)")
	f.StringVar(&o.worker, "worker", "", "test this program, or the folder of its system.json")
	f.StringVar(&o.server, "server", "", "with -worker: host:port of its server, or a name in servers")
	f.StringVar(&o.claims, "claims", "", "with -worker: what the lock claims besides exclusion, such as fence,order")
	f.StringVar(&o.rows, "row", "", "rows to run, with commas (default: all)")
	f.BoolVar(&o.strict, "strict", false, "exit with 1 if a row fails, or together does not run, as with -worker")
	f.StringVar(&o.json, "json", "", "write the results to this file; it keeps those of other systems")
	f.StringVar(&o.histories, "histories", "", "write the history of each row to this folder, as text and SVG")
	f.StringVar(&o.markdown, "markdown", "", "write the results of -from into this document, and test nothing")
	f.StringVar(&o.from, "from", "", "file that -json wrote")
	if err = f.Parse(args); err == nil && f.NArg() > 0 {
		err = fmt.Errorf("%q is not a flag", f.Arg(0))
	}
	for _, id := range list(o.rows) {
		if !slices.ContainsFunc(rows(), func(w row) bool { return w.id == id }) {
			err = errors.Join(err, fmt.Errorf("there is no row %q", id))
		}
	}
	return o, err
}

// list splits a flag's value.
func list(value string) []string {
	return strings.FieldsFunc(value, func(r rune) bool { return r == ',' })
}

// command runs the test, and returns the exit code.
func command(args []string, out io.Writer) (int, error) {
	o, err := parse(args)
	if err == nil && o.markdown != "" {
		return 0, writeMarkdown(o.markdown, o.from)
	}
	var systems []*system
	if err == nil {
		systems, err = o.chosen()
	}
	if err != nil {
		return 2, err
	}
	t := &tester{options: o, procs: &processes{running: map[*group]bool{}}}
	if t.folder, err = os.MkdirTemp("", "fencetest-"); err != nil {
		return 2, err
	}
	end := func() {
		t.procs.end()
		_ = os.RemoveAll(t.folder) // a temporary folder
	}
	defer end()
	if err := os.Chmod(t.folder, 0o755); err != nil { // a server may drop to another user
		return 2, err
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(stop)
	go func() {
		<-stop
		end()
		os.Exit(130)
	}()
	var reports []report
	for _, s := range systems {
		r := t.test(s, out)
		if err := t.save(r); err != nil {
			return 2, err
		}
		reports = append(reports, r)
	}
	fmt.Fprint(out, "\n"+matrix(reports))
	return o.code(reports), nil
}

// code is 1 if a system could not be tested, or fails and must not. A lock that no client was
// granted has shown nothing.
func (o *options) code(reports []report) int {
	for _, r := range reports {
		failed := slices.ContainsFunc(r.Rows, func(w result) bool {
			return w.Verdict == bad || w.Row == "together" && w.Verdict == notRun
		})
		if r.Problem != "" || failed && (o.strict || o.worker != "") {
			return 1
		}
	}
	return 0
}

// chosen returns the systems that the flags name.
func (o *options) chosen() (systems []*system, err error) {
	if o.home, err = filepath.Abs(o.home); err != nil {
		return nil, err
	}
	if o.worker != "" {
		s, err := o.ownSystem()
		return []*system{s}, err
	}
	names := list(o.systems)
	if len(names) == 0 {
		files, _ := filepath.Glob(filepath.Join(o.home, "systems", "*", "system.json"))
		for _, file := range files {
			names = append(names, filepath.Base(filepath.Dir(file)))
		}
	}
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
func (o *options) ownSystem() (s *system, err error) {
	path, err := filepath.Abs(o.worker)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if info.IsDir() {
		if s, err = readSystem(path); err != nil {
			return nil, err
		}
	} else {
		_, notGo := buildinfo.ReadFile(path) // Go programs read the clock without the C library
		s = &system{Title: o.worker, Worker: []string{path}, FakeTime: notGo != nil}
		s.Claims = map[string]string{}
		s.folder, s.name = filepath.Split(path)
	}
	for _, claim := range list(o.claims) {
		s.Claims[claim] = "yes"
	}
	if strings.Contains(o.server, ":") {
		s.address = o.server
	} else if o.server != "" {
		s.Server = o.server
	}
	return s, s.fillClaims()
}
