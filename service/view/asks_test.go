package view_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/view"
	"github.com/fencepost/fencepost/store"
)

// TestAskedIsAFunctionOfTheQueues: whatever joins and leaves, a replica that followed and one that
// has just listed know the same of a lock: the entries that ask and are not in front in its queue.
func TestAskedIsAFunctionOfTheQueues(t *testing.T) {
	for seed := range uint64(100) {
		h := &history{Rand: rand.New(rand.NewPCG(seed, 2))}
		followed := empty()
		followed.Reset(store.Snapshot{})
		for range 60 {
			followed.Apply(h.number, h.write())
			listed := empty()
			listed.Reset(h.list())
			for _, name := range []string{"a", "b", "c", "d", "e"} {
				r := lock.Ref{Tenant: "acme", Name: name}
				want := h.asksAt(r)
				for _, v := range []*view.View{followed, listed} {
					if got := v.AskedAt(r); (got == nil) != (want == nil) || got != nil && *got != *want {
						t.Fatalf("seed %d at %d: of %s a view tells %+v, want %+v", seed, h.number, name, got, want)
					}
				}
			}
		}
	}
}

// asksAt works out what is asked at a lock by the rules.
func (h *history) asksAt(r lock.Ref) *view.Asked {
	table := lock.NewTable()
	for _, e := range h.entries {
		if _, err := table.Insert(e); err != nil {
			panic(err)
		}
	}
	q := table.Queue(r)
	if q == nil {
		return nil
	}
	var asked *view.Asked
	for s := q.Behind(); s != nil; s = s.Next() {
		e := s.Member().Entry()
		ask, ok := e.Asks()
		if !ok {
			continue
		}
		if asked == nil {
			asked = &view.Asked{Since: ask.Since, By: e.Holder, Wished: ask.Wished()}
		}
		if asked.Waiting++; ask.Wished().Before(asked.Wished) {
			asked.Wished = ask.Wished()
		}
	}
	return asked
}

// TestHolderIsAskedOnceByASet: a set that waits for two locks of a holder asks once, and an entry
// never asks itself.
func TestHolderIsAskedOnceByASet(t *testing.T) {
	v, l := listener(t)
	v.Reset(store.Snapshot{Number: 1})
	now := time.Now().UTC().Truncate(time.Millisecond)
	entry := func(number uint64) *lock.Entry {
		return &lock.Entry{
			ID: view.NumberedID(number), Tenant: "acme", Number: number, Holder: "w", TTL: time.Minute,
			EnqueuedAt: now, WaitUntil: now.Add(time.Hour), Set: true, AskWithin: new(time.Duration),
			Claims: []lock.Claim{{Name: "a", Mode: lock.Exclusive}, {Name: "b", Mode: lock.Exclusive}},
		}
	}
	holds, waits := entry(2), entry(3)
	v.Apply(3, []store.Change{{Number: 2, Joined: holds}, {Number: 3, Joined: waits}})
	want := view.Asked{Since: now, By: "w", Waiting: 1, Wished: now}
	if got := v.AskedOf(holds); got == nil || *got != want {
		t.Errorf("the holder is told %+v, want %+v", got, want)
	}
	if got := v.AskedOf(waits); got != nil {
		t.Errorf("an entry that the view has waiting is told of itself: %+v", got)
	}
	if got := l.last.String(); got != "3-2" {
		t.Errorf("the last event is %s, want 3-2", got)
	}
}
