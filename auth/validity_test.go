package auth_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/auth/certtest"
	"github.com/fencepost/fencepost/test/bubble"
	"github.com/fencepost/fencepost/test/poll"
)

// while is the context of work that p has begun.
func while(t *testing.T, p *auth.Principal) context.Context {
	t.Helper()
	ctx, stop := p.While(t.Context(), time.Hour)
	t.Cleanup(stop)
	return ctx
}

func wantWithdrawn(t *testing.T, ctx context.Context, what string) {
	t.Helper()
	select {
	case <-ctx.Done():
	case <-time.After(time.Minute):
		t.Fatalf("%s goes on", what)
	}
	if cause := context.Cause(ctx); !errors.Is(cause, auth.Withdrawn) {
		t.Errorf("%s ends because of %v", what, cause)
	}
}

func wantGoingOn(t *testing.T, ctx context.Context, what string) {
	t.Helper()
	if ctx.Err() != nil {
		t.Errorf("%s has ended: %v", what, context.Cause(ctx))
	}
}

func TestWorkEndsWithTheKeyOfItsToken(t *testing.T) {
	stays, leaves := ec("stays"), ec("leaves")
	path := write(t, keySet(stays, leaves))
	v := newVerifier(t, auth.Config{Secret: secret, JWKS: path, Refresh: often, Now: newClock().Now})
	old := accept(t, v, leaves.token(nil))
	ended, other, bySecret := while(t, old), while(t, accept(t, v, stays.token(nil))), while(
		t, accept(t, v, hs().token(nil)),
	)

	rewrite(t, path, keySet(stays))
	wantWithdrawn(t, ended, "what the key verified")
	wantWithdrawn(t, while(t, old), "what begins after the key has left")

	rewrite(t, path, keySet(stays, leaves))
	poll.Until(t, "the key is back", func() bool { return verifies(t, v, leaves.token(nil)) })
	wantGoingOn(t, while(t, accept(t, v, leaves.token(nil))), "what begins after the key is back")
	wantWithdrawn(t, while(t, old), "what was identified before the key left")
	wantGoingOn(t, other, "what another key verified")
	wantGoingOn(t, bySecret, "what the secret verified")
}

// issued is a client's certificate.
func issued(
	t *testing.T, by *certtest.Authority, change func(*x509.Certificate),
) *x509.Certificate {
	t.Helper()
	text, _ := by.Issue(t, change)
	block, _ := pem.Decode(text)
	return must(x509.ParseCertificate(block.Bytes))
}

// connected is a connection that the authorities of the chains vouched for.
func connected(t *testing.T, c *x509.Certificate, by ...*certtest.Authority) *tls.ConnectionState {
	t.Helper()
	state := &tls.ConnectionState{PeerCertificates: []*x509.Certificate{c}}
	for _, a := range by {
		block, _ := pem.Decode(a.PEM())
		state.VerifiedChains = append(
			state.VerifiedChains, []*x509.Certificate{c, must(x509.ParseCertificate(block.Bytes))},
		)
	}
	return state
}

