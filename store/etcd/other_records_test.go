package etcd

import (
	"testing"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// twoWithRoom starts two replicas with separate space, and returns the ends in the second one's
// feed.
func twoWithRoom(t *testing.T, no, others *noRoom) (s, other *Store, left <-chan store.Change) {
	t.Helper()
	var otherConn Conn
	s, _ = testStore(t, EmbeddedConfig{}, func(c *Conn) {
		otherConn = *c
		otherConn.Interfere(others.txn)
		c.Interfere(no.txn)
	})
	other, err := Open(t.Context(), &otherConn, Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := other.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, replica := range []*Store{s, other} {
		told := &leaving{left: make(chan store.Change, 10)}
		replica.tasks.Go(func() { replica.Watch(replica.closing, told) })
		soon(t, "the feed is up", told.isUp)
		left = told.left
	}
	return s, other, left
}

// TestOthersKnowOfAWithdrawalFromAFullStore: the key of an entry that was withdrawn from a full
// store is free, also if another replica is the first to record that it went: that tells it from an
// entry whose lease is over, and from one that was released.
func TestOthersKnowOfAWithdrawalFromAFullStore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ends, told, usedUp lock.Reason
		set                bool
	}{
		"withdrawn":     {ends: lock.Withdrawn, told: lock.Withdrawn},
		"a set":         {ends: lock.Withdrawn, told: lock.Withdrawn, set: true},
		"it expires":    {ends: lock.Expired, told: lock.Expired, usedUp: lock.Expired},
		"a set expires": {ends: lock.Expired, told: lock.Expired, usedUp: lock.Expired, set: true},
		"released":      {ends: lock.Released, told: lock.Expired, usedUp: lock.Expired},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			no, others := &noRoom{}, &noRoom{}
			s, other, left := twoWithRoom(t, no, others)
			draft := reusable("again", true)
			if c.set {
				draft.Claims = append(draft.Claims, lock.Claim{Name: "zone", Mode: lock.Exclusive})
			}
			others.forEnds.Store(true)
			e := s.mustEnqueue(t, draft)
			no.full.Store(true)
			s.end(t, e, c.ends)
			if told := <-left; told.Reason != c.told {
				t.Errorf("another replica tells that it ended by %q, want %q", told.Reason, c.told)
			}
			others.forEnds.Store(false)
			recorded := func() bool { return len(other.feed.unrecorded.ends()) == 0 }
			soon(t, "the other one has recorded it", recorded)
			if got := s.usedUpBy(t, draft); got != c.usedUp {
				t.Errorf("the key is used up by %q, want %q", got, c.usedUp)
			}
		})
	}
}

// end removes an entry, or has its lease end.
func (s *Store) end(t *testing.T, e *lock.Entry, why lock.Reason) {
	t.Helper()
	do := func() error { return s.Remove(t.Context(), e, why) }
	if why == lock.Expired {
		do = func() error { return s.leases.revoke(t.Context(), e.Handle) }
	}
	if err := do(); err != nil {
		t.Fatal(err)
	}
}
