package view

import (
	"encoding/binary"
	"time"

	"github.com/fencepost/fencepost/lock"
)

// Ends gives tests the memory of ends with bounds of their own.
type Ends struct{ endings }

// NewEnds returns an empty one.
func NewEnds(most, ofTenant int) *Ends {
	e := &Ends{newEndings(accounts{}, most)}
	e.ofTenant = ofTenant
	return e
}

// The bounds of a service.
const (
	MaxEnds       = maxEnds
	MaxTenantEnds = maxEnds / tenantsPart
)

// RowChunk is how many rows are read before the view is let go.
const RowChunk = rowChunk

// Record remembers an end.
func (e *Ends) Record(tenant string, id lock.ID, why lock.Reason, now time.Time) {
	e.record(tenant, id, why, now)
}

// Recall remembers an end from before.
func (e *Ends) Recall(id lock.ID, why lock.Reason, now time.Time) { e.recall("", id, why, now) }

// Explain keeps what an operator said of an end.
func (e *Ends) Explain(id lock.ID, reason string) { e.explain(id, &lock.Note{Reason: reason}) }

// RevokeReason returns what an operator said of an end.
func (e *Ends) RevokeReason(id lock.ID) string { return e.revoked[e.keyOf(id)] }

// MaxRevoked is how many reasons of operators are kept.
const MaxRevoked = maxRevoked

// Listed notes that the store was listed.
func (e *Ends) Listed() { e.listed() }

// Reason returns why an entry ended.
func (e *Ends) Reason(id lock.ID, now time.Time) lock.Reason { return e.reason(id, now) }

// Len returns how many are kept, and in how many accounts.
func (e *Ends) Len() (ends, accounts int) { return len(e.byID), len(e.accounts) }

// NumberedID returns an id that looks random.
func NumberedID(n uint64) lock.ID {
	raw := make([]byte, lock.IDSize)
	binary.BigEndian.PutUint64(raw, (n+1)*0x9e3779b97f4a7c15)
	return lock.IDOf(raw)
}

// EndsOf returns how many ends are remembered for the tenant.
func (v *View) EndsOf(tenant string) int {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if a := v.Queues.accounts[tenant]; a != nil {
		return a.ends.size
	}
	return 0
}

// Accounts is of how many tenants something is kept.
func (v *View) Accounts() int { return len(v.Queues.accounts) }
