package subscription_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/webhook"
	"github.com/fencepost/fencepost/webhook/subscription"
)

func revealed(secrets []webhook.Secret) []string {
	var texts []string
	for _, s := range secrets {
		texts = append(texts, s.Reveal())
	}
	return texts
}

func subscriptionOf(tenant, id string, generation int) *subscription.Subscription {
	return &subscription.Subscription{
		Tenant: tenant, ID: id, Rotation: subscription.Rotation{Generation: generation},
	}
}

// TestSecretsAreDerived: every replica comes to the same secret, and nothing else does.
func TestSecretsAreDerived(t *testing.T) {
	now := time.Now()
	keys, others := subscription.NewKeys([]byte(tokenKey)), subscription.NewKeys([]byte(tokenKey+"!"))
	seen := map[string]string{}
	for name, secrets := range map[string][]webhook.Secret{
		"one":                keys.Of(subscriptionOf("acme", "a", 1), now),
		"another generation": keys.Of(subscriptionOf("acme", "a", 2), now),
		"another id":         keys.Of(subscriptionOf("acme", "b", 1), now),
		"another tenant":     keys.Of(subscriptionOf("acm", "a", 1), now),
		"the same letters":   keys.Of(subscriptionOf("acm", "ea", 1), now),
		"another key":        others.Of(subscriptionOf("acme", "a", 1), now),
		"a salt": keys.Of(&subscription.Subscription{
			Tenant: "acme", ID: "a",
			Rotation: subscription.Rotation{Generation: 1, Salts: [][]byte{[]byte("salt")}},
		}, now),
		"of callbacks' id": keys.Of(subscriptionOf("acme", "current", 1), now),
	} {
		if len(secrets) != 1 || secrets[0].IsZero() {
			t.Fatalf("%s: %d secrets", name, len(secrets))
		}
		text := secrets[0].Reveal()
		if again, err := webhook.ParseSecret(text); err != nil || again.Reveal() != text {
			t.Errorf("%s is no secret: %v", name, err)
		}
		if other, found := seen[text]; found {
			t.Errorf("%s and %s are the same", name, other)
		}
		seen[text] = name
	}
	again := subscription.NewKeys([]byte(tokenKey)).Of(subscriptionOf("acme", "a", 1), now)
	if seen[again[0].Reveal()] != "one" {
		t.Error("another replica has another secret")
	}
	// It must not change between versions: receivers have it.
	if want := "whsec_zT8e8FsR02/w3eNtg+HnJNVMTgsCyo9CvuqSBByfpeE="; again[0].Reveal() != want {
		t.Errorf("the secret is %s, want %s", again[0].Reveal(), want)
	}
}

// TestRotation: the secrets that were replaced sign for a day, each by its own time.
func TestRotation(t *testing.T) {
	w := newWorld(t)
	keys := subscription.NewKeys([]byte(tokenKey))
	s, first := w.make(t, "acme")
	secrets, began := []string{first.Reveal()}, w.now
	for range 4 { // one more than are remembered
		w.now = w.now.Add(time.Hour)
		next, secret, err := w.Rotate(t.Context(), by(who("acme")), s.ID)
		if err != nil {
			t.Fatal(err)
		}
		s, secrets = next, append(secrets, secret.Reveal())
	}
	slices.Reverse(secrets) // the newest first
	for after, want := range map[time.Duration]int{
		4 * time.Hour: webhook.MaxSecrets, 26*time.Hour - time.Second: 4, 26 * time.Hour: 3,
		27 * time.Hour:             2,
		28*time.Hour - time.Second: 2, 28 * time.Hour: 1, 1000 * time.Hour: 1,
	} {
		stored, err := w.Get(t.Context(), who("acme"), s.ID)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(secrets[:want], revealed(keys.Of(stored, began.Add(after)))); diff != "" {
			t.Errorf("after %v (-want +got):\n%s", after, diff)
		}
	}
	if s.Generation != 5 {
		t.Errorf("generation %d, want 5", s.Generation)
	}
}

// TestNothingShowsASecret: what is stored and what is printed has nothing of a secret, nor
// of what it is made of.
func TestNothingShowsASecret(t *testing.T) {
	w := newWorld(t)
	s, secret := w.make(t, "acme")
	_, rotated, err := w.Rotate(t.Context(), by(who("acme")), s.ID)
	if err != nil {
		t.Fatal(err)
	}
	callback, err := w.RotateCallback(t.Context(), by(who("acme")))
	if err != nil {
		t.Fatal(err)
	}
	keys := subscription.NewKeys([]byte(tokenKey))
	texts := []string{
		fmt.Sprintf("%+v %#v %+v %#v", s, s, keys, keys), string(must(json.Marshal(s))), stored(t, w),
	}
	for _, hidden := range []string{secret.Reveal(), rotated.Reveal(), callback.Reveal(), tokenKey} {
		for _, text := range texts {
			if strings.Contains(text, strings.TrimPrefix(hidden, "whsec_")) {
				t.Errorf("%s shows %s", text, hidden)
			}
		}
	}
}

// TestRotationAfterARestore: the store is as it was before a rotation, and the next one still makes
// a secret that was never shown.
func TestRotationAfterARestore(t *testing.T) {
	w := newWorld(t)
	s, _ := w.make(t, "acme")
	if _, err := w.RotateCallback(t.Context(), by(who("acme"))); err != nil {
		t.Fatal(err)
	}
	rotations := map[string]struct {
		key    store.RecordKey
		rotate func() (webhook.Secret, error)
	}{
		"subscription": {store.RecordKey{
			Kind: subscription.Kind, Tenant: "acme", ID: s.ID,
		}, func() (webhook.Secret, error) {
			_, secret, err := w.Rotate(t.Context(), by(who("acme")), s.ID)
			return secret, err
		}},
		"callbacks": {store.RecordKey{
			Kind: subscription.CallbackKind, Tenant: "acme", ID: "current",
		}, func() (webhook.Secret, error) { return w.RotateCallback(t.Context(), by(who("acme"))) }},
	}
	for name, r := range rotations {
		backup := must(w.Records.Get(t.Context(), r.key))
		lost := must(r.rotate())
		now := must(w.Records.Get(t.Context(), r.key))
		must(w.Records.Put(
			t.Context(), store.RecordPut{RecordKey: r.key, Value: backup.Value, Version: now.Version},
		))
		if again := must(r.rotate()); again.Reveal() == lost.Reveal() {
			t.Errorf("%s: the rotation after the restore makes the secret of the one that was lost", name)
		}
	}
	callbacks := rotations["callbacks"]
	first := must(callbacks.rotate())
	now := must(w.Records.Get(t.Context(), callbacks.key))
	if err := w.Records.Delete(t.Context(), callbacks.key, now.Version); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if again := must(callbacks.rotate()); again.Reveal() == first.Reveal() {
			t.Error("without a record of callbacks, rotations repeat a secret")
		}
	}
}
