package auth

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
)

// Authorities are the certificate authorities that may sign client certificates, from a file of
// PEM that is read again. It is safe for concurrent use.
type Authorities struct {
	keptFile[trust]
}

// trust is the content of the file: the pool for handshakes, and each certificate's bytes.
type trust struct {
	pool  *x509.CertPool
	roots map[string]bool
}

// LoadAuthorities reads the file.
func LoadAuthorities(file string) (*Authorities, error) {
	a := &Authorities{}
	a.file, a.parse = file, parseAuthorities
	_, err := a.Refresh()
	if err != nil {
		return nil, err
	}
	return a, nil
}

// parseAuthorities rejects a file that has an unreadable part: without one of its authorities,
// clients could not connect.
func parseAuthorities(text []byte) (trust, error) {
	t := trust{x509.NewCertPool(), map[string]bool{}}
	for rest := bytes.TrimSpace(text); len(rest) > 0; rest = bytes.TrimSpace(rest) {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return t, errors.New("it has something else than certificates in it, as PEM")
		}
		if err := t.add(block); err != nil {
			return t, err
		}
	}
	if len(t.roots) == 0 {
		return t, errors.New("it has no certificate in it")
	}
	return t, nil
}

func (t trust) add(block *pem.Block) error {
	if block.Type != "CERTIFICATE" {
		return fmt.Errorf("it has a %s in it", block.Type)
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return err
	}
	if c.Version >= 3 && !c.IsCA {
		return fmt.Errorf("the certificate of %q is not that of an authority", c.Subject)
	}
	t.pool.AddCert(c)
	t.roots[string(c.Raw)] = true
	return nil
}

// Pool is the set of authorities for a handshake that begins now.
func (a *Authorities) Pool() *x509.CertPool { return a.inUse().pool }

// owner returns the certificate that a client showed, nil if no chain leads to an authority of
// the file as it is now: a connection may outlive the authority that it began with.
func (a *Authorities) owner(state *tls.ConnectionState) *x509.Certificate {
	roots := a.inUse().roots
	for _, chain := range state.VerifiedChains {
		if roots[string(chain[len(chain)-1].Raw)] {
			return chain[0]
		}
	}
	return nil
}
