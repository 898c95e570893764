// Package signin lets people sign in at the dashboard by an identity provider that speaks
// OpenID Connect: the authorization code flow with PKCE (RFC 7636), state and nonce. What they
// may then do, [auth.Claimants] say.
package signin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/fencepost/fencepost/auth"
)

const (
	// FlowLife bounds the time that a user takes to sign in at the provider.
	FlowLife = 10 * time.Minute

	// SessionLife is how long a session lasts. Then the user signs in again, so that a user without
	// access at the provider loses it here. A user with a session at the provider needs one
	// click.
	SessionLife = time.Hour

	// maxFinishing is how many sign-ins ask the provider at a time.
	maxFinishing = 8

	callTimeout = 10 * time.Second // of one request to the provider
	turnTimeout = 5 * time.Second  // to wait for a turn to ask it
	askAgain    = 2 * time.Second  // after which a provider that did not answer is asked again
	maxAnswer   = 1 << 20          // bytes of its answer
	flowUse     = "fencepost dashboard sign-in 1"
)

// Config says by which provider people sign in.
type Config struct {
	// Issuer is the provider's URL, whose /.well-known/openid-configuration says the rest.
	Issuer string
	// ClientID and ClientSecret are what the provider knows this deployment by. A public
	// client has no secret.
	ClientID, ClientSecret string
	// RedirectURL is where the provider sends people back to, as it is registered there.
	RedirectURL string
	// Scopes are asked for beside openid.
	Scopes []string
	// NameClaim is the claim with the name that people have here.
	NameClaim string
	// Secret is what the replicas share: one finishes what another has begun.
	Secret []byte
	// Rights maps a user's claims to a principal.
	Rights interface {
		Identify(claims map[string]any, name string) (*auth.Principal, error)
	}
	// Now is the clock; nil means [time.Now].
	Now func() time.Time
}

// Provider signs people in by an identity provider. It is safe for concurrent use.
type Provider struct {
	config    Config
	host      string
	sealer    *auth.Sealer
	client    *http.Client
	finishing chan struct{}

	discovery chan struct{} // a semaphore around discovery
	known     *oidc.Provider
	again     time.Time // when discovery may be retried after a failure
	trouble   error     // why it did not

	mu        sync.Mutex
	redeeming map[string]bool // states of the sign-ins that are being finished
}

// New returns the provider, which need not be there yet.
func New(c Config) (*Provider, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	issuer, err := url.Parse(c.Issuer)
	if err != nil {
		return nil, err
	}
	sealer, err := auth.NewSealer(c.Secret, flowUse)
	if err != nil {
		return nil, err
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Provider{
		config: c, host: issuer.Host, sealer: sealer, finishing: make(chan struct{}, maxFinishing),
		discovery: make(chan struct{}, 1), redeeming: map[string]bool{},
		client: &http.Client{
			Transport: bounded{http.DefaultTransport}, Timeout: callTimeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// Check says what is wrong with what the operator chose.
func (c Config) Check() error {
	var noID error
	if c.ClientID == "" {
		noID = errors.New("it needs a client id")
	}
	return errors.Join(noID, checkURL("issuer", c.Issuer), checkURL("redirect URL", c.RedirectURL))
}

// checkURL returns an error without the text, which may have a password in it. It wants TLS, by
// which the provider is known to be the one. On the machine itself it may do without.
func checkURL(what, text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("the %s is not https://host/path, with no user, query or fragment", what)
	}
	ip := net.ParseIP(u.Hostname())
	here := u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
	if u.Scheme != "https" && (u.Scheme != "http" || !here) {
		return fmt.Errorf("the %s is not https://host/path", what)
	}
	return nil
}

// Host is the provider's, to be shown to people.
func (p *Provider) Host() string { return p.host }

// flow is what a browser keeps, sealed, while its user signs in.
type flow struct {
	State    string `json:"s"`
	Nonce    string `json:"n"`
	Verifier string `json:"v"`
	Ends     int64  `json:"e"` // seconds since 1970
}

// Begin returns the provider's URL for the browser, and the text that the browser keeps until it
// comes back, until that instant at most. An error is, or wraps, an [*auth.Error]: the provider
// does not answer.
func (p *Provider) Begin(ctx context.Context) (location, kept string, until time.Time, err error) {
	known, err := p.discover(ctx)
	if err != nil {
		return "", "", until, err
	}
	until = p.config.Now().Add(FlowLife)
	f := flow{
		State: oauth2.GenerateVerifier(), Nonce: oauth2.GenerateVerifier(),
		Verifier: oauth2.GenerateVerifier(), Ends: until.Unix(),
	}
	plain, err := json.Marshal(f)
	if err != nil {
		return "", "", until, err
	}
	location = p.oauth(known).AuthCodeURL(
		f.State, oidc.Nonce(f.Nonce), oauth2.S256ChallengeOption(f.Verifier),
	)
	return location, p.sealer.Seal(plain), until, nil
}

// Finish redeems the code that the provider gave to the browser, and returns the user's
// principal. kept is the text from Begin. Every error is, or wraps, an [*auth.Error].
func (p *Provider) Finish(ctx context.Context, kept, state, code string) (*auth.Principal, error) {
	f, err := p.open(kept, state)
	if err != nil {
		return nil, err
	}
	leave, err := p.enter(ctx, f.State)
	if err != nil {
		return nil, err
	}
	defer leave()
	known, err := p.discover(ctx)
	if err != nil {
		return nil, err
	}
	claims, err := p.redeem(ctx, known, f, code)
	if err != nil {
		return nil, err
	}
	who, err := p.config.Rights.Identify(claims, p.config.NameClaim)
	if err != nil {
		return nil, err
	}
	who.Expires = p.config.Now().Add(SessionLife)
	return who, nil
}

// enter waits for a slot to ask the provider about a sign-in. It rejects a second call for one
// sign-in while the first runs.
func (p *Provider) enter(ctx context.Context, state string) (leave func(), err error) {
	p.mu.Lock()
	busy := p.redeeming[state]
	p.redeeming[state] = true
	p.mu.Unlock()
	if busy {
		return nil, &auth.Error{Reason: auth.BadSignIn, Detail: "this sign-in is being finished"}
	}
	done := func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.redeeming, state)
	}
	ctx, cancel := context.WithTimeout(ctx, turnTimeout)
	defer cancel()
	select {
	case p.finishing <- struct{}{}:
		return func() { <-p.finishing; done() }, nil
	case <-ctx.Done():
		done()
		return nil, &auth.Error{
			Reason: auth.NoProvider, Detail: "too many people sign in at this moment: try again",
		}
	}
}

// open returns the flow that a browser has kept, if it is the one that the state is of.
func (p *Provider) open(kept, state string) (f flow, err error) {
	plain, ours := p.sealer.Open(kept)
	if !ours || json.Unmarshal(plain, &f) != nil || f.State != state ||
		p.config.Now().Unix() >= f.Ends {
		return f, &auth.Error{
			Reason: auth.BadSignIn, Detail: "this browser has not begun to sign in here, or too long ago",
		}
	}
	return f, nil
}

// redeem asks the provider for the claims behind a code.
func (p *Provider) redeem(
	ctx context.Context, known *oidc.Provider, f flow, code string,
) (map[string]any, error) {
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, p.client), callTimeout)
	defer cancel()
	tokens, err := p.oauth(known).Exchange(ctx, code, oauth2.VerifierOption(f.Verifier))
	var refused *oauth2.RetrieveError
	switch {
	case errors.As(err, &refused) && refused.Response.StatusCode < http.StatusInternalServerError:
		return nil, denied(
			"the identity provider does not take the code that it gave", errors.New(refused.ErrorCode),
		)
	case err != nil:
		return nil, unavailable(err)
	}
	raw, _ := tokens.Extra("id_token").(string)
	id, err := known.Verifier(&oidc.Config{ClientID: p.config.ClientID, Now: p.config.Now}).Verify(
		ctx, raw,
	)
	if err == nil && id.Nonce != f.Nonce {
		err = errors.New("the nonce is another one")
	}
	claims := map[string]any{}
	if err == nil {
		err = id.Claims(&claims)
	}
	// OpenID Connect Core 1.0, 3.1.3.7: the token was issued for another client, and names this one
	// as one of several audiences.
	if azp, sent := claims["azp"]; err == nil && sent && azp != p.config.ClientID {
		err = errors.New("azp is another client")
	}
	if err != nil {
		return nil, denied("what the identity provider says of you cannot be relied on", err)
	}
	return claims, nil
}

