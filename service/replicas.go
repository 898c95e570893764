package service

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

// replicaKind is the kind of the records that say which replicas run.
const replicaKind = "replica"

// replicaPause is how long after a failure the list is read again, and replicaRefresh how
// often it is at least.
const (
	replicaPause   = time.Second
	replicaRefresh = time.Minute
)

// maxReplicas bounds the list that is kept: many more than can be of use.
const maxReplicas = 1000

// ReplicaRecords is what the list of replicas needs of the store's small records.
type ReplicaRecords interface {
	List(ctx context.Context, q store.RecordQuery) (store.RecordPage, error)
	Put(ctx context.Context, p store.RecordPut) (version uint64, err error)
	Watch(ctx context.Context, kind string, changed func())
}

// Replica is one process that serves a store.
type Replica struct {
	ID      string    `json:"-"` // [lock.ValidName]: one of its own for each start
	Version string    `json:"version"`
	Started time.Time `json:"started"`
}

// Replicas is the list of those that run now, this one among them. A replica that has
// stopped is on it for [store.RecordLife] and [store.RecordLifeLate] longer at most. It
// is for people to look at, and for sharing work that several may do.
type Replicas struct {
	records ReplicaRecords
	self    Replica
	log     *slog.Logger

	mu      sync.Mutex
	live    []Replica
	read    bool          // there is a list
	sure    bool          // the last attempt to read it succeeded
	changed chan struct{} // closed when another answer may be due
}

// NewReplicas returns the list for the replica self, which does not run yet.
func NewReplicas(records ReplicaRecords, self Replica, log *slog.Logger) *Replicas {
	return &Replicas{records: records, self: self, log: log, changed: make(chan struct{})}
}

// Run puts this replica on the list, also when its record has ended because it was cut
// off for a while, and keeps the list up to date, until ctx ends.
func (r *Replicas) Run(ctx context.Context) {
	changed := make(chan struct{}, 1)
	var watch sync.WaitGroup
	defer watch.Wait()
	watch.Go(func() {
		r.records.Watch(ctx, replicaKind, func() {
			select {
			case changed <- struct{}{}:
			default: // it will look anyway
			}
		})
	})
	for ctx.Err() == nil {
		again := replicaRefresh
		if err := r.refresh(ctx); err != nil && ctx.Err() == nil {
			r.log.Debug("the list of replicas could not be read or written, and is tried again", "error", err)
			r.note(nil, false)
			again = replicaPause
		}
		timer := time.NewTimer(again)
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// Live returns the replicas that run, by their ids, as they were listed last. ok is false
// if they never were.
func (r *Replicas) Live() (live []Replica, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.live), r.read
}

// refresh reads the list, and writes this replica's record if it is not there.
func (r *Replicas) refresh(ctx context.Context) error {
	live, err := r.list(ctx)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(live, func(other Replica) bool { return other.ID == r.self.ID }) {
		if err := r.register(ctx); err != nil {
			return err
		}
		live = append(live, r.self)
	}
	slices.SortFunc(live, func(a, b Replica) int { return cmp.Compare(a.ID, b.ID) })
	r.note(live, true)
	return nil
}

// note keeps the list, nil if it could not be read, and tells those who share work if
// that makes a difference.
func (r *Replicas) note(live []Replica, sure bool) {
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
func (r *Replicas) Sharing() Sharing {
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

// does reports whether this replica is the one that does the work with the name: each
// replica with the same list comes to the same answer, and when the list changes, only
// the work of those that came or went changes hands (rendezvous hashing, Thaler and
// Ravishankar 1998). All do it while the list is not known.
func (s Sharing) does(name string) bool {
	if len(s.Live) == 0 {
		return true
	}
	return slices.MaxFunc(s.Live, func(a, b string) int { return cmp.Compare(weight(a, name), weight(b, name)) }) == s.Self
}

func weight(replica, name string) uint64 {
	sum := sha256.Sum256([]byte(replica + "/" + name))
	return binary.BigEndian.Uint64(sum[:])
}

func (r *Replicas) register(ctx context.Context) error {
	_, err := r.records.Put(ctx, store.RecordPut{
		RecordKey: store.RecordKey{Kind: replicaKind, Tenant: store.NoTenant, ID: r.self.ID},
		Value:     store.Encode(r.self), Bound: true,
	})
	if errors.Is(err, lock.Changed) {
		return nil // an earlier attempt has written it after all
	}
	return err
}

// list reads all pages. What cannot be read is a replica all the same, of which only
// the id is known.
func (r *Replicas) list(ctx context.Context) (live []Replica, err error) {
	q := store.RecordQuery{Kind: replicaKind, Tenant: store.NoTenant}
	for {
		page, err := r.records.List(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, record := range page.Records {
			var one Replica
			if bad := json.Unmarshal(record.Value, &one); bad != nil {
				one = Replica{}
			}
			one.ID = record.ID
			live = append(live, one)
		}
		if q.After = page.Next; q.After == "" || len(live) >= maxReplicas {
			return live, nil
		}
	}
}
