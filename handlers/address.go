package handlers

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// clientAddress is from where a request comes, or none if that is not known. What X-Forwarded-For
// says is believed only of proxies that are trusted, each of which has put the
// address that it saw at the end: so it is the last that is not one of theirs.
func clientAddress(r *http.Request, trusted []netip.Prefix) netip.Addr {
	addr := addressOf(r.RemoteAddr)
	if !addr.IsValid() || len(trusted) == 0 {
		return addr
	}
	hops := strings.Split(strings.Join(r.Header["X-Forwarded-For"], ","), ",")
	for _, hop := range slices.Backward(hops) {
		if !within(addr, trusted) {
			break
		}
		next := addressOf(strings.TrimSpace(hop))
		if !next.IsValid() {
			break // the proxy before it has not said, so no one further out is known
		}
		addr = next
	}
	return addr
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

func within(addr netip.Addr, prefixes []netip.Prefix) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(addr) })
}
