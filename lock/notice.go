package lock

import (
	"encoding/json"
	"slices"
)

// Bounds of a notice.
const (
	MaxNoticeText  = 1 << 10 // bytes of what one says
	MaxNoticeLocks = 8       // that one is about
)

// Notice is something that happened to locks without changing who holds or waits: somebody
// said so. It is written once, and every replica is told it in the order of its number
// among what joins and ends. It is no entry and holds nothing.
type Notice struct {
	ID     string // a [ValidName]: the tenant has one notice with it
	Tenant string
	Kind   EventKind       // what happened
	Locks  []string        // to which locks: 1 to [MaxNoticeLocks]
	Text   json.RawMessage // what is said, in the form of its kind: up to [MaxNoticeText] bytes of JSON, or nil

	Of     ID     // the entry that it belongs to, with which it is forgotten; "" if to none
	Number uint64 // of its write
}

// Check returns what is wrong with a notice, an [InvalidRequest], or nil.
func (n *Notice) Check() *Error {
	unfit := func(name string) bool { return !ValidName(name) }
	switch {
	case unfit(n.ID):
		return Invalid("id", "is no notice's")
	case !ValidTenant(n.Tenant):
		return Invalid("tenant", "names no tenant")
	case unfit(string(n.Kind)):
		return Invalid("kind", "names nothing that can happen")
	case len(n.Locks) == 0 || len(n.Locks) > MaxNoticeLocks || slices.ContainsFunc(n.Locks, unfit):
		return Invalid("locks", "must be 1 to %d names", MaxNoticeLocks)
	case len(n.Text) > MaxNoticeText:
		return Invalid("text", "must not be longer than %d bytes", MaxNoticeText)
	case n.Text != nil && !json.Valid(n.Text):
		return Invalid("text", "must be JSON")
	}
	return nil
}
