package webhook

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// How long the key of a secret is, in bytes.
const (
	minKey = 24
	maxKey = 64
	newKey = 32
)

const (
	secretPrefix = "whsec_"
	redacted     = secretPrefix + "(redacted)"
)

// Secret is what a receiver and its sender share: 24 to 64 random bytes. However it is
// printed, logged or marshalled, it shows nothing of them; [Secret.Reveal] does. The
// zero Secret signs nothing.
type Secret struct {
	// A function, because fmt cannot ask a Secret in an unexported field to format
	// itself. It prints what it finds there, through a pointer too; of a function it
	// prints the address.
	key func() []byte
}

func secretOf(key []byte) Secret { return Secret{key: func() []byte { return key }} }

// SecretOf returns the secret with the key, which is random, or derived from what is.
func SecretOf(key [newKey]byte) Secret { return secretOf(key[:]) }

// NewSecret returns a secret of 32 random bytes.
func NewSecret() Secret {
	key := make([]byte, newKey)
	_, _ = rand.Read(key) // never fails: it ends the process rather
	return secretOf(key)
}

// ParseSecret reads what [Secret.Reveal] wrote: whsec_ and standard base64, with
// padding, of 24 to 64 bytes. Its errors have nothing of the text.
func ParseSecret(text string) (Secret, error) {
	encoded, found := strings.CutPrefix(text, secretPrefix)
	if !found {
		return Secret{}, errors.New("a webhook secret begins with " + secretPrefix)
	}
	// Line breaks, which the decoder passes over, would make two texts of one secret.
	if strings.ContainsAny(encoded, "\r\n") || len(encoded) > base64.StdEncoding.EncodedLen(maxKey) {
		return Secret{}, errors.New("a webhook secret that has line breaks or is too long")
	}
	key, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil {
		return Secret{}, errors.New("a webhook secret that is not base64")
	}
	if len(key) < minKey || len(key) > maxKey {
		return Secret{}, fmt.Errorf(
			"a webhook secret of %d bytes: it has %d to %d", len(key), minKey, maxKey,
		)
	}
	return secretOf(key), nil
}

// Reveal returns the secret as its receiver needs it. It is for the one answer that
// shows it, and for where it is stored.
func (s Secret) Reveal() string {
	if s.IsZero() {
		return ""
	}
	return secretPrefix + base64.StdEncoding.EncodeToString(s.key())
}

// IsZero reports whether there is no secret.
func (s Secret) IsZero() bool { return s.key == nil }

// String says that there is a secret, not which.
func (s Secret) String() string { return redacted }

// Format does so for every verb of package fmt.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// LogValue does so for package slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText does so for JSON and whatever else marshals texts. There is no way back:
// [ParseSecret] refuses what it writes.
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }
