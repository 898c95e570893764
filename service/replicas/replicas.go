// Package replicas keeps the list of running replicas, and divides work among them.
package replicas

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// kind is the kind of the records of running replicas.
const kind = "replica"

const (
	pause        = time.Second     // after a failure, before the next attempt
	refreshEvery = 2 * time.Second // at least

	// CurrentTimeout bounds the lag of a listed replica. After that it leaves the list, early enough
	// that the replicas that take over its work find the leases of async entries alive.
	CurrentTimeout = 3 * time.Second

	// TakeOverTime bounds the time from the end of a replica until others have its share of the
	// work.
	TakeOverTime = store.RecordLife + store.RecordLifeLate + CurrentTimeout + refreshEvery
)

// maxListed bounds the kept list, far above any useful number of replicas.
const maxListed = 1000

// Records are the store's small records, as far as the list needs them.
type Records interface {
	List(ctx context.Context, q store.RecordQuery) (store.RecordPage, error)
	Put(ctx context.Context, p store.RecordPut) (version uint64, err error)
	Delete(ctx context.Context, k store.RecordKey, version uint64) error
	Watch(ctx context.Context, kind string, changed func())
}

// SettledAfter is how long a replica runs until it counts as settled.
const SettledAfter = 20 * time.Second

// Replica is one running server process.
type Replica struct {
	ID      string    `json:"-"`              // a [lock.ValidName], new at each start
	Host    string    `json:"host,omitempty"` // of its machine or pod: for people; "" if unknown
	Version string    `json:"version"`
	Started time.Time `json:"started"` // by its wall clock: for people

	// Settled means that it has run for [SettledAfter]. The replica itself writes this: a comparison
	// of Started with another machine's clock would leave work without an owner when the two differ.
	Settled bool `json:"settled,omitempty"`
}

// List is the list of replicas that run now and follow the store, including this one. A stopped
// replica stays on it for at most [store.RecordLife] and [store.RecordLifeLate]. It is for
// people, and for dividing work that any replica may do.
type List struct {
	records Records
	self    Replica
	began   time.Time
	log     *slog.Logger

	mu      sync.Mutex
	live    []Replica
	read    bool          // the list was read
	sure    bool          // the last read succeeded
	changed chan struct{} // closed when the answer may have changed
}

// New returns the list of the replica self, which does not run yet.
func New(records Records, self Replica, log *slog.Logger) *List {
	return &List{
		records: records, self: self, began: time.Now(), log: log, changed: make(chan struct{}),
	}
}

// Run puts this replica on the list and keeps the list up to date, until ctx ends. Then it takes
// the replica off the list, so that others have its share of the work at once. It also restores
// the replica's record after a disconnection. current reports whether the replica follows the
// store. While it does not, the replica stays off the list, because it would own work that it
// cannot see.
func (r *List) Run(ctx context.Context, current func(context.Context) (bool, error)) {
	changed, stop := store.RecordChanges(ctx, r.records, kind)
	defer stop()
	defer r.leave(context.WithoutCancel(ctx))
	for ctx.Err() == nil {
		again := refreshEvery
		if err := r.refresh(ctx, current); err != nil && ctx.Err() == nil {
			r.log.Debug(
				"the list of replicas could not be read or written, and is tried again", "error", err,
			)
			r.note(nil, false)
			again = pause
		}
		store.Await(ctx, changed, again)
	}
}

// Live returns the running replicas by id, as last listed. ok is false before the first list.
func (r *List) Live() (live []Replica, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.live), r.read
}

// refresh reads the list, and adds this replica to it if it is current.
func (r *List) refresh(ctx context.Context, current func(context.Context) (bool, error)) error {
	soon, cancel := context.WithTimeout(ctx, CurrentTimeout)
	sees, err := current(soon)
	cancel()
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return err
	}
	live, version, err := r.readAll(ctx)
	if err != nil {
		return err
	}
	self, is := r.self, slices.IndexFunc(live, func(one Replica) bool { return one.ID == r.self.ID })
	self.Settled = time.Since(r.began) >= SettledAfter
	switch {
	case !sees && is >= 0:
		r.log.Warn("this replica does not see what happens in the store; others do its work")
		err = r.records.Delete(ctx, r.key(), version)
		live = slices.Delete(live, is, is+1)
	case sees && is < 0:
		err = r.register(ctx, self, 0)
		live = append(live, self)
	case sees && live[is].Settled != self.Settled:
		err = r.register(ctx, self, version)
		live[is] = self
	}
	if err != nil {
		return err
	}
	slices.SortFunc(live, func(a, b Replica) int { return cmp.Compare(a.ID, b.ID) })
	r.note(live, true)
	return nil
}

