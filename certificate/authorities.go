package certificate

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"sync"
)

// Authorities are those who may sign the certificates of clients. It is safe for concurrent
// use.
type Authorities struct {
	file string

	mu      sync.RWMutex
	text    []byte // what is in use, as it was read
	trusted map[string]bool
	pool    *x509.CertPool
}

// LoadAuthorities reads certificates of authorities, as PEM.
func LoadAuthorities(file string) (*Authorities, error) {
	a := &Authorities{file: file}
	if _, err := a.Refresh(); err != nil {
		return nil, err
	}
	return a, nil
}

// Refresh reads the file anew, and reports whether other authorities are in use since. With
// an error those before are.
func (a *Authorities) Refresh() (changed bool, err error) {
	text, err := read(a.file)
	if err != nil {
		return false, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.pool != nil && bytes.Equal(text, a.text) {
		return false, nil
	}
	pool, trusted, err := parseAuthorities(text)
	if err != nil {
		return false, fmt.Errorf("%s: %w", a.file, err)
	}
	a.text, a.pool, a.trusted = text, pool, trusted
	return true, nil
}

// parseAuthorities refuses a file of which any part cannot be read: to leave out one of its
// authorities would shut clients out.
func parseAuthorities(text []byte) (*x509.CertPool, map[string]bool, error) {
	pool, trusted := x509.NewCertPool(), map[string]bool{}
	for rest := bytes.TrimSpace(text); len(rest) > 0; rest = bytes.TrimSpace(rest) {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return nil, nil, errors.New("it has something else than certificates in it, as PEM")
		}
		if block.Type != "CERTIFICATE" {
			return nil, nil, fmt.Errorf("it has a %s in it", block.Type)
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, nil, err
		}
		if c.Version >= 3 && !c.IsCA {
			return nil, nil, fmt.Errorf("the certificate of %q is not that of an authority", c.Subject)
		}
		pool.AddCert(c)
		trusted[string(c.Raw)] = true
	}
	if len(trusted) == 0 {
		return nil, nil, errors.New("it has no certificate in it")
	}
	return pool, trusted, nil
}

func (a *Authorities) get() *x509.CertPool {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.pool
}

// Owner returns the certificate that a client showed, nil if none that leads to one of the
// authorities as they are now: a connection may outlive the trust that it began with.
func (a *Authorities) Owner(state *tls.ConnectionState) *x509.Certificate {
	a.mu.RLock()
	defer a.mu.RUnlock()
	for _, chain := range state.VerifiedChains {
		if a.trusted[string(chain[len(chain)-1].Raw)] {
			return chain[0]
		}
	}
	return nil
}
