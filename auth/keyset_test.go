package auth_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/test/poll"
)

func write(t testing.TB, document []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "jwks.json")
	rewrite(t, path, document)
	return path
}

// rewrite replaces the file in one step, as a configuration tool does.
func rewrite(t testing.TB, path string, document []byte) {
	t.Helper()
	if err := os.WriteFile(path+".new", document, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

const often = 5 * time.Millisecond

// never keeps the interval out of tests that read on their own account.
const never = time.Hour

func TestRotation(t *testing.T) {
	before, after := ec("before"), ec("after")
	path := write(t, keySet(before))
	server := newIssuer(t, keySet(before))
	for name, c := range map[string]struct {
		location string
		replace  func([]byte)
	}{
		"File": {path, func(document []byte) { rewrite(t, path, document) }},
		"URL":  {server.URL + "/keys", server.serve},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVerifier(t, auth.Config{JWKS: c.location, Refresh: often, Now: newClock().Now})
			old, fresh := before.token(nil), after.token(nil)
			first := accept(t, v, old)

			c.replace(keySet(before, after))
			poll.Until(t, "the new key works", func() bool { return verifies(t, v, fresh) })
			if accept(t, v, old) != first {
				t.Error("a token whose key stayed was verified again")
			}
			c.replace(keySet(after))
			poll.Until(t, "the old key is refused", func() bool { return !verifies(t, v, old) })
			reject(t, v, old, auth.UnknownKey)
			accept(t, v, fresh)

			c.replace(keySet(before, after))
			poll.Until(t, "the old key is back", func() bool { return verifies(t, v, old) })
		})
	}
}

func verifies(t *testing.T, v *auth.Verifier, raw string) bool {
	_, err := v.Verify(t.Context(), raw)
	return err == nil
}

// TestUnknownKidReadsTheSet: a token that names a new kid works at once, and the
// key that left with that read stops, though no request asked for it.
func TestUnknownKidReadsTheSet(t *testing.T) {
	before, after := ec("before"), ec("after")
	server := newIssuer(t, keySet(before))
	v := newVerifier(t, auth.Config{JWKS: server.URL, Refresh: never, Now: newClock().Now})
	accept(t, v, before.token(nil))
	server.serve(keySet(after))
	accept(t, v, before.token(nil))
	accept(t, v, after.token(nil))
	reject(t, v, before.token(nil), auth.UnknownKey)
}

// TestKeyReplacedUnderItsKid: the identity of a key is its material.
func TestKeyReplacedUnderItsKid(t *testing.T) {
	before, after := ec("same"), ec("same")
	server := newIssuer(t, keySet(before))
	v := newVerifier(t, auth.Config{JWKS: server.URL, Refresh: never, Now: newClock().Now})
	old := before.token(nil)
	accept(t, v, old)
	server.serve(keySet(after))
	reject(t, v, ec("nudge").token(nil), auth.UnknownKey)
	reject(t, v, old, auth.BadSignature)
	accept(t, v, after.token(nil))
}

// TestKidChangesForTheSameKey: the old name has to stop working.
func TestKidChangesForTheSameKey(t *testing.T) {
	before := ec("before")
	after := signer{"ES256", "after", before.private}
	server := newIssuer(t, keySet(before))
	v := newVerifier(t, auth.Config{JWKS: server.URL, Refresh: never, Now: newClock().Now})
	accept(t, v, before.token(nil))
	server.serve(keySet(after))
	accept(t, v, after.token(nil))
	reject(t, v, before.token(nil), auth.UnknownKey)
}

func TestFloodOfUnknownKids(t *testing.T) {
	server := newIssuer(t, publicSet())
	clock := newClock()
	v := newVerifier(t, auth.Config{JWKS: server.URL, Refresh: never, Now: clock.Now})
	good := es().token(nil)
	accept(t, v, good)
	for round := range 3 {
		flood(t, v, 128, 3, round)
		if got, want := server.reads.Load(), int64(2+round); got != want {
			t.Fatalf("after flood %d the set was read %d times, want %d", round+1, got, want)
		}
		accept(t, v, good)
		clock.Advance(auth.AskCooldown)
	}
}

func flood(t *testing.T, v *auth.Verifier, clients, each, round int) {
	t.Helper()
	private := newEC(elliptic.P256())
	var wait sync.WaitGroup
	for client := range clients {
		wait.Go(func() {
			for i := range each {
				kid := fmt.Sprintf("made-up-%d-%d-%d", round, client, i)
				if verifies(t, v, signer{"ES256", kid, private}.token(nil)) {
					t.Errorf("kid %s was accepted", kid)
				}
			}
		})
	}
	wait.Wait()
}

// TestAbsentKidIsNotAskedForAgain: one client with a stale token must not have
// the set read at every end of the cooldown, nor keep others from it.
func TestAbsentKidIsNotAskedForAgain(t *testing.T) {
	server := newIssuer(t, publicSet())
	clock := newClock()
	v := newVerifier(t, auth.Config{JWKS: server.URL, Refresh: never, Now: clock.Now})
	stale, fresh := ec("stale").token(nil), ec("fresh")
	reads := func(want int64) {
		t.Helper()
		if got := server.reads.Load(); got != want {
			t.Fatalf("the set was read %d times, want %d", got, want)
		}
	}
	reject(t, v, stale, auth.UnknownKey)
	reads(2)
	for range 5 {
		clock.Advance(auth.AskCooldown)
		reject(t, v, stale, auth.UnknownKey)
	}
	reads(2)
	server.serve(keySet(fresh))
	accept(t, v, fresh.token(nil))
	reads(3)
	clock.Advance(auth.AbsentFor)
	reject(t, v, stale, auth.UnknownKey)
	reads(4)
}

// TestCallerGivesUp: the read goes on without the one who caused it, so that
// hanging up does not use up the cooldown of others.
func TestCallerGivesUp(t *testing.T) {
	fresh := ec("fresh")
	server := newIssuer(t, publicSet())
	v := newVerifier(t, auth.Config{JWKS: server.URL, Refresh: never, Now: newClock().Now})
	started, proceed := make(chan struct{}), make(chan struct{})
	server.answer(func(w http.ResponseWriter, r *http.Request) {
		close(started)
		<-proceed
		_, _ = w.Write(keySet(fresh))
	})
	ctx, hangUp := context.WithCancel(t.Context())
	result := make(chan error)
	go func() {
		_, err := v.Verify(ctx, fresh.token(nil))
		result <- err
	}()
	<-started
	hangUp()
	if err := <-result; err == nil {
		t.Error("Verify() = nil after the caller gave up")
	}
	close(proceed)
	accept(t, v, fresh.token(nil)) // joins the read, or finds the key
	if n := server.reads.Load(); n != 2 {
		t.Errorf("the set was read %d times, want 2", n)
	}
}

