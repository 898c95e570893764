package subscription

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/webhook"
)

// refresh is how often everything is read at least, and retry how long after a failure.
// Between two readings is pace, and slack times what one took: whoever writes all the
// time costs no more than a tenth of a replica's time.
const (
	refresh = 30 * time.Second
	retry   = time.Second
	pace    = 100 * time.Millisecond
	slack   = 10
)

// maxRead is how many records of a kind are read: what there may be, and room for those
// that were made at the same moment at several replicas.
const maxRead = 2 * MaxInAll

// DirectoryRecords is what the directory needs of the store's small records.
type DirectoryRecords interface {
	List(ctx context.Context, q store.RecordQuery) (store.RecordPage, error)
	Watch(ctx context.Context, kind string, changed func())
}

// Directory is a replica's copy of all subscriptions and of what signs callbacks, as they
// were read last. It may be late by a second, and by more while the store cannot be asked.
type Directory struct {
	records DirectoryRecords
	keys    Keys
	log     *slog.Logger

	mu        sync.Mutex
	all       []*Subscription // by tenant and id; replaced, never changed
	callbacks map[string]*callbackSecret
	read      struct{ all, callbacks bool } // they were, at least once
	changed   chan struct{}
}

// NewDirectory returns a directory that knows nothing until it runs.
func NewDirectory(records DirectoryRecords, keys Keys, log *slog.Logger) *Directory {
	return &Directory{records: records, keys: keys, log: log, changed: make(chan struct{})}
}

// Run keeps the copy up to date until ctx ends.
func (d *Directory) Run(ctx context.Context) {
	var both sync.WaitGroup
	defer both.Wait()
	both.Go(func() { newReader(d, Kind, parse).follow(ctx, d.takeAll) })
	both.Go(func() { newReader(d, CallbackKind, parseCallback).follow(ctx, d.takeCallbacks) })
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

func (d *Directory) callbackCount() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.callbacks)
}

func (d *Directory) takeAll(read map[store.RecordKey]kept[*Subscription]) {
	all := make([]*Subscription, 0, len(read))
	for _, k := range read {
		all = append(all, k.value)
	}
	slices.SortFunc(all, func(a, b *Subscription) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.ID, b.ID))
	})
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all, d.read.all = all, true
	d.tell()
}

func (d *Directory) takeCallbacks(read map[store.RecordKey]kept[*callbackSecret]) {
	all := make(map[string]*callbackSecret, len(read))
	for _, k := range read {
		all[k.value.Tenant] = k.value
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.callbacks, d.read.callbacks = all, true
	d.tell()
}

// tell says that something changed. The lock is held.
func (d *Directory) tell() {
	close(d.changed)
	d.changed = make(chan struct{})
}
