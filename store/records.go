package store

import (
	"context"
	"time"

	"github.com/fencepost/fencepost/lock"
)

// Bounds of small records.
const (
	MaxRecordValue     = 64 << 10 // bytes of one value
	MaxRecordPage      = 256      // records of one page
	MaxRecordPageBytes = 1 << 20  // bytes of the values of one page
)

// A bound record ends when its replica has not reached the store for RecordLife, while the store
// serves others, and at most RecordLifeLate after that. A change of the store's leader restarts
// its life.
const (
	RecordLife     = 3 * time.Second
	RecordLifeLate = 2 * time.Second
)

// NoTenant is the tenant of records that belong to none. No tenant has that name.
const NoTenant = "-"

// ClosuresKind is the kind of the records of tenants' closures.
const ClosuresKind = "closures"

// ClosuresKey names the record of a tenant's closures. Its version is the number of the closures
// with which every write of an entry of the tenant is compared, see [Store].Enqueue.
func ClosuresKey(tenant string) RecordKey {
	return RecordKey{Kind: ClosuresKind, Tenant: tenant, ID: "all"}
}

// RecordKey names a small record.
type RecordKey struct {
	Kind   string // ^[a-z0-9][a-z0-9-]{0,62}$: what it is, for lists and watches
	Tenant string // [lock.ValidTenant], or [NoTenant]
	ID     string // [lock.ValidName], unique in its kind and tenant
}

// Record is a small record as of one moment.
type Record struct {
	RecordKey
	Value []byte

	// Version is the number of the record's last write. Every write gives a greater one. No version
	// is used twice, even after a deletion.
	Version uint64
}

// RecordPut is a write of a record. It is a separate value so that it can be part of a larger
// write.
type RecordPut struct {
	RecordKey
	Value []byte // at most [MaxRecordValue]

	// Version is the version to replace; 0 requires that there is no record.
	Version uint64

	// Bound ends the record with the replica that writes it: when its store is closed, or
	// [RecordLife] after the replica stopped. The record can also end while the replica lives on,
	// cut off for a while. A replica that needs it watches the kind and puts it again. A put without
	// Bound makes a bound record permanent.
	Bound bool

	// Frees means that the record makes the store smaller in the end. So it may use the space that a
	// store keeps free, as removals do.
	Frees bool
}

// RecordQuery asks for one page of the records of a kind.
type RecordQuery struct {
	Kind   string
	Tenant string // "" asks for those of all tenants, and of none
	From   string // only ids from this one on, in byte order; "" has no bound
	Until  string // only ids before this one; "" has no bound
	After  string // the Next of the page before; "" begins
	Limit  int    // of records; 0, or more than the maximum, is [MaxRecordPage]
}

// RecordPage is a part of a list. It can have fewer records than its limit, or none, although
// others follow.
type RecordPage struct {
	Records []Record
	Next    string // After of the next page; "" on the last page
}

// RecordStore keeps small records: what is neither a lock nor large, such as settings,
// subscriptions, or the list of replicas. Each write is of one record and atomic.
//
// Every call returns a *lock.Error and ends within the store's own deadline, whatever ctx allows.
// [lock.StoreUnavailable] means that the store did not answer, or that it lost its past. In the
// latter case it writes nothing by version until an operator has set a fence floor.
// [lock.InvalidRequest] means that a key, a value, a version or a page is out of its bounds.
//
// An error of Put and Delete has OutcomeUnknown set if the write may have happened, or still may.
// It then affects only the very record that the call was about: after another write or deletion
// under the key, it never happens. So it is safe to read and to decide again.
type RecordStore interface {
	// Get returns the record, no older than the call, or [lock.NotFound].
	Get(ctx context.Context, k RecordKey) (Record, error)

	// List returns a page of records, each no older than the call. All pages together have every
	// record that exists throughout exactly once, in an order of the store's own. They are not a
	// snapshot. A page has at most [MaxRecordPageBytes] of values, or one record. Records outside
	// the query's bounds are skipped, not read one by one.
	List(ctx context.Context, q RecordQuery) (RecordPage, error)

	// Put writes a record if it has the version in p, and returns its new one. [lock.Changed] means
	// that it has another version, or exists and must not; [lock.NotFound] that it does not exist
	// and must. Put is not idempotent for its caller: of two equal calls one fails. A call that
	// sends its write more than once finds out by a random mark in the record whether one of them
	// happened.
	Put(ctx context.Context, p RecordPut) (version uint64, err error)

	// Delete removes the record if it has the version. [lock.NotFound] means that there is none, and
	// [lock.Changed] that it has another version.
	Delete(ctx context.Context, k RecordKey, version uint64) error

	// Watch calls changed at once, after every write, deletion or end of a record of the kind, and
	// after every gap that may have hidden one, until ctx ends. A read in or after a call sees at
	// least the change that caused it. Several changes can be one call, and a call can come without
	// a change. changed is called from one goroutine at a time and must not block.
	Watch(ctx context.Context, kind string, changed func())
}

// Check returns what is wrong with the key.
func (k RecordKey) Check() *lock.Error {
	switch {
	case !lock.ValidTenant(k.Kind):
		return lock.Invalid("kind", "names no kind of record")
	case k.Tenant != NoTenant && !lock.ValidTenant(k.Tenant):
		return lock.Invalid("tenant", "names no tenant")
	case !lock.ValidName(k.ID):
		return lock.Invalid("id", "is no record's")
	}
	return nil
}

// Check returns what is wrong with the query, and fills in its limit.
func (q *RecordQuery) Check() *lock.Error {
	k := RecordKey{q.Kind, q.Tenant, "any"}
	if q.Tenant == "" {
		k.Tenant = NoTenant
	}
	if q.Limit <= 0 || q.Limit > MaxRecordPage {
		q.Limit = MaxRecordPage
	}
	if max(len(q.After), len(q.From), len(q.Until)) > maxRecordCursor {
		return lock.Invalid("after", "is no page's")
	}
	return k.Check()
}

// maxRecordCursor exceeds the longest tenant and id with a store's additions.
const maxRecordCursor = 300

// Wants reports whether the query selects the record.
func (q *RecordQuery) Wants(k RecordKey) bool {
	return k.Kind == q.Kind && (q.Tenant == "" || q.Tenant == k.Tenant) &&
		k.ID >= q.From && (q.Until == "" || k.ID < q.Until) && k.Check() == nil
}

// Add appends a record if it fits into a page of the query.
func (p *RecordPage) Add(q *RecordQuery, r Record) bool {
	size := len(r.Value)
	for _, other := range p.Records {
		size += len(other.Value)
	}
	if len(p.Records) >= q.Limit || len(p.Records) > 0 && size > MaxRecordPageBytes {
		return false
	}
	p.Records = append(p.Records, r)
	return true
}
