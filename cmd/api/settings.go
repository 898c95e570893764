package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// environment is the variables that the process was given.
type environment map[string]string

// environmentOf reads what os.Environ returns.
func environmentOf(pairs []string) environment {
	env := environment{}
	for _, pair := range pairs {
		name, text, _ := strings.Cut(pair, "=")
		env[name] = text
	}
	return env
}

// origin is where the value of a setting comes from.
type origin string

const (
	byDefault     origin = "default"
	byFlag        origin = "flag"
	byEnvironment origin = "environment"
	byFile        origin = "file"
)

// origins are those of the settings that were set, by name.
type origins map[string]origin

// of is the origin of any setting.
func (o origins) of(name string) origin {
	if from, set := o[name]; set {
		return from
	}
	return byDefault
}

const (
	serverFlags     = "api" // the name of the set of them
	configFlag      = "config"
	printConfigFlag = "print-config"
)

// newFlags returns a set of flags that prints its help where it is asked to.
func newFlags(name string, stdout io.Writer) *flag.FlagSet {
	f := flag.NewFlagSet(name, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.Usage = func() {
		if name == serverFlags {
			fmt.Fprintln(
				stdout,
				"api serves. api backup, api restore, api token, api health and api version do something else; see their --help.",
			)
		}
		fmt.Fprintf(
			stdout,
			"Flags of %s. Every flag has an environment variable: --data-dir is FENCEPOST_DATA_DIR.\n", name,
		)
		f.SetOutput(stdout)
		f.PrintDefaults()
		f.SetOutput(io.Discard)
	}
	return f
}

// newCommandFlags is newFlags of a command that acts on a server: it reads what it knows from
// the file with that server's settings.
func newCommandFlags(name string, stdout io.Writer) *flag.FlagSet {
	f := newFlags(name, stdout)
	f.String(configFlag, "", "`file` with the server's settings; those that are listed here count")
	return f
}

// parse sets the flags by the command line, what is not there by the environment, and
// what is in neither by the file that --config names. It returns where each was set, also
// with an error, which has all that is wrong.
func parse(f *flag.FlagSet, args []string, env environment) (origins, error) {
	set := origins{}
	err := parseLine(f, args)
	if errors.Is(err, flag.ErrHelp) {
		return set, err
	}
	f.Visit(func(fl *flag.Flag) { set[fl.Name] = byFlag })
	f.VisitAll(func(fl *flag.Flag) { // a number that is none leaves 0 behind
		if set.of(fl.Name) == byDefault && fl.Value.String() != fl.DefValue {
			_ = fl.Value.Set(fl.DefValue) // which was its value before
		}
	})
	return set, errors.Join(err, set.readEnvironment(f, env), set.readFile(f))
}

// parseLine reads the command line to its end, also behind a flag that is wrong. Only
// behind an argument there are no flags.
func parseLine(f *flag.FlagSet, args []string) error {
	help := f.Usage
	f.Usage = func() {} // which is also called for a flag that is wrong
	var wrong []error
	for err := f.Parse(args); err != nil; err = f.Parse(behindValue(f.Args())) {
		if errors.Is(err, flag.ErrHelp) {
			help()
			return err
		}
		wrong = append(wrong, usagef("%v", err))
	}
	switch {
	case len(wrong) > 0:
		return errors.Join(append(wrong, usagef("--help lists the flags"))...)
	case f.NArg() > 0:
		return usagef("unexpected argument %q", f.Arg(0))
	}
	return nil
}

// behindValue leaves out what may be the value of a flag that there is not: what follows is looked
// at, too.
func behindValue(args []string) []string {
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		return args[1:]
	}
	return args
}

// variable is the environment variable of a flag.
func variable(flagName string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flagName, "-", "_"))
}

func (o origins) readEnvironment(f *flag.FlagSet, env environment) error {
	var wrong []error
	f.VisitAll(func(fl *flag.Flag) {
		text := env[variable(fl.Name)]
		if o[fl.Name] == byFlag || text == "" {
			return
		}
		if err := setTo(fl, text); err != nil {
			wrong = append(wrong, usagef("%s: %v", variable(fl.Name), err))
		}
		o[fl.Name] = byEnvironment
	})
	return errors.Join(wrong...)
}

