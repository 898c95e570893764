package cli

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/fencepost/internal/settings"
)

// statement is what a bearer token says of itself. Only the server can check them; an operator may
// have given them other names.
type statement struct {
	Subject string   `json:"sub"`
	Issuer  string   `json:"iss,omitempty"`
	Tenant  string   `json:"tenant"`
	Scope   words    `json:"scope"`
	Locks   words    `json:"locks,omitempty"`
	Expires *seconds `json:"exp,omitempty"`
}

// words are a text with spaces, or an array.
type words []string

func (w *words) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*w = strings.Fields(one)
		return nil
	}
	return json.Unmarshal(text, (*[]string)(w))
}

// seconds are an instant as tokens have it.
type seconds float64

func (s seconds) time() time.Time { return time.UnixMilli(int64(float64(s) * 1000)) }

// claims reads the bearer token of the settings.
func (a *app) claims() (*statement, error) {
	server, err := a.settings.Server()
	if err != nil {
		return nil, err
	}
	return claimsOf(server)
}

// claimsOf reads the bearer token of a server.
func claimsOf(server settings.Server) (*statement, error) {
	token, err := server.Bearer(context.Background())
	if err != nil {
		return nil, err
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil, errors.New("the bearer token is not a JSON Web Token")
	}
	text, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil {
		return nil, errors.New("the bearer token is not a JSON Web Token")
	}
	c := &statement{}
	if err := json.Unmarshal(text, c); err != nil {
		return nil, fmt.Errorf("the bearer token's claims: %w", err)
	}
	return c, nil
}

func (a *app) tokenCommand() *cobra.Command {
	var show bool
	command := &cobra.Command{
		Use:   "token",
		Short: "Show the claims of the bearer token",
		Long: `Show the claims of the bearer token: subject, tenant, scopes, patterns of lock
names and expiry. fencepost doctor asks the server whether it accepts the token.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			server, err := a.settings.Server()
			if err != nil {
				return err
			}
			if show {
				token, err := server.Bearer(context.Background())
				if err == nil {
					_, err = fmt.Fprintln(os.Stdout, token)
				}
				return err
			}
			c, err := claimsOf(server)
			if err != nil {
				return err
			}
			return a.print(c, []string{c.Subject}, c.write)
		},
	}
	command.Flags().BoolVar(&show, "show", false, "print the token itself")
	return command
}

func (c *statement) write(w *tabwriter.Writer) {
	row(w, "subject", c.Subject)
	row(w, "tenant", c.Tenant)
	row(w, "scopes", strings.Join(c.Scope, " "))
	if len(c.Locks) > 0 {
		row(w, "locks", strings.Join(c.Locks, " "))
	}
	row(w, "expires", c.expiry())
}

// expiry says when the token ends.
func (c *statement) expiry() string {
	if c.Expires == nil {
		return "never, so no server accepts it"
	}
	at := c.Expires.time()
	if left := time.Until(at); left > 0 {
		return fmt.Sprintf("%s, in %s", at.UTC().Format(time.RFC3339), rounded(left))
	}
	return fmt.Sprintf("%s, %s ago", at.UTC().Format(time.RFC3339), rounded(time.Since(at)))
}
