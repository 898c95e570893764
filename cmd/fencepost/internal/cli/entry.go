package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/client"
)

func (a *app) acquireCommand() *cobra.Command {
	c := &claim{}
	command := &cobra.Command{
		Use:   "acquire [flags] NAME…",
		Short: "Acquire a lock, and print its fence and token",
		Long: `Acquire a lock, or several at once, and print FENCEPOST_LOCK, FENCEPOST_FENCE,
FENCEPOST_ENTRY and FENCEPOST_LOCK_TOKEN as lines for a shell.

fencepost acquire does not renew the lock: call fencepost renew before its TTL
ends. fencepost run renews it for you, and ends the command if it cannot.`,
		Example: `  lock=$(fencepost acquire --ttl 5m deploy:prod) || exit
  eval "$lock"
  fencepost renew
  fencepost release`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, names []string) error {
			if err := c.check(command.Flags()); err != nil {
				return err
			}
			return a.holding(c, names, func(held *client.Held, _ <-chan os.Signal) error {
				g := &grant{held.Name(), held.ID(), held.Fence(), held.Fences(), held.Token()}
				return a.print(g, []string{g.Token}, g.export)
			})
		},
	}
	c.bind(command)
	return command
}

// grant is what acquire prints.
type grant struct {
	Lock   string            `json:"lock"`
	Entry  string            `json:"entry"`
	Fence  uint64            `json:"fence"`
	Fences map[string]uint64 `json:"fences,omitempty"`
	Token  string            `json:"token"`
}

// export writes the grant as lines for a shell.
func (g *grant) export(w *tabwriter.Writer) {
	fmt.Fprintf(w, "export FENCEPOST_LOCK=%s\nexport FENCEPOST_FENCE=%d\n"+
		"export FENCEPOST_ENTRY=%s\nexport FENCEPOST_LOCK_TOKEN=%s\n",
		quoted(g.Lock), g.Fence, quoted(g.Entry), quoted(g.Token))
}

// quoted quotes a word for a shell if it needs quotes: a hostile server could send shell code.
func quoted(word string) string {
	harmless := func(r rune) bool {
		return r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' ||
			strings.ContainsRune("._:@=+-,/", r)
	}
	if word != "" && strings.TrimFunc(word, harmless) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

const holdingHelp = `

The command reads the lock token from FENCEPOST_LOCK_TOKEN, the names from
FENCEPOST_LOCK unless you give some, and for several locks at once their entry
from FENCEPOST_ENTRY. fencepost acquire prints these variables.`

func (a *app) renewCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "renew [NAME…]",
		Short: "Renew a lock that acquire acquired",
		Long:  "Renew a lock that acquire acquired. Its lease then ends one TTL from now." + holdingHelp,
		RunE: a.using(func(ctx context.Context, to *client.Client, names []string) error {
			var renewed json.RawMessage
			name, err := askHeld(ctx, to, http.MethodPut, "/renew", names, &renewed)
			if err != nil {
				return err
			}
			var entry struct {
				ExpiresAt string `json:"expires_at"`
			}
			if err := json.Unmarshal(renewed, &entry); err != nil {
				return err
			}
			return a.printLine(renewed, name, "%s expires at %s", name, entry.ExpiresAt)
		}),
	}
}

func (a *app) releaseCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "release [NAME…]",
		Short: "Release a lock that acquire acquired",
		Long:  "Release a lock that acquire acquired." + holdingHelp,
		RunE: a.using(func(ctx context.Context, to *client.Client, names []string) error {
			_, err := askHeld(ctx, to, http.MethodDelete, "", names, nil)
			return err
		}),
	}
}

// askHeld sends a request with the token of a lock. It returns the names of the locks.
func askHeld(
	ctx context.Context, to *client.Client, method, operation string, names []string, answer any,
) (string, error) {
	name := cmp.Or(strings.Join(names, ","), os.Getenv("FENCEPOST_LOCK"))
	token, entry := os.Getenv("FENCEPOST_LOCK_TOKEN"), os.Getenv("FENCEPOST_ENTRY")
	switch {
	case name == "":
		return "", usage("name a lock, or set FENCEPOST_LOCK")
	case token == "":
		return "", usage("set FENCEPOST_LOCK_TOKEN to the token that acquire printed")
	case strings.Contains(name, ",") && entry == "":
		return "", usage("set FENCEPOST_ENTRY to the entry that acquire printed")
	}
	path := "/locks/" + url.PathEscape(name)
	if strings.Contains(name, ",") {
		path = "/locksets/" + url.PathEscape(entry)
	}
	err := to.Call(ctx, method, path+operation, http.Header{"Lock-Token": {token}}, nil, answer)
	var problem *client.Error
	if !errors.As(err, &problem) || problem.Code != api.Lost {
		return name, err
	}
	if method == http.MethodDelete && problem.Reason == "released" {
		return name, nil
	}
	return "", &exit{codeLost, fmt.Errorf("%s is lost: %s", name, problem.Reason)}
}
