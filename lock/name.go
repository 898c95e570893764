package lock

import "strings"

// Limits of the texts that a request may carry.
const (
	MaxNameLength   = 200  // bytes of a lock's name
	MaxHolderLength = 200  // characters of a holder's name
	MaxMetadata     = 16   // string pairs
	MaxMetadataSize = 2048 // bytes of all keys and values together
	MaxTenantLength = 63   // bytes of a tenant's name
	MaxSetSize      = 32   // locks of one set
)

// ValidName reports whether name is a valid lock name: ^[A-Za-z0-9][A-Za-z0-9._:@=+-]{0,199}$.
// Every such name is a path segment and a store key without escaping.
func ValidName(name string) bool {
	if name == "" || len(name) > MaxNameLength || !alphanumeric(name[0]) {
		return false
	}
	for i := 1; i < len(name); i++ {
		if !alphanumeric(name[i]) && strings.IndexByte("._:@=+-", name[i]) < 0 {
			return false
		}
	}
	return true
}

// OwnTenant owns the locks by which replicas coordinate. No client can act for it.
const OwnTenant = "fencepost-internal"

// ValidTenant reports whether tenant may name a tenant:
// ^[a-z0-9][a-z0-9-]{0,62}$.
func ValidTenant(tenant string) bool {
	if tenant == "" || len(tenant) > MaxTenantLength || tenant[0] == '-' {
		return false
	}
	for i := range len(tenant) {
		c := tenant[i]
		if c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}

func alphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}
