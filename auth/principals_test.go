package auth_test

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/auth"
)

const worker = `{"uri":"spiffe://example/worker","tenant":"acme","subject":"worker-1","scopes":["locks:write","locks:read"],"locks":["orders:*"]}`

func principalsOf(t *testing.T, text string) (*auth.Principals, string, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "principals.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := auth.LoadPrincipals(path, nil)
	return p, path, err
}

func certificateOf(change func(*x509.Certificate)) *x509.Certificate {
	c := &x509.Certificate{NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	change(c)
	return c
}

func withURI(text string) func(*x509.Certificate) {
	u, err := url.Parse(text)
	if err != nil {
		panic(err)
	}
	names := []asn1.RawValue{{Class: asn1.ClassContextSpecific, Tag: 6, Bytes: []byte(text)}}
	alternative := pkix.Extension{
		Id: asn1.ObjectIdentifier{2, 5, 29, 17}, Value: must(asn1.Marshal(names)),
	}
	return func(c *x509.Certificate) { // as crypto/x509 reads it, and as it makes one of it
		c.URIs, c.Extensions = append(c.URIs, u), append(c.Extensions, alternative)
	}
}

// TestIdentify: a certificate maps to the principal of the file, by any of its three names.
func TestIdentify(t *testing.T) {
	t.Parallel()
	p, path, err := principalsOf(t, `{"principals":[`+worker+`,
		{"dns":"worker.example","tenant":"acme","subject":"worker-2","scopes":["locks:read"],"locks":[]},
		{"dn":"CN=ops,O=Example","tenant":"ops","subject":"ann","scopes":["admin"]}]}`)
	if err != nil {
		t.Fatal(err)
	}
	c := certificateOf(withURI("spiffe://example/worker"))
	who, err := p.Identify(c)
	if err != nil || who.Tenant != "acme" || who.Subject != "worker-1" || !who.Allows(
		auth.LocksWrite,
	) || !who.Expires.Equal(c.NotAfter) || !who.MayUse("orders:1") || who.MayUse("jobs:1") {
		t.Errorf("by its URI: %+v, %v", who, err)
	}
	who, err = p.Identify(certificateOf(
		func(c *x509.Certificate) { c.DNSNames = []string{"worker.example", "worker.example"} },
	))
	if err != nil || who.Subject != "worker-2" || who.Allows(auth.LocksWrite) ||
		who.MayUse("orders:1") {
		t.Errorf("by its name: %+v, %v", who, err)
	}
	who, err = p.Identify(certificateOf(withSubject(t, name("O", "Example"), name("CN", "ops"))))
	if err != nil || who.Tenant != "ops" || !who.Allows(auth.Admin) || !who.MayUse("orders:1") {
		t.Errorf("by its subject: %+v, %v", who, err)
	}
	for name, bad := range map[string]struct {
		change func(*x509.Certificate)
		reason auth.Reason
	}{
		"Unknown": {withURI("spiffe://example/other"), auth.UnknownCertificate},
		"Prefix":  {withURI("spiffe://example/worker/x"), auth.UnknownCertificate},
		"Scheme":  {withURI("SPIFFE://example/worker"), auth.UnknownCertificate},
		"Hash":    {withURI("spiffe://example/worker#"), auth.UnknownCertificate},
		"CN":      {withSubject(t, name("CN", "worker.example")), auth.UnknownCertificate},
		"Two": {func(c *x509.Certificate) {
			withURI("spiffe://example/worker")(c)
			c.DNSNames = []string{"worker.example"}
		}, auth.UnknownCertificate},
		"Ended": {func(c *x509.Certificate) {
			withURI("spiffe://example/worker")(c)
			c.NotAfter = time.Now().Add(-time.Second)
		}, auth.Expired},
	} {
		if who, err := p.Identify(certificateOf(bad.change)); !errors.Is(err, bad.reason) {
			t.Errorf("%s: %+v, %v", name, who, err)
		}
	}
	if err := os.WriteFile(path, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if changed, err := p.Refresh(); changed || err == nil {
		t.Errorf("nonsense: %t, %v", changed, err)
	}
	if _, err := p.Identify(c); err != nil {
		t.Errorf("with nonsense in the file: %v", err)
	}
	if err := os.WriteFile(path, []byte(`{"principals":[]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if changed, err := p.Refresh(); !changed || err != nil {
		t.Errorf("none: %t, %v", changed, err)
	}
	if _, err := p.Identify(c); !errors.Is(err, auth.UnknownCertificate) {
		t.Errorf("without its line: %v", err)
	}
}

// TestBadPrincipals: a file that says something else than it seems to is refused as a whole.
func TestBadPrincipals(t *testing.T) {
	t.Parallel()
	with := func(from, to string) string {
		return `{"principals":[` + strings.Replace(worker, from, to, 1) + `]}`
	}
	for text, says := range map[string]string{
		"":                    "JSON",
		"{}":                  "no list",
		`{"principals":null}`: "null",
		`{"principals":[]} x`: "JSON",
		`{"Principals":[]}`:   "not known",
		`{"principals":[` + worker + `,` + worker + `]}`:        "twice",
		with(`"uri"`, `"URI"`):                                  "not known",
		with(`"uri":"spiffe://example/worker",`, ``):            "one of uri",
		with(`"uri"`, `"dns":"a","uri"`):                        "one of uri",
		with(`"tenant":"acme"`, `"tenant":"acme","tenant":"b"`): "repeated",
		with(`"acme"`, `"Acme"`):                                "tenant",
		with(`"tenant":"acme",`, ``):                            "tenant is missing",
		with(`"worker-1"`, `""`):                                "principal 1: subject is missing",
		with(`"locks:write"`, `"locks:wriet"`):                  "not known",
		with(`["orders:*"]`, `null`):                            "null",
		with(`["orders:*"]`, `[""]`):                            "empty",
		with(`["orders:*"]`, `"orders:*"`):                      "locks",
		with(`"subject"`, `"sub"`):                              "not known",

		`{"principals":[{"uri":"a","tenant":"A","scopes":["lock:read","b"],"locks":[""]},` + worker +
			`,{"tenant":"acme","subject":"s"}]}`: "principal 1: subject is missing, tenant is not 1 to 63 lower-case letters, digits and hyphens, with no hyphen first, " +
			`scope "b" is not known, scope "lock:read" is not known, locks: a pattern is empty; principal 3: it needs one of uri, dns and dn`,
		`{"principals":[{}` + strings.Repeat(",{}", 20) + `]}`: "; and there are more",
	} {
		if _, _, err := principalsOf(t, text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", text, err, says)
		}
	}
}

// rdn is a relative distinguished name of one attribute.
type rdn = pkix.RelativeDistinguishedNameSET

func name(kind string, value any) rdn {
	oid := map[string]asn1.ObjectIdentifier{
		"CN": {2, 5, 4, 3}, "O": {2, 5, 4, 10}, "OU": {2, 5, 4, 11},
	}
	return rdn{{Type: oid[kind], Value: value}}
}

// withSubject gives the certificate a subject as crypto/x509 reads it from a real one.
func withSubject(t *testing.T, names ...rdn) func(*x509.Certificate) {
	t.Helper()
	sequence := pkix.RDNSequence(names)
	raw, err := asn1.Marshal(sequence)
	if err != nil {
		t.Fatal(err)
	}
	return func(c *x509.Certificate) {
		c.RawSubject = raw
		c.Subject.FillFromRDNSequence(&sequence)
	}
}

// TestSubjectIsComparedAsItStands: no two subjects count as one. Package pkix keeps one of two
// common names, sorts attributes by kind, and splits those that stand together.
func TestSubjectIsComparedAsItStands(t *testing.T) {
	t.Parallel()
	p, _, err := principalsOf(t, `{"principals":[{"dn":"CN=admin,O=Example","tenant":"ops","subject":"ann","scopes":["admin"]},
		{"dn":"CN=admin,CN=mallory","tenant":"acme","subject":"both","scopes":["locks:read"]}]}`)
	if err != nil {
		t.Fatal(err)
	}
	for about, c := range map[string]struct {
		names []rdn
		want  string
	}{
		"Same":       {[]rdn{name("O", "Example"), name("CN", "admin")}, "ann"},
		"TwoNames":   {[]rdn{name("CN", "mallory"), name("CN", "admin")}, "both"},
		"TwoWithO":   {[]rdn{name("CN", "mallory"), name("O", "Example"), name("CN", "admin")}, ""},
		"OtherOrder": {[]rdn{name("CN", "admin"), name("O", "Example")}, ""},
		"Together":   {[]rdn{append(name("O", "Example"), name("CN", "admin")...)}, ""},
		"InOneValue": {[]rdn{name("CN", "admin,O=Example")}, ""},
		"NoText": {
			[]rdn{
				name("O", "Example"),
				name("CN", asn1.RawValue{Tag: asn1.TagOctetString, Bytes: []byte("admin")}),
			},
			"",
		},
		"SpaceAtStart": {[]rdn{name("O", "Example"), name("CN", " admin")}, ""},
	} {
		who, err := p.Identify(certificateOf(withSubject(t, c.names...)))
		if c.want == "" && !errors.Is(err, auth.UnknownCertificate) ||
			c.want != "" && (err != nil || who.Subject != c.want) {
			t.Errorf("%s: %+v, %v, want %q", about, who, err, c.want)
		}
	}
}
