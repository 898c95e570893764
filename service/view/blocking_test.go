package view_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/view"
	"github.com/fencepost/fencepost/store"
)

// line is a view in which so many entries stand at each of some locks.
func line(locks, each int) (*view.View, []lock.Ref) {
	v, number := empty(), uint64(0)
	v.Reset(store.Snapshot{})
	var refs []lock.Ref
	for l := range locks {
		refs = append(refs, lock.Ref{Tenant: "acme", Name: fmt.Sprintf("l%d", l)})
		for range each {
			number++
			e := &lock.Entry{
				ID: view.NumberedID(number), Tenant: "acme", Holder: "w", Number: number,
				EnqueuedAt: time.Now(), WaitUntil: time.Now().Add(time.Hour),
				Claims: []lock.Claim{{Name: refs[l].Name, Mode: lock.Exclusive}},
			}
			v.Apply(number, []store.Change{{Number: number, Joined: e}})
		}
	}
	return v, refs
}

// TestBlockingIsBounded: so many of a lock, and so many in all.
func TestBlockingIsBounded(t *testing.T) {
	v, refs := line(3, view.MaxBlockedPerLock+2)
	for _, tc := range []struct{ most, queues, last int }{
		{10_000, 3, view.MaxBlockedPerLock}, {view.MaxBlockedPerLock + 5, 2, 5}, {7, 1, 7},
	} {
		queues, more := v.Lists.Blocking(refs, tc.most)
		if len(queues) != tc.queues || len(queues[len(queues)-1].Behind) != tc.last || !more {
			t.Errorf(
				"of %d: %d queues, more %t, want %d with %d behind in the last", tc.most, len(queues), more,
				tc.queues, tc.last,
			)
		}
		if last := queues[len(queues)-1]; len(last.Behind)+last.Further != view.MaxBlockedPerLock+1 {
			t.Errorf(
				"of %d: %d and %d further ones are told, of %d", tc.most, len(last.Behind), last.Further,
				view.MaxBlockedPerLock+1,
			)
		}
	}
	short, refs := line(3, 2)
	refs = append(refs, lock.Ref{Tenant: "acme", Name: "free"})
	queues, more := short.Lists.Blocking(refs, 10_000)
	if len(queues) != 3 || more || len(queues[0].Behind) != 1 || queues[0].Front != 1 ||
		!queues[0].Holds {
		t.Errorf("%d queues, more %t, the first %+v", len(queues), more, queues[0])
	}
}

// TestBlockingAtASemaphore: it lists all holders, as each of them may free a slot.
func TestBlockingAtASemaphore(t *testing.T) {
	v := empty()
	v.Reset(store.Snapshot{})
	for number := range uint64(4) {
		e := &lock.Entry{
			ID: view.NumberedID(number + 1), Tenant: "acme", Holder: "w", Number: number + 1,
			EnqueuedAt: time.Now(), WaitUntil: time.Now().Add(time.Hour),
			Claims: []lock.Claim{{Name: "a", Mode: lock.Semaphore, Limit: 3, Permits: 1}},
		}
		v.Apply(e.Number, []store.Change{{Number: e.Number, Joined: e}})
	}
	queues, _ := v.Lists.Blocking([]lock.Ref{{Tenant: "acme", Name: "a"}}, 10)
	if len(queues) != 1 || len(queues[0].Or) != 2 || queues[0].Or[1].Entry.Number != 3 ||
		queues[0].Or[1].Since.IsZero() {
		t.Errorf("%+v, want two others who hold", queues)
	}
}

// TestOfHolderIsBounded: by the entries read, however many of them the caller may see.
func TestOfHolderIsBounded(t *testing.T) {
	v, _ := line(1, 2050)
	who := lock.Ref{Tenant: "acme", Name: "w"}
	of := v.Lists.OfHolder(who, nil, 5)
	if all := of.Entries; len(all) != 5 || !of.More || of.Revision != 2050 || !all[0].Holds ||
		all[4].At[0].Position != 4 {
		t.Errorf("%d of five, more %t, at %d", len(all), of.More, of.Revision)
	}
	if of.Holding != 1 || of.Waiting != 1999 {
		t.Errorf(
			"it is said to hold %d and to wait for %d, want 1 and 1999 of the first 2000", of.Holding,
			of.Waiting,
		)
	}
	of = v.Lists.OfHolder(who, func(string) bool { return false }, 5)
	if len(of.Entries) != 0 || of.Holding != 0 || of.Waiting != 0 || !of.More {
		t.Errorf("a caller that may see none gets %+v", of)
	}
}

// TestGrantsDoNotWaitForPatterns: the view is not held while the names are checked that a caller
// may see.
func TestGrantsDoNotWaitForPatterns(t *testing.T) {
	look := map[string]func(v *view.View, may func(string) bool){
		"OfHolder": func(v *view.View, may func(string) bool) {
			v.Lists.OfHolder(lock.Ref{Tenant: "acme", Name: "w"}, may, 5)
		},
		"EachName": func(v *view.View, may func(string) bool) {
			v.Lists.EachName("", "acme", func(r lock.Ref) { may(r.Name) })
		},
		"EachRow": func(v *view.View, may func(string) bool) {
			v.Lists.EachRow("", "acme", func(r *view.Row) { may(r.Name) })
		},
	}
	for name, looks := range look {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, _ := line(3, 2)
			asked, waited := 0, false
			looks(v, func(string) bool {
				if asked++; waited {
					return true
				}
				applied := make(chan struct{})
				go func() {
					defer close(applied)
					v.Apply(v.Progress.Number()+1, nil)
				}()
				select {
				case <-applied:
				case <-time.After(30 * time.Second):
					waited = true
				}
				return true
			})
			if waited || asked < 3 {
				t.Errorf("it is asked of %d names, and grants wait for that: %v", asked, waited)
			}
		})
	}
}

// TestNamesInParts: each name appears once, in parts too.
func TestNamesInParts(t *testing.T) {
	const locks = 4500 // of 2000 a part
	v, _ := line(locks, 1)
	told := map[string]int{}
	v.Lists.EachName("", "acme", func(r lock.Ref) { told[r.Name]++ })
	for name, n := range told {
		if n != 1 {
			t.Fatalf("%s is told %d times", name, n)
		}
	}
	if len(told) != locks {
		t.Errorf("%d names are told, want %d", len(told), locks)
	}
}

// TestGlanceInParts: each row is that of its lock, in parts too.
func TestGlanceInParts(t *testing.T) {
	v, refs := line(view.RowChunk+10, 2)
	seen := map[lock.Ref]bool{}
	v.Lists.EachRow("", "acme", func(r *view.Row) {
		if seen[r.Ref] || r.Waiting != 1 || len(r.Holders) != 1 ||
			r.Holders[0].Entry.Claims[0].Name != r.Name {
			t.Errorf("%+v", r)
		}
		seen[r.Ref] = true
	})
	if len(seen) != len(refs) {
		t.Errorf("%d rows of %d", len(seen), len(refs))
	}
}