func TestWorkEndsWithWhatVouchesForACertificate(t *testing.T) {
	first, second := certtest.NewAuthority(t, "first"), certtest.NewAuthority(t, "second")
	line := func(who, rights string) string {
		return `{"uri":"spiffe://example/` + who + `","tenant":"acme","subject":"` + who + `",` +
			rights + `}`
	}
	const both, one = `"scopes":["locks:read","locks:write"]`, `"scopes":["locks:read"]`
	entries := func(lines ...string) string {
		return `{"principals":[` + strings.Join(lines, ",") + `]}`
	}
	for name, c := range map[string]struct {
		authorities []byte
		principals  string
		ends        bool
	}{
		"AnotherLineIsAdded": {first.PEM(), entries(line("other", both), line("worker", both)), false},
		"MoreScopes": {
			first.PEM(), entries(line("worker", `"scopes":["locks:read","locks:write","admin"]`)), false,
		},
		"AnotherAuthorityIsThere": {
			append(second.PEM(), first.PEM()...), entries(line("worker", both)), false,
		},
		"TheLineIsGone": {first.PEM(), entries(line("other", both)), true},
		"FewerScopes":   {first.PEM(), entries(line("worker", one)), true},
		"FewerLocks":    {first.PEM(), entries(line("worker", both+`,"locks":["orders:*"]`)), true},
		"AnotherTenant": {
			first.PEM(), strings.Replace(entries(line("worker", both)), "acme", "beta", 1), true,
		},
		"TwoLinesFit": {
			first.PEM(),
			entries(
				line("worker", both),
				strings.Replace(line("x", both), `"uri":"spiffe://example/x"`, `"dns":"worker.example"`, 1),
			),
			true,
		},
		"TheAuthorityIsGone": {second.PEM(), entries(line("worker", both)), true},
	} {
		t.Run(name, func(t *testing.T) {
			cas, lines := write(t, first.PEM()), write(t, []byte(entries(line("worker", both))))
			authorities, principals := must(auth.LoadAuthorities(cas)), must(auth.LoadPrincipals(lines, nil))
			certificates := auth.NewCertificates(authorities, principals)
			worker := issued(t, first, func(c *x509.Certificate) {
				withURI("spiffe://example/worker")(c)
				c.DNSNames = []string{"worker.example"}
			})
			work := while(t, must(certificates.Identify(connected(t, worker, first))))

			rewrite(t, cas, c.authorities)
			rewrite(t, lines, []byte(c.principals))
			_, err := authorities.Refresh()
			_, err2 := principals.Refresh()
			if err := errors.Join(err, err2); err != nil {
				t.Fatal(err)
			}
			if c.ends {
				wantWithdrawn(t, work, "the work")
				return
			}
			rewrite(t, lines, []byte(entries()))
			wantGoingOn(t, work, "the work")
			if _, err := principals.Refresh(); err != nil {
				t.Fatal(err)
			}
			wantWithdrawn(t, work, "the work after the second change")
		})
	}
}

// TestOldAndNewCertificateOfAnAuthority: when an authority has a new certificate for its key, the
// old one may leave.
func TestOldAndNewCertificateOfAnAuthority(t *testing.T) {
	before, after := certtest.NewAuthority(t, "a"), certtest.NewAuthority(t, "a")
	cas := write(t, append(before.PEM(), after.PEM()...))
	lines := write(t, []byte(
		`{"principals":[{"uri":"spiffe://example/worker","tenant":"acme","subject":"w","scopes":["locks:read"]}]}`,
	))
	authorities := must(auth.LoadAuthorities(cas))
	certificates := auth.NewCertificates(authorities, must(auth.LoadPrincipals(lines, nil)))
	worker := issued(t, before, withURI("spiffe://example/worker"))
	work := while(t, must(certificates.Identify(connected(t, worker, before, after))))
	for _, c := range []struct {
		text []byte
		ends bool
	}{{after.PEM(), false}, {certtest.NewAuthority(t, "b").PEM(), true}} {
		rewrite(t, cas, c.text)
		if _, err := authorities.Refresh(); err != nil {
			t.Fatal(err)
		}
		if c.ends {
			wantWithdrawn(t, work, "without an authority, the work")
		} else {
			wantGoingOn(t, work, "with the new certificate, the work")
		}
	}
}