// discover asks the provider what it is, once, and one that did not answer not again at once:
// anybody may begin to sign in.
func (p *Provider) discover(ctx context.Context) (*oidc.Provider, error) {
	select {
	case p.discovery <- struct{}{}:
		defer func() { <-p.discovery }()
	case <-ctx.Done():
		return nil, unavailable(ctx.Err())
	}
	if p.known != nil {
		return p.known, nil
	}
	if p.config.Now().Before(p.again) {
		return nil, unavailable(p.trouble)
	}
	ctx, cancel := context.WithTimeout(
		oidc.ClientContext(context.WithoutCancel(ctx), p.client), callTimeout,
	)
	defer cancel()
	known, err := oidc.NewProvider(ctx, p.config.Issuer)
	if err != nil {
		p.again, p.trouble = p.config.Now().Add(askAgain), err
		return nil, unavailable(err)
	}
	p.known = known
	return known, nil
}

func (p *Provider) oauth(known *oidc.Provider) *oauth2.Config {
	endpoint := known.Endpoint()
	endpoint.AuthStyle = p.authStyle(known)
	return &oauth2.Config{
		ClientID: p.config.ClientID, ClientSecret: p.config.ClientSecret,
		RedirectURL: p.config.RedirectURL,
		Endpoint:    endpoint, Scopes: append([]string{oidc.ScopeOpenID}, p.config.Scopes...),
	}
}

// authStyle is how the client says who it is. To try would send a code twice, and some providers
// take one back at the first failure.
func (p *Provider) authStyle(known *oidc.Provider) oauth2.AuthStyle {
	var says struct {
		Methods []string `json:"token_endpoint_auth_methods_supported"`
	}
	if err := known.Claims(&says); err != nil || p.config.ClientSecret == "" {
		return oauth2.AuthStyleInParams
	}
	if len(says.Methods) == 0 || slices.Contains(says.Methods, "client_secret_basic") {
		return oauth2.AuthStyleInHeader // OpenID Connect Discovery 1.0, section 3
	}
	return oauth2.AuthStyleInParams
}

// denied and unavailable carry the cause for the log, next to the detail for the user.
func denied(detail string, cause error) error {
	return errors.Join(&auth.Error{Reason: auth.Denied, Detail: detail}, cause)
}

func unavailable(cause error) error {
	return errors.Join(
		&auth.Error{
			Reason: auth.NoProvider, Detail: "the identity provider does not answer as it should",
		},
		cause,
	)
}

// bounded reads no more of an answer than it may have.
type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(resp.Body, maxAnswer), resp.Body}
	return resp, nil
}
