package webhook_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/webhook"
)

// FuzzCheckURL holds what is accepted against what net/http would connect to, and that
// against what the C library's resolver would make of it: neither may be an address that
// is not public, and both are what a delivery dials.
func FuzzCheckURL(f *testing.F) {
	for _, seed := range []string{
		"https://a.example/hook?x=1", "https://8.8.8.8/", "https://[2606:4700::1]:443/",
		"https://127.0.0.1/", "https://[::ffff:127.0.0.1]/", "https://0x7f.1/", "https://2130706433/",
		"https://０ｘ7f.1/", "https://a.example./", "https://u@a.example/", "https://a.example#@b/",
		"https://xn--a.example/", "https://[fe80::1%25lo]/", "https://%31.example/", "https:a.example",
		"https://a.example:0443/", "http://a.example/", "https://[64:ff9b::a00:1]/",
	} {
		f.Add(seed)
	}
	p := policy(f, webhook.Settings{})
	f.Fuzz(func(t *testing.T, raw string) {
		err := p.CheckURL("url", raw)
		if err != nil {
			checkFault(t, raw, err)
			return
		}
		address, secure := whatIsDialled(t, raw)
		host, port, err := net.SplitHostPort(address)
		if err != nil || port != "443" || !secure {
			t.Errorf("%q: net/http dials %q, TLS: %t, %v", raw, address, secure, err)
		}
		if addr, is := resolverReads(host); is && !ordinary(addr) {
			t.Errorf("%q leads to %s", raw, addr)
		}
		// The host is the only part that may be written in another case.
		if ours, secure, ok := p.DialAddress(raw); !ok || !secure || !strings.EqualFold(ours, address) {
			t.Errorf("%q: we dial %q, net/http %q", raw, ours, address)
		}
	})
}

func checkFault(t *testing.T, raw string, err error) {
	t.Helper()
	fault, ok := errors.AsType[*lock.Error](err)
	if !ok || fault.Code != lock.InvalidRequest || fault.Field != "url" || len(fault.Detail) > 200 {
		t.Fatalf("CheckURL(%q) = %v", raw, err)
	}
	for i := range len(fault.Detail) {
		if c := fault.Detail[i]; c < ' ' || c > '~' {
			t.Fatalf("CheckURL(%q) has a control character of the URL in it: %q", raw, fault.Detail)
		}
	}
}

var errDialled = errors.New("dialled")

// whatIsDialled asks net/http, without a connection.
func whatIsDialled(t *testing.T, raw string) (address string, secure bool) {
	t.Helper()
	dial := func(tls bool) func(context.Context, string, string) (net.Conn, error) {
		return func(_ context.Context, _, addr string) (net.Conn, error) {
			address, secure = addr, tls
			return nil, errDialled
		}
	}
	transport := &http.Transport{DialContext: dial(false), DialTLSContext: dial(true)}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, raw, nil)
	if err != nil {
		t.Fatalf("%q is accepted, and net/http says %v", raw, err)
	}
	response, err := transport.RoundTrip(request)
	if err == nil {
		response.Body.Close()
	}
	if !errors.Is(err, errDialled) {
		t.Fatalf("%q is accepted, and net/http says %v", raw, err)
	}
	return address, secure
}

// resolverReads reads a host as inet_aton does: one to four numbers, decimal, octal or
// hexadecimal. The last number fills the remaining bytes.
func resolverReads(host string) (netip.Addr, bool) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr, true
	}
	parts := strings.Split(strings.TrimSuffix(host, "."), ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var value uint64
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 0, 32)
		if err != nil || strings.ContainsAny(part, "_oO") ||
			!strings.HasPrefix(strings.ToLower(part), "0x") && strings.ContainsAny(part, "bB") {
			return netip.Addr{}, false
		}
		if i < len(parts)-1 {
			n <<= 24 - 8*i
		}
		value |= n
	}
	return netip.AddrFrom4(
		[4]byte{byte(value >> 24), byte(value >> 16), byte(value >> 8), byte(value)},
	), true
}

// ordinary is what package netip thinks of an address.
func ordinary(addr netip.Addr) bool {
	addr = addr.Unmap()
	return addr.IsGlobalUnicast() && !addr.IsPrivate() && addr.Zone() == "" &&
		addr.String() != "169.254.169.254" && !netip.MustParsePrefix("100.64.0.0/10").Contains(addr)
}

// FuzzAnswer: whatever a receiver writes is one of the outcomes, with words of ours only.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		"", "HTTP/1.1 204 No Content\r\n\r\n",
		"HTTP/1.1 503 No\r\nRetry-After: 9\r\nDate: Sun, 01 Mar 2026 12:00:00 GMT\r\n\r\n",
		"HTTP/1.1 410 Gone\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nabcde\r\n0\r\nA: b\r\n\r\n",
		"HTTP/1.1 100 \r\n\r\nHTTP/1.0 302 x\r\nLocation: /\r\n\r\n", "\x15\x03\x01",
	} {
		f.Add([]byte(seed))
	}
	s := newSender(f, nil)
	f.Fuzz(func(t *testing.T, answer []byte) {
		ours, theirs := net.Pipe()
		s.DialWith(func(context.Context, string, string) (net.Conn, error) { return ours, nil })
		done := make(chan struct{})
		go func() {
			defer close(done)
			readRequest(theirs)
			_, _ = theirs.Write(answer)
			theirs.Close()
		}()
		r := send(t, s, "http://127.0.0.1:80/")
		<-done
		if strings.Trim(r.Err, "abcdefghijklmnopqrstuvwxyzHKTLSPB0123456789/.: ") != "" ||
			len(r.Err) > 80 || (r.Err == "") != (r.Outcome == webhook.Delivered) {
			t.Errorf("%q: %+v", answer, r)
		}
		if r.RetryAfter < 0 || r.RetryAfter > 24*time.Hour || r.Status < 0 || r.Status > 999 ||
			(r.Status == 0) != (r.Cause != nil) {
			t.Errorf("%q: %+v", answer, r)
		}
	})
}
