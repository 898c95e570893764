package auth

import (
	"context"
	"crypto/tls"
)

// Certificates identify clients by their TLS certificates: authorities sign them, and a file maps
// them to principals. It is safe for concurrent use.
type Certificates struct {
	authorities *Authorities
	principals  *Principals
	changed     *signal // of either file
}

// NewCertificates returns the certificates of clients. Their files are read by the Refresh of each.
func NewCertificates(a *Authorities, p *Principals) *Certificates {
	c := &Certificates{a, p, new(signal)}
	a.changed, p.changed = c.changed, c.changed
	return c
}

// Identify returns the principal of a connection, until its certificate ends. No principal and
// no error is a client without a certificate. An error is an [*Error].
func (c *Certificates) Identify(state *tls.ConnectionState) (*Principal, error) {
	p, err := c.identify(state)
	if p != nil {
		p.validity = func() context.Context { return c.validity(state, p) }
	}
	return p, err
}

func (c *Certificates) identify(state *tls.ConnectionState) (*Principal, error) {
	if len(state.PeerCertificates) == 0 {
		return nil, nil //nolint:nilnil // as it says
	}
	owner := c.authorities.owner(state)
	if owner == nil {
		return nil, refuse(UnknownCertificate, "the client certificate is not trusted any more")
	}
	return c.principals.Identify(owner)
}

// validity reports whether both files still give the connection what it was given.
func (c *Certificates) validity(state *tls.ConnectionState, was *Principal) context.Context {
	next := c.changed.next()
	if now, err := c.identify(state); err != nil || !now.covers(was) {
		return nil
	}
	return next
}
