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

// A bound record ends when its replica has not reached the store for RecordLife,
// while the store serves others, and at most RecordLifeLate after that. A store's
// change of leader gives it its full life again.
const (
	RecordLife     = 3 * time.Second
	RecordLifeLate = 2 * time.Second
)

// NoTenant is the tenant of records that belong to none. No tenant has that name.
const NoTenant = "-"

// RecordKey names a small record.
type RecordKey struct {
	Kind   string // ^[a-z0-9][a-z0-9-]{0,62}$: what it is, for whoever lists and watches
	Tenant string // [lock.ValidTenant], or [NoTenant]
	ID     string // [lock.ValidName]: one of its kind and tenant
}

// Record is a small record as it was at one moment.
type Record struct {
	RecordKey
	Value []byte

	// Version is the number of the write that made the record what it is. It is
	// another one after each write, greater than before, and none comes again, also
	// not when the record is deleted and made anew.
	Version uint64
}

// RecordPut is what is to be written. It is a value of its own so that it can be part
// of a larger write.
type RecordPut struct {
	RecordKey
	Value []byte // at most [MaxRecordValue]

	// Version is that of the record which is replaced; 0 says that there must be none.
	Version uint64

	// Bound says that the record ends with the replica that writes it: when its
	// store is closed, or [RecordLife] after it stopped. It can so end although the
	// replica lives on, cut off for a while; whoever wants it to be there watches the
	// kind and puts it again. A put that is not bound makes a bound record a lasting
	// one.
	Bound bool

	// Frees says that what follows takes more out of the store than this puts there. So it may use the
	// room that a store keeps free, as removals do.
	Frees bool
}

// RecordQuery asks for one page of the records of a kind.
type RecordQuery struct {
	Kind   string
	Tenant string // "" asks for those of all tenants, and of none
	From   string // only ids from this one on, in the order of their bytes; "" has no bound
	Until  string // only ids before this one; "" has no bound
	After  string // the Next of the page before; "" begins
	Limit  int    // of records; 0, or more than there may be, is [MaxRecordPage]
}

// RecordPage is a part of a list. It can have less than its limit, or nothing, although
// others follow.
type RecordPage struct {
	Records []Record
	Next    string // After of the next page; "" says that there is none
}

// RecordStore keeps small records: what is neither a lock nor large, such as
// settings, subscriptions, or the list of replicas. Each write is of one record and
// atomic.
//
// Every call returns a *lock.Error and ends within the deadline that the store puts
// on it, whatever ctx allows. [lock.StoreUnavailable] says that the store could not be
// asked, or that it lost its past and writes nothing by version until an operator has
// given it a fence floor. [lock.InvalidRequest] says that a key, a value, a version or
// a page is out of its bounds.
//
// An error of Put and Delete has OutcomeUnknown set if the write may have happened, or may yet.
// It then happens only to the very record that the call was about: once anything else
// was written or deleted under the key, it never will. So it is safe to read and to
// decide anew.
type RecordStore interface {
	// Get returns the record as it is, no older than the call, or [lock.NotFound].
	Get(ctx context.Context, k RecordKey) (Record, error)

	// List returns a page of records, each as it is, no older than the call. All
	// pages together have every record once that is there all the while, in an order
	// of the store's own, and none twice; it is no picture of one moment. A page has at
	// most [MaxRecordPageBytes] of values, or one record. Where the query has bounds, what
	// is beyond them is passed over, not read one by one.
	List(ctx context.Context, q RecordQuery) (RecordPage, error)

	// Put writes a record if it has the version that p says, and returns its new one.
	// [lock.Changed] says that it has another one, or is there and must not be;
	// [lock.NotFound] that it is not there and must be. It is not idempotent for its
	// caller: of two equal calls one is refused. But a call that sends its write more
	// than once finds out by a random mark in the record whether one of them happened.
	Put(ctx context.Context, p RecordPut) (version uint64, err error)

	// Delete removes the record if it has the version. [lock.NotFound] says that there
	// is none, and [lock.Changed] that it has another version.
	Delete(ctx context.Context, k RecordKey, version uint64) error

	// Watch calls changed at once, after every write, deletion or end of a record of
	// the kind, and after every gap in which there can have been one, until ctx ends.
	// What is read in or after a call is no older than what it was called for. Several
	// changes can be one call, and a call can be about none. changed is called from
	// one goroutine at a time and must not block.
	Watch(ctx context.Context, kind string, changed func())
}

// check returns what is wrong with the key.
func (k RecordKey) check() *lock.Error {
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
	return k.check()
}

// maxRecordCursor is more than the longest tenant and id with what a store adds.
const maxRecordCursor = 300

// Wants reports whether the record is one of those that the query asks for.
func (q *RecordQuery) Wants(k RecordKey) bool {
	return k.Kind == q.Kind && (q.Tenant == "" || q.Tenant == k.Tenant) &&
		k.ID >= q.From && (q.Until == "" || k.ID < q.Until) && k.check() == nil
}

// Add appends a record if there is room for it in a page of the query.
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
