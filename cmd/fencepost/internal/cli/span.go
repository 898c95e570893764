package cli

import (
	"strconv"
	"time"

	"github.com/spf13/pflag"
)

// span is a flag of a duration. A number without a unit is seconds, as in timeout(1).
type span time.Duration

func spanVar(
	flags *pflag.FlagSet, to *time.Duration, name string, value time.Duration, use string,
) {
	*to = value
	flags.Var((*span)(to), name, use)
}

// Set parses the text.
func (s *span) Set(text string) error {
	if _, err := strconv.ParseUint(text, 10, 64); err == nil {
		text += "s"
	}
	d, err := time.ParseDuration(text)
	*s = span(d)
	return err
}

// String returns "" for 0, so that the help names no default.
func (s *span) String() string {
	if *s == 0 {
		return ""
	}
	return time.Duration(*s).String()
}

// Type is the name in the help.
func (*span) Type() string { return "duration" }
