package quota

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/fencepost/fencepost/audit"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// Kind is the kind of the records: one for each tenant whose limits differ from the defaults.
const Kind = "quota"

// MaxTenants bounds the tenants for which limits can be set: each replica keeps a copy.
const MaxTenants = 10_000

// Config of a [Book].
type Config struct {
	Records  store.RecordStore
	Defaults *Limits        // of a tenant for which nothing is set; nil is [Standard]
	Logger   *slog.Logger   // nil discards
	Journal  *audit.Journal // records each change before it is made; nil is one in Records
}

// Book has the limits of each tenant as this replica read them last, at most a second ago while the
// store answers, and the token buckets. Until it has read them, and for a damaged record, the
// defaults hold. It is safe for concurrent use.
type Book struct {
	Config
	set     atomic.Pointer[map[string]*Limits] // replaced, never changed
	own     *Limits                            // of the replicas themselves
	buckets buckets
}

// New returns a book that has only the defaults until [Book.Run] reads the store.
func New(c Config) *Book {
	if c.Defaults == nil {
		c.Defaults = Standard()
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Journal == nil {
		c.Journal = audit.NewJournal(c.Records, time.Now, c.Logger)
	}
	b := &Book{Config: c, own: Standard(), buckets: buckets{tenants: map[string]*tenantBuckets{}}}
	b.set.Store(&map[string]*Limits{})
	return b
}

// Run keeps the book up to date until ctx ends.
func (b *Book) Run(ctx context.Context) {
	f := store.RecordFollower[*setting]{
		Records: b.Records, Log: b.Logger, Kind: Kind, Most: 2 * MaxTenants, Parse: parse,
	}
	f.Run(ctx, func(read map[store.RecordKey]*setting) {
		set := make(map[string]*Limits, len(read))
		for key, s := range read {
			set[key.Tenant] = s.Limits.Over(b.Defaults)
		}
		b.set.Store(&set)
	})
}

// Of returns the limits of a tenant, which the caller must not change. It does not block.
func (b *Book) Of(tenant string) *Limits {
	if tenant == lock.OwnTenant {
		return b.own
	}
	if l := (*b.set.Load())[tenant]; l != nil {
		return l
	}
	return b.Defaults
}
