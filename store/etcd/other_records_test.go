package etcd

import (
	"slices"
	"testing"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// TestWithdrawnFromAFullStoreAndRecordedByAnother: a key that an expired entry has used up stays so when a second entry of
// it was withdrawn from a full store, and another replica, which does not know that it was withdrawn, is the first to
// record that it went: be the second entry's lease over before that or after it, and whether that replica saw it go or not.
func TestWithdrawnFromAFullStoreAndRecordedByAnother(t *testing.T) {
	for name, c := range map[string]struct{ lapsed, unseen bool }{
		"it lapses": {}, "it has lapsed": {lapsed: true}, "unseen": {unseen: true}, "unseen, it has lapsed": {true, true},
	} {
		t.Run(name, func(t *testing.T) {
			no, others := &noRoom{}, &noRoom{}
			var otherConn Conn
			s, _ := testStore(t, EmbeddedConfig{}, func(c *Conn) {
				otherConn = *c
				otherConn.Interfere(others.txn)
				c.Interfere(no.txn)
			})
			other, err := Open(t.Context(), &otherConn, Config{})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := other.Close(); err != nil {
					t.Error(err)
				}
			}()
			for _, replica := range []*Store{s, other} {
				told := &ends{left: make(chan store.Change, 10)}
				replica.tasks.Go(func() { replica.Watch(replica.closing, told) })
				soon(t, "the feed is up", told.isUp)
			}
			draft := reusable("again", true)
			others.forEnds.Store(true)
			e := expiredBefore(t, s, s.mustEnqueue(t, draft), no, true)
			no.full.Store(true)
			if err := s.Remove(t.Context(), e, lock.Withdrawn); err != nil {
				t.Fatal(err)
			}
			at := s.revision(s.newestNumber(t))
			soon(t, "both know that it went", func() bool { return s.feedAt.Load() >= at && other.feedAt.Load() >= at })
			if c.lapsed {
				if err := s.leases.revoke(t.Context(), e.Handle); err != nil {
					t.Fatal(err)
				}
				at := s.revision(s.newestNumber(t))
				soon(t, "the other knows that the mark went", func() bool { return other.feedAt.Load() >= at })
			}
			if c.unseen {
				other.unrecorded.written(other.unrecorded.ends()[0])
				other.missed(keyed{e, other.revision(e.Number)})
			}
			others.forEnds.Store(false)
			soon(t, "the other one has recorded it", func() bool {
				return !slices.ContainsFunc(s.unrecorded.ends(), func(open unrecordedEnd) bool { return open.ID == e.ID })
			})
			if err := s.leases.revoke(t.Context(), e.Handle); err != nil {
				t.Fatal(err)
			}
			if got := s.usedUpBy(t, draft); got != lock.Expired {
				t.Errorf("the key is used up by %q", got)
			}
		})
	}
}
