package webhook_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/webhook"
)

func policy(t testing.TB, s webhook.Settings) *webhook.Policy {
	t.Helper()
	p, err := webhook.NewPolicy(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// specialPurpose is what is closed by default, range by range: IANA's registries
// of special-purpose addresses for IPv4 and IPv6, multicast, and the rest of IPv6 that is
// not in 2000::/3, from which addresses are given out.
var specialPurpose = strings.Fields(`
	0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24
	192.31.196.0/24 192.52.193.0/24 192.88.99.0/24 192.168.0.0/16 192.175.48.0/24 198.18.0.0/15 198.51.100.0/24
	203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 255.255.255.255/32
	::/128 ::1/128 ::/96 ::/3 64:ff9b:1::/48 100::/64 100:0:0:1::/64 2001::/23 2001::/32 2001:2::/48
	2001:3::/32 2001:4:112::/48 2001:10::/28 2001:20::/28 2001:30::/28 2001:db8::/32 2002::/16 2620:4f:8000::/48
	3fff::/20 4000::/2 5f00::/16 8000::/1 fc00::/7 fe80::/10 fec0::/10 ff00::/8 168.63.129.16/32
`)

// open are addresses that must not be closed by mistake: next to the ranges, and
// of receivers that there are.
var open = strings.Fields(`
	1.0.0.0 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 169.253.255.255 169.255.0.0
	172.15.255.255 172.32.0.0 191.255.255.255 192.0.1.0 192.0.1.255 192.0.3.0 192.31.195.255 192.31.197.0 192.52.192.255
	192.52.194.0 192.88.98.255 192.88.100.0 192.167.255.255 192.169.0.0 192.175.47.255 192.175.49.0 198.17.255.255
	198.20.0.0 198.51.99.255 198.51.101.0 203.0.112.255 203.0.114.0 223.255.255.255 8.8.8.8 168.63.129.15 168.63.129.17
	2000:: 2001:200:: 2001:db7:ffff:ffff:ffff:ffff:ffff:ffff 2001:db9:: 2001:ffff:ffff:ffff:ffff:ffff:ffff:ffff 2003::
	2620:4f:7fff:ffff:ffff:ffff:ffff:ffff 2620:4f:8001:: 3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff 3fff:1000::
	2606:4700::1111 64:ff9b::8.8.8.8 ::ffff:8.8.8.8 2606:4700::5efe:808:808
`)

func TestSpecialAddressesAreClosed(t *testing.T) {
	p := policy(t, webhook.Settings{})
	for _, text := range specialPurpose {
		prefix := netip.MustParsePrefix(text)
		for _, addr := range edges(prefix) {
			// 64:ff9b::/96 lies in the part of IPv6 that is not given out, and is judged below.
			if p.Closed(addr) == "" && !netip.MustParsePrefix("64:ff9b::/96").Contains(addr) {
				t.Errorf("%s of %s is open", addr, prefix)
			}
		}
	}
	for _, text := range open {
		if what := p.Closed(netip.MustParseAddr(text)); what != "" {
			t.Errorf("%s is closed: %s", text, what)
		}
	}
}

// TestOtherFormsOfIPv4 asks for each IPv4 range in each form of IPv6 that leads there.
func TestOtherFormsOfIPv4(t *testing.T) {
	p := policy(t, webhook.Settings{})
	for _, text := range specialPurpose {
		prefix := netip.MustParsePrefix(text)
		if !prefix.Addr().Is4() {
			continue
		}
		for _, v4 := range edges(prefix) {
			for name, addr := range forms(v4) {
				if p.Closed(addr) == "" {
					t.Errorf("%s as %s, %s, is open", v4, name, addr)
				}
			}
		}
	}
	public := forms(netip.MustParseAddr("8.8.8.8"))
	for _, name := range []string{
		"compatible", "local NAT64", "6to4", "Teredo's server", "Teredo's client",
	} {
		if p.Closed(public[name]) == "" {
			t.Errorf("8.8.8.8 as %s is open", name)
		}
	}
}

// forms are the IPv6 addresses that stand for an IPv4 one.
func forms(v4 netip.Addr) map[string]netip.Addr {
	in := func(prefix string, at int, flip byte) netip.Addr {
		b := netip.MustParseAddr(prefix).As16()
		for i, c := range v4.As4() {
			b[at+i] = c ^ flip
		}
		return netip.AddrFrom16(b)
	}
	return map[string]netip.Addr{
		"mapped":          in("::ffff:0:0", 12, 0),
		"mapped, zone":    in("::ffff:0:0", 12, 0).WithZone("eth0"),
		"compatible":      in("::", 12, 0),
		"translated":      in("::ffff:0:0:0", 12, 0),
		"NAT64":           in("64:ff9b::", 12, 0),
		"local NAT64":     in("64:ff9b:1::", 12, 0),
		"6to4":            in("2002::1", 2, 0),
		"Teredo's server": in("2001::", 4, 0),
		"Teredo's client": in("2001:0:808:808::", 12, 0xff),
		"ISATAP":          in("2606:4700::5efe:0:0", 12, 0),
		"ISATAP, global":  in("2606:4700::200:5efe:0:0", 12, 0),
	}
}

// edges are the first, the last, and one address between.
func edges(p netip.Prefix) []netip.Addr {
	b := p.Addr().AsSlice()
	between := p.Addr().AsSlice()
	for i := range b {
		for bit := range 8 {
			if i*8+bit >= p.Bits() {
				b[i] |= 0x80 >> bit
				between[i] |= (0x80 >> bit) & 0x55
			}
		}
	}
	last, _ := netip.AddrFromSlice(b)
	middle, _ := netip.AddrFromSlice(between)
	return []netip.Addr{p.Addr(), last, middle}
}

// TestZones: an address with a zone is in no range for package netip.
func TestZones(t *testing.T) {
	p := policy(t, webhook.Settings{})
	for _, text := range []string{
		"fe80::1%eth0", "fc00::1%1", "::1%lo", "fd00:ec2::254%x", "2001:db8::1%eth0", "2002:808:808::%1",
	} {
		if p.Closed(netip.MustParseAddr(text)) == "" {
			t.Errorf("%s is open", text)
		}
	}
}

func TestAllow(t *testing.T) {
	p := policy(t, webhook.Settings{
		Allow: "127.0.0.0/8, 10.1.0.0/16,192.168.7.7,fd12:3456::/32,::1,2002::/16,64:ff9b:1::/48,168.0.0.0/8,fd00::/16",
	})
	for _, text := range strings.Fields(`127.0.0.1 127.255.255.255 10.1.0.0 10.1.255.255 192.168.7.7 fd12:3456::1 ::1 ::ffff:10.1.2.3
		2002:808:808::1 2002:a01:203::1 64:ff9b:1::10.0.0.1 8.8.8.8 2606:4700::1 fd00:ec2::253`) {
		if what := p.Closed(netip.MustParseAddr(text)); what != "" {
			t.Errorf("%s is closed: %s", text, what)
		}
	}
	for _, text := range strings.Fields(`10.0.255.255 10.2.0.0 192.168.7.6 192.168.7.8 fd12:3457:: :: 0.0.0.0 169.254.1.1
		2002:a00:1::1 2002:a9fe:a9fe::1 64:ff9b::10.1.2.3 64:ff9b::127.0.0.1 ::127.0.0.1`) {
		if p.Closed(netip.MustParseAddr(text)) == "" {
			t.Errorf("%s is open", text)
		}
	}
}

var metadata = strings.Fields(`169.254.169.254 169.254.170.2 169.254.170.23 168.63.129.16 100.100.100.200 192.0.0.192
	169.254.42.42 169.254.0.23 fd00:ec2::254 fd00:ec2::23 fd20:ce::254 fd00:42::42 fe80::a9fe:a9fe
	fd00:c1::a9fe:a9fe fd00:a9fe:a9fe::1 fd00:100::100:200 fd12:3456::a9fe:a9fe fd12::a9fe:a9fe:0:1`)

// TestMetadataStaysClosed: not even a range of everything opens it, only its own address.
func TestMetadataStaysClosed(t *testing.T) {
	all := policy(
		t, webhook.Settings{Allow: "0.0.0.0/0,::/0,169.254.0.0/16,169.254.169.254/31,fd00:ec2::254/127"},
	)
	for _, text := range metadata {
		addr := netip.MustParseAddr(text)
		if all.Closed(addr) == "" {
			t.Errorf("%s is open in a range", text)
		}
		if p := policy(t, webhook.Settings{Allow: text}); p.Closed(addr) != "" {
			t.Errorf("%s is closed although it is named", text)
		}
		if !addr.Is4() {
			continue
		}
		for name, form := range forms(addr) {
			// As a translated address it has no meaning but on a router between the two.
			if all.Closed(form) == "" && name != "translated" {
				t.Errorf("%s as %s is open in a range", text, name)
			}
		}
	}
	for _, text := range []string{
		"64:ff9b:1:a9fe:a9:fe00::", "64:ff9b:1:a9:fe:a9fe::", "64:ff9b:1:0:a9:fea9:fe00:0",
	} {
		if all.Closed(netip.MustParseAddr(text)) == "" {
			t.Errorf("%s is open in a range", text)
		}
	}
}

// TestLinkLocalStaysClosed: clouds put new services there, so no range opens it.
func TestLinkLocalStaysClosed(t *testing.T) {
	ranges := policy(
		t, webhook.Settings{Allow: "0.0.0.0/0,::/0,169.254.0.0/16,169.254.7.8/31,fe80::/10"},
	)
	for _, text := range []string{
		"169.254.0.0", "169.254.7.8", "169.254.255.255", "fe80::", "fe80::1", "febf:ffff::1",
	} {
		addr := netip.MustParseAddr(text)
		if ranges.Closed(addr) == "" {
			t.Errorf("%s is open in a range", text)
		}
		if what := policy(t, webhook.Settings{Allow: text}).Closed(addr); what != "" {
			t.Errorf("%s is closed although it is named: %s", text, what)
		}
	}
	for _, text := range []string{
		"64:ff9b::169.254.7.8", "64:ff9b:1::169.254.7.8", "2002:a9fe:708::1", "fe80::1%eth0",
	} {
		if ranges.Closed(netip.MustParseAddr(text)) == "" {
			t.Errorf("%s is open in a range", text)
		}
	}
}

func TestSettingsThatCannotBeRead(t *testing.T) {
	for _, s := range []webhook.Settings{
		{Allow: "10.0.0.0/33"},
		{Allow: "10.0.0.1/8"},
		{Allow: "localhost"},
		{Allow: "10.0.0.0/8;127.0.0.0/8"},
		{Allow: "fe80::1%eth0"},
		{Allow: "::ffff:10.0.0.0/104"},
		{Allow: "::ffff:10.0.0.1"},
		{Allow: "10.0.0.0/08"},
		{Allow: "010.0.0.0/8"},
		{Ports: "0"},
		{Ports: "65536"},
		{Ports: "443-450"},
		{Ports: "https"},
		{Ports: "443,*"},
		{Ports: "-1"},
	} {
		p, err := webhook.NewPolicy(s)
		if err == nil || p != nil {
			t.Errorf("%+v is accepted", s)
			continue
		}
		if !strings.Contains(err.Error(), `"`) {
			t.Errorf("%+v: %v does not say what", s, err)
		}
	}
}
