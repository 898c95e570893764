package subscription

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/webhook"
)

// maxRead is how many records of a kind are read: what there may be, and room for those
// that were made at the same moment at several replicas.
const maxRead = 2 * MaxInAll

// Directory is a replica's copy of all subscriptions and of what signs callbacks, as they
// were read last. It may be late by a second, and by more while the store cannot be asked.
type Directory struct {
	records store.RecordStore
	keys    Keys
	log     *slog.Logger

	mu        sync.Mutex
	all       []*Subscription // by tenant and id; replaced, never changed
	callbacks map[string]*callbackSecret
	read      struct{ all, callbacks bool } // they were, at least once
	changed   chan struct{}
}

// NewDirectory returns a directory that knows nothing until it runs.
func NewDirectory(records store.RecordStore, keys Keys, log *slog.Logger) *Directory {
	return &Directory{records: records, keys: keys, log: log, changed: make(chan struct{})}
}

// Run keeps the copy up to date until ctx ends.
func (d *Directory) Run(ctx context.Context) {
	var both sync.WaitGroup
	defer both.Wait()
	both.Go(func() { follow(ctx, d, Kind, parse, d.takeAll) })
	both.Go(func() { follow(ctx, d, CallbackKind, parseCallback, d.takeCallbacks) })
}

// follow calls take with all records of a kind whenever they are others.
func follow[T any](
	ctx context.Context, d *Directory, kind string,
	parse func(store.Record) (T, error), take func(map[store.RecordKey]T),
) {
	f := store.RecordFollower[T]{
		Records: d.records, Log: d.log, Kind: kind, Most: maxRead, Parse: parse,
	}
	f.Run(ctx, take)
}

// Current returns all subscriptions, by tenant and id: the same slice until something has
// changed, which closes the channel. Neither it nor what it points to may be changed. ok is
// false until everything was read once.
func (d *Directory) Current() (all []*Subscription, ok bool, changed <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.all, d.read.all && d.read.callbacks, d.changed
}

// Secrets returns the secrets that sign for a subscription: see [Keys.Of].
func (d *Directory) Secrets(s *Subscription, now time.Time) []webhook.Secret {
	return d.keys.Of(s, now)
}

// CallbackSecrets returns the secrets that sign a tenant's callbacks: the current one, and
// those that were replaced less than [Overlap] ago. There are none if the tenant has none,
// or if that is not known yet.
func (d *Directory) CallbackSecrets(tenant string, now time.Time) []webhook.Secret {
	d.mu.Lock()
	c := d.callbacks[tenant]
	d.mu.Unlock()
	if c == nil {
		return nil
	}
	return d.keys.ofCallbacks(tenant, c.Rotation, now)
}

func (d *Directory) hasCallbackSecret(tenant string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.callbacks[tenant] != nil
}

func (d *Directory) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.all)
}

// countOf counts a tenant's.
func (d *Directory) countOf(tenant string) (n int) {
	all, _, _ := d.Current()
	first, _ := slices.BinarySearchFunc(all, tenant, func(s *Subscription, tenant string) int {
		return cmp.Compare(s.Tenant, tenant)
	})
	for first+n < len(all) && all[first+n].Tenant == tenant {
		n++
	}
	return n
}

func (d *Directory) callbackCount() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.callbacks)
}

func (d *Directory) takeAll(read map[store.RecordKey]*Subscription) {
	all := slices.Collect(maps.Values(read))
	slices.SortFunc(all, func(a, b *Subscription) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.ID, b.ID))
	})
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all, d.read.all = all, true
	d.notify()
}

func (d *Directory) takeCallbacks(read map[store.RecordKey]*callbackSecret) {
	all := make(map[string]*callbackSecret, len(read))
	for _, secret := range read {
		all[secret.Tenant] = secret
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.callbacks, d.read.callbacks = all, true
	d.notify()
}

// notify wakes what waits for a change. The lock is held.
func (d *Directory) notify() {
	close(d.changed)
	d.changed = make(chan struct{})
}
