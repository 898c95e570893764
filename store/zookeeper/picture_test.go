package zookeeper

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// TestFloorRisesDuringAList: this replica learns of a greater floor while it lists, so that
// a holder that was read before it could come after who joined since. No view is made of
// that.
func TestFloorRisesDuringAList(t *testing.T) {
	t.Parallel()
	s := newStore(Config{})
	entry := func(id string, zxid int64) *lock.Entry {
		return &lock.Entry{
			ID: lock.ID(id), Tenant: "acme", TTL: time.Minute, Number: s.reader.number(zxid),
			Claims: []lock.Claim{{Name: "a", Mode: lock.Exclusive}},
		}
	}
	f := s.feed
	f.listing, f.zxid = &listing{from: 100, gone: map[key]struct{}{}}, 100
	waits := entry("waits", 20)
	rise := func(context.Context) (store.Records, error) {
		return store.Records{Position: 100, Floor: 1 << 40}, nil
	}
	if _, err := s.reader.trust.Reread(t.Context(), 0, rise); err != nil {
		t.Fatal(err)
	}
	holds := entry("holds", 10)
	listed := &snapshot{entries: map[key]*lock.Entry{keyOf(waits): waits, keyOf(holds): holds}}
	if err := f.begin(listed); !errors.Is(err, errMeta) || f.current {
		t.Errorf(
			"begin = %v, and the first is %s", err,
			f.entries.queue(lock.Ref{Tenant: "acme", Name: "a"})[0].ID,
		)
	}
}

// TestFloorRisesUnderAFeed: this replica has learnt of a greater floor before the log reports it
// to its feed. The feed matches an end to its entry by position, which is the number less the
// floor. It must not skip the end, so it restarts.
func TestFloorRisesUnderAFeed(t *testing.T) {
	t.Parallel()
	s := newStore(Config{})
	f := s.feed
	e := &lock.Entry{
		ID: "holds", Tenant: "acme", TTL: time.Minute, Number: s.reader.number(10),
		Claims: []lock.Claim{{Name: "a", Mode: lock.Exclusive}},
	}
	f.entries.add(e)
	f.current, f.zxid = true, 20
	rise := func(context.Context) (store.Records, error) {
		return store.Records{Position: 20, Floor: 1 << 40}, nil
	}
	if _, err := s.reader.trust.Reread(t.Context(), 0, rise); err != nil {
		t.Fatal(err)
	}
	left := change{Tenant: "acme", Lock: "a", ID: e.ID, Reason: lock.Released}
	err := f.apply([]written{{zxid: 30, record: &record{Changes: []change{left}}}}, 30)
	if !errors.Is(err, errMeta) {
		t.Errorf("apply = %v, and %d entries are there", err, len(f.entries.byKey))
	}
}
