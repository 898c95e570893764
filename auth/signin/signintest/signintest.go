// Package signintest has an identity provider for tests, which signs in every user.
package signintest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc/oidctest"
	"golang.org/x/oauth2"
)

// ClientID and ClientSecret are the only ones that the provider knows.
const (
	ClientID     = "fencepost"
	ClientSecret = "the client's secret"
)

// Provider is an identity provider.
type Provider struct {
	URL string

	server *oidctest.Server
	key    *ecdsa.PrivateKey

	mu     sync.Mutex
	claims map[string]any
	change func(claims map[string]any)
	down   bool
	asked  map[string]url.Values // by code: the query of the request
	secret []string
}

// Secrets are what it gave and was given that must stay secret: codes, verifiers, nonces,
// states and tokens.
func (p *Provider) Secrets() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.secret)
}

// Start starts a provider that gives these claims to every user, until the test ends.
func Start(t testing.TB, claims map[string]any) *Provider {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p := &Provider{key: key, claims: claims, asked: map[string]url.Values{}, server: &oidctest.Server{
		PublicKeys: []oidctest.PublicKey{{PublicKey: key.Public(), KeyID: "1", Algorithm: "ES256"}},
		Algorithms: []string{"ES256"},
	}}
	s := httptest.NewServer(p)
	t.Cleanup(s.Close)
	p.URL = s.URL
	p.server.SetIssuer(s.URL)
	return p
}

// Change has the provider say something else of people from now on.
func (p *Provider) Change(change func(claims map[string]any)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.change = change
}

// SetDown stops its answers, or resumes them.
func (p *Provider) SetDown(down bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = down
}

// ServeHTTP implements [http.Handler].
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.down:
		http.Error(w, "down", http.StatusServiceUnavailable)
	case r.URL.Path == "/auth":
		p.authorize(w, r)
	case r.URL.Path == "/token":
		p.token(w, r)
	default:
		p.server.ServeHTTP(w, r)
	}
}

// authorize leads back at once, with a code.
func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	asked := r.URL.Query()
	code := rand.Text()
	p.asked[code] = asked
	p.secret = append(p.secret, code, asked.Get("state"), asked.Get("nonce"))
	back := url.Values{"code": {code}, "state": {asked.Get("state")}}
	http.Redirect(w, r, asked.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

// token gives a token for a code, once, to the client that has its verifier.
func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	id, secret, _ := r.BasicAuth()
	id, _ = url.QueryUnescape(id)
	secret, _ = url.QueryUnescape(secret)
	asked, known := p.asked[r.PostFormValue("code")]
	delete(p.asked, r.PostFormValue("code"))
	challenge := oauth2.S256ChallengeFromVerifier(r.PostFormValue("code_verifier"))
	w.Header().Set("Content-Type", "application/json")
	if !known || id != ClientID || secret != ClientSecret ||
		challenge != asked.Get("code_challenge") || asked.Get("code_challenge_method") != "S256" {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"error":"invalid_grant"}`))
		return
	}
	claims := map[string]any{
		"iss": p.URL, "aud": ClientID, "nonce": asked.Get("nonce"),
		"exp": time.Now().Add(time.Minute).Unix(), "iat": time.Now().Unix(),
	}
	maps.Copy(claims, p.claims)
	if p.change != nil {
		p.change(claims)
	}
	text, _ := json.Marshal(claims)
	token := oidctest.SignIDToken(p.key, "1", "ES256", string(text))
	p.secret = append(p.secret, r.PostFormValue("code_verifier"), token)
	_ = json.NewEncoder(w).Encode(
		map[string]any{"access_token": "unused", "token_type": "Bearer", "id_token": token},
	)
}
