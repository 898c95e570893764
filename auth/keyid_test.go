package auth_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/auth"
)

// TestKeyIDOfRefused: a refused token can be traced to its key, and writes nothing of
// its own into the log.
func TestKeyIDOfRefused(t *testing.T) {
	v := newVerifier(t, auth.Config{JWKS: write(t, keySet(ec("known"))), Now: newClock().Now})
	for kid, want := range map[string]string{
		"unknown": "unknown", "https://a.example/k_1?x=y": "https://a.example/k_1?x=y", "": "",
		"a\nb\x1b[2J \"c\"": "a?b??2J??c?", strings.Repeat("k", 200): strings.Repeat("k", 64),
		strings.Repeat("ä", 100): strings.Repeat("?", 64),
	} {
		var refused *auth.Error
		if _, err := v.Verify(t.Context(), ec(kid).token(nil)); !errors.As(err, &refused) ||
			refused.KeyID != want {
			t.Errorf("kid %q: %v with the key %q, want %q", kid, err, refused.KeyID, want)
		}
	}
	var refused *auth.Error
	if _, err := v.Verify(t.Context(), "nonsense"); !errors.As(err, &refused) || refused.KeyID != "" {
		t.Errorf("nonsense: %v", err)
	}
	if _, err := v.Verify(t.Context(), ec("known").token(map[string]any{"exp": 1})); !errors.As(
		err, &refused,
	) || refused.KeyID != "known" {
		t.Errorf("expired: %v with the key %q", err, refused.KeyID)
	}
}
