package storetest

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

func formCases() []testCase {
	return []testCase{
		{name: "form/what an entry has is kept", run: formKept},
		{name: "form/nothing is granted after a newer version", run: formNewer},
		{name: "form/a store of an earlier version is refused", run: formOlder},
	}
}

const aTrace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// kept returns an entry that the service keeps, with all that such a one can have.
func (t *trial) kept(locks ...string) *lock.Entry {
	e := t.draft(locks...)
	e.Async, e.OnlyNewest, e.Trace = true, true, aTrace
	e.Callback = &lock.Callback{URL: "https://example.org/told?job=<7>", Secret: "callback-1"}
	within := 90 * time.Second
	e.AskWithin = &within
	return e
}

// formKept reads an entry that has everything in queues and feeds.
func formKept(t *trial) {
	feeds := []*feed{t.follow(t.A), t.follow(t.B)}
	one, set := t.enqueue(t.A, t.kept("a")), t.enqueue(t.B, t.kept("a", "b"))
	kept := one.Async && one.OnlyNewest && one.Callback != nil && one.AskWithin != nil
	if !kept || one.Trace != aTrace {
		t.Errorf("Enqueue = %+v", one)
	}
	for i := range 2 {
		t.wantQueue(t.client(i), t.ref("a"), one, set)
		t.wantQueue(t.client(i), t.ref("b"), set)
	}
	late := t.Reopen(t.T)
	t.wantQueue(late, t.ref("a"), one, set)
	t.wantSame(append(feeds, t.follow(late))...)
}

// formNewer has a newer version record its form while clients run, and while their entries wait.
func formNewer(t *trial) {
	f := t.follow(t.A)
	renewed, removed := t.enqueue(t.A, t.draft("a")), t.enqueue(t.A, t.draft("b"))
	t.SetForm(t.T, store.Form+1)
	t.eventually(t.Late, "it refuses without a call", func() bool {
		return errors.Is(t.A.Refusal(), store.ErrNewerForm)
	})
	for _, names := range [][]string{{"a"}, {"c"}} {
		for i := range 2 {
			_, _, err := t.client(i).Enqueue(t.ctx, t.draft(names...))
			if t.wantUnavailable("Enqueue", err) || !errors.Is(err, store.ErrNewerForm) {
				t.Errorf("Enqueue of %v by client %d = %v", names, i, err)
			}
		}
	}
	if err := t.A.Renew(t.ctx, renewed); err != nil {
		t.Errorf("Renew = %v", err)
	}
	t.remove(t.A, removed, lock.Released)
	t.wantQueue(t.A, t.ref("a"), renewed)
	t.wantQueue(t.A, t.ref("c"))
	if !f.await(2*t.Late, func() bool { return f.current && !f.has(removed.ID) }) {
		t.Error("the feed does not go on")
	}
	for _, floor := range []uint64{0, 1 << 40} {
		if _, err := t.OpenFloor(t.T, floor); !errors.Is(err, store.ErrNewerForm) {
			t.Errorf("a client that starts with the floor %d: %v", floor, err)
		}
	}
}

// formOlder starts clients on a store that an earlier version has written.
func formOlder(t *trial) {
	t.enqueue(t.A, t.draft("a"))
	for _, form := range []int{store.Form - 1, 0} {
		t.SetForm(t.T, form)
		for _, floor := range []uint64{0, 1 << 40} {
			_, err := t.OpenFloor(t.T, floor)
			if !errors.Is(err, store.ErrOlderForm) || !strings.Contains(err.Error(), "--fence-floor") {
				t.Errorf("a client that starts on form %d with the floor %d: %v", form, floor, err)
			}
		}
	}
}

// WithForm returns the store's own record in another form, as another version of the server writes
// it.
func WithForm(own []byte, form int) []byte { return WithOwn(own, "form", form) }

// WithOwn returns the store's own record with another value of a field, or without it for nil.
func WithOwn(own []byte, field string, value any) []byte {
	var all map[string]any
	if err := json.Unmarshal(own, &all); err != nil {
		panic("bug: the store's own record is no JSON: " + err.Error())
	}
	if all[field] = value; value == nil {
		delete(all, field)
	}
	return store.Encode(all)
}
