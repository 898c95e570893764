package webhook_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/webhook"
)

// secretText is the secret of the test vectors.
const secretText = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

func secretOf(t testing.TB, length int) webhook.Secret {
	t.Helper()
	key := bytes.Repeat([]byte{0xa7}, length)
	s, err := webhook.ParseSecret("whsec_" + base64.StdEncoding.EncodeToString(key))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestNewSecret(t *testing.T) {
	s, other := webhook.NewSecret(), webhook.NewSecret()
	if s.Reveal() == other.Reveal() {
		t.Error("two secrets are the same")
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(s.Reveal(), "whsec_"))
	if err != nil || len(key) != 32 {
		t.Errorf("a new secret has %d bytes, %v", len(key), err)
	}
	back, err := webhook.ParseSecret(s.Reveal())
	if err != nil || back.Reveal() != s.Reveal() {
		t.Errorf("ParseSecret(Reveal()) = %v", err)
	}
}

func TestParseSecret(t *testing.T) {
	encode := func(length int) string {
		return "whsec_" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{0xa7}, length))
	}
	for _, length := range []int{24, 25, 32, 63, 64} {
		if s, err := webhook.ParseSecret(
			encode(length),
		); err != nil || s.Reveal() != encode(length) || s.IsZero() {
			t.Errorf("%d bytes: %v", length, err)
		}
	}
	good := encode(32)
	for name, text := range map[string]string{
		"empty": "", "prefix alone": "whsec_", "no prefix": strings.TrimPrefix(good, "whsec_"),
		"other prefix": "whsk_" + strings.TrimPrefix(good, "whsec_"), "23 bytes": encode(23),
		"65 bytes": encode(65),
		"long":     encode(1 << 20), "no padding": strings.TrimRight(good, "="),
		"more padding": good + "=",
		"line break":   good[:20] + "\n" + good[20:], "space": good + " ",
		"url alphabet": strings.ReplaceAll(encode(32), "p", "-"),
		"stray bits":   good[:len(good)-2] + "9=", "redacted": webhook.NewSecret().String(),
	} {
		s, err := webhook.ParseSecret(text)
		if err == nil || !s.IsZero() {
			t.Errorf("%s is accepted", name)
			continue
		}
		if encoded := strings.TrimPrefix(text, "whsec_"); len(encoded) > 10 &&
			strings.Contains(err.Error(), encoded[:10]) {
			t.Errorf("%s: the error has part of the secret: %v", name, err)
		}
	}
}

// TestSecretIsNeverShown prints a secret in each way that a program could by mistake.
func TestSecretIsNeverShown(t *testing.T) {
	s := secretOf(t, 32)
	type hidden struct{ inner webhook.Secret }
	type list struct{ inner []webhook.Secret }
	type shown struct{ S webhook.Secret }
	var texts []string
	for _, verb := range []string{
		"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%p", "%o", "%c", "%U", "%8.3f",
	} {
		for _, value := range []any{
			s, &s,
			hidden{s},
			&hidden{s},
			list{[]webhook.Secret{s}},
			shown{s},
			[]webhook.Secret{s},
			map[string]webhook.Secret{"a": s},
			[]any{s},
			errors.Join(fmt.Errorf("with %v", s)),
		} {
			texts = append(texts, fmt.Sprintf(verb, value))
		}
	}
	for _, value := range []any{
		s, &s, hidden{s}, shown{s}, []webhook.Secret{s}, map[string]webhook.Secret{"a": s},
	} {
		texts = append(texts, string(must(json.Marshal(value))))
		var log bytes.Buffer
		slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "value", value)
		slog.New(slog.NewTextHandler(&log, nil)).Info("x", "value", value)
		texts = append(texts, log.String())
	}
	key := strings.Repeat("\xa7", 4)
	for _, text := range texts {
		for _, part := range []string{
			key, "§§", "a7a7", "A7A7", "167 167", "167,167", "0xa7, 0xa7", "0xa7 0xa7", "0XA7 0XA7",
			"247 247", `\xa7`, s.Reveal()[6:12],
		} {
			if strings.Contains(text, part) {
				t.Errorf("shown as %q", text)
			}
		}
	}
	if _, err := webhook.ParseSecret(s.String()); err == nil {
		t.Error("a redacted secret is a secret")
	}
	if (webhook.Secret{}).Reveal() != "" {
		t.Error("the zero secret reveals something")
	}
}
