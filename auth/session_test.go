package auth_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fencepost/fencepost/auth"
)

func sessions(t *testing.T, secret string, now *time.Time) *auth.Sessions {
	t.Helper()
	clock := func() time.Time { return *now }
	s, err := auth.NewSessions(
		[]byte(secret), clock, newVerifier(t, auth.Config{Secret: []byte(aSecret), Now: clock}),
	)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func operator(t *testing.T, until time.Time, locks ...string) *auth.Principal {
	t.Helper()
	scope := []auth.Scope{auth.Admin, auth.LocksRead}
	signed := must(auth.Sign(
		[]byte(aSecret), auth.Claims{Tenant: "acme", Subject: "ann", Scopes: scope, Locks: locks},
		until.Add(-time.Hour), time.Hour,
	))
	return accept(
		t,
		newVerifier(
			t, auth.Config{Secret: []byte(aSecret), Now: func() time.Time { return until.Add(-time.Hour) }},
		),
		signed,
	)
}

var (
	aSecret  = strings.Repeat("a", 32)
	morning  = time.Date(2026, 1, 2, 8, 0, 0, 0, time.UTC)
	patterns = cmpopts.IgnoreUnexported(auth.Pattern{}, auth.Principal{})
)

func TestSessionSaysWhoSignedIn(t *testing.T) {
	now := morning
	s := sessions(t, aSecret, &now)
	for name, p := range map[string]*auth.Principal{
		"NoLimit":  operator(t, now.Add(time.Hour)),
		"Patterns": operator(t, now.Add(time.Hour), "orders:*", "stock:7"),
		"NoLocks":  operator(t, now.Add(time.Hour), []string{}...),
	} {
		text, begun, err := s.Seal(p)
		if err != nil {
			t.Fatal(name, err)
		}
		got, err := s.Open(t.Context(), text)
		if err != nil {
			t.Fatal(name, err)
		}
		for _, who := range []*auth.Principal{begun, got} {
			if diff := cmp.Diff(p, who, patterns); diff != "" {
				t.Errorf("%s (-want +got)\n%s", name, diff)
			}
		}
		if (got.Locks == nil) != (p.Locks == nil) || got.MayUse("orders:1") != p.MayUse("orders:1") ||
			got.MayUse("x") != p.MayUse("x") {
			t.Errorf("%s: the session may use other locks than the token", name)
		}
		if strings.Contains(text, "acme") || bytes.Contains(decoded(t, text), []byte("acme")) {
			t.Errorf("%s: the text can be read", name)
		}
	}
}

func decoded(t *testing.T, text string) []byte {
	t.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestSessionIsBounded(t *testing.T) {
	for name, tc := range map[string]struct{ token, lasts time.Duration }{
		"LongToken":  {30 * 24 * time.Hour, auth.MaxSession},
		"ShortToken": {time.Hour, time.Hour},
	} {
		now := morning
		s := sessions(t, aSecret, &now)
		text, begun, err := s.Seal(operator(t, now.Add(tc.token)))
		if err != nil || !begun.Expires.Equal(now.Add(tc.lasts)) {
			t.Fatalf("%s: until %v, %v", name, begun, err)
		}
		now = morning.Add(tc.lasts - time.Millisecond)
		if _, err := s.Open(t.Context(), text); err != nil {
			t.Errorf("%s: ended too early: %v", name, err)
		}
		now = morning.Add(tc.lasts)
		if _, err := s.Open(t.Context(), text); !errors.Is(err, auth.Expired) {
			t.Errorf("%s: at its end: %v", name, err)
		}
	}
}

func TestSessionCannotBeMade(t *testing.T) {
	now := morning
	s := sessions(t, aSecret, &now)
	good, _, err := s.Seal(operator(t, now.Add(time.Hour)))
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := sessions(t, strings.Repeat("b", 32), &now).Seal(operator(t, now.Add(time.Hour)))
	if err != nil {
		t.Fatal(err)
	}
	bad := []string{
		"", "x", "!", other, good + "A", good[:len(good)-4], "AAAA" + good, strings.Repeat("A", 5000),
		strings.ToUpper(good),
	}
	raw := decoded(t, good)
	for i := range raw {
		changed := bytes.Clone(raw)
		changed[i] ^= 1
		bad = append(bad, base64.RawURLEncoding.EncodeToString(changed))
	}
	for _, text := range bad {
		if p, err := s.Open(t.Context(), text); !errors.Is(err, auth.BadSession) {
			t.Errorf("%.20q opens as %v, %v", text, p, err)
		}
	}
	if again, _, err := s.Seal(operator(t, now.Add(time.Hour))); err != nil || again == good {
		t.Errorf("two sessions have one text: %v", err)
	}
}

func TestSessionFitsACookie(t *testing.T) {
	now := morning
	s := sessions(t, aSecret, &now)
	many := make([]string, 100)
	for i := range many {
		many[i] = strings.Repeat("x", 40) + "*"
	}
	if _, _, err := s.Seal(operator(t, now.Add(time.Hour), many...)); !errors.Is(err, auth.TooLarge) {
		t.Errorf("4 kB of patterns: %v", err)
	}
	text, _, err := s.Seal(operator(t, now.Add(time.Hour), many[:50]...))
	if err != nil || len(text) > 3800 {
		t.Errorf("2 kB of patterns: %d bytes, %v", len(text), err)
	}
}

func TestSessionsNeedASecret(t *testing.T) {
	if _, err := auth.NewSessions([]byte("short"), nil); err == nil {
		t.Error("a secret of 5 bytes will do")
	}
}

func TestCodeCountsOnce(t *testing.T) {
	now := morning
	c := auth.NewCodes(func() time.Time { return now })
	ann, bob := operator(t, now), operator(t, now)
	first, second := c.Issue(ann), c.Issue(bob)
	if first == second || len(first) < 26 {
		t.Errorf("codes %q, %q", first, second)
	}
	for _, wrong := range []string{"", first[1:], second + "A", strings.ToLower(first)} {
		if p, err := c.Redeem(wrong); !errors.Is(err, auth.BadCode) {
			t.Errorf("%q is taken for %v, %v", wrong, p, err)
		}
	}
	if p, err := c.Redeem(first); p != ann || err != nil {
		t.Errorf("redeemed for %v, %v", p, err)
	}
	if p, err := c.Redeem(first); !errors.Is(err, auth.BadCode) {
		t.Errorf("redeemed twice: %v, %v", p, err)
	}
	now = now.Add(auth.CodeLife)
	if p, err := c.Redeem(second); !errors.Is(err, auth.BadCode) {
		t.Errorf("redeemed too late: %v, %v", p, err)
	}
}

func TestCodesAreBounded(t *testing.T) {
	now := morning
	c := auth.NewCodes(func() time.Time { return now })
	first := c.Issue(operator(t, now))
	last := ""
	for range 16 {
		last = c.Issue(operator(t, now))
	}
	if _, err := c.Redeem(first); err == nil {
		t.Error("the oldest of 17 codes is still good")
	}
	if _, err := c.Redeem(last); err != nil {
		t.Errorf("the newest is not: %v", err)
	}
}
