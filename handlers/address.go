package handlers

import (
	"iter"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// clientAddress returns where a request comes from, or the zero address if that is unknown. Each
// of the trusted proxies appended the address that it saw to X-Forwarded-For. Clients can send
// what stands before these.
func clientAddress(r *http.Request, trusted int) netip.Addr {
	addr := addressOf(r.RemoteAddr)
	if trusted == 0 {
		return addr
	}
	for hop := range hopsBack(r.Header["X-Forwarded-For"]) {
		next := addressOf(strings.TrimSpace(hop))
		if !next.IsValid() {
			break // the proxy before it has not said, so no one further out is known
		}
		if addr, trusted = next, trusted-1; trusted == 0 {
			break
		}
	}
	return addr
}

// hopsBack are the addresses that proxies have written, the last one first. A client may have sent
// thousands: the server reads no more than it has trusted proxies.
func hopsBack(lines []string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, line := range slices.Backward(lines) {
			for more := true; more; {
				comma := strings.LastIndexByte(line, ',')
				if more = comma >= 0; !yield(line[comma+1:]) {
					return
				}
				line = line[:max(0, comma)]
			}
		}
	}
}

// address is clientAddress, found once.
func (r *request) address() netip.Addr {
	if !r.located {
		r.client, r.located = clientAddress(r.Request, r.endpoints.TrustedProxyHops), true
	}
	return r.client
}

// textOfAddress is "" for none.
func textOfAddress(addr netip.Addr) string {
	if !addr.IsValid() {
		return ""
	}
	return addr.String()
}

// addressOf reads an address, with or without a port.
func addressOf(text string) netip.Addr {
	if with, err := netip.ParseAddrPort(text); err == nil {
		return with.Addr().Unmap().WithZone("")
	}
	addr, _ := netip.ParseAddr(strings.Trim(text, "[]"))
	return addr.Unmap().WithZone("")
}
