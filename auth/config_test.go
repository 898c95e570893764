package auth_test

import (
	"context"
	"crypto/elliptic"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/auth"
)

// TestNewRefuses: a server that cannot tell good tokens from bad must not
// start, and must say which flag is at fault without quoting a secret.
func TestNewRefuses(t *testing.T) {
	dir := t.TempDir()

	for name, c := range map[string]struct {
		config auth.Config
		want   []string
	}{
		"NoKeys": {auth.Config{}, []string{"--jwt-secret-file", "--jwks"}},
		"ShortSecret": {
			auth.Config{Secret: []byte("marker-marker-marker-marker-mar")},
			[]string{"--jwt-secret-file", "31 bytes", "at least 32"},
		},
		"LeewayLong": {
			auth.Config{Secret: secret, Leeway: 61 * time.Second}, []string{"--jwt-leeway"},
		},
		"LeewayNegative": {auth.Config{Secret: secret, Leeway: -1}, []string{"--jwt-leeway"}},
		"RefreshBad":     {auth.Config{Secret: secret, Refresh: -1}, []string{"--jwks-refresh"}},
		"FileMissing": {
			auth.Config{JWKS: filepath.Join(dir, "none")}, []string{"--jwks", "none", "no such file"},
		},
		"Directory": {auth.Config{JWKS: dir}, []string{"--jwks", "not a regular file"}},
		"FileEmpty": {auth.Config{JWKS: write(t, nil)}, []string{"--jwks", "not a JWK Set"}},
		"FileNoSet": {
			auth.Config{JWKS: write(t, []byte(`{"kty":"RSA"}`))}, []string{"--jwks", "not a JWK Set"},
		},
		"FileTooLong": {
			auth.Config{JWKS: write(t, make([]byte, 2<<20))}, []string{"--jwks", "longer than"},
		},
		"NoKeyInSet": {
			auth.Config{JWKS: write(t, []byte(`{"keys":[]}`))}, []string{"--jwks", "no usable key"},
		},
		"OnlySymmetric": {
			auth.Config{JWKS: write(t, []byte(`{"keys":[{"kty":"oct","k":"marker"}]}`))},
			[]string{"--jwks", "no usable key", "symmetric"},
		},
		"KidTooLong": {
			auth.Config{JWKS: write(t, keySet(ec(strings.Repeat("k", 257))))},
			[]string{"--jwks", "no usable key", "kid is longer"},
		},
		"OtherCurve": {
			auth.Config{JWKS: write(t, keySet(signer{"", "k", newEC(elliptic.P384())}))},
			[]string{"--jwks", "no usable key", "curve other than P-256"},
		},
		"PlainHTTP": {
			auth.Config{JWKS: "http://issuer.example/keys"}, []string{"--jwks", "must be an https URL"},
		},
		"LocalhostHTTP": {
			auth.Config{JWKS: "http://127.0.0.1.example/keys"}, []string{"--jwks", "must be an https URL"},
		},
		"OtherScheme": {
			auth.Config{JWKS: "file:///etc/passwd"}, []string{"--jwks", "must be an https URL"},
		},
		"NoHost": {auth.Config{JWKS: "https:///keys"}, []string{"--jwks", "must be an https URL"}},
		"Credentials": {
			auth.Config{JWKS: "https://marker:marker@issuer.example"}, []string{"--jwks", "credentials"},
		},
		"NotAURL": {auth.Config{JWKS: "https://marker:port/%"}, []string{"--jwks", "not a URL"}},
	} {
		t.Run(name, func(t *testing.T) {
			v, err := auth.New(t.Context(), c.config)
			if err == nil {
				v.Close()
				t.Fatal("New() = nil, want an error")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("New() = %q, want it to say %q", err, want)
				}
			}
			if strings.Contains(err.Error(), "marker") {
				t.Errorf("New() = %q quotes a secret", err)
			}
		})
	}
}

// TestSecretIsCopied: the caller may wipe its copy.
func TestSecretIsCopied(t *testing.T) {
	own := append([]byte{}, secret...)
	v := newVerifier(t, auth.Config{Secret: own, Now: newClock().Now})
	clear(own)
	accept(t, v, hs().token(nil))
}

func TestRedirects(t *testing.T) {
	request := func(url string) *http.Request {
		return must(http.NewRequest(http.MethodGet, url, nil))
	}
	from := []*http.Request{request("https://issuer.example/keys")}
	if err := auth.CheckRedirect(request("https://other.example/keys"), from); err != nil {
		t.Errorf("https to https: %v, want nil", err)
	}
	for _, to := range []string{
		"http://issuer.example/keys", "http://127.0.0.1/keys", "file:///etc/passwd",
		"https://a:b@issuer.example/",
	} {
		if auth.CheckRedirect(request(to), from) == nil {
			t.Errorf("https to %s is allowed", to)
		}
	}
}

// TestNewWithinContext: a start that is given up does not go on.
func TestNewWithinContext(t *testing.T) {
	server := newIssuer(t, publicSet())
	server.answer(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if v, err := auth.New(ctx, auth.Config{JWKS: server.URL}); err == nil ||
		!strings.Contains(err.Error(), "--jwks") {
		v.Close()
		t.Errorf("New() = %v, want an error that names --jwks", err)
	}
}

// TestDirectoryOfAConfigMap: the path is a link that is replaced as a whole.
func TestDirectoryOfAConfigMap(t *testing.T) {
	dir, before, after := t.TempDir(), ec("before"), ec("after")
	link := filepath.Join(dir, "jwks.json")
	point := func(set []byte) {
		if err := os.Symlink(write(t, set), link+".new"); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(link+".new", link); err != nil {
			t.Fatal(err)
		}
	}
	point(keySet(before))
	v := newVerifier(t, auth.Config{JWKS: link, Refresh: never, Now: newClock().Now})
	accept(t, v, before.token(nil))
	point(keySet(after))
	accept(t, v, after.token(nil))
	reject(t, v, before.token(nil), auth.UnknownKey)
}
