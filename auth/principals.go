package auth

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"
)

const maxIdentity = 1024 // bytes

// Principals map client certificates to principals, by a file that is read again. It is safe for
// concurrent use.
//
// The file is JSON: {"principals": [{"uri": "spiffe://example/worker", "tenant": "acme",
// "subject": "worker", "scopes": ["locks:read"], "locks": ["orders:*"]}]}. In place of uri may
// stand dns, both of a subject's alternative names, or dn, its distinguished name in the form
// of RFC 2253.
type Principals struct {
	keptFile[map[identity]*Principal]
	now func() time.Time
}

// identity is what a certificate says of its owner.
type identity struct{ kind, text string }

// principalEntry is one of the file's.
type principalEntry struct {
	URI     string `json:"uri"`
	DNS     string `json:"dns"`
	DN      string `json:"dn"`
	Subject string `json:"subject"`
	rights
}

// LoadPrincipals reads the file. now may be nil.
func LoadPrincipals(file string, now func() time.Time) (*Principals, error) {
	if now == nil {
		now = time.Now
	}
	p := &Principals{now: now}
	p.file, p.parse = file, parsePrincipals
	_, err := p.Refresh()
	if err != nil {
		return nil, err
	}
	return p, nil
}

func parsePrincipals(text []byte) (map[identity]*Principal, error) {
	known := map[identity]*Principal{}
	err := principalsOf(text, func(raw json.RawMessage) error {
		who, p, err := parsePrincipal(raw)
		if err == nil && known[who] != nil {
			err = fmt.Errorf("%s %q is there twice", who.kind, who.text)
		}
		known[who] = p
		return err
	})
	return known, err
}

func parsePrincipal(raw json.RawMessage) (identity, *Principal, error) {
	var e principalEntry
	err := strictly(raw, &e, "uri", "dns", "dn", "tenant", "subject", "scopes", "locks")
	if err != nil {
		return identity{}, nil, err
	}
	who, unnamed := e.identity()
	p, err := e.principal()
	return who, p, errors.Join(unnamed, err)
}

func (e *principalEntry) identity() (identity, error) {
	var all []identity
	for _, one := range []identity{{"uri", e.URI}, {"dns", e.DNS}, {"dn", e.DN}} {
		if one.text != "" {
			all = append(all, one)
		}
	}
	if len(all) != 1 || len(all[0].text) > maxIdentity {
		return identity{}, fmt.Errorf("it needs one of uri, dns and dn, of at most %d bytes", maxIdentity)
	}
	return all[0], nil
}

func (e *principalEntry) principal() (*Principal, error) {
	p, err := e.rights.principal()
	p.Subject = e.Subject
	return p, errors.Join(detailOf(checkSubject("subject", e.Subject)), err)
}

// Identify returns the principal of a verified certificate, until it ends. An error is an
// [*Error].
func (p *Principals) Identify(c *x509.Certificate) (*Principal, error) {
	now := p.now()
	if now.After(c.NotAfter) || now.Before(c.NotBefore) {
		return nil, refuse(Expired, "the client certificate is not valid now")
	}
	var found *Principal
	for _, who := range identitiesOf(c) {
		one := p.find(who)
		if one != nil && found != nil {
			return nil, refuse(UnknownCertificate, "the client certificate matches more than one principal")
		}
		if one != nil {
			found = one
		}
	}
	if found == nil {
		return nil, refuse(
			UnknownCertificate, "no principal of this server matches the client certificate",
		)
	}
	who := *found
	who.Expires = c.NotAfter
	who.lasts(c.NotAfter.Sub(now))
	return &who, nil
}

func (p *Principals) find(who identity) *Principal { return p.inUse()[who] }

// identitiesOf lists what a certificate says of its owner, each once.
func identitiesOf(c *x509.Certificate) []identity {
	var all []identity
	add := func(kind, text string) {
		if who := (identity{kind, text}); text != "" && !slices.Contains(all, who) {
			all = append(all, who)
		}
	}
	for _, uri := range urisOf(c) {
		add("uri", uri)
	}
	for _, name := range c.DNSNames {
		add("dns", name)
	}
	add("dn", subjectOf(c))
	return all
}

// subjectOf returns the subject as it stands in the certificate, by RFC 2253; "" if a value is not
// text. Package pkix would leave out one of two common names, and change the order.
func subjectOf(c *x509.Certificate) string {
	var names pkix.RDNSequence
	if rest, err := asn1.Unmarshal(c.RawSubject, &names); err != nil || len(rest) > 0 {
		return ""
	}
	for _, together := range names {
		for _, one := range together {
			if text, isText := one.Value.(string); !isText || !utf8.ValidString(text) {
				return ""
			}
		}
	}
	return names.String()
}

// urisOf returns the URIs as they stand in the certificate: as a [url.URL], two may be written
// alike.
func urisOf(c *x509.Certificate) (all []string) {
	const tagURI = 6 // of a GeneralName, RFC 5280 section 4.2.1.6
	for _, e := range c.Extensions {
		var names []asn1.RawValue
		if !e.Id.Equal(asn1.ObjectIdentifier{2, 5, 29, 17}) {
			continue
		}
		if rest, err := asn1.Unmarshal(e.Value, &names); err != nil || len(rest) > 0 {
			continue
		}
		for _, n := range names {
			if n.Class == asn1.ClassContextSpecific && n.Tag == tagURI {
				all = append(all, string(n.Bytes))
			}
		}
	}
	return all
}
