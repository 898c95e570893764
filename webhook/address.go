package webhook

import "net/netip"

const (
	metadataService = "a metadata service of a cloud"
	linkLocal       = "a link-local address"
)

// specialRange is a range of addresses at which no public receiver can be.
type specialRange struct {
	prefix netip.Prefix
	what   string
}

// specialRanges are those of IANA's registries of special-purpose addresses, of
// multicast, and those that were withdrawn. Of IPv6 they are those inside of 2000::/3 and
// those whose name is worth telling: whatever else is outside of it is closed as well.
func specialRanges() []specialRange {
	var all []specialRange
	add := func(what string, prefixes ...string) {
		for _, p := range prefixes {
			all = append(all, specialRange{netip.MustParsePrefix(p), what})
		}
	}
	add("this network", "0.0.0.0/8")
	add("a loopback address", "127.0.0.0/8", "::1/128")
	add("the unspecified address", "::/128")
	add("a private address", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")
	add("a unique local address", uniqueLocal)
	add("a site-local address", "fec0::/10")
	add("a shared address of a provider", "100.64.0.0/10")
	add(linkLocal, "169.254.0.0/16", "fe80::/10")
	add("a multicast address", "224.0.0.0/4", "ff00::/8")
	add("the broadcast address", "255.255.255.255/32")
	add("an address of Teredo", "2001::/32")
	add("a reserved address", "240.0.0.0/4", "192.0.0.0/24", "2001::/23")
	add(
		"an address for documentation", "192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24",
		"2001:db8::/32", "3fff::/20",
	)
	add("an address for benchmarks", "198.18.0.0/15")
	add("an address of AS112", "192.31.196.0/24", "192.175.48.0/24", "2620:4f:8000::/48")
	add("an address of AMT", "192.52.193.0/24")
	add("a relay of 6to4", "192.88.99.0/24")
	add("an address of 6to4", "2002::/16")
	add("a discarded address", "100::/64")
	add("a dummy address", "100:0:0:1::/64")
	add("an IPv4-compatible address", "::/96")
	add("an address of a local NAT64", localNAT64)
	add("a segment identifier", "5f00::/16")
	return all
}

const (
	localNAT64  = "64:ff9b:1::/48"
	uniqueLocal = "fc00::/7"
)

// isGlobalUnicast reports whether an IPv6 address is in the range from which public
// addresses are given, or is that of an IPv4 address behind a NAT64.
func isGlobalUnicast(addr netip.Addr) bool {
	b := addr.As16()
	return b[0]&0xe0 == 0x20 || isNAT64(b)
}

// guarded says what an address is that no range opens, only its own address; "" if a range
// may. Clouds put services that hand out credentials of the machine at link-local addresses.
func guarded(addr netip.Addr) string {
	switch {
	case isMetadata(addr):
		return metadataService
	case addr.IsLinkLocalUnicast():
		return linkLocal
	}
	return ""
}

// isMetadata reports whether a service there hands credentials of the machine to each client.
// Some of these are in ranges that an operator may well allow, and one is in a public range.
func isMetadata(addr netip.Addr) bool {
	if translatesToMetadata(addr) || repeatsMetadata(addr) {
		return true
	}
	switch addr.String() {
	case "169.254.169.254", "fe80::a9fe:a9fe", // most clouds
		"fd00:ec2::254", "fd20:ce::254", // AWS, GCP by IPv6
		"169.254.170.2", "169.254.170.23", "fd00:ec2::23", // tasks and pods on AWS
		"169.254.0.23", "fd00:100::100:200", // Tencent, Alibaba by IPv6
		"168.63.129.16", "100.100.100.200", "192.0.0.192", // Azure, Alibaba, Oracle
		"169.254.42.42", "fd00:42::42": // Scaleway
		return true
	}
	return false
}

// repeatsMetadata reports whether a unique local address has 169.254.169.254 in it, as those of
// Oracle (fd00:c1::a9fe:a9fe) and Linode (fd00:a9fe:a9fe::1) have.
func repeatsMetadata(addr netip.Addr) bool {
	if !netip.MustParsePrefix(uniqueLocal).Contains(addr) {
		return false
	}
	b := addr.As16()
	for i := 0; i+4 <= len(b); i += 2 {
		if [4]byte(b[i:i+4]) == [4]byte{169, 254, 169, 254} {
			return true
		}
	}
	return false
}

// translatesToMetadata reports whether a NAT64 of the operator's own would take the address
// for a guarded one: in each of the places where RFC 6052 puts the IPv4 address.
func translatesToMetadata(addr netip.Addr) bool {
	if !netip.MustParsePrefix(localNAT64).Contains(addr) {
		return false
	}
	b := addr.As16()
	for _, v4 := range [][4]byte{
		{b[6], b[7], b[9], b[10]},
		{b[7], b[9], b[10], b[11]},
		{b[9], b[10], b[11], b[12]},
		{b[12], b[13], b[14], b[15]},
	} {
		if guarded(netip.AddrFrom4(v4)) != "" {
			return true
		}
	}
	return false
}

// plain is the address as it is judged: IPv4 in IPv6's form is IPv4, which it is also
// for the kernel; and a zone, with which an address is in no range, is left out.
func plain(addr netip.Addr) netip.Addr { return addr.WithZone("").Unmap() }

// embedded returns the IPv4 addresses to which a packet for an IPv6 address may be sent
// on: behind a NAT64, or through a tunnel.
func embedded(addr netip.Addr) []netip.Addr {
	if !addr.Is6() {
		return nil
	}
	b := addr.As16()
	last := netip.AddrFrom4([4]byte(b[12:]))
	switch {
	case isNAT64(b), isCompatible(b), isISATAP(b):
		return []netip.Addr{last}
	case b[0] == 0x20 && b[1] == 0x02: // 6to4
		return []netip.Addr{netip.AddrFrom4([4]byte(b[2:6]))}
	// Teredo: its server, and the client in complement
	case [4]byte(b[:4]) == [4]byte{0x20, 0x01, 0, 0}:
		return []netip.Addr{
			netip.AddrFrom4([4]byte(b[4:8])), netip.AddrFrom4([4]byte{^b[12], ^b[13], ^b[14], ^b[15]}),
		}
	}
	return nil
}

// isNAT64 is about 64:ff9b::/96.
func isNAT64(b [16]byte) bool { return [12]byte(b[:12]) == [12]byte{0, 0x64, 0xff, 0x9b} }

// isCompatible is about ::/96 without :: and ::1.
func isCompatible(b [16]byte) bool {
	return [12]byte(b[:12]) == [12]byte{} && (b[12]|b[13]|b[14] != 0 || b[15] > 1)
}

// isISATAP is about the interface identifiers 0:5efe and 200:5efe.
func isISATAP(b [16]byte) bool {
	return b[8]&^0x02 == 0 && [3]byte(b[9:12]) == [3]byte{0, 0x5e, 0xfe}
}
