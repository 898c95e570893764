// Package quotas is the limits that hold for each tenant: the defaults of the replica, what operators
// have set for a tenant in the store, and how fast each tenant asks. What is counted is counted where
// it is.
package quotas

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/fencepost/fencepost/audit"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/quota"
	"github.com/fencepost/fencepost/store"
)

// Kind is that of the records: one for each tenant whose limits differ from the defaults.
const Kind = "quota"

// MaxTenants bounds for how many tenants limits can be set: each replica has a copy of them.
const MaxTenants = 10_000

// Records is what the book needs of the store's small records.
type Records interface {
	Get(ctx context.Context, k store.RecordKey) (store.Record, error)
	List(ctx context.Context, q store.RecordQuery) (store.RecordPage, error)
	Put(ctx context.Context, p store.RecordPut) (version uint64, err error)
	Delete(ctx context.Context, k store.RecordKey, version uint64) error
	Watch(ctx context.Context, kind string, changed func())
}

// Config of a [Book].
type Config struct {
	Records  Records
	Defaults *quota.Limits    // of a tenant for which nothing is set; nil is [quota.Standard]
	Logger   *slog.Logger     // nil discards
	Now      func() time.Time // the wall clock, for what is told; nil is time.Now
	Journal  *audit.Journal   // where each change is put on record before; nil is one in Records
}

// Book knows the limits of each tenant, as they were read last: late by a second at most while
// the store can be asked. Where nothing could be read, and for a record that is damaged, the
// defaults hold.
type Book struct {
	Config
	set   atomic.Pointer[map[string]*quota.Limits] // replaced, never changed
	own   *quota.Limits                            // of the replicas themselves
	rates *rates
}

// New returns a book that knows nothing but the defaults until it runs.
func New(c Config) *Book {
	if c.Defaults == nil {
		c.Defaults = quota.Standard()
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Journal == nil {
		c.Journal = audit.NewJournal(c.Records, c.Now, c.Logger)
	}
	b := &Book{Config: c, own: quota.Standard(), rates: newRates()}
	b.set.Store(&map[string]*quota.Limits{})
	return b
}

// Run keeps the book up to date until ctx ends.
func (b *Book) Run(ctx context.Context) {
	f := store.RecordFollower[*setting]{Records: b.Records, Log: b.Logger, Kind: Kind, Most: 2 * MaxTenants, Parse: parse}
	f.Run(ctx, func(read map[store.RecordKey]*setting) {
		set := make(map[string]*quota.Limits, len(read))
		for key, s := range read {
			set[key.Tenant] = s.overrides.Over(b.Defaults)
		}
		b.set.Store(&set)
	})
}

// looking ends the name of an account. No tenant's name has a slash.
const looking = "/looking"

// Looking is the account of what a tenant's own operators look at. It has the rates of the tenant, and
// nobody uses them up who works: whoever is to find out who does must be able to look.
func Looking(tenant string) string { return tenant + looking }

// Of returns the limits of a tenant, which must not be changed. It does not block.
func (b *Book) Of(tenant string) *quota.Limits {
	tenant = strings.TrimSuffix(tenant, looking)
	if tenant == lock.OwnTenant {
		return b.own
	}
	if l := (*b.set.Load())[tenant]; l != nil {
		return l
	}
	return b.Defaults
}
