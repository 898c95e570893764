package lock_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/lock"
)

// The rules as the HTTP contract states them; \z because $ means the same only
// without flags.
const (
	namePattern   = `^[A-Za-z0-9][A-Za-z0-9._:@=+-]{0,199}\z`
	tenantPattern = `^[a-z0-9][a-z0-9-]{0,62}\z`
)

// samples are the texts at the edges of both rules.
func samples() []string {
	all := []string{
		"", "a", "A", "0", "-", ".", "..", "_", ":", "a-", "a.", "orders:42", "a/b", "a%2Fb", "a b",
		"a\x00", "a\n", "\n", "a\xff", "ä", "aä", "\u212a", "a.b_c:d@e=f+g-h", "+a", "@a", "=a", "a*",
		"a,b", "a;b", "a~", "A-Z", "a--b", "tenant-1",
	}
	for _, n := range []int{62, 63, 64, 199, 200, 201, 10_000} {
		all = append(all, strings.Repeat("a", n))
	}
	return all
}

func TestNamesFollowTheirPatterns(t *testing.T) {
	names, tenants := regexp.MustCompile(namePattern), regexp.MustCompile(tenantPattern)
	for _, s := range samples() {
		checkNames(t, names, tenants, s)
	}
	for b := range 256 { // every byte, first and later
		checkNames(t, names, tenants, string([]byte{byte(b)}))
		checkNames(t, names, tenants, string([]byte{'a', byte(b)}))
	}
}

func FuzzNames(f *testing.F) {
	for _, s := range samples() {
		f.Add(s)
	}
	names, tenants := regexp.MustCompile(namePattern), regexp.MustCompile(tenantPattern)
	f.Fuzz(func(t *testing.T, s string) {
		checkNames(t, names, tenants, s)
		if lock.ValidName(s) && (strings.ContainsAny(s, "/%?#\\ ") || s == "." || s == "..") {
			t.Errorf("%q is valid and not a path segment as it stands", s)
		}
	})
}

func checkNames(t *testing.T, names, tenants *regexp.Regexp, s string) {
	t.Helper()
	if got, want := lock.ValidName(s), names.MatchString(s); got != want {
		t.Errorf("ValidName(%q) = %t, want %t", s, got, want)
	}
	if got, want := lock.ValidTenant(s), tenants.MatchString(s); got != want {
		t.Errorf("ValidTenant(%q) = %t, want %t", s, got, want)
	}
}
