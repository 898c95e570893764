package signin_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/auth/signin"
)

// noRights gives no user rights.
type noRights struct{}

func (noRights) Identify(map[string]any, string) (*auth.Principal, error) {
	return nil, &auth.Error{Reason: auth.UnknownClaims}
}

// against returns a deployment with a provider that answers so.
func against(t *testing.T, h http.HandlerFunc) (*signin.Provider, string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	p, err := signin.New(signin.Config{
		Issuer: s.URL, ClientID: "c", ClientSecret: "s", NameClaim: "sub",
		RedirectURL: "https://locks.example/back",
		Secret:      []byte("a secret that all replicas share, of 32 bytes"), Rights: noRights{},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p, s.URL
}

// TestManyBegin: the provider is asked once what it is, however many sign-ins begin, and one that
// does not answer not again at once.
func TestManyBegin(t *testing.T) {
	var asked atomic.Int64
	p, _ := against(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusInternalServerError)
	})
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() { _, _, _, _ = p.Begin(t.Context()) })
	}
	all.Wait()
	if n := asked.Load(); n > 3 { // more only if this took longer than it remembers
		t.Errorf("%d requests to the provider", n)
	}
}

// TestMadeUpCodes: of one sign-in the provider is asked about one code at a time, and about each
// once.
func TestMadeUpCodes(t *testing.T) {
	var asked, now, most atomic.Int64
	var issuer string // set before the first request
	release := make(chan struct{})
	p, at := against(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path != "/token" {
			_ = json.NewEncoder(w).Encode(map[string]any{
				"issuer": issuer, "authorization_endpoint": issuer + "/auth",
				"token_endpoint": issuer + "/token", "jwks_uri": issuer + "/keys",
				"token_endpoint_auth_methods_supported": []string{"client_secret_post"},
			})
			return
		}
		asked.Add(1)
		most.Store(max(most.Load(), now.Add(1)))
		<-release
		now.Add(-1)
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"error":"invalid_grant"}`))
	})
	issuer = at
	to, kept, _, err := p.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	state := stateOf(t, to)
	var all sync.WaitGroup
	var refused atomic.Int64
	for range 16 {
		all.Go(func() {
			if _, err := p.Finish(t.Context(), kept, state, "made up"); err != nil && refused.Add(1) == 15 {
				close(release) // all but the one that the provider is asked about
			}
		})
	}
	all.Wait()
	if asked.Load() != 1 || most.Load() != 1 {
		t.Errorf("asked %d times, %d at once", asked.Load(), most.Load())
	}
	if _, err := p.Finish(t.Context(), kept, state, "another"); err == nil || asked.Load() != 2 {
		t.Errorf("%v; a code that is not good was sent %d times", err, asked.Load()-1)
	}
}