// TestCloseWhileWaiting: Close ends a read that hangs and lets those go who
// wait for it; afterwards the keys still work and no request waits.
func TestCloseWhileWaiting(t *testing.T) {
	server, log := newIssuer(t, publicSet()), &journal{}
	v := newVerifier(t, auth.Config{
		JWKS: server.URL, Refresh: never, Now: newClock().Now,
		Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
	started := make(chan struct{})
	server.answer(func(_ http.ResponseWriter, r *http.Request) {
		close(started)
		<-r.Context().Done()
	})
	result := make(chan bool)
	go func() { result <- verifies(t, v, ec("unknown").token(nil)) }()
	<-started
	v.Close()
	if <-result {
		t.Error("an unknown kid was accepted")
	}
	reject(t, v, ec("another").token(nil), auth.UnknownKey)
	accept(t, v, rs().token(nil))
	v.Close()
	if log.count("cannot be read") != 0 {
		t.Errorf("closing is logged as a failure:\n%s", log.text.String())
	}
}

// TestCloseWaits: what the goroutine is in the middle of is over when Close
// returns. It is held up in its log.
func TestCloseWaits(t *testing.T) {
	server, log := newIssuer(t, publicSet()), &heldLog{
		entered: make(chan struct{}), proceed: make(chan struct{}),
	}
	v := newVerifier(
		t, auth.Config{JWKS: server.URL, Refresh: often, Logger: slog.New(log), Now: newClock().Now},
	)
	server.serve(keySet(ec("other")))
	<-log.entered
	closed := make(chan struct{})
	go func() {
		v.Close()
		close(closed)
	}()
	select {
	case <-closed:
		t.Error("Close() returned while the key set was being read")
	case <-time.After(50 * time.Millisecond): // a failure shows at once
	}
	close(log.proceed)
	<-closed
}

// heldLog holds up everything that is logged after the first record.
type heldLog struct {
	records          atomic.Int64
	entered, proceed chan struct{}
}

func (l *heldLog) Enabled(context.Context, slog.Level) bool { return true }
func (l *heldLog) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *heldLog) WithGroup(string) slog.Handler            { return l }

func (l *heldLog) Handle(context.Context, slog.Record) error {
	if l.records.Add(1) == 2 {
		close(l.entered)
		<-l.proceed
	}
	return nil
}

// TestFailedReadKeepsTheKeys also covers what a hostile or broken server does.
func TestFailedReadKeepsTheKeys(t *testing.T) {
	elsewhere := newIssuer(t, keySet(ec("elsewhere")))
	redirect := func(to string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusFound) }
	}
	body := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) }
	}
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		log     string
	}{
		"Status500": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, "status 500"},
		"Status204": {
			func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }, "status 204",
		},
		"NotJSON":         {body("<html>marker</html>"), "not a JWK Set"},
		"NoKeys":          {body(`{"error":"marker"}`), "not a JWK Set"},
		"KeysNull":        {body(`{"keys":null}`), "not a JWK Set"},
		"KeysText":        {body(`{"keys":"marker"}`), "not a JWK Set"},
		"Truncated":       {body(string(publicSet()[:200])), "not a JWK Set"},
		"Empty":           {body(""), "not a JWK Set"},
		"TooLong":         {body(string(publicSet()) + strings.Repeat(" ", 2<<20)), "longer than"},
		"RedirectToHTTPS": {redirect("https://127.0.0.1:1/marker"), "another scheme"},
		"RedirectToFile":  {redirect("file:///etc/passwd"), "another scheme"},
		"RedirectAway":    {redirect("http://192.0.2.1/marker"), "must be an https URL"},
		"RedirectLoop": {
			func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/", http.StatusFound) },
			"more than 5 redirects",
		},
		"Aborted": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			log := &journal{}
			server, clock := newIssuer(t, publicSet()), newClock()
			v := newVerifier(t, auth.Config{
				JWKS: server.URL + "?key=marker", Refresh: never, Now: clock.Now,
				Logger: slog.New(slog.NewTextHandler(log, nil)),
			})
			server.answer(c.handler)
			for range 2 { // a failure that lasts is logged once
				reject(t, v, ec("elsewhere").token(nil), auth.UnknownKey)
				clock.Advance(auth.AskCooldown)
			}
			accept(t, v, rs().token(nil))
			if n := log.count(c.log); n != 1 {
				t.Errorf("the log says %q %d times, want once:\n%s", c.log, n, log.text.String())
			}
			if log.count("marker") != 0 {
				t.Errorf("the log quotes the URL or the document:\n%s", log.text.String())
			}
			server.serve(publicSet())
			reject(t, v, ec("elsewhere").token(nil), auth.UnknownKey)
			if log.count("can be read again") != 1 {
				t.Errorf("the log does not say once that it can be read again:\n%s", log.text.String())
			}
		})
	}
	if n := elsewhere.reads.Load(); n != 0 {
		t.Errorf("a foreign server was read %d times", n)
	}
}

// TestReadHasADeadline: the only test that waits in real time, for the deadline
// of a read against a server that never answers.
func TestReadHasADeadline(t *testing.T) {
	t.Parallel()
	server := newIssuer(t, publicSet())
	v := newVerifier(t, auth.Config{JWKS: server.URL, Refresh: never, Now: newClock().Now})
	server.answer(func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush() // headers, then a body that does not come
		<-r.Context().Done()
	})
	began := time.Now()
	reject(t, v, ec("unknown").token(nil), auth.UnknownKey)
	if took := time.Since(began); took < time.Second || took > 30*time.Second {
		t.Errorf("refused after %v, want about 5 s", took)
	}
	accept(t, v, es().token(nil))
}

