package storetest

import (
	"fmt"
	"strings"

	"github.com/fencepost/fencepost/lock"
)

func setCases() []testCase {
	return []testCase{
		{name: "sets/in all queues at one number, and out of all at once", run: setsWhole},
		{name: "sets/the largest that is allowed", run: setsLargest},
		{name: "sets/whole or not there, whoever looks", run: setsAtomic},
		{name: "sets/crossing ones agree on the order everywhere", run: setsCrossing},
	}
}

func setsWhole(t *trial) {
	feeds := []*feed{t.follow(t.A), t.follow(t.B)}
	first := t.enqueue(t.A, t.draft("b"))
	set := t.enqueue(t.A, t.draft("a", "b", "c"))
	behind := t.enqueue(t.B, t.draft("c", "d"))
	t.wantQueue(t.B, t.ref("a"), set)
	t.wantQueue(t.B, t.ref("b"), first, set)
	t.wantQueue(t.B, t.ref("c"), set, behind)
	t.wantSame(append(feeds, t.follow(t.Reopen(t.T)))...)
	t.remove(t.B, set, lock.Released)
	t.wantQueue(t.A, t.ref("a"))
	t.wantQueue(t.A, t.ref("b"), first)
	t.wantQueue(t.A, t.ref("c"), behind)
	t.wantQueue(t.A, t.ref("d"), behind)
	t.settle(feeds...)
	for _, f := range feeds {
		v := f.state()
		n, d := v.departures(set.ID)
		if v.whole() && (v.joined[set.ID] != 1 || n != 1 || d.Reason != lock.Released) {
			t.Errorf(
				"the feed told %d times that the set came and %d times that it went, as %q", v.joined[set.ID],
				n, d.Reason,
			)
		}
	}
}

// setsLargest enqueues sets of as many locks as are allowed, with the longest
// names and the most metadata, several at once.
func setsLargest(t *trial) {
	b := t.follow(t.B)
	names := make([]string, lock.MaxSetSize)
	for i := range names {
		names[i] = fmt.Sprintf("%s%02d", strings.Repeat("n", lock.MaxNameLength-2), i)
	}
	together(4, func(i int) {
		e := t.draft(names...)
		e.Metadata = map[string]string{"k": strings.Repeat("v", lock.MaxMetadataSize-1)}
		placed, _, err := t.client(i).Enqueue(t.ctx, e)
		if err != nil {
			t.Errorf("Enqueue: %v", err)
			return
		}
		if err := t.client(i+1).Renew(t.ctx, placed); err != nil {
			t.Errorf("Renew: %v", err)
		}
	})
	t.wantSame(b)
	first := t.queue(t.A, t.ref(names[0]))
	if len(first) != 4 {
		t.Fatalf("%d sets in the queue, want 4", len(first))
	}
	t.wantQueue(t.A, t.ref(names[len(names)-1]), first...)
	for i, e := range first {
		t.remove(t.client(i), e, lock.Revoked)
		t.wantQueue(t.A, t.ref(names[7]), first[i+1:]...)
	}
}
