package main

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/auth/certtest"
)

// shown is the serial number of what a client would see.
func shownBy(t *testing.T, p *keyPair) string {
	t.Helper()
	c, err := p.show(&tls.ClientHelloInfo{})
	if err != nil {
		t.Fatal(err)
	}
	return c.Leaf.SerialNumber.String()
}

func ends(at time.Time) func(*x509.Certificate) {
	return func(c *x509.Certificate) { c.NotAfter = at }
}

// TestBadPairStaysOut: whatever the files have that is of no use, what was in use before
// goes on; and with what is good, that.
func TestBadPairStaysOut(t *testing.T) {
	t.Parallel()
	a, dir := certtest.NewAuthority(t, "a"), t.TempDir()
	cert, key := a.Issue(t, nil)
	certFile, keyFile := certtest.Write(t, dir, cert, key)
	p, err := loadKeyPair(certFile, keyFile, nil)
	if err != nil {
		t.Fatal(err)
	}
	was := shownBy(t, p)
	other, otherKey := a.Issue(t, nil)
	over, overKey := a.Issue(t, ends(time.Now().Add(-time.Second)))
	early, earlyKey := a.Issue(
		t, func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Minute) },
	)
	for name, bad := range map[string]struct{ cert, key, says string }{
		"Nonsense":   {"nonsense", string(key), "PEM"},
		"Empty":      {"", "", "PEM"},
		"Half":       {string(other[:len(other)/2]), string(otherKey), "PEM"},
		"KeyOfOther": {string(other), string(key), "does not match"},
		"OldCert":    {string(cert), string(otherKey), "does not match"},
		"Ended":      {string(over), string(overKey), "ended at"},
		"NotBegun":   {string(early), string(earlyKey), "begins at"},
		"TooLong":    {string(other) + strings.Repeat("\n", 1<<20), string(otherKey), "longer than"},
	} {
		certtest.Write(t, dir, []byte(bad.cert), []byte(bad.key))
		if changed, err := p.refresh(); err == nil || changed ||
			!strings.Contains(err.Error(), bad.says) {
			t.Errorf("%s: %t, %v, want %q", name, changed, err, bad.says)
		}
		if now := shownBy(t, p); now != was {
			t.Errorf("%s: it shows another one", name)
		}
	}
	if err := os.Remove(keyFile); err != nil {
		t.Fatal(err)
	}
	if _, err := p.refresh(); err == nil {
		t.Error("a key that is gone is no error")
	}
	certtest.Write(t, dir, other, otherKey)
	if changed, err := p.refresh(); err != nil || !changed || shownBy(t, p) == was {
		t.Errorf("a good one: %t, %v", changed, err)
	}
	if changed, err := p.refresh(); err != nil || changed {
		t.Errorf("the same again: %t, %v", changed, err)
	}
	if _, err := loadKeyPair(dir, keyFile, nil); err == nil ||
		!strings.Contains(err.Error(), "regular file") {
		t.Errorf("a folder: %v", err)
	}
}

// TestNotBegunYet: a certificate that begins later comes into use when it has begun.
func TestNotBegunYet(t *testing.T) {
	t.Parallel()
	a, dir, now := certtest.NewAuthority(t, "a"), t.TempDir(), time.Now()
	cert, key := a.Issue(t, nil)
	certFile, keyFile := certtest.Write(t, dir, cert, key)
	p, err := loadKeyPair(certFile, keyFile, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	certtest.Write(t, dir, cert, key)
	next, nextKey := a.Issue(t, func(c *x509.Certificate) { c.NotBefore = now.Add(time.Minute) })
	certtest.Write(t, dir, next, nextKey)
	if changed, err := p.refresh(); err == nil || changed {
		t.Errorf("before its time: %t, %v", changed, err)
	}
	now = now.Add(time.Minute)
	if changed, err := p.refresh(); err != nil || !changed {
		t.Errorf("in its time: %t, %v", changed, err)
	}
}

// TestLinkIsSwapped: Kubernetes has a folder's files replaced by having one link lead to
// another folder.
func TestLinkIsSwapped(t *testing.T) {
	t.Parallel()
	a, dir := certtest.NewAuthority(t, "a"), t.TempDir()
	version := func(name string) {
		t.Helper()
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		cert, key := a.Issue(t, nil)
		certtest.Write(t, filepath.Join(dir, name), cert, key)
		if err := os.Symlink(name, filepath.Join(dir, "..data_tmp")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	version("..1")
	for _, name := range []string{"tls.crt", "tls.key"} {
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	p, err := loadKeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), nil)
	if err != nil {
		t.Fatal(err)
	}
	was := shownBy(t, p)
	version("..2")
	if err := os.RemoveAll(filepath.Join(dir, "..1")); err != nil {
		t.Fatal(err)
	}
	if changed, err := p.refresh(); err != nil || !changed || shownBy(t, p) == was {
		t.Errorf("%t, %v", changed, err)
	}
}