func TestSessionEndsWithItsCredential(t *testing.T) {
	clock := newClock()
	stays, leaves := ec("stays"), ec("leaves")
	path := write(t, keySet(stays, leaves))
	v := newVerifier(t, auth.Config{Secret: secret, JWKS: path, Refresh: often, Now: clock.Now})
	file := write(t, []byte(`{"principals":[{"claim":"groups","value":"ops","tenant":"acme","scopes":["admin"]},
		{"claim":"groups","value":"oncall","tenant":"acme","scopes":["admin"]}]}`))
	rights := must(auth.LoadClaimants(file))
	s := must(auth.NewSessions(secret, clock.Now, v, rights))
	in := func(group string) map[string]any {
		return map[string]any{"sub": "ann", "groups": []any{group}}
	}
	begin := func(p *auth.Principal) (text string, work context.Context) {
		t.Helper()
		if p.Expires.IsZero() { // which the provider says
			p.Expires = start.Add(time.Hour)
		}
		text, _, err := s.Seal(p)
		if err != nil {
			t.Fatal(err)
		}
		return text, while(t, must(s.Open(t.Context(), text)))
	}
	byKey, keyWork := begin(accept(t, v, leaves.token(nil)))
	other, otherWork := begin(accept(t, v, stays.token(nil)))
	byClaim, claimWork := begin(must(rights.Identify(in("ops"), "sub")))
	oncall, oncallWork := begin(must(rights.Identify(in("oncall"), "sub")))
	bySecret, _ := begin(accept(t, v, hs().token(nil)))

	rewrite(t, path, keySet(stays))
	wantWithdrawn(t, keyWork, "work of the session of a key that left")
	rewrite(t, file, []byte(`{"principals":[{"claim":"groups","value":"oncall","tenant":"acme","scopes":["admin"]},
		{"claim":"groups","value":"ops","tenant":"acme","scopes":["tenant-admin"]}]}`))
	if _, err := rights.Refresh(); err != nil {
		t.Fatal(err)
	}
	wantWithdrawn(t, claimWork, "work of the session of an entry that gives less")
	for name, text := range map[string]string{"Key": byKey, "Claim": byClaim} {
		if p, err := s.Open(t.Context(), text); !errors.Is(err, auth.Withdrawn) || p != nil {
			t.Errorf("%s: the session opens as %v, %v", name, p, err)
		}
	}
	for name, text := range map[string]string{
		"OtherKey": other, "OtherClaim": oncall, "Secret": bySecret,
	} {
		if _, err := s.Open(t.Context(), text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	wantGoingOn(t, otherWork, "work of the session of another key")
	wantGoingOn(t, oncallWork, "work of the session of another entry")
}

// TestSessionOfAnotherSecret: a session that --dev began does not outlive --dev.
func TestSessionOfAnotherSecret(t *testing.T) {
	clock := newClock()
	dev := newVerifier(t, auth.Config{Secret: secret, Now: clock.Now})
	prod := newVerifier(
		t,
		auth.Config{Secret: []byte(strings.Repeat("p", 32)), JWKS: write(t, publicSet()), Now: clock.Now},
	)
	text, _, err := must(auth.NewSessions(secret, clock.Now, dev)).Seal(
		accept(t, dev, hs().token(nil)),
	)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := must(auth.NewSessions(secret, clock.Now, prod)).Open(t.Context(), text); !errors.Is(
		err, auth.Withdrawn,
	) {
		t.Errorf("it opens with another secret: %v", err)
	}
}

// TestSessionAtAReplicaThatReadsTheKeysLater: a session counts at every replica, as its token does.
func TestSessionAtAReplicaThatReadsTheKeysLater(t *testing.T) {
	clock := newClock()
	old, fresh := ec("old"), ec("fresh")
	server := newIssuer(t, keySet(old))
	behind := newVerifier(t, auth.Config{JWKS: server.URL, Refresh: never, Now: clock.Now})
	server.serve(keySet(old, fresh))
	ahead := newVerifier(t, auth.Config{JWKS: server.URL, Refresh: never, Now: clock.Now})
	text, _, err := must(auth.NewSessions(secret, clock.Now, ahead)).Seal(
		accept(t, ahead, fresh.token(nil)),
	)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := must(auth.NewSessions(secret, clock.Now, behind)).Open(
		t.Context(), text,
	); err != nil {
		t.Errorf("the other replica: %v", err)
	}
}

// TestWorkEndsWithItsToken: with the leeway that the token itself has. Work that takes less time
// needs no timer.
func TestWorkEndsWithItsToken(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const life, leeway = 10 * time.Second, 2 * time.Second
		v := newVerifier(t, auth.Config{Secret: secret, Leeway: leeway, Now: time.Now})
		token := hs().token(map[string]any{"exp": time.Now().Add(life).Unix(), "nbf": 0})
		p := accept(t, v, token)
		short, stop := p.While(t.Context(), life)
		defer stop()
		if short != t.Context() {
			t.Error("work that ends before the token is watched")
		}
		ctx := while(t, p)
		<-time.After(life + leeway - 1)
		wantGoingOn(t, ctx, "what a token allows")
		if why := p.Over(); why != nil {
			t.Errorf("it is over within the leeway: %v", why)
		}
		<-time.After(1)
		<-ctx.Done()
		for _, why := range []error{context.Cause(ctx), p.Over()} {
			if !errors.Is(why, auth.Expired) {
				t.Errorf("it ends because of %v", why)
			}
		}
		reject(t, v, token, auth.Expired)
	})
}
