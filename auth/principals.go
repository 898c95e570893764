package auth

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

const (
	maxPrincipalsFile = 1 << 20 // bytes
	maxPrincipals     = 10_000
	maxIdentity       = 1024 // bytes
)

// Principals say for whom client certificates stand, from a file that is read again. It is
// safe for concurrent use.
//
// The file is JSON: {"principals": [{"uri": "spiffe://example/worker", "tenant": "acme",
// "subject": "worker", "scopes": ["locks:read"], "locks": ["orders:*"]}]}. In place of uri may
// stand dns, both of a subject's alternative names, or dn, its distinguished name in the form
// of RFC 2253.
type Principals struct {
	file string
	now  func() time.Time

	mu    sync.RWMutex
	text  []byte // what is in use, as it was read
	known map[identity]*Principal
}

// identity is what a certificate says of its owner.
type identity struct{ kind, text string }

// principalEntry is one of the file's.
type principalEntry struct {
	URI     string    `json:"uri"`
	DNS     string    `json:"dns"`
	DN      string    `json:"dn"`
	Tenant  string    `json:"tenant"`
	Subject string    `json:"subject"`
	Scopes  []Scope   `json:"scopes"`
	Locks   *[]string `json:"locks"`
}

// LoadPrincipals reads the file. now may be nil.
func LoadPrincipals(file string, now func() time.Time) (*Principals, error) {
	if now == nil {
		now = time.Now
	}
	p := &Principals{file: file, now: now}
	if _, err := p.Refresh(); err != nil {
		return nil, err
	}
	return p, nil
}

// Refresh reads the file anew, and reports whether what it says has changed. With an error
// what it said before counts.
func (p *Principals) Refresh() (changed bool, err error) {
	text, err := fileSource(p.file).read(context.Background())
	if err != nil {
		return false, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known != nil && bytes.Equal(text, p.text) {
		return false, nil
	}
	known, err := parsePrincipals(text)
	if err != nil {
		return false, fmt.Errorf("%s: %w", p.file, err)
	}
	p.text, p.known = text, known
	return true, nil
}

func parsePrincipals(text []byte) (map[identity]*Principal, error) {
	var file struct {
		Principals []json.RawMessage `json:"principals"`
	}
	if err := strictly(text, &file, "principals"); err != nil {
		return nil, err
	}
	switch {
	case file.Principals == nil:
		return nil, errors.New("it has no list of principals")
	case len(file.Principals) > maxPrincipals:
		return nil, fmt.Errorf("it has more than %d principals", maxPrincipals)
	}
	known := make(map[identity]*Principal, len(file.Principals))
	for i, raw := range file.Principals {
		who, p, err := parsePrincipal(raw)
		if err == nil && known[who] != nil {
			err = fmt.Errorf("%s %q is there twice", who.kind, who.text)
		}
		if err != nil {
			return nil, fmt.Errorf("principal %d: %w", i+1, err)
		}
		known[who] = p
	}
	return known, nil
}

func parsePrincipal(raw json.RawMessage) (identity, *Principal, error) {
	var e principalEntry
	if err := strictly(raw, &e, "uri", "dns", "dn", "tenant", "subject", "scopes", "locks"); err != nil {
		return identity{}, nil, err
	}
	who, err := e.identity()
	if err != nil {
		return who, nil, err
	}
	p, err := e.principal()
	return who, p, err
}

// strictly reads an object with these members and no others, none of them twice or null.
func strictly(text []byte, v any, names ...string) error {
	if !json.Valid(text) {
		return errors.New("it is not valid JSON")
	}
	var members claims
	if err := members.UnmarshalJSON(text); err != nil {
		return err
	}
	for name, raw := range members {
		if !slices.Contains(names, name) {
			return fmt.Errorf("%q is not known here", name)
		}
		if string(raw) == "null" {
			return fmt.Errorf("%s is null", name)
		}
	}
	return json.Unmarshal(text, v)
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

// principal holds what the entry says to the rules of tokens. A scope that is not known is
// refused: it would be a mistyped one.
func (e *principalEntry) principal() (*Principal, error) {
	if err := errors.Join(detailOf(checkTenant(e.Tenant)), detailOf(checkSubject(e.Subject))); err != nil {
		return nil, err
	}
	p := &Principal{Tenant: e.Tenant, Subject: e.Subject, Scopes: slices.Compact(slices.Sorted(slices.Values(e.Scopes)))}
	for _, s := range p.Scopes {
		if !known(s) {
			return nil, fmt.Errorf("scope %q is not known", s)
		}
	}
	if e.Locks == nil {
		return p, nil
	}
	if len(*e.Locks) > maxPatterns {
		return nil, fmt.Errorf("locks has more than %d patterns", maxPatterns)
	}
	p.Locks = []Pattern{}
	for _, text := range *e.Locks {
		pattern, err := ParsePattern(text)
		if err != nil {
			return nil, fmt.Errorf("locks: %w", err)
		}
		p.Locks = append(p.Locks, pattern)
	}
	return p, nil
}

// detailOf is what a refusal says, without that it is of a bearer token.
func detailOf(err error) error {
	var refused *Error
	if errors.As(err, &refused) {
		return errors.New(refused.Detail)
	}
	return err
}

// Identify returns for whom a certificate stands that was verified, until it ends. An error
// is an [*Error].
func (p *Principals) Identify(c *x509.Certificate) (*Principal, error) {
	now := p.now()
	if now.After(c.NotAfter) || now.Before(c.NotBefore) {
		return nil, refuse(Expired, "the client certificate is not valid now")
	}
	var found *Principal
	for _, who := range identitiesOf(c) {
		one := p.find(who)
		if one != nil && found != nil {
			return nil, refuse(UnknownCertificate, "the client certificate stands for more than one principal")
		}
		if one != nil {
			found = one
		}
	}
	if found == nil {
		return nil, refuse(UnknownCertificate, "the client certificate stands for nobody here")
	}
	who := *found
	who.Expires = c.NotAfter
	return &who, nil
}

func (p *Principals) find(who identity) *Principal {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.known[who]
}

// identitiesOf lists what a certificate says of its owner, each once.
func identitiesOf(c *x509.Certificate) []identity {
	var all []identity
	add := func(kind, text string) {
		if who := (identity{kind, text}); text != "" && !slices.Contains(all, who) {
			all = append(all, who)
		}
	}
	for _, u := range c.URIs {
		add("uri", u.String())
	}
	for _, name := range c.DNSNames {
		add("dns", name)
	}
	add("dn", c.Subject.String())
	return all
}
