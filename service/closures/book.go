// Package closures keeps which locks operators have closed: records that each replica checks
// when an entry would join. Entries that are there are not affected.
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
	// Kind is the kind of the records, one for each closure.
	Kind = "closure"

	// maxInAll bounds the closures of all tenants, because each replica has a copy of them.
	maxInAll = 2000

	// sweepEvery is the time between two searches for expired closures. sweepAfter is how long they
	// stay, because replicas' clocks differ.
	sweepEvery = time.Minute
	sweepAfter = time.Minute
)

// Records are the store's small records, as far as the book needs them.
type Records interface {
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

// Book is a replica's copy of all closures, at most a second old while the store answers.
type Book struct {
	Config
	all atomic.Pointer[byTenant] // nil before the first reading; replaced, never changed
}

// byTenant holds each tenant's closures, the oldest first.
type byTenant map[string][]*lock.Closure

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
	f := store.RecordFollower[*lock.Closure]{
		Records: b.Records, Log: b.Logger, Kind: Kind, Most: 2 * maxInAll, Parse: parse,
	}
	swept := make(chan struct{})
	go func() { defer close(swept); b.sweep(ctx) }()
	f.Run(ctx, b.take)
	<-swept
}

// take replaces the copy. The follower also calls it at the first reading.
func (b *Book) take(read map[store.RecordKey]*lock.Closure) {
	all := byTenant{}
	for _, c := range slices.SortedFunc(maps.Values(read), (*lock.Closure).Compare) {
		all[c.Tenant] = append(all[c.Tenant], c)
	}
	b.all.Store(&all)
}

// sweep removes the records of expired closures. Every replica does so, and each removal is
// conditional on one version.
func (b *Book) sweep(ctx context.Context) {
	for store.Pause(ctx, sweepEvery) == nil {
		for _, c := range b.known("") {
			if b.Now().After(c.Until.Add(sweepAfter)) {
				_ = b.Records.Delete(ctx, keyOf(c), c.Number) // the next sweep retries
			}
		}
	}
}

// known returns the closures of a tenant, or of all, as last read.
func (b *Book) known(tenant string) (all []*lock.Closure) {
	read := b.all.Load()
	if read == nil {
		return nil
	}
	if tenant != "" {
		return (*read)[tenant]
	}
	for _, some := range *read {
		all = append(all, some...)
	}
	return all
}

// Closed returns the closure that now keeps an entry with these claims from joining, or nil. Of
// several it returns the one that ends last.
func (b *Book) Closed(tenant string, claims []lock.Claim) (longest *lock.Closure) {
	now := b.Now()
	for _, c := range b.known(tenant) {
		if c.Closes(tenant, claims, now) && (longest == nil || c.Until.After(longest.Until)) {
			longest = c
		}
	}
	return longest
}

// Read reports whether the book has read the closures. Before that it cannot report a lock as
// open.
func (b *Book) Read() bool { return b.all.Load() != nil }
