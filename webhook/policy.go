package webhook

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Settings is what an operator says of where receivers may be, as the flags have it.
// The zero Settings are the default: public addresses, https, port 443.
type Settings struct {
	// Allow is address ranges that are open besides the public ones, with a comma
	// between them: 10.0.0.0/8,fd12::/16. A single address needs no length. Link-local
	// addresses and metadata services of clouds stay closed in a range; the address itself
	// opens one.
	Allow string

	// AllowHTTP opens http, and port 80 if Ports says nothing.
	AllowHTTP bool

	// Ports is the ports that are open, with a comma between them, or * for any.
	Ports string
}

// Policy decides where requests may go. It is asked of a URL when that is given, and of
// the address when a connection to it is made: what a name resolves to in between does
// not matter. It does not change and may be used by several goroutines.
type Policy struct {
	allow     []netip.Prefix
	allowHTTP bool
	ports     []uint16 // none: any
	special   []specialRange
}

// NewPolicy returns an error that names what of the settings cannot be read.
func NewPolicy(s Settings) (*Policy, error) {
	allow, err := parseAllow(s.Allow)
	if err != nil {
		return nil, err
	}
	ports, err := parsePorts(s.Ports, s.AllowHTTP)
	if err != nil {
		return nil, err
	}
	return &Policy{allow: allow, allowHTTP: s.AllowHTTP, ports: ports, special: specialRanges()}, nil
}

func parseAllow(text string) ([]netip.Prefix, error) {
	var all []netip.Prefix
	for part := range fields(text) {
		prefix, err := netip.ParsePrefix(part)
		if err != nil {
			addr, err := netip.ParseAddr(part)
			if err != nil || addr.Zone() != "" {
				return nil, fmt.Errorf("%q is not an address range such as 10.0.0.0/8", part)
			}
			prefix = netip.PrefixFrom(addr, addr.BitLen())
		}
		switch {
		case prefix.Addr().Is4In6():
			return nil, fmt.Errorf("%q is IPv4 in IPv6's form: write it as IPv4", part)
		case prefix != prefix.Masked():
			return nil, fmt.Errorf("%q has bits behind its length: is %s meant?", part, prefix.Masked())
		}
		all = append(all, prefix)
	}
	return all, nil
}

func parsePorts(text string, allowHTTP bool) ([]uint16, error) {
	if strings.TrimSpace(text) == "*" {
		return nil, nil
	}
	var all []uint16
	for part := range fields(text) {
		port, err := strconv.ParseUint(part, 10, 16)
		if err != nil || port == 0 {
			return nil, fmt.Errorf("%q is not a port from 1 to 65535", part)
		}
		all = append(all, uint16(port))
	}
	if len(all) == 0 {
		all = append(all, 443)
		if allowHTTP {
			all = append(all, 80)
		}
	}
	return all, nil
}

// fields yields what stands between commas, without what is empty.
func fields(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for part := range strings.SplitSeq(text, ",") {
			if part = strings.TrimSpace(part); part != "" && !yield(part) {
				return
			}
		}
	}
}

func (p *Policy) portOpen(port uint16) bool {
	return port != 0 && (len(p.ports) == 0 || slices.Contains(p.ports, port))
}

// closed says what an address is that may not be connected to; "" if it may.
func (p *Policy) closed(addr netip.Addr) string {
	addr = plain(addr)
	if what := guarded(addr); what != "" &&
		!slices.Contains(p.allow, netip.PrefixFrom(addr, addr.BitLen())) {
		return what
	}
	if !p.allowed(addr) {
		return p.notPublic(addr)
	}
	for _, inner := range embedded(addr) {
		if what := p.closed(inner); what != "" {
			return what
		}
	}
	return ""
}

func (p *Policy) allowed(addr netip.Addr) bool {
	return slices.ContainsFunc(p.allow, func(r netip.Prefix) bool { return r.Contains(addr) })
}

// notPublic says why an address is none that anybody on the internet could be at; "" if
// it is one.
func (p *Policy) notPublic(addr netip.Addr) string {
	if isMetadata(addr) {
		return metadataService
	}
	for _, s := range p.special {
		if s.prefix.Contains(addr) {
			return s.what
		}
	}
	if addr.Is6() && !isGlobalUnicast(addr) {
		return "an address outside of the public ranges"
	}
	for _, inner := range embedded(addr) {
		if what := p.notPublic(inner); what != "" {
			return what + " in IPv6's form"
		}
	}
	return ""
}

// refusal says that a connection was not made because of where it would have gone.
type refusal struct {
	addr netip.AddrPort
	what string
}

// Error is for the log: a tenant is not told the address that a name leads to.
func (r *refusal) Error() string { return fmt.Sprintf("%s is not allowed: %s", r.addr, r.what) }

// Control is for [net.Dialer.ControlContext]: it is called with the very address that is
// about to be connected to.
func (p *Policy) Control(_ context.Context, network, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	switch {
	case err != nil || network != "tcp4" && network != "tcp6":
		return &refusal{what: "not an address of TCP"}
	case !p.portOpen(at.Port()):
		return &refusal{addr: at, what: "a port that is not allowed"}
	}
	if what := p.closed(at.Addr()); what != "" {
		return &refusal{addr: at, what: what}
	}
	return nil
}