// setTo sets a flag. With an error it is as it was before, so that only what was given is found
// wrong; the error does not have the text, which may be a secret in the wrong place.
func setTo(fl *flag.Flag, text string) error {
	before := fl.Value.String()
	err := fl.Value.Set(text)
	if err == nil {
		return nil
	}
	_ = fl.Value.Set(before) // which it has taken before
	kind, isGetter := fl.Value.(flag.Getter)
	if !isGetter {
		return err
	}
	switch kind.Get().(type) {
	case bool:
		return errors.New("must be true or false")
	case float64:
		return errors.New("must be a number")
	case time.Duration:
		return errors.New("must be a duration, as 24h or 90m")
	}
	return fmt.Errorf("must be a whole number (%w)", err)
}

// unreadError is that of a file that could not be read.
type unreadError struct{ why error }

func (e *unreadError) Error() string { return e.why.Error() }
func (e *unreadError) Unwrap() error { return e.why }

// readFile sets what neither the command line nor the environment does. A key that means
// nothing is an error: it may be one that matters, written wrong. Commands pass over what
// only the server knows.
func (o origins) readFile(f *flag.FlagSet) error {
	named := f.Lookup(configFlag)
	if named == nil || named.Value.String() == "" {
		return nil
	}
	path := named.Value.String()
	settings, err := readSettings(path)
	if err != nil {
		return &unreadError{fmt.Errorf("--%s: %w", configFlag, err)}
	}
	server := (&config{}).flags(io.Discard)
	var wrong []error
	for _, s := range settings {
		fl := f.Lookup(s.name)
		switch {
		case fl == nil && f.Name() != serverFlags && server.Lookup(s.name) != nil:
		case fl == nil:
			wrong = append(wrong, usagef("%s, line %d: there is no setting %q", path, s.line, s.name))
		case s.name == configFlag || s.name == printConfigFlag:
			wrong = append(wrong, usagef("%s, line %d: %q cannot be set by a file", path, s.line, s.name))
		case s.wrong != "":
			wrong = append(wrong, usagef("%s, line %d: %s: %s", path, s.line, s.name, s.wrong))
		case o.of(s.name) == byDefault:
			if err := setTo(fl, s.text); err != nil {
				wrong = append(wrong, usagef("%s, line %d: %s: %v", path, s.line, s.name, err))
			}
			o[s.name] = byFile
		}
	}
	return errors.Join(wrong...)
}

// unknownVariables are those with our prefix that set nothing. They are no error: the prefix
// is also that of clients beside the server (FENCEPOST_URL). What Kubernetes sets because
// of a service with the name fencepost is not among them.
func unknownVariables(f *flag.FlagSet, env environment) []string {
	known := map[string]bool{envSecret: true}
	f.VisitAll(func(fl *flag.Flag) { known[variable(fl.Name)] = true })
	var unknown []string
	for name := range env {
		ours := strings.HasPrefix(name, envPrefix) &&
			!strings.HasPrefix(name, envPrefix+"SERVICE_") && !strings.HasPrefix(name, envPrefix+"PORT")
		if ours && !known[name] {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	return unknown
}

// printSettings writes what holds and where it comes from, as a file that --config reads,
// without secrets.
func printSettings(w io.Writer, f *flag.FlagSet, set origins, env environment) {
	if path := f.Lookup(configFlag).Value.String(); path != "" {
		fmt.Fprintf(w, "# --%s is %s (%s)\n", configFlag, strconv.Quote(path), set.of(configFlag))
	}
	if env[envSecret] != "" {
		fmt.Fprintf(w, "# %s is (set)\n", envSecret)
	}
	f.VisitAll(func(fl *flag.Flag) {
		if fl.Name == configFlag || fl.Name == printConfigFlag {
			return
		}
		from, mark := set.of(fl.Name), ""
		if from == byDefault {
			mark = "# " // so that the file says no more than was said
		}
		fmt.Fprintf(
			w, "%s%s: %s # %s\n", mark, fl.Name, strconv.Quote(withoutCredentials(fl.Value.String())), from,
		)
	})
}

// withoutCredentials hides a URL that may have a password in it, wrong as that is: with a user, a
// query or a fragment.
func withoutCredentials(text string) string {
	_, rest, isURL := strings.Cut(text, "://")
	if !isURL {
		return text
	}
	if strings.ContainsAny(rest, "@?#") {
		return "(set)"
	}
	return text
}
