package lock_test

import (
	"strings"
	"testing"

	"github.com/fencepost/fencepost/lock"
)

const someTrace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func TestValidTrace(t *testing.T) {
	for text, want := range map[string]bool{
		someTrace:                               true,
		"":                                      false,
		strings.ToUpper(someTrace):              false,
		someTrace + "-more":                     false,
		someTrace[:len(someTrace)-1]:            false,
		"01" + someTrace[2:]:                    false,
		strings.Replace(someTrace, "-", "_", 1): false,
		strings.Replace(someTrace, "4bf9", "4bg9", 1):    false,
		someTrace[:35] + "_" + someTrace[36:]:            false,
		someTrace[:52] + "_" + someTrace[53:]:            false,
		someTrace[:53] + "\x00\x01":                      false,
		"00-" + strings.Repeat("0", 32) + someTrace[35:]: false,
		someTrace[:36] + strings.Repeat("0", 16) + "-01": false,
	} {
		if got := lock.ValidTrace(text); got != want {
			t.Errorf("ValidTrace(%q) = %t", text, got)
		}
	}
}

func FuzzTrace(f *testing.F) {
	f.Add(someTrace)
	f.Add("00-" + strings.Repeat("0", 52))
	f.Fuzz(func(t *testing.T, s string) {
		if lock.ValidTrace(s) && (len(s) != 55 || strings.Trim(s, "0123456789abcdef-") != "") {
			t.Errorf("%q is taken for a traceparent", s)
		}
	})
}

func TestCallbackCheck(t *testing.T) {
	for c, want := range map[lock.Callback]bool{
		{URL: "https://example.org/done", Secret: "callback"}:          true,
		{URL: strings.Repeat("u", lock.MaxCallbackURL), Secret: "s"}:   true,
		{URL: strings.Repeat("u", lock.MaxCallbackURL+1), Secret: "s"}: false,
		{Secret: "callback"}:                 false,
		{URL: "https://example.org/done"}:    false,
		{URL: "u", Secret: "whsec/c2VjcmV0"}: false,
	} {
		if err := c.Check(); (err == nil) != want {
			t.Errorf("Check of %d bytes and %q: %v", len(c.URL), c.Secret, err)
		}
	}
}
