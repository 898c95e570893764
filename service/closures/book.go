// Package closures keeps which locks operators have closed: one record for each tenant, by which a
// replica admits new entries. The write of an entry compares the record's version, so a replica
// that has not read the newest one admits none. Entries that are there are not affected.
package closures

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/fencepost/fencepost/audit"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

const (
	// maxInAll bounds the closures of all tenants, because each replica has a copy of them.
	maxInAll = 2000

	// maxBytes bounds the closures of a tenant as stored. The rest of a record is for those that are
	// over and not removed yet.
	maxBytes = store.MaxRecordValue / 2

	// sweepEvery is the time between two searches for expired closures. sweepAfter is how long they
	// stay, because replicas' clocks differ.
	sweepEvery = time.Minute
	sweepAfter = time.Minute
)

// Records are the store's small records, as far as the book needs them.
type Records interface {
	Get(ctx context.Context, k store.RecordKey) (store.Record, error)
	List(ctx context.Context, q store.RecordQuery) (store.RecordPage, error)
	Put(ctx context.Context, p store.RecordPut) (version uint64, err error)
	Delete(ctx context.Context, k store.RecordKey, version uint64) error
	Watch(ctx context.Context, kind string, changed func())
}

// Config configures a [Book].
type Config struct {
	Records Records
	Journal *audit.Journal   // writes the audit; nil is one in Records
	Logger  *slog.Logger     // nil discards
	Now     func() time.Time // the wall clock; nil is time.Now
}

// Book is a replica's copy of all closures, at most a second old while the store answers soon.
type Book struct {
	Config
	all atomic.Pointer[byTenant] // nil before the first reading; replaced, never changed
}

// byTenant holds what the tenants' records hold.
type byTenant map[string]ofTenant

// New returns a book that is empty until it runs.
func New(c Config) *Book {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Journal == nil {
		c.Journal = audit.NewJournal(c.Records, c.Now, c.Logger)
	}
	return &Book{Config: c}
}

// Run keeps the book up to date, and removes closures that are over, until ctx ends.
func (b *Book) Run(ctx context.Context) {
	f := store.RecordFollower[ofTenant]{
		Records: b.Records, Log: b.Logger, Kind: store.ClosuresKind, Most: 2 * maxInAll, Parse: parse,
		Always: true,
	}
	swept := make(chan struct{})
	go func() { defer close(swept); b.sweep(ctx) }()
	f.Run(ctx, b.take)
	<-swept
}

// take replaces the copy. The follower also calls it at the first reading.
func (b *Book) take(read map[store.RecordKey]ofTenant) {
	all := byTenant{}
	for k, of := range read {
		all[k.Tenant] = of
	}
	b.all.Store(&all)
}

// Reread reads the closures of a tenant, no older than the call, unless the book has no longer the
// version.
func (b *Book) Reread(ctx context.Context, tenant string, version uint64) error {
	if b.known(tenant).version != version {
		return nil
	}
	of, err := b.read(ctx, tenant)
	if err != nil {
		return err
	}
	for was := b.all.Load(); was != nil; was = b.all.Load() {
		next := maps.Clone(*was)
		if next[tenant] = of; of.version == 0 {
			delete(next, tenant)
		}
		if b.all.CompareAndSwap(was, &next) {
			break
		}
	}
	return nil
}

// sweep removes expired closures. Every replica does so.
func (b *Book) sweep(ctx context.Context) {
	for store.Pause(ctx, sweepEvery) == nil {
		read := b.all.Load()
		if read == nil {
			continue
		}
		for tenant, of := range *read {
			if slices.ContainsFunc(of.all, b.over) {
				_, _, _ = b.change(ctx, tenant, func(all []*lock.Closure) []*lock.Closure {
					return slices.DeleteFunc(slices.Clone(all), b.over)
				}) // the next sweep retries
			}
		}
	}
}

// over reports whether a closure is over at every replica.
func (b *Book) over(c *lock.Closure) bool { return b.Now().After(c.Until.Add(sweepAfter)) }

// known returns the closures of a tenant as last read.
func (b *Book) known(tenant string) ofTenant {
	if read := b.all.Load(); read != nil {
		return (*read)[tenant]
	}
	return ofTenant{}
}

// Closed returns the closure that now keeps an entry with these claims from joining, or nil. Of
// several it returns the one that ends last. version is that of the tenant's closures, for
// [lock.Entry].Admitted.
func (b *Book) Closed(tenant string, claims []lock.Claim) (longest *lock.Closure, version uint64) {
	now, of := b.Now(), b.known(tenant)
	for _, c := range of.all {
		if c.Closes(tenant, claims, now) && (longest == nil || c.Until.After(longest.Until)) {
			longest = c
		}
	}
	return longest, of.version
}

// Read reports whether the book has read the closures. Before that it cannot report a lock as
// open.
func (b *Book) Read() bool { return b.all.Load() != nil }
