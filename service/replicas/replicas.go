// Package replicas keeps the list of the replicas that run, and shares work among them.
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

// kind is the kind of the records that say which replicas run.
const kind = "replica"

const (
	pause        = time.Second     // after a failure, before the next attempt
	refreshEvery = 2 * time.Second // at least

	// CurrentTimeout bounds how long a listed replica may lag: then it leaves the list, and the
	// replicas that take its work over find the leases of async entries alive.
	CurrentTimeout = 3 * time.Second

	// TakeOverTime bounds the time from the end of a replica until the others have its share
	// of the work.
	TakeOverTime = store.RecordLife + store.RecordLifeLate + CurrentTimeout + refreshEvery
)

// maxListed bounds the list that is kept: many more than can be of use.
const maxListed = 1000

// Records is what the list of replicas needs of the store's small records.
type Records interface {
	List(ctx context.Context, q store.RecordQuery) (store.RecordPage, error)
	Put(ctx context.Context, p store.RecordPut) (version uint64, err error)
	Delete(ctx context.Context, k store.RecordKey, version uint64) error
	Watch(ctx context.Context, kind string, changed func())
}

// Replica is one process that serves a store.
type Replica struct {
	ID      string    `json:"-"` // [lock.ValidName]: one of its own for each start
	Version string    `json:"version"`
	Started time.Time `json:"started"`
}

// List is the list of those that run now and see what happens in the store, this one
// among them. A replica that has stopped is on it for [store.RecordLife] and
// [store.RecordLifeLate] longer at most. It is for people to look at, and for sharing work
// that several may do.
type List struct {
	records Records
	self    Replica
	log     *slog.Logger

	mu      sync.Mutex
	live    []Replica
	read    bool          // there is a list
	sure    bool          // the last attempt to read it succeeded
	changed chan struct{} // closed when another answer may be due
}

// New returns the list for the replica self, which does not run yet.
func New(records Records, self Replica, log *slog.Logger) *List {
	return &List{records: records, self: self, log: log, changed: make(chan struct{})}
}

// Run puts this replica on the list, also when its record has ended because it was cut
// off for a while, and keeps the list up to date, until ctx ends. current reports
// whether the replica sees what happens in the store, as the service reports. While it does
// not, it is not on the list: it would be left to do work of which it does not know.
func (r *List) Run(ctx context.Context, current func(context.Context) (bool, error)) {
	changed, stop := store.RecordChanges(ctx, r.records, kind)
	defer stop()
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

// Live returns the replicas that run, by their ids, as they were listed last. ok is false
// if they never were.
func (r *List) Live() (live []Replica, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.live), r.read
}

// refresh reads the list, and has this replica on it if it is current.
func (r *List) refresh(ctx context.Context, current func(context.Context) (bool, error)) error {
	soon, cancel := context.WithTimeout(ctx, CurrentTimeout)
	sees, err := current(soon)
	cancel()
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return err
	}
	live, version, err := r.readAll(ctx)
	switch {
	case err != nil:
		return err
	case !sees && version > 0:
		r.log.Warn("this replica does not see what happens in the store; others do its work")
		err = r.records.Delete(ctx, r.key(), version)
		live = slices.DeleteFunc(live, func(one Replica) bool { return one.ID == r.self.ID })
	case sees && version == 0:
		err = r.register(ctx)
		live = append(live, r.self)
	}
	if err != nil {
		return err
	}
	slices.SortFunc(live, func(a, b Replica) int { return cmp.Compare(a.ID, b.ID) })
	r.note(live, true)
	return nil
}

// note keeps the list, nil if it could not be read, and tells those who share work if
// that makes a difference.
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

// Sharing is who shares work that each replica could do, at one moment.
type Sharing struct {
	Self    string
	Live    []string        // all of them, this one among them; nil if that is not known
	Changed <-chan struct{} // closed when it may be another answer; nil if it never will be
}

// Sharing returns who shares work now. It is not known while the list cannot be read:
// then a replica that has stopped could be taken for one that runs.
func (r *List) Sharing() Sharing {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := Sharing{Self: r.self.ID, Changed: r.changed}
	if r.sure {
		for _, one := range r.live {
			s.Live = append(s.Live, one.ID)
		}
	}
	return s
}

// Settled is [List.Sharing] among those that have run for a while by this replica's clock,
// if there are any: for work for which it matters to have seen what happened before.
// Changed says nothing of a replica that has run for long enough only now.
func (r *List) Settled(a time.Duration, now time.Time) Sharing {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := Sharing{Self: r.self.ID, Changed: r.changed}
	if !r.sure {
		return s
	}
	for _, one := range r.live {
		if now.Sub(one.Started) >= a {
			s.Live = append(s.Live, one.ID)
		}
	}
	if s.Live == nil {
		for _, one := range r.live {
			s.Live = append(s.Live, one.ID)
		}
	}
	return s
}

// Does reports whether this replica is the one that does the work with the name: each
// replica with the same list comes to the same answer, and when the list changes, only
// the work of those that came or went changes hands (rendezvous hashing, Thaler and
// Ravishankar 1998). All do it while the list is not known.
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

func (r *List) register(ctx context.Context) error {
	_, err := r.records.Put(ctx, store.RecordPut{
		RecordKey: r.key(), Value: store.Encode(r.self), Bound: true,
	})
	if errors.Is(err, lock.Changed) {
		return nil // an earlier attempt has written it after all
	}
	return err
}

// key is that of this replica's record.
func (r *List) key() store.RecordKey {
	return store.RecordKey{Kind: kind, Tenant: store.NoTenant, ID: r.self.ID}
}

// readAll reads all pages. What cannot be read is a replica all the same, of which only
// the id is known. version is that of this replica's own record, 0 if there is none.
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