// TestBrokenFileKeepsTheKeys: a file is missing for a moment, or half written.
func TestBrokenFileKeepsTheKeys(t *testing.T) {
	path, clock := write(t, publicSet()), newClock()
	v := newVerifier(t, auth.Config{JWKS: path, Refresh: never, Now: clock.Now})
	for name, spoil := range map[string]func() error{
		"Half":      func() error { return os.WriteFile(path, publicSet()[:100], 0o600) },
		"Gone":      func() error { return os.Remove(path) },
		"Directory": func() error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
	} {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		rewrite(t, path, publicSet())
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		clock.Advance(time.Hour / 2)
		reject(t, v, ec("unknown").token(map[string]any{"exp": nil}), auth.UnknownKey)
		accept(t, v, es().token(map[string]any{"exp": clock.Now().Unix() + 60, "x": name}))
	}
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	fresh := ec("fresh")
	rewrite(t, path, keySet(fresh))
	clock.Advance(auth.AskCooldown)
	accept(t, v, fresh.token(map[string]any{"exp": clock.Now().Unix() + 60}))
}

// TestEmptySetWithdrawsAllKeys: a set that is there and empty is an answer, not
// a failure.
func TestEmptySetWithdrawsAllKeys(t *testing.T) {
	server := newIssuer(t, publicSet())
	v := newVerifier(
		t, auth.Config{Secret: secret, JWKS: server.URL, Refresh: never, Now: newClock().Now},
	)
	accept(t, v, es().token(nil))
	server.serve([]byte(`{"keys":[]}`))
	reject(t, v, ec("nudge").token(nil), auth.UnknownKey)
	reject(t, v, es().token(nil), auth.UnknownKey)
	accept(t, v, hs().token(nil))
}

// TestUnusableKeysAreLeftOut: they do not spoil the set, and no token gets
// through by one of them.
func TestUnusableKeysAreLeftOut(t *testing.T) {
	weak := must(rsa.GenerateKey(rand.Reader, 1024))
	change := func(s signer, name string, v any) any {
		var m map[string]any
		if err := json.Unmarshal(must(json.Marshal(s.jwk())), &m); err != nil {
			t.Fatal(err)
		}
		m[name] = v
		return m
	}
	unusable := map[string]struct {
		signer signer
		jwk    any
	}{
		"WeakRSA":    {signer{"RS256", "k", weak}, signer{"RS256", "k", weak}.jwk()},
		"OtherCurve": {signer{"ES256", "k", ecKey()}, signer{"ES384", "k", newEC(elliptic.P384())}.jwk()},
		"OtherAlg": {
			signer{"RS256", "k", rsaKey()}, change(signer{"RS256", "k", rsaKey()}, "alg", "RS512"),
		},
		"ForEncryption": {
			signer{"ES256", "k", ecKey()}, change(signer{"ES256", "k", ecKey()}, "use", "enc"),
		},
		"ForSigning": {
			signer{"ES256", "k", ecKey()},
			change(signer{"ES256", "k", ecKey()}, "key_ops", []string{"sign"}),
		},
		"OffTheCurve": {
			signer{"ES256", "k", ecKey()}, change(signer{"ES256", "k", ecKey()}, "x", "AAAA"),
		},
		"NotBase64": {signer{"EdDSA", "k", edKey()}, change(signer{"EdDSA", "k", edKey()}, "x", "!!")},
		"KidNumber": {signer{"ES256", "1", ecKey()}, change(signer{"ES256", "1", ecKey()}, "kid", 1)},
		"KidTooLong": {
			signer{"ES256", "k", ecKey()},
			change(signer{"ES256", "k", ecKey()}, "kid", strings.Repeat("k", 257)),
		},
		"UnknownType": {
			signer{"ES256", "k", ecKey()}, change(signer{"ES256", "k", ecKey()}, "kty", "marker"),
		},
		"ForAgreement": {
			signer{"EdDSA", "k", edKey()}, change(signer{"EdDSA", "k", edKey()}, "crv", "X25519"),
		},
		"NoObject": {signer{"ES256", "k", ecKey()}, 7},
	}
	good := ec("good")
	for name, c := range unusable {
		t.Run(name, func(t *testing.T) {
			set := must(json.Marshal(map[string]any{"keys": []any{c.jwk, good.jwk()}}))
			v := newVerifier(t, auth.Config{JWKS: write(t, set), Now: newClock().Now})
			accept(t, v, good.token(nil))
			reject(t, v, c.signer.token(nil), auth.UnknownKey)
		})
	}
}

