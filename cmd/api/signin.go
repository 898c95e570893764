package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"strings"

	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/auth/signin"
	"github.com/fencepost/fencepost/telemetry"
)

// Kinds of the session cookie.
const (
	cookieAuto   = "auto"
	cookieSecure = "secure"
	cookiePlain  = "plain"
)

// resolveCookie finds out whether browsers may send the session's cookie without TLS. A redirect URL
// of https says that a proxy is in front.
func (c *config) resolveCookie() error {
	https := strings.HasPrefix(strings.ToLower(c.oidc.redirect), "https:")
	switch c.sessionCookie {
	case cookieAuto:
		c.plain = c.tlsCert == "" && isLoopback(c.listen) && !https
	case cookieSecure:
	case cookiePlain:
		c.plain = true
		if https || c.tlsCert != "" {
			return usagef("--session-cookie plain contradicts --tls-cert and an --oidc-redirect-url of https")
		}
	default:
		return usagef("--session-cookie: must be auto, secure or plain")
	}
	return nil
}

// oidcSettings say by which identity provider operators sign in.
type oidcSettings struct {
	issuer, clientID, secretFile, redirect, principals, scopes, name string

	config *signin.Config // nil without a provider; all but what the replicas share
	rights *auth.Claimants
}

func (o *oidcSettings) flags(f *flag.FlagSet) {
	f.StringVar(&o.issuer, "oidc-issuer", "", "`URL` of the identity provider by which operators sign in at the dashboard")
	f.StringVar(&o.clientID, "oidc-client-id", "", "`id` by which the identity provider knows this deployment")
	f.StringVar(&o.secretFile, "oidc-client-secret-file", "", "`file` with that client's secret; a public client has none")
	f.StringVar(&o.redirect, "oidc-redirect-url", "", "`URL` that the identity provider leads back to: https://host/dashboard/sign-in/oidc/callback")
	f.StringVar(&o.principals, "oidc-principals", "", "`file` of JSON that says what somebody may by the identity provider's claims; read again each second")
	f.StringVar(&o.scopes, "oidc-scopes", "", "`scopes`, separated by spaces, to ask the identity provider for beside openid: profile groups")
	f.StringVar(&o.name, "oidc-name-claim", "sub", "`claim` with the name under which somebody is on record here")
}

// resolve reads what the settings name.
func (o *oidcSettings) resolve() error {
	needed := []string{o.issuer, o.clientID, o.redirect, o.principals}
	if given := strings.Join(needed, ""); given == "" && o.secretFile == "" {
		return nil
	}
	for _, text := range needed {
		if text == "" {
			return usagef("--oidc-issuer, --oidc-client-id, --oidc-redirect-url and --oidc-principals need each other")
		}
	}
	secret, secretErr := o.secret()
	rights, err := auth.LoadClaimants(o.principals)
	if err != nil {
		err = fmt.Errorf("--oidc-principals: %w", err)
	}
	o.rights = rights
	o.config = &signin.Config{
		Issuer: o.issuer, ClientID: o.clientID, ClientSecret: secret, RedirectURL: o.redirect, Scopes: strings.Fields(o.scopes),
		NameClaim: cmp.Or(o.name, "sub"), Rights: rights,
	}
	checkErr := o.config.Check()
	if checkErr != nil {
		checkErr = usagef("--oidc-...: %v", checkErr)
	}
	return errors.Join(secretErr, err, checkErr)
}

func (o *oidcSettings) secret() (string, error) {
	if o.secretFile == "" {
		return "", nil
	}
	text, err := readSecret("--oidc-client-secret-file", o.secretFile, 0)
	return strings.TrimSpace(string(text)), err
}

// files are what is read again and again.
func (o *oidcSettings) files() []*reloaded {
	if o.rights == nil {
		return nil
	}
	return []*reloaded{{flags: "--oidc-principals", refresh: o.rights.Refresh, of: telemetry.FileOIDCPrincipals}}
}

// provider is by whom operators sign in, nil if by nobody. key is what the replicas share.
func (o *oidcSettings) provider(key []byte) (*signin.Provider, error) {
	if o.config == nil {
		return nil, nil //nolint:nilnil // as it says
	}
	config := *o.config
	config.Secret = key
	return signin.New(config)
}