// leave deletes this replica's record. If the store does not answer, the record ends by itself.
func (r *List) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, CurrentTimeout)
	defer cancel()
	_, version, err := r.readAll(ctx)
	if err == nil && version > 0 {
		err = r.records.Delete(ctx, r.key(), version)
	}
	if err != nil {
		r.log.Debug("this replica stays on the list until its record ends", "error", err)
	}
}

// note keeps the list, or nil after a failed read, and notifies the users of Sharing if it
// changed.
func (r *List) note(live []Replica, sure bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	same := r.sure == sure && (!sure || slices.Equal(r.live, live))
	r.sure = sure
	if sure {
		r.live, r.read = live, true
	}
	if !same {
		close(r.changed)
		r.changed = make(chan struct{})
	}
}

// Sharing is the set of replicas that divide work at one moment.
type Sharing struct {
	Self    string
	Live    []string        // all of them, including this one; nil if unknown
	Changed <-chan struct{} // closed when the answer may have changed; nil if it never will
}

// Sharing returns the replicas that divide work now. It is unknown while the list cannot be read,
// because a stopped replica could seem to run.
func (r *List) Sharing() Sharing { return r.sharing(func(Replica) bool { return true }) }

// Settled is [List.Sharing] restricted to settled replicas, if there are any. It is for work that
// needs knowledge of earlier events.
func (r *List) Settled() Sharing {
	if s := r.sharing(func(one Replica) bool { return one.Settled }); s.Live != nil {
		return s
	}
	return r.Sharing()
}

func (r *List) sharing(counts func(Replica) bool) Sharing {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := Sharing{Self: r.self.ID, Changed: r.changed}
	if !r.sure {
		return s
	}
	for _, one := range r.live {
		if counts(one) {
			s.Live = append(s.Live, one.ID)
		}
	}
	return s
}

// Does reports whether this replica owns the work with the name. Replicas with the same list give
// the same answer. A change of the list moves only the work of replicas that came or went
// (rendezvous hashing, Thaler and Ravishankar 1998). While the list is unknown, all own all.
func (s Sharing) Does(name string) bool {
	if len(s.Live) == 0 {
		return true
	}
	return slices.MaxFunc(
		s.Live, func(a, b string) int { return cmp.Compare(weight(a, name), weight(b, name)) },
	) == s.Self
}

func weight(replica, name string) uint64 {
	sum := sha256.Sum256([]byte(replica + "/" + name))
	return binary.BigEndian.Uint64(sum[:])
}

// register writes this replica's record over a version.
func (r *List) register(ctx context.Context, self Replica, version uint64) error {
	_, err := r.records.Put(ctx, store.RecordPut{
		RecordKey: r.key(), Value: store.Encode(self), Version: version, Bound: true,
	})
	if errors.Is(err, lock.Changed) {
		return nil // an earlier attempt has written it
	}
	return err
}

// key returns the key of this replica's record.
func (r *List) key() store.RecordKey {
	return store.RecordKey{Kind: kind, Tenant: store.NoTenant, ID: r.self.ID}
}

// readAll reads all pages. An unreadable record still counts as a replica with only its id.
// version is that of this replica's own record, 0 if there is none.
func (r *List) readAll(ctx context.Context) (live []Replica, version uint64, err error) {
	q := store.RecordQuery{Kind: kind, Tenant: store.NoTenant}
	for record, err := range store.EachRecord(ctx, r.records, q) {
		if err != nil {
			return nil, 0, err
		}
		var one Replica
		if bad := json.Unmarshal(record.Value, &one); bad != nil {
			one = Replica{}
		}
		one.ID = record.ID
		if one.ID == r.self.ID {
			version = record.Version
		}
		if live = append(live, one); len(live) >= maxListed {
			break
		}
	}
	return live, version, nil
}
