package signin_test

import (
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/auth/signin"
	"github.com/fencepost/fencepost/auth/signin/signintest"
)

// people is a deployment with a provider.
type people struct {
	*signin.Provider
	t        *testing.T
	identity *signintest.Provider
	now      time.Time
}

func start(t *testing.T) *people {
	t.Helper()
	p := &people{
		t: t, now: time.Now(),
		identity: signintest.Start(
			t, map[string]any{"sub": "ann", "groups": []string{"staff", "operators"}},
		),
	}
	p.Provider = p.replica("a secret that all replicas share, of 32 bytes")
	return p
}

// replica is one with the same provider.
func (p *people) replica(secret string) *signin.Provider {
	p.t.Helper()
	file := filepath.Join(p.t.TempDir(), "principals.json")
	text := `{"principals":[{"claim":"groups","value":"operators","tenant":"acme","scopes":["tenant-admin"]}]}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	rights, err := auth.LoadClaimants(file)
	if err != nil {
		p.t.Fatal(err)
	}
	made, err := signin.New(signin.Config{
		Issuer: p.identity.URL, ClientID: signintest.ClientID, ClientSecret: signintest.ClientSecret,
		NameClaim:   "sub",
		RedirectURL: "https://locks.example/dashboard/sign-in/oidc/callback", Scopes: []string{"groups"},
		Secret: []byte(secret), Rights: rights, Now: func() time.Time { return p.now },
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return made
}

// goes goes to the provider and returns with what the browser then has.
func (p *people) goes() (kept, state, code string) {
	p.t.Helper()
	to, kept, _, err := p.Begin(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	client := http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	defer client.CloseIdleConnections()
	resp, err := client.Get(to)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	back, err := resp.Location()
	if err != nil ||
		!strings.HasPrefix(back.String(), "https://locks.example/dashboard/sign-in/oidc/callback?") {
		p.t.Fatalf("it leads to %v, %v", back, err)
	}
	return kept, back.Query().Get("state"), back.Query().Get("code")
}

func (p *people) refused(reason auth.Reason, kept, state, code string) {
	p.t.Helper()
	who, err := p.Finish(p.t.Context(), kept, state, code)
	var refused *auth.Error
	if !errors.As(err, &refused) || refused.Reason != reason {
		p.t.Errorf("%+v, %v, want %s", who, err, reason)
	}
}

// TestSignIn: by another replica than the one where it began.
func TestSignIn(t *testing.T) {
	p := start(t)
	other := p.replica("a secret that all replicas share, of 32 bytes")
	kept, state, code := p.goes()
	who, err := other.Finish(t.Context(), kept, state, code)
	if err != nil || who.Subject != "ann" || who.Tenant != "acme" || !who.Allows(auth.TenantAdmin) ||
		who.Allows(auth.Admin) {
		t.Fatalf("%+v, %v", who, err)
	}
	if !who.Expires.Equal(p.now.Add(signin.SessionLife)) {
		t.Errorf("until %v", who.Expires)
	}
	p.refused(auth.Denied, kept, state, code) // a code is good once
}

// TestWhatIsKept: a code counts only in the browser that began, for the state that it has, in time.
func TestWhatIsKept(t *testing.T) {
	p := start(t)
	kept, state, code := p.goes()
	otherKept, otherState, _ := p.goes()
	for name, with := range map[string][2]string{
		"another browser's": {otherKept, state}, "another state": {kept, otherState},
		"no state":     {kept, ""},
		"nothing kept": {"", state}, "made up": {strings.Repeat("A", 200), state},
		"altered": {altered(kept), state},
	} {
		t.Run(name, func(*testing.T) { p.refused(auth.BadSignIn, with[0], with[1], code) })
	}
	stranger := p.replica("a secret that another deployment has, of 32")
	if _, err := stranger.Finish(t.Context(), kept, state, code); !errors.Is(err, auth.BadSignIn) {
		t.Errorf("another deployment: %v", err)
	}
	p.now = p.now.Add(signin.FlowLife)
	p.refused(auth.BadSignIn, kept, state, code)
}

// altered returns the text with another first character than it has.
func altered(text string) string {
	first := "A"
	if text[0] == 'A' {
		first = "B"
	}
	return first + text[1:]
}

// TestWhatTheProviderSays: the token is of this provider, for this deployment, of this sign-in, and
// now.
func TestWhatTheProviderSays(t *testing.T) {
	p := start(t)
	for name, tt := range map[string]struct {
		change func(map[string]any)
		want   auth.Reason
	}{
		"another issuer": {func(c map[string]any) { c["iss"] = "https://other.example" }, auth.Denied},
		"for another":    {func(c map[string]any) { c["aud"] = "other" }, auth.Denied},
		"of another client": {func(c map[string]any) {
			c["aud"], c["azp"] = []any{c["aud"], "other"}, "other"
		}, auth.Denied},
		"of another nonce": {func(c map[string]any) { c["nonce"] = "other" }, auth.Denied},
		"no nonce":         {func(c map[string]any) { delete(c, "nonce") }, auth.Denied},
		"expired": {
			func(c map[string]any) { c["exp"] = time.Now().Add(-time.Hour).Unix() }, auth.Denied,
		},
		"no name":        {func(c map[string]any) { delete(c, "sub") }, auth.BadSubject},
		"a name to fear": {func(c map[string]any) { c["sub"] = "ann\x1b[2J" }, auth.BadSubject},
		"no group": {
			func(c map[string]any) { c["groups"] = []string{"staff"} }, auth.UnknownClaims,
		},
		"a group in a list": {
			func(c map[string]any) { c["groups"] = []any{[]string{"operators"}} }, auth.UnknownClaims,
		},
	} {
		t.Run(name, func(*testing.T) {
			p.identity.Change(tt.change)
			kept, state, code := p.goes()
			p.refused(tt.want, kept, state, code)
		})
	}
	p.identity.Change(func(c map[string]any) { c["groups"] = "operators" })
	kept, state, code := p.goes()
	if _, err := p.Finish(t.Context(), kept, state, code); err != nil {
		t.Errorf("a claim that is one text: %v", err)
	}
}

// TestProviderIsDown: sign-ins fail while it is down, and work afterwards.
func TestProviderIsDown(t *testing.T) {
	p := start(t)
	p.identity.SetDown(true)
	if _, _, _, err := p.Begin(t.Context()); !errors.Is(err, auth.NoProvider) {
		t.Errorf("begin: %v", err)
	}
	p.identity.SetDown(false)
	if _, _, _, err := p.Begin(t.Context()); !errors.Is(err, auth.NoProvider) {
		t.Errorf("asked again at once: %v", err)
	}
	p.now = p.now.Add(2 * time.Second)
	kept, state, code := p.goes()
	p.identity.SetDown(true)
	p.refused(auth.NoProvider, kept, state, code)
	p.identity.SetDown(false)
	if _, err := p.Finish(t.Context(), kept, state, code); err != nil {
		t.Error(err)
	}
}

// stateOf is the state in the URL of the provider.
func stateOf(t *testing.T, location string) string {
	t.Helper()
	u, err := url.Parse(location)
	if err != nil {
		t.Fatal(err)
	}
	return u.Query().Get("state")
}

// TestAsksWithPKCE: what a proxy or a history has seen of the way there is of no use.
func TestAsksWithPKCE(t *testing.T) {
	p := start(t)
	to, kept, _, err := p.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	if q.Get("code_challenge_method") != "S256" || q.Get("code_challenge") == "" ||
		q.Get("nonce") == "" || q.Get("state") == "" || q.Get("scope") != "openid groups" {
		t.Errorf("it asks for %v", q)
	}
	if strings.Contains(to, kept) || strings.Contains(to, signintest.ClientSecret) {
		t.Error("a secret is in the URL")
	}
}

func TestCheck(t *testing.T) {
	for _, bad := range []string{
		"", "nowhere", "http://login.example", "https://", "https://user@login.example",
		"https://login.example/?a=b", "https://login.example/#a", "ftp://login.example",
	} {
		if err := (signin.Config{
			Issuer: bad, ClientID: "c", RedirectURL: "https://locks.example/back",
		}).Check(); err == nil {
			t.Errorf("issuer %q", bad)
		}
		if err := (signin.Config{
			Issuer: "https://login.example", ClientID: "c", RedirectURL: bad,
		}).Check(); err == nil {
			t.Errorf("redirect URL %q", bad)
		}
	}
	if err := (signin.Config{
		Issuer: "https://login.example", RedirectURL: "https://locks.example/back",
	}).Check(); err == nil {
		t.Error("no client id")
	}
}
