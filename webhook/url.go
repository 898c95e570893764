package webhook

import (
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/fencepost/fencepost/lock"
)

// MaxURL is how long a receiver's URL may be, in bytes.
const MaxURL = lock.MaxCallbackURL

// CheckURL returns why no request may go to a URL: a [lock.InvalidRequest] that names
// the field it was given in. A name is not resolved: that it leads where it may is
// checked with each connection.
func (p *Policy) CheckURL(field, raw string) error {
	if _, fault := p.parse(raw); fault != "" {
		return lock.Invalid(field, "%s; send one such as https://example.com/hook", fault)
	}
	return nil
}

// endpoint is a URL that may be sent to.
type endpoint struct {
	url    *url.URL
	host   string // a name, or an address without brackets
	port   uint16
	secure bool
}

// address is what is dialled.
func (e *endpoint) address() string { return net.JoinHostPort(e.host, strconv.Itoa(int(e.port))) }

// parse returns what is wrong with a URL, in words that follow the field's name. What
// other programs read in another way than we do is refused rather than guessed.
func (p *Policy) parse(raw string) (*endpoint, string) {
	if fault := checkText(raw); fault != "" {
		return nil, fault
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, "is not a URL"
	}
	if fault := p.checkParts(raw, u); fault != "" {
		return nil, fault
	}
	e := &endpoint{url: u, host: u.Hostname(), secure: u.Scheme == "https"}
	if fault := p.checkPort(u, e); fault != "" {
		return nil, fault
	}
	if fault := p.checkHost(u.Host, e.host); fault != "" {
		return nil, fault
	}
	return e, ""
}

func checkText(raw string) string {
	if raw == "" {
		return "is missing"
	}
	if len(raw) > MaxURL {
		return "is longer than " + strconv.Itoa(MaxURL) + " bytes"
	}
	for i := range len(raw) {
		switch c := raw[i]; {
		case c >= 0x80:
			return "has characters that are not ASCII: write a host name in its xn-- form, and encode " +
				"the rest"
		case c <= ' ' || c == 0x7f || c == '\\':
			return "has a space, a control character or a backslash"
		}
	}
	return ""
}

func (p *Policy) checkParts(raw string, u *url.URL) string {
	switch {
	case u.Scheme == "":
		return "is not absolute: it begins with https://"
	case u.Scheme != "https" && u.Scheme != "http":
		return "is neither https nor http"
	case u.Scheme == "http" && !p.allowHTTP:
		return "is http; this server sends to https only"
	case u.User != nil:
		return "has a user name or password: receivers know us by the signature"
	case strings.Contains(raw, "#"):
		return "has a fragment, which is never sent"
	case u.Hostname() == "":
		return "has no host"
	}
	return ""
}

// checkPort fills the endpoint's port.
func (p *Policy) checkPort(u *url.URL, e *endpoint) string {
	text := u.Port()
	if text == "" {
		if strings.HasSuffix(u.Host, ":") {
			return "has a colon without a port"
		}
		text = "80"
		if e.secure {
			text = "443"
		}
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 || text[0] == '0' {
		return "has a port that is not a number from 1 to 65535"
	}
	if e.port = uint16(port); !p.portOpen(e.port) {
		return "has the port " + text + ", which this server does not send to"
	}
	return ""
}

// checkHost is given the host with its brackets and port, and without.
func (p *Policy) checkHost(authority, host string) string {
	addr, err := netip.ParseAddr(host)
	if bracketed := authority[0] == '['; bracketed != (err == nil && addr.Is6()) {
		return "has a host in brackets that is no IPv6 address"
	}
	if err == nil {
		return p.checkLiteral(addr)
	}
	if fault := checkName(host); fault != "" {
		return fault
	}
	if isLocalhost(host) {
		return p.checkLiteral(netip.AddrFrom4([4]byte{127, 0, 0, 1}))
	}
	return ""
}

func (p *Policy) checkLiteral(addr netip.Addr) string {
	if addr.Zone() != "" {
		return "has an address with a zone"
	}
	if what := p.closed(addr); what != "" {
		return "leads to " + addr.String() + ", " + what + ", which this server does not send to"
	}
	return ""
}

// checkName accepts the names that all resolvers read alike.
func checkName(host string) string {
	if strings.HasSuffix(host, ".") {
		return "has a dot at the end of its host"
	}
	if len(host) > 253 {
		return "has a host name longer than 253 characters"
	}
	labels := strings.Split(host, ".")
	for _, label := range labels {
		if !validLabel(label) {
			return "has a host that is no host name"
		}
	}
	if isNumber(labels[len(labels)-1]) {
		return "has a number for a host that is no address in its usual form, such as 192.0.2.1"
	}
	return ""
}

func validLabel(label string) bool {
	for i := range len(label) {
		c := label[i]
		if c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return label != "" && len(label) <= 63 && label[0] != '-' && label[len(label)-1] != '-'
}

// isNumber reports whether a label at the end of a name makes it an IPv4 address for
// some resolvers: 2130706433, 0x7f.1 and 0177.0.0.1 are all 127.0.0.1 to the C library.
// No domain ends in such a label.
func isNumber(label string) bool {
	digits, hex := strings.CutPrefix(strings.ToLower(label), "0x")
	if hex {
		return strings.Trim(digits, "0123456789abcdef") == ""
	}
	return strings.Trim(digits, "0123456789") == ""
}

func isLocalhost(host string) bool {
	host = strings.ToLower(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}
