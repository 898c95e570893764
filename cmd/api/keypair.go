package main

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"fmt"
	"sync"
	"time"
)

// maxPEM bounds a file of certificates, in bytes.
const maxPEM = 1 << 20

// keyPair is the certificate that the server shows, with its key, from files that are read again:
// files that were replaced in place, by a rename, or by the links of a mounted Kubernetes Secret.
// Files that cannot be used change nothing. It is safe for concurrent use.
type keyPair struct {
	certFile, keyFile string
	now               func() time.Time

	mu        sync.RWMutex
	cert, key []byte // what is in use, as it was read
	current   *tls.Certificate
}

// loadKeyPair reads a certificate, the certificates that lead from it to an authority, and its
// key, as PEM. now may be nil.
func loadKeyPair(certFile, keyFile string, now func() time.Time) (*keyPair, error) {
	if now == nil {
		now = time.Now
	}
	p := &keyPair{certFile: certFile, keyFile: keyFile, now: now}
	_, err := p.refresh()
	if err != nil {
		return nil, err
	}
	return p, nil
}

// refresh reads the files again, and reports whether another certificate is in use since.
// With an error the one before is.
func (p *keyPair) refresh() (changed bool, err error) {
	cert, certErr := readPEM(p.certFile)
	key, keyErr := readPEM(p.keyFile)
	if certErr != nil && keyErr != nil {
		return false, fmt.Errorf("%w; %w", certErr, keyErr)
	}
	if err := cmp.Or(certErr, keyErr); err != nil {
		return false, err
	}
	if p.has(cert, key) {
		return false, nil
	}
	next, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return false, fmt.Errorf("%s with %s: %w", p.certFile, p.keyFile, err)
	}
	if err := p.check(&next); err != nil {
		return false, fmt.Errorf("%s: %w", p.certFile, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cert, p.key, p.current = cert, key, &next
	return true, nil
}

func (p *keyPair) has(cert, key []byte) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.current != nil && bytes.Equal(cert, p.cert) && bytes.Equal(key, p.key)
}

func (p *keyPair) check(c *tls.Certificate) error {
	switch now := p.now(); {
	case now.After(c.Leaf.NotAfter):
		return fmt.Errorf("the certificate ended at %s", c.Leaf.NotAfter.UTC().Format(time.RFC3339))
	case now.Before(c.Leaf.NotBefore):
		return fmt.Errorf("the certificate begins at %s", c.Leaf.NotBefore.UTC().Format(time.RFC3339))
	}
	return nil
}

// expires is when the certificate in use ends.
func (p *keyPair) expires() time.Time { return p.get().Leaf.NotAfter }

// show is a GetCertificate of crypto/tls.
func (p *keyPair) show(*tls.ClientHelloInfo) (*tls.Certificate, error) { return p.get(), nil }

func (p *keyPair) get() *tls.Certificate {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.current
}

func readPEM(path string) ([]byte, error) { return readAtMost(path, maxPEM) }
