package etcd

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// run makes events of a key that is taken again and again.
type run struct {
	s      *Store
	events []*mvccpb.Event
}

func (r *run) put(revision int64, key string, value []byte) {
	r.events = append(r.events, &mvccpb.Event{Kv: &mvccpb.KeyValue{
		Key: []byte(key), Value: value, Lease: 7, CreateRevision: revision, ModRevision: revision,
	}})
}

func (r *run) gone(revision int64, key string) {
	r.events = append(r.events, &mvccpb.Event{
		Type: mvccpb.Event_DELETE, Kv: &mvccpb.KeyValue{Key: []byte(key), ModRevision: revision},
	})
}

func (r *run) joins(revision int64, e *lock.Entry) {
	r.put(revision, string(r.s.primaryKey(e)), store.Encode(store.ValueOf(e)))
}

func (r *run) leaves(revision int64, e *lock.Entry) { r.gone(revision, string(r.s.primaryKey(e))) }

func (r *run) record(revision int64, e *lock.Entry, why lock.Reason) {
	r.put(
		revision, string(endedKey(r.s.prefix, time.Now())),
		store.Encode([]store.End{{ID: e.ID, Tenant: e.Tenant, Reason: why}}),
	)
}

// TestReasonOfEachEnd: in one run of events of a lagging feed, a key is used again after its
// entry has ended. Each end has its own reason. A missing reason is recorded, so that the key is
// used up.
func TestReasonOfEachEnd(t *testing.T) {
	e := reusable("again", true)
	for name, c := range map[string]struct {
		events func(*run)
		want   []lock.Reason
		open   bool // its end is yet to be recorded
	}{
		"withdrawn, and the next one expired": {
			events: func(r *run) {
				r.joins(4, e)
				r.leaves(5, e)
				r.record(5, e, lock.Withdrawn)
				r.joins(6, e)
				r.leaves(9, e)
				r.gone(9, r.s.markKey(e.Tenant, e.ID))
			},
			want: []lock.Reason{lock.Withdrawn, lock.Expired}, open: true,
		},
		"withdrawn, and the next one released": {
			events: func(r *run) {
				r.leaves(5, e)
				r.record(5, e, lock.Withdrawn)
				r.joins(6, e)
				r.record(9, e, lock.Released) // either order
				r.leaves(9, e)
			},
			want: []lock.Reason{lock.Withdrawn, lock.Released},
		},
		"expired, and the next one released": {
			events: func(r *run) {
				r.leaves(5, e)
				r.joins(6, e)
				r.record(9, e, lock.Released)
				r.leaves(9, e)
			},
			want: []lock.Reason{lock.Expired, lock.Released}, open: true,
		},
		"withdrawn from a full store by another replica, and the next one expired": {
			events: func(r *run) {
				r.joins(4, e)
				r.gone(5, r.s.markKey(e.Tenant, e.ID))
				r.leaves(5, e)
				r.joins(6, e)
				r.leaves(9, e)
				r.gone(9, r.s.markKey(e.Tenant, e.ID))
			},
			want: []lock.Reason{lock.Withdrawn, lock.Expired}, open: true,
		},
		"expired, and the next one withdrawn from a full store by another replica": {
			events: func(r *run) {
				r.leaves(5, e)
				r.gone(5, r.s.markKey(e.Tenant, e.ID))
				r.joins(6, e)
				r.gone(9, r.s.markKey(e.Tenant, e.ID))
				r.leaves(9, e)
			},
			want: []lock.Reason{lock.Expired, lock.Withdrawn}, open: true,
		},
		"recorded later": {
			events: func(r *run) {
				r.leaves(5, e)
				r.record(7, e, lock.Released) // of a full store
			},
			want: []lock.Reason{lock.Released},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := &run{s: newStore(&Conn{}, Config{})}
			c.events(r)
			changes, err := r.s.feed.changes(r.events)
			if err != nil {
				t.Fatal(err)
			}
			var got []lock.Reason
			for _, change := range changes {
				if change.Joined == nil {
					got = append(got, change.Reason)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("reasons (-want +got):\n%s", diff)
			}
			if open := len(r.s.feed.unrecorded.ends()) > 0; open != c.open {
				t.Errorf("to be recorded: %v", r.s.feed.unrecorded.ends())
			}
		})
	}
}

// TestSpoiltIsNotNarrowed: a value that a person spoils does not say that its entry left queues. It
// would hold without a choice.
func TestSpoiltIsNotNarrowed(t *testing.T) {
	s, _ := testStore(t, EmbeddedConfig{}, func(*Conn) {})
	e := testEntry("a", "pool")
	e.Set, e.Claims = true, append(e.Claims, lock.Claim{Name: "b", Mode: lock.Exclusive})
	e.Choose(1, e.Claims)
	r := &run{s: s}
	r.joins(4, e)
	for _, key := range []string{string(s.primaryKey(e)), s.entryKey(e.Tenant, "a", e.ID)} {
		r.put(4, key, []byte("{spoiled"))
		r.events[len(r.events)-1].Kv.ModRevision = 5
	}
	changes, err := s.feed.changes(r.events)
	if err != nil {
		t.Fatal(err)
	}
	if len(changes) != 1 || changes[0].Joined == nil {
		t.Errorf("the feed says %+v, want that the entry joined", changes)
	}
}
