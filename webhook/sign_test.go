package webhook_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/webhook"
)

// TestSignVectors: the first signature is the test vector that the reference libraries
// have in common.
func TestSignVectors(t *testing.T) {
	s := must(webhook.ParseSecret(secretText))
	at := time.Unix(1614265330, 999_999_999)
	got, err := webhook.Sign("msg_p5jXN8AQM9LWM0D4loKWxJek", at, []byte(`{"test": 2432232314}`), s)
	if err != nil {
		t.Fatal(err)
	}
	want := http.Header{
		"Webhook-Id":        {"msg_p5jXN8AQM9LWM0D4loKWxJek"},
		"Webhook-Timestamp": {"1614265330"},
		"Webhook-Signature": {"v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSignWithSeveral(t *testing.T) {
	first, second := secretOf(t, 24), secretOf(t, 64)
	at := time.Unix(1700000000, 0)
	got, err := webhook.Sign("1042-0", at, []byte("body"), first, second)
	if err != nil {
		t.Fatal(err)
	}
	want := expect(first, "1042-0.1700000000.body") + " " + expect(second, "1042-0.1700000000.body")
	if signature := got.Get("webhook-signature"); signature != want {
		t.Errorf("signature %q, want %q", signature, want)
	}
}

func expect(s webhook.Secret, text string) string {
	key := must(base64.StdEncoding.DecodeString(strings.TrimPrefix(s.Reveal(), "whsec_")))
	mac := hmac.New(sha256.New, key)
	fmt.Fprint(mac, text)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

func TestSignRefuses(t *testing.T) {
	s := webhook.NewSecret()
	at := time.Unix(1700000000, 0)
	for name, try := range map[string]func() (http.Header, error){
		"no secret": func() (http.Header, error) { return webhook.Sign("1-0", at, nil) },
		"an empty secret": func() (http.Header, error) {
			return webhook.Sign("1-0", at, nil, s, webhook.Secret{})
		},
		"too many": func() (http.Header, error) {
			return webhook.Sign("1-0", at, nil, s, s, s, s, s)
		},
		"no id":            func() (http.Header, error) { return webhook.Sign("", at, nil, s) },
		"id with a dot":    func() (http.Header, error) { return webhook.Sign("1.1", at, nil, s) },
		"id with a break":  func() (http.Header, error) { return webhook.Sign("1\r\nx: y", at, nil, s) },
		"id with a letter": func() (http.Header, error) { return webhook.Sign("ü", at, nil, s) },
		"long id": func() (http.Header, error) {
			return webhook.Sign(strings.Repeat("1", 65), at, nil, s)
		},
	} {
		if headers, err := try(); err == nil || headers != nil {
			t.Errorf("%s: %v, %v", name, headers, err)
		}
	}
	if !webhook.ValidID(strings.Repeat("Az_-09", 10)) {
		t.Error("a good id is refused")
	}
}