// TestAllKeysOfAKidAreTried: some issuers rotate a key under the kid of the one before.
func TestAllKeysOfAKidAreTried(t *testing.T) {
	first, second, other := ec("same"), ec("same"), signer{"EdDSA", "same", newEd()}
	path := write(t, keySet(first, second, second, other))
	v := newVerifier(t, auth.Config{JWKS: path, Refresh: often, Now: newClock().Now})
	old := first.token(nil)
	accept(t, v, old)
	accept(t, v, second.token(nil))
	accept(t, v, other.token(nil))
	reject(t, v, ec("same").token(nil), auth.BadSignature)

	rewrite(t, path, keySet(second, other))
	poll.Until(t, "the key that left is refused", func() bool { return !verifies(t, v, old) })
	reject(t, v, old, auth.BadSignature)
}

// TestEd25519ByItsOwnName: RFC 9864 replaces EdDSA, in keys and in tokens.
func TestEd25519ByItsOwnName(t *testing.T) {
	s := ed()
	jwk := fmt.Sprintf(`{"keys":[{"kty":"OKP","crv":"Ed25519","alg":"Ed25519","kid":"ed-1","x":%q}]}`,
		base64.RawURLEncoding.EncodeToString(edKey().Public().(ed25519.PublicKey)))
	for _, document := range [][]byte{[]byte(jwk), keySet(s)} {
		v := newVerifier(t, auth.Config{JWKS: write(t, document), Now: newClock().Now})
		accept(t, v, s.token(nil))
		accept(t, v, s.sign(map[string]any{"alg": "Ed25519", "kid": "ed-1"}, claims(nil)))
		accept(t, v, s.sign(map[string]any{"alg": "Ed25519"}, claims(nil)))
	}
}

// TestKeySetWithAByteOrderMark as some editors of files leave it.
func TestKeySetWithAByteOrderMark(t *testing.T) {
	v := newVerifier(
		t, auth.Config{JWKS: write(t, append([]byte("\ufeff"), publicSet()...)), Now: newClock().Now},
	)
	accept(t, v, rs().token(nil))
}

// TestUsableKeys are forms that issuers really publish.
func TestUsableKeys(t *testing.T) {
	var bare map[string]any
	if err := json.Unmarshal(must(json.Marshal(rs().jwk())), &bare); err != nil {
		t.Fatal(err)
	}
	delete(bare, "alg")
	delete(bare, "use")
	bare["key_ops"] = []string{"verify"}
	bare["x5t"] = "not a thumbprint" // some issuers encode it twice
	bare["x5c"] = []string{"not a certificate"}
	bare["issuer"] = "an extension"
	set := must(json.Marshal(map[string]any{"keys": []any{bare}}))
	v := newVerifier(t, auth.Config{JWKS: write(t, set), Now: newClock().Now})
	accept(t, v, rs().token(nil))
}

// TestPrivateKeyInSet: by mistake, but only its public half counts.
func TestPrivateKeyInSet(t *testing.T) {
	s := es()
	options := s.jwkOptions()
	options.Marshal.Private = true
	private := must(newJWK(s.private, options))
	if !bytes.Contains(private, []byte(`"d":`)) {
		t.Fatal("the test's key is not private")
	}
	v := newVerifier(
		t, auth.Config{JWKS: write(t, fmt.Appendf(nil, `{"keys":[%s]}`, private)), Now: newClock().Now},
	)
	accept(t, v, s.token(nil))
}

