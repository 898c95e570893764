package webhook

import (
	"context"
	"net"
	"net/netip"
)

// Closed returns what an address is that may not be connected to.
func (p *Policy) Closed(addr netip.Addr) string { return p.closed(addr) }

// DialAddress returns what is dialled for a URL, and whether TLS is spoken there; ok is
// false if nothing is sent there.
func (p *Policy) DialAddress(raw string) (address string, secure, ok bool) {
	e, fault := p.parse(raw)
	if fault != "" {
		return "", false, false
	}
	return e.address(), e.secure, true
}

// DialWith has the sender make its connections by another function.
func (s *Sender) DialWith(
	dial func(ctx context.Context, network, address string) (net.Conn, error),
) {
	s.dial = dial
}

// Load returns how many tenants have jobs, and how many jobs run.
func (p *Pool) Load() (tenants, running int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.tenants), p.running
}
