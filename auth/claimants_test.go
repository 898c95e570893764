package auth_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/fencepost/fencepost/auth"
)

const operators = `{"principals":[
	{"claim":"groups","value":"platform","tenant":"ops","scopes":["admin"]},
	{"claim":"groups","value":"orders","tenant":"acme","scopes":["tenant-admin"],"locks":["orders:*"]}]}`

func claimantsOf(t *testing.T, text string) (*auth.Claimants, string, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "claimants.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := auth.LoadClaimants(path)
	return c, path, err
}

// TestClaimants: the first matching entry counts; a user without one has no rights.
func TestClaimants(t *testing.T) {
	c, path, err := claimantsOf(t, operators)
	if err != nil {
		t.Fatal(err)
	}
	groups := func(all ...any) map[string]any { return map[string]any{"sub": "ann", "groups": all} }
	both, err := c.Identify(groups("orders", "platform"), "sub")
	if err != nil || both.Tenant != "ops" || !both.Allows(auth.Admin) || both.Locks != nil {
		t.Errorf("%+v, %v", both, err)
	}
	one, err := c.Identify(groups("orders"), "sub")
	if err != nil || one.Tenant != "acme" || one.MayUse("stock") || !one.MayUse("orders:1") ||
		one.Subject != "ann" {
		t.Errorf("%+v, %v", one, err)
	}
	if again, err := c.Identify(
		map[string]any{"sub": "bob", "groups": "platform"}, "sub",
	); err != nil || again.Subject != "bob" || both.Subject != "ann" {
		t.Errorf("%+v, %v, and %+v", again, err, both)
	}
	for _, claims := range []map[string]any{
		groups(), groups("Orders"), groups(1, nil, []any{"orders"}),
		{"sub": "ann", "roles": "orders"},
		{"sub": "ann"},
	} {
		if _, err := c.Identify(claims, "sub"); !errors.Is(err, auth.UnknownClaims) {
			t.Errorf("%v: %v", claims, err)
		}
	}
	if _, err := c.Identify(groups("orders"), "email"); !errors.Is(err, auth.BadSubject) {
		t.Errorf("without a name: %v", err)
	}
	if err := os.WriteFile(path, []byte(`{"principals":[{]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if changed, err := c.Refresh(); changed || err == nil {
		t.Errorf("nonsense: %t, %v", changed, err)
	}
	if _, err := c.Identify(groups("orders"), "sub"); err != nil {
		t.Errorf("what was in use does not stay: %v", err)
	}
	if err := os.WriteFile(path, []byte(`{"principals":[]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if changed, err := c.Refresh(); !changed || err != nil {
		t.Errorf("%t, %v", changed, err)
	}
	if _, err := c.Identify(groups("orders"), "sub"); !errors.Is(err, auth.UnknownClaims) {
		t.Errorf("whose rights were taken: %v", err)
	}
}

func TestClaimantsAreChecked(t *testing.T) {
	for name, text := range map[string]string{
		"no claim":    `{"principals":[{"value":"a","tenant":"acme","scopes":[]}]}`,
		"no value":    `{"principals":[{"claim":"groups","tenant":"acme","scopes":[]}]}`,
		"no tenant":   `{"principals":[{"claim":"groups","value":"a","scopes":[]}]}`,
		"a scope":     `{"principals":[{"claim":"groups","value":"a","tenant":"acme","scopes":["root"]}]}`,
		"a pattern":   `{"principals":[{"claim":"groups","value":"a","tenant":"acme","scopes":[],"locks":[""]}]}`,
		"null":        `{"principals":[{"claim":"groups","value":"a","tenant":"acme","scopes":[],"locks":null}]}`,
		"a typo":      `{"principals":[{"claim":"groups","value":"a","tennant":"acme","scopes":[]}]}`,
		"a subject":   `{"principals":[{"claim":"groups","value":"a","tenant":"acme","subject":"ann","scopes":[]}]}`,
		"no list":     `{}`,
		"not JSON":    `principals:`,
		"another key": `{"principals":[],"more":1}`,
	} {
		if _, _, err := claimantsOf(t, text); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}