// TestTokenWithoutKid: the keys of its algorithm are tried, at most 8 of them.
func TestTokenWithoutKid(t *testing.T) {
	one, two, rsa := ec("one"), ec("two"), rs()
	nameless := func(s signer) string { return s.sign(map[string]any{"alg": s.alg}, claims(nil)) }
	server, clock := newIssuer(t, keySet(one, rsa)), newClock()
	v := newVerifier(t, auth.Config{JWKS: server.URL, Refresh: never, Now: clock.Now})
	accept(t, v, nameless(one))
	accept(t, v, nameless(rsa))
	accept(t, v, signer{"ES256", "", one.private}.token(nil))
	reject(t, v, nameless(two), auth.BadSignature)
	set := []signer{one, two, rsa}
	for len(set) < auth.MaxTried+1 {
		set = append(set, ec(fmt.Sprint("other ", len(set))))
	}
	last, beyond := set[auth.MaxTried], ec("beyond")
	server.serve(keySet(append(set, beyond)...))
	accept(t, v, two.token(nil)) // has the set read
	accept(t, v, nameless(two))
	accept(t, v, nameless(last))
	reject(t, v, nameless(beyond), auth.BadSignature)
	accept(t, v, beyond.token(nil))
}

// TestKeyWithoutKid: small issuers publish one key and name it nowhere.
func TestKeyWithoutKid(t *testing.T) {
	s := ec("")
	v := newVerifier(t, auth.Config{JWKS: write(t, keySet(s)), Now: newClock().Now})
	accept(t, v, s.sign(map[string]any{"alg": s.alg}, claims(nil)))
	reject(t, v, signer{"ES256", "named", s.private}.token(nil), auth.UnknownKey)

	v = newVerifier(t, auth.Config{JWKS: write(t, keySet(s, ec(""))), Now: newClock().Now})
	accept(t, v, s.sign(map[string]any{"alg": s.alg}, claims(nil)))
}

// TestVerifyDuringRotation: 128 clients while the keys change. The key that
// stays must never be refused, the forged one never accepted.
func TestVerifyDuringRotation(t *testing.T) {
	stays, comes, stranger := ec("stays"), ec("comes"), ec("stranger")
	server, clock := newIssuer(t, keySet(stays)), newClock()
	v := newVerifier(t, auth.Config{JWKS: server.URL, Refresh: often, Now: clock.Now})
	good, other, bad := stays.token(nil), comes.token(nil), stranger.token(nil)
	for round := range 10 {
		var wait sync.WaitGroup
		for range 128 {
			wait.Go(func() {
				for range 4 {
					if !verifies(t, v, good) || verifies(t, v, bad) {
						t.Error("the key that stays was refused, or the stranger accepted")
					}
				}
			})
		}
		server.serve([][]byte{keySet(stays, comes), keySet(stays)}[round%2])
		clock.Advance(auth.AskCooldown)
		wait.Wait()
		poll.Until(
			t, "the rotation is seen", func() bool { return verifies(t, v, other) == (round%2 == 0) },
		)
	}
}

// TestURLThatDoesNotAnswerAtTheStart is read again until it does; until then no token is good.
func TestURLThatDoesNotAnswerAtTheStart(t *testing.T) {
	signer := ec("k1")
	selfSigned := httptest.NewUnstartedServer(http.NotFoundHandler())
	selfSigned.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	selfSigned.StartTLS()
	defer selfSigned.Close()
	for name, down := range map[string]http.HandlerFunc{
		"Unavailable": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
		},
		"BadRedirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, selfSigned.URL+"/?k=marker", http.StatusFound)
		},
		"NoKeys": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"keys":[]}`)) },
	} {
		t.Run(name, func(t *testing.T) {
			server, log := newIssuer(t, nil), &journal{}
			server.answer(down)
			v := newVerifier(t, auth.Config{
				JWKS: server.URL + "/?k=marker", Refresh: 10 * time.Millisecond, Now: newClock().Now,
				Logger: slog.New(slog.NewTextHandler(log, nil)),
			})
			if v.Ready() == nil || log.count("key set cannot be read") != 1 || log.count("marker") > 0 {
				t.Errorf(
					"Ready() = %v, and the log says it %d times", v.Ready(), log.count("key set cannot be read"),
				)
			}
			server.serve(keySet(signer))
			deadline := time.Now().Add(time.Minute)
			for tick := time.NewTicker(time.Millisecond); v.Ready() != nil; <-tick.C {
				if time.Now().After(deadline) {
					t.Fatal("the key set is not read again")
				}
			}
			accept(t, v, signer.token(nil))
			server.answer(down) // an issuer that goes away later does not matter
			if err := v.Ready(); err != nil {
				t.Errorf("Ready() = %v", err)
			}
		})
	}
}
