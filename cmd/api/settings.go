package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
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
func newFlags(name string, stdout io.Writer) *pflag.FlagSet {
	f := pflag.NewFlagSet(name, pflag.ContinueOnError)
	f.Usage = func() {
		if name == serverFlags {
			printServerHelp(stdout, f, false)
			return
		}
		printCommandHelp(stdout, f)
	}
	return f
}

// newCommandFlags is newFlags of a command that acts on a server: it reads what it knows from
// the file with that server's settings.
func newCommandFlags(name string, stdout io.Writer) *pflag.FlagSet {
	f := newFlags(name, stdout)
	f.String(configFlag, "", "`file` with the settings of the server; those listed here count")
	return f
}

// parse sets the flags by the command line, what is not there by the environment, and
// what is in neither by the file that --config names. It returns where each was set, also
// with an error, which has all that is wrong.
func parse(f *pflag.FlagSet, args []string, env environment) (origins, error) {
	set := origins{}
	err := set.readLine(f, args)
	if errors.Is(err, pflag.ErrHelp) {
		return set, err
	}
	return set, errors.Join(err, set.readEnvironment(f, env), set.readFile(f))
}

// readLine reads the command line to its end, also after a flag that is wrong.
func (o origins) readLine(f *pflag.FlagSet, args []string) error {
	wrong, err := o.readFlags(f, args)
	if errors.Is(err, pflag.ErrHelp) {
		return err
	}
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		f.ParseErrorsAllowlist.UnknownFlags = true
		wrong, _ = o.readFlags(f, args) // which also finds what is wrong after it
		wrong = append(wrong, unknownFlag(f, unknown))
	} else if err != nil {
		wrong = append(wrong, usagef("%v", err))
	} else if f.NArg() > 0 {
		wrong = append(wrong, usagef("unexpected argument %q: flags begin with two dashes", f.Arg(0)))
	}
	return errors.Join(wrong...)
}

// readFlags sets flags. It returns the values that are wrong, and why it could not read on.
func (o origins) readFlags(f *pflag.FlagSet, args []string) (wrong []error, err error) {
	err = f.ParseAll(args, func(fl *pflag.Flag, text string) error {
		o[fl.Name] = byFlag
		if err := setTo(fl, text); err != nil {
			wrong = append(wrong, usagef("--%s: %v", fl.Name, err))
		}
		return nil
	})
	return wrong, err
}

func unknownFlag(f *pflag.FlagSet, unknown *pflag.NotExistError) error {
	list := "--help"
	if f.Name() == serverFlags {
		list = helpAll
	}
	if short := unknown.GetSpecifiedShortnames(); short != "" {
		name, _, _ := strings.Cut(short, "=")
		return usagef("there is no flag -%s: flags begin with two dashes, and %s lists them", name, list)
	}
	return usagef("there is no flag --%s: %s lists the flags", unknown.GetSpecifiedName(), list)
}

// variable is the environment variable of a flag.
func variable(flagName string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flagName, "-", "_"))
}

func (o origins) readEnvironment(f *pflag.FlagSet, env environment) error {
	var wrong []error
	f.VisitAll(func(fl *pflag.Flag) {
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
func setTo(fl *pflag.Flag, text string) error {
	before := fl.Value.String()
	err := fl.Value.Set(text)
	if err == nil {
		return nil
	}
	_ = fl.Value.Set(before) // which it has taken before
	switch fl.Value.Type() {
	case "bool":
		return errors.New("must be true or false")
	case "float64":
		return errors.New("must be a number")
	case "duration":
		return errors.New("must be a duration, such as 24h or 90m")
	case "int64", "uint64", "uint":
		return errors.New("must be a whole number in range")
	}
	return err
}

// unreadError is that of a file that could not be read.
type unreadError struct{ why error }

func (e *unreadError) Error() string { return e.why.Error() }
func (e *unreadError) Unwrap() error { return e.why }

// readFile sets what neither the command line nor the environment does. A key that means
// nothing is an error: it may be one that matters, written wrong. Commands pass over what
// only the server knows.
func (o origins) readFile(f *pflag.FlagSet) error {
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
// is also that of clients next to the server. What the command fencepost reads, and what Kubernetes
// sets because of a service with the name fencepost, is not among them.
func unknownVariables(f *pflag.FlagSet, env environment) []string {
	known := map[string]bool{
		envSecret: true, envPrefix + "URL": true, envPrefix + "TOKEN": true,
		envPrefix + "TOKEN_FILE": true, envPrefix + "CA_FILE": true, envPrefix + "CONTEXT": true,
	}
	f.VisitAll(func(fl *pflag.Flag) { known[variable(fl.Name)] = true })
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
func printSettings(w io.Writer, f *pflag.FlagSet, set origins, env environment) {
	if path := f.Lookup(configFlag).Value.String(); path != "" {
		fmt.Fprintf(w, "# --%s is %s (%s)\n", configFlag, strconv.Quote(path), set.of(configFlag))
	}
	if env[envSecret] != "" {
		fmt.Fprintf(w, "# %s is (set)\n", envSecret)
	}
	f.VisitAll(func(fl *pflag.Flag) {
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
