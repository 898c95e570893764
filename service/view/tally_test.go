package view_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/quota"
	"github.com/fencepost/fencepost/service/view"
	"github.com/fencepost/fencepost/store"
)

// counter drives a view at random, beside the entries that it should have.
type counter struct {
	view    *view.View
	entries []*lock.Entry
	number  uint64
	serial  int
}

// draft returns an entry of some locks that asks for all or any of them.
func (c *counter) draft(t *rapid.T) *lock.Entry {
	c.serial++
	within := time.Minute
	e := &lock.Entry{
		ID: lock.ID(fmt.Sprint("e", c.serial)), Tenant: "t", Set: true, Named: true, TTL: time.Minute,
		Holder: rapid.SampledFrom([]string{"v", "w"}).Draw(t, "holder"), EnqueuedAt: time.Now(),
		Async: rapid.Bool().Draw(t, "async"), OnlyNewest: rapid.Bool().Draw(t, "only newest"),
	}
	if rapid.Bool().Draw(t, "waits") {
		e.WaitUntil, e.AskWithin = time.Now().Add(time.Hour), &within
	}
	n := rapid.IntRange(1, 3).Draw(t, "locks")
	for _, name := range rapid.Permutation([]string{"a", "b", "c", "s"}).Draw(t, "names")[:n] {
		claim := lock.Claim{Name: name, Mode: lock.Exclusive}
		if name == "s" {
			claim.Mode, claim.Limit = lock.Semaphore, rapid.IntRange(2, 4).Draw(t, "limit")
			claim.Permits = rapid.IntRange(1, claim.Limit).Draw(t, "permits")
		}
		e.Claims = append(e.Claims, claim)
	}
	inOrder := slices.Clone(e.Claims)
	lock.Canonical(e.Claims)
	e.Choose(rapid.IntRange(0, n).Draw(t, "any"), inOrder)
	return e
}

// Write applies some changes of one write.
func (c *counter) Write(t *rapid.T) {
	c.number++
	var changes []store.Change
	for _, e := range slices.Clone(c.entries) {
		changes = append(changes, c.change(t, e)...)
	}
	if rapid.Bool().Draw(t, "joins") {
		e := c.draft(t)
		if rapid.Bool().Draw(t, "reserved") {
			_ = c.view.Quotas.Reserve(e)
			defer c.view.Quotas.Unreserve(e)
		}
		written := *e
		written.Number = c.number
		c.entries = append(c.entries, &written)
		changes = append(changes, store.Change{Number: c.number, Joined: &written})
	}
	c.view.Apply(c.number, changes)
}

// change lets an entry leave, or choose, or nothing.
func (c *counter) change(t *rapid.T, e *lock.Entry) []store.Change {
	at := slices.Index(c.entries, e)
	st := c.view.Status(e.ID, e.Number)
	switch rapid.IntRange(0, 5).Draw(t, "change") {
	case 0:
		c.entries = slices.Delete(c.entries, at, at+1)
		return []store.Change{{Number: c.number, Left: e.ID, Reason: lock.Released}}
	case 1, 2:
		if st.Choice != nil {
			c.entries[at] = e.Narrowed(st.Choice)
			return []store.Change{{Number: c.number, Narrowed: c.entries[at]}}
		}
	}
	return nil
}

// Relist builds the view from a list, which may show what no feed has reported.
func (c *counter) Relist(t *rapid.T) {
	c.number++
	for _, e := range slices.Clone(c.entries) {
		c.change(t, e)
	}
	c.view.Lost(nil)
	c.view.Reset(store.Snapshot{Number: c.number, Newest: c.number, Entries: slices.Clone(c.entries)})
	c.view.Recall(nil, true)
}

// Check compares with a view that has just listed.
func (c *counter) Check(t *rapid.T) {
	listed := empty()
	listed.Reset(store.Snapshot{Number: c.number, Newest: c.number, Entries: slices.Clone(c.entries)})
	if got, want := c.view.Quotas.AccountOf("t"), listed.Quotas.AccountOf("t"); got != want {
		t.Fatalf("counts %v, want %v", got.Used, want.Used)
	}
	for _, state := range []string{"", "held", "contended"} {
		req := view.ListRequest{Tenant: "t", State: state, Limit: 100}
		var got, want view.Page
		c.view.Lists.List(req, "", &got)
		listed.Lists.List(req, "", &want)
		for i := range max(len(got.Locks), len(want.Locks)) {
			if i >= len(got.Locks) || i >= len(want.Locks) || got.Locks[i].Name != want.Locks[i].Name ||
				got.Locks[i].Waiting != want.Locks[i].Waiting ||
				len(got.Locks[i].Holders) != len(want.Locks[i].Holders) {
				t.Fatalf("lists %+v, want %+v", got.Locks, want.Locks)
			}
		}
	}
	for _, name := range []string{"a", "b", "c", "s"} {
		c.view.AskedAt(lock.Ref{Tenant: "t", Name: name}) // it reads all that ask
	}
	for _, e := range c.entries {
		got, want := c.view.Status(e.ID, e.Number), listed.Status(e.ID, e.Number)
		if got.State != want.State || !slices.Equal(got.Choice, want.Choice) ||
			(got.Refused == nil) != (want.Refused == nil) {
			t.Fatalf("%s is %+v, after a list %+v", e.ID, got, want)
		}
	}
}

// TestNothingIsCountedForever: a view that followed what joined, chose and left counts what a list
// does, and nothing when all are gone.
func TestNothingIsCountedForever(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &counter{view: empty()}
		c.view.Reset(store.Snapshot{})
		c.view.Recall(nil, true)
		t.Repeat(map[string]func(*rapid.T){"Write": c.Write, "Relist": c.Relist, "": c.Check})
		c.number++
		var changes []store.Change
		for _, e := range c.entries {
			changes = append(changes, store.Change{Number: c.number, Left: e.ID, Reason: lock.Released})
		}
		c.view.Apply(c.number, changes)
		if used := c.view.Quotas.AccountOf("t").Used; used != (quota.Limits{}) {
			t.Fatalf("after all are gone it counts %v", used)
		}
		if counts, _ := c.view.Queues.Count(); slices.ContainsFunc(
			[]lock.Mode{lock.Exclusive, lock.Semaphore},
			func(m lock.Mode) bool { return counts[m] != lock.Counts{} },
		) {
			t.Fatalf("after all are gone it counts %v", counts)
		}
	})
}
