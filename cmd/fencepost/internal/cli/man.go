package cli

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func manCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "man",
		Short:   "Print the manual page",
		Example: "  fencepost man >fencepost.1 && man ./fencepost.1",
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(os.Stdout, manual(command.Root()))
			return err
		},
	}
}

const manHead = `.TH FENCEPOST 1 "" "Fencepost" "User Commands"
.nh
.ad l
.SH NAME
fencepost \- hold locks of a Fencepost server
.SH SYNOPSIS
.B fencepost run
[\fIflags\fR] \fINAME\fR... -- \fICOMMAND\fR [\fIARG\fR...]
.br
.B fencepost
\fICOMMAND\fR [\fIflags\fR] [\fIARG\fR...]
.SH DESCRIPTION
`

const manTail = `.SH ENVIRONMENT
.TP
.BR FENCEPOST_URL ", " FENCEPOST_TOKEN ", " FENCEPOST_TOKEN_FILE ", " FENCEPOST_CA_FILE ", " \
FENCEPOST_CONTEXT
The same as the flags \-\-url, \-\-token, \-\-token\-file, \-\-ca\-file and \-\-context. Flags win.
.TP
.B FENCEPOST_CLI_CONFIG
Path of the configuration file.
.TP
.B FENCEPOST_HOLDER
As \-\-holder.
.TP
.BR FENCEPOST_FENCE ", " FENCEPOST_LOCK ", " FENCEPOST_ENTRY ", " FENCEPOST_HOLDER
Set by
.B run
for its command.
.TP
.B FENCEPOST_LOCK_TOKEN
The lock token that
.BR renew " and " release
send.
.SH FILES
.TP
.I ~/.config/fencepost/config
Contexts: servers and their tokens, as JSON. Only its owner may read it.
.SH NOTES
A lease is no guarantee. A process may stop between its last check and a write: let the resource
compare the fence and reject a smaller one.
.PP
On Linux, macOS and BSD a second process, the guard, kills the command's process group if
.B fencepost
itself is killed or stopped. A process that leaves the group, for example by
.BR setsid (1),
is not killed.
.SH SEE ALSO
.BR flock (1),
.BR timeout (1)
`

// manual writes the page of all commands.
func manual(root *cobra.Command) string {
	page := &strings.Builder{}
	page.WriteString(manHead)
	page.WriteString(prose(root.Long))
	page.WriteString(".SH COMMANDS\n")
	describe(page, root)
	page.WriteString(".SH GLOBAL FLAGS\n")
	flags(page, root.PersistentFlags())
	page.WriteString(".SH EXIT STATUS\n" + prose(exitCodes) + manTail)
	return page.String()
}

// describe writes the commands below one.
func describe(page *strings.Builder, command *cobra.Command) {
	for _, c := range inGroups(command) {
		if !c.IsAvailableCommand() || c.Name() == "help" {
			continue
		}
		if c.Name() == "completion" {
			page.WriteString(".SS completion bash|fish|powershell|zsh\n" +
				"Print a script that completes commands and flags in the shell.\n")
			continue
		}
		use := strings.TrimSuffix(strings.TrimPrefix(c.UseLine(), "fencepost "), " [flags]")
		text := cmp.Or(c.Long, c.Short+".")
		fmt.Fprintf(page, ".SS %s\n%s", roff(use), prose(strings.TrimSuffix(text, "\n\n"+exitCodes)))
		flags(page, c.LocalNonPersistentFlags())
		if c.Example != "" {
			fmt.Fprintf(page, ".PP\n.nf\n%s\n.fi\n", roff(c.Example))
		}
		describe(page, c)
	}
}

// inGroups returns the commands in the order of their groups, then those without a group.
func inGroups(command *cobra.Command) (all []*cobra.Command) {
	ids := []string{}
	for _, g := range command.Groups() {
		ids = append(ids, g.ID)
	}
	for _, id := range append(ids, "") {
		for _, c := range command.Commands() {
			if c.GroupID == id {
				all = append(all, c)
			}
		}
	}
	return all
}

func flags(page *strings.Builder, set *pflag.FlagSet) {
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		value, text := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		fmt.Fprintf(page, ".TP\n\\fB%s\\fR", roff(name))
		if value != "" {
			fmt.Fprintf(page, " \\fI%s\\fR", roff(value))
		}
		if !slices.Contains([]string{"", "0", "0s", "false", "[]"}, f.DefValue) {
			text += "; " + f.DefValue + " by default"
		}
		fmt.Fprintf(page, "\n%s.\n", roff(strings.ToUpper(text[:1])+text[1:]))
	})
}

// prose writes paragraphs. Lines that are indented keep their form.
func prose(text string) string {
	out := &strings.Builder{}
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		if strings.Contains("\n"+paragraph, "\n  ") {
			fmt.Fprintf(out, ".PP\n.nf\n%s\n.fi\n", roff(paragraph))
			continue
		}
		fmt.Fprintf(out, ".PP\n%s\n", roff(paragraph))
	}
	return out.String()
}

// roff escapes what nroff would read as something else.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "…", "...", "'", `\(aq`, "`", "").Replace(text)
	return strings.ReplaceAll("\n"+text, "\n.", "\n\\&.")[1:]
}
