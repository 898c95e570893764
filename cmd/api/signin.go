package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/auth/signin"
	"github.com/fencepost/fencepost/telemetry"
)

// resolveCookie finds out whether browsers may send the session's cookie without TLS: to a loopback
// address without a proxy. A redirect URL of https, or a proxy that is counted, stands for TLS.
func (c *config) resolveCookie() {
	https := strings.HasPrefix(strings.ToLower(c.oidc.redirect), "https:")
	c.plain = c.tlsCert == "" && isLoopback(c.listen) && c.proxyHops == 0 && !https
}

const (
	oidcFlag    = "oidc"
	oidcExample = "issuer=URL,client_id=ID,redirect_url=URL,principals=FILE and, if needed, " +
		"client_secret_file=FILE,scopes=SCOPE SCOPE,name_claim=CLAIM"
)

// oidcSettings say by which identity provider operators sign in.
type oidcSettings struct {
	issuer, clientID, secretFile, redirect, principals, scopes, name string

	wrong  bool           // the text is not of the form of oidcExample
	config *signin.Config // nil without a provider; all but what the replicas share
	rights *auth.Claimants
}

// fields are the settings by name.
func (o *oidcSettings) fields() map[string]*string {
	return map[string]*string{
		"issuer": &o.issuer, "client_id": &o.clientID, "client_secret_file": &o.secretFile,
		"redirect_url": &o.redirect, "principals": &o.principals,
		"scopes": &o.scopes, "name_claim": &o.name,
	}
}

// String implements pflag.Value.
func (o *oidcSettings) String() string {
	var pairs []string
	fields := o.fields()
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if value := *fields[name]; value != "" {
			pairs = append(pairs, name+"="+value)
		}
	}
	return strings.Join(pairs, ",")
}

// Type implements pflag.Value.
func (o *oidcSettings) Type() string { return "settings" }

// Set implements pflag.Value. It leaves it to resolve to report what is wrong: package pflag would
// quote the text, which may have a secret in a wrong place.
func (o *oidcSettings) Set(text string) error {
	*o = oidcSettings{}
	if text == "" {
		return nil
	}
	fields := o.fields()
	for pair := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(pair, "=")
		field, known := fields[strings.TrimSpace(name)]
		if !known || *field != "" || value == "" {
			*o = oidcSettings{wrong: true}
			return nil
		}
		*field = value
	}
	return nil
}

// resolve reads what the settings name.
func (o *oidcSettings) resolve() error {
	if o.wrong {
		return usagef("--oidc: must be %s, each once", oidcExample)
	}
	needed := []string{o.issuer, o.clientID, o.redirect, o.principals}
	if given := strings.Join(needed, ""); given == "" && o.secretFile == "" {
		return nil
	}
	for _, text := range needed {
		if text == "" {
			return usagef("--oidc: issuer, client_id, redirect_url and principals need each other")
		}
	}
	secret, secretErr := o.secret()
	rights, err := auth.LoadClaimants(o.principals)
	if err != nil {
		err = fmt.Errorf("--oidc: principals: %w", err)
	}
	o.rights = rights
	o.config = &signin.Config{
		Issuer: o.issuer, ClientID: o.clientID, ClientSecret: secret, RedirectURL: o.redirect,
		Scopes: strings.Fields(o.scopes), NameClaim: cmp.Or(o.name, "sub"), Rights: rights,
	}
	checkErr := o.config.Check()
	if checkErr != nil {
		checkErr = usagef("--oidc: %v", checkErr)
	}
	return errors.Join(secretErr, err, checkErr)
}

func (o *oidcSettings) secret() (string, error) {
	if o.secretFile == "" {
		return "", nil
	}
	text, err := readSecret("--oidc: client_secret_file", o.secretFile, 0)
	return strings.TrimSpace(string(text)), err
}

// files are what is read again and again.
func (o *oidcSettings) files() []*reloaded {
	if o.rights == nil {
		return nil
	}
	return []*reloaded{{flags: "--oidc", refresh: o.rights.Refresh, of: telemetry.FileOIDCPrincipals}}
}

// provider is the OIDC provider, or nil. key is what the replicas share.
func (o *oidcSettings) provider(key []byte) (*signin.Provider, error) {
	if o.config == nil {
		return nil, nil //nolint:nilnil // as it says
	}
	config := *o.config
	config.Secret = key
	return signin.New(config)
}
