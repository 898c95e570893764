package zookeeper

import (
	"context"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// TestOverloadAfterALostAnswer: the answer to the write of an entry was lost, and its
// repetition is refused because of many others. It is said that the entry may be there,
// and it is taken back.
func TestOverloadAfterALostAnswer(t *testing.T) {
	t.Parallel()
	s := newStore(Config{})
	cleaned := make(chan *orphan, 1)
	s.orphans = store.NewCleaner(
		s.log,
		func(_ context.Context, x *orphan) error { cleaned <- x; return nil },
	)
	defer s.orphans.Close()
	by := &joiner{reader: s.reader, orphans: s.orphans}
	e := &lock.Entry{
		ID:         "e",
		Tenant:     "acme",
		TTL:        time.Minute,
		EnqueuedAt: time.Now(),
		Claims:     []lock.Claim{{Name: "a", Mode: lock.Exclusive}},
	}
	j := &join{joiner: by, entry: e, unknown: true, open: []*write{by.joinWrite(e, 0, noMark)}}
	if err := j.refuse(
		&lock.Error{Code: lock.Overloaded},
	); err.Code != lock.Overloaded ||
		!err.OutcomeUnknown {
		t.Errorf("it is told %#v", err)
	}
	if x := <-cleaned; x.entry != e {
		t.Errorf("taken back: %+v", x)
	}
	j = &join{joiner: by, entry: e}
	if err := j.refuse(&lock.Error{Code: lock.Overloaded}); err.OutcomeUnknown {
		t.Errorf("of an entry that was never sent it is told %#v", err)
	}
}
