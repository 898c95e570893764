// Package certificate has what a server shows and trusts on TLS: a certificate with its key,
// and the authorities that may sign those of clients. They come from files that are read
// again and again, so that they can be replaced while the server runs: in place, by another
// file of that name, or by a link that leads elsewhere, as Kubernetes does it with secrets.
//
// What cannot be used stays out, and what was in use before goes on: half-written files, a
// key of another certificate, one that has ended or not begun.
package certificate

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// maxFile bounds a file of certificates, in bytes.
const maxFile = 1 << 20

// Pair is a certificate with its key. It is safe for concurrent use.
type Pair struct {
	certFile, keyFile string
	now               func() time.Time

	mu        sync.RWMutex
	cert, key []byte // what is in use, as it was read
	current   *tls.Certificate
}

// LoadPair reads a certificate, with those that lead from it to an authority behind it, and
// its key, both as PEM. now may be nil.
func LoadPair(certFile, keyFile string, now func() time.Time) (*Pair, error) {
	if now == nil {
		now = time.Now
	}
	p := &Pair{certFile: certFile, keyFile: keyFile, now: now}
	_, err := p.Refresh()
	if err != nil {
		return nil, err
	}
	return p, nil
}

// Refresh reads the files anew, and reports whether another certificate is in use since.
// With an error the one before is.
func (p *Pair) Refresh() (changed bool, err error) {
	cert, certErr := read(p.certFile)
	key, keyErr := read(p.keyFile)
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

func (p *Pair) has(cert, key []byte) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.current != nil && bytes.Equal(cert, p.cert) && bytes.Equal(key, p.key)
}

func (p *Pair) check(c *tls.Certificate) error {
	switch now := p.now(); {
	case now.After(c.Leaf.NotAfter):
		return fmt.Errorf("the certificate ended at %s", c.Leaf.NotAfter.UTC().Format(time.RFC3339))
	case now.Before(c.Leaf.NotBefore):
		return fmt.Errorf("the certificate begins at %s", c.Leaf.NotBefore.UTC().Format(time.RFC3339))
	}
	return nil
}

// Expires is when the certificate in use ends.
func (p *Pair) Expires() time.Time { return p.get().Leaf.NotAfter }

// show is a GetCertificate of crypto/tls.
func (p *Pair) show(*tls.ClientHelloInfo) (*tls.Certificate, error) { return p.get(), nil }

func (p *Pair) get() *tls.Certificate {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.current
}

// read reads a regular file: to open a pipe would block.
func read(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("%s is longer than %d bytes", path, maxFile)
	}
	return text, errors.Join(err, file.Close())
}
