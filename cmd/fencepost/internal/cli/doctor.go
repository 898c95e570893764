package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/client"
	"github.com/fencepost/fencepost/cmd/fencepost/internal/settings"
)

// finding is one thing that doctor looked at.
type finding struct {
	State string `json:"state"` // ok, warning, or failed
	Check string `json:"check"`
	Text  string `json:"text"`
}

const (
	good    = "ok"
	warning = "warning"
	failed  = "failed"

	mostSkew     = 30 * time.Second // tokens and webhooks are refused for more
	soonExpires  = 14 * 24 * time.Hour
	tokenExpires = 24 * time.Hour
	doctorWaits  = 10 * time.Second
	maxHealth    = 1 << 16 // bytes of an answer
)

func (a *app) doctorCommand() *cobra.Command {
	d := &doctor{}
	command := &cobra.Command{
		Use:   "doctor",
		Short: "Check the server, the clocks, TLS and the token",
		Long: `Check the server, the clocks, TLS and the token. The exit code is 1 if a check
failed.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			server, err := a.settings.Server()
			if err == nil && server.URL == "" {
				err = settings.ErrNoServer
			}
			if err != nil {
				return err
			}
			d.server = server
			d.examine(command.Context())
			return a.report(d.all)
		},
	}
	spanVar(command.Flags(), &d.lasts, "for", 0, "fail if the token expires within this time")
	return command
}

func (a *app) report(all []finding) error {
	bad := 0
	for _, f := range all {
		if f.State == failed {
			bad++
		}
	}
	err := a.print(all, nil, func(w *tabwriter.Writer) {
		for _, f := range all {
			row(w, f.State, f.Check, f.Text)
		}
	})
	if err != nil {
		return err
	}
	if bad > 0 {
		return &exit{codeError, fmt.Errorf("%d of %d checks failed", bad, len(all))}
	}
	return nil
}

// doctor collects what it finds.
type doctor struct {
	server settings.Server
	lasts  time.Duration // how long the token must be valid
	all    []finding
}

func (d *doctor) say(state, check, format string, args ...any) {
	d.all = append(d.all, finding{state, check, plain(fmt.Sprintf(format, args...))})
}

func (d *doctor) examine(ctx context.Context) {
	d.say(good, "context", "%s", cmp.Or(d.server.Name, "none: flags and environment are used"))
	to, err := d.server.HTTP()
	if err != nil {
		d.say(failed, "ca-file", "%v", err)
		return
	}
	if to == nil {
		to = &http.Client{}
	}
	to.Timeout = doctorWaits
	answers := false
	for _, base := range d.server.URLs() {
		answers = d.reach(ctx, to, strings.TrimRight(base, "/")) || answers
	}
	if d.token() && answers {
		d.rights(ctx)
	}
}

// reach checks what a server's answer shows. It reports whether the server answers.
func (d *doctor) reach(ctx context.Context, to *http.Client, base string) bool {
	sent := time.Now()
	health, err := probe(ctx, to, base+"/healthz")
	if err != nil {
		d.say(failed, "server", "%s does not answer: %v", base, err)
		return false
	}
	took := time.Since(sent)
	d.say(good, "server", "%s has the version %s and answers in %s", base, health.Version,
		rounded(took))
	d.encryption(base, health.tls)
	d.clocks(sent, took, health.date)
	if _, err := probe(ctx, to, base+"/readyz"); err != nil {
		d.say(failed, "ready", "%s cannot serve: %v", base, err)
		return true
	}
	d.say(good, "ready", "the server is connected to its store")
	return true
}

// health is what a server answers, and how.
type health struct {
	Title   string `json:"title"` // of a problem
	Version string `json:"version"`
	date    string
	tls     *tls.ConnectionState
}

func probe(ctx context.Context, to *http.Client, url string) (*health, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := to.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	h := &health{date: response.Header.Get("Date"), tls: response.TLS}
	if err := json.NewDecoder(io.LimitReader(response.Body, maxHealth)).Decode(h); err != nil {
		return nil, fmt.Errorf("the answer is not from a Fencepost server: %s", response.Status)
	}
	if response.StatusCode != http.StatusOK {
		return nil, errors.New(h.Title)
	}
	return h, nil
}

func (d *doctor) encryption(base string, state *tls.ConnectionState) {
	if state == nil {
		host := ""
		if u, err := url.Parse(base); err == nil {
			host = u.Hostname()
		}
		if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
			d.say(good, "tls", "not used, on this machine")
			return
		}
		d.say(warning, "tls", "not used: the network sees the bearer token")
		return
	}
	left := time.Until(state.PeerCertificates[0].NotAfter)
	how := good
	if left < soonExpires {
		how = warning
	}
	d.say(how, "tls", "%s, the certificate is valid for %s", tls.VersionName(state.Version),
		rounded(left))
}

// clocks compares the clocks. The server's is in whole seconds, and of some time of the request.
func (d *doctor) clocks(sent time.Time, took time.Duration, date string) {
	theirs, err := http.ParseTime(date)
	if err != nil {
		return
	}
	skew := theirs.Sub(sent.Truncate(time.Second))
	switch {
	case skew.Abs() <= took+time.Second:
		d.say(good, "clocks", "agree within a second or the time of the answer")
	case skew.Abs() <= mostSkew:
		d.say(warning, "clocks", "the server's clock is %s off", skew)
	default:
		d.say(failed, "clocks", "the server's clock is %s off: tokens may be refused", skew)
	}
}

// token checks what the bearer token says. It reports whether there is one.
func (d *doctor) token() bool {
	claims, err := claimsOf(d.server)
	if err != nil {
		d.say(failed, "token", "%v", err)
		return false
	}
	state, soon := good, ""
	switch {
	case claims.Expires == nil || time.Until(claims.Expires.time()) <= d.lasts:
		state = failed
		if d.lasts > 0 {
			soon = ", which is too soon"
		}
	case time.Until(claims.Expires.time()) < tokenExpires:
		state = warning
	}
	d.say(state, "token", "of %s, tenant %s, scopes %s, expires %s%s", claims.Subject,
		claims.Tenant, strings.Join(claims.Scope, " "), claims.expiry(), soon)
	return true
}

// rights checks whether the server accepts the token.
func (d *doctor) rights(ctx context.Context) {
	switch err := try(ctx, d.server.Context); {
	case err == nil:
		d.say(good, "rights", "the server accepts the token")
	case client.CodeOf(err) == api.Forbidden:
		d.say(warning, "rights", "the token may not look at locks: %s", sentence(err))
	default:
		d.say(failed, "rights", "%s", sentence(err))
	}
}
