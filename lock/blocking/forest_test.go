package blocking_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/blocking"
)

var start = time.Date(2026, 1, 2, 15, 0, 0, 0, time.UTC)

func after(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

func everything() blocking.Limits { return blocking.Limits{Trees: 1000, Waits: 1000, Depth: 1000} }

// entry asked at so many seconds, which is its number too. It names its holder, unless that
// is "".
func entry(number int, holder string) *lock.Entry {
	return &lock.Entry{
		ID: lock.ID(fmt.Sprintf("e%d", number)), Tenant: "acme", Holder: holder, Named: holder != "",
		Number: uint64(number), EnqueuedAt: after(number),
	}
}

func queue(name string, since int, head *lock.Entry, behind ...*lock.Entry) blocking.Queue {
	return blocking.Queue{
		Ref: lock.Ref{Tenant: "acme", Name: name}, Head: head, Holds: true, Since: after(since), Front: 1,
		Behind: behind,
	}
}

// lines prints a forest: each tree, and its waiters below it.
func lines(f *blocking.Forest) (out []string) {
	for _, t := range f.Trees {
		cycle := ""
		if t.Cycle {
			cycle = " in a cycle"
		}
		out = append(
			out, fmt.Sprintf("%s%s: %d wait %v, %d deep", t.Holder, cycle, t.Waiting, t.Blamed, t.Depth),
		)
		for _, w := range t.Waits {
			out = append(out, fmt.Sprintf(
				"%d %s %d. at %s behind %s for %v", w.Depth, w.Entry.ID, w.Position, w.Lock, w.Behind.ID,
				after(100).Sub(w.Since),
			))
		}
	}
	return out
}

// orOf adds those who hold other places of a semaphore.
func orOf(q blocking.Queue, others ...*lock.Entry) blocking.Queue {
	for _, e := range others {
		q.Or = append(q.Or, blocking.Holder{Entry: e, Since: after(1)})
	}
	return q
}

// TestForest: each waiter stands below its blocker, with the instant since which it blocks.
func TestForest(t *testing.T) {
	held := map[string]*lock.Entry{}
	for i, holder := range []string{"w1", "w2", "w3", ""} {
		held[holder] = entry(i+1, holder)
	}
	set := entry(9, "")
	for what, tc := range map[string]struct {
		queues []blocking.Queue
		want   []string
	}{
		"nobody waits": {nil, nil},
		"one behind another": {
			[]blocking.Queue{queue("a", 1, held["w1"], entry(20, "w5"), entry(30, "w6"))},
			[]string{
				"w1: 2 wait 2m30s, 1 deep", "1 e20 1. at a behind e1 for 1m20s",
				"1 e30 2. at a behind e1 for 1m10s",
			},
		},
		"a holder came late to hold": { // what was waited before is not his doing
			[]blocking.Queue{queue("a", 60, held["w1"], entry(20, "w5"))},
			[]string{"w1: 1 wait 40s, 1 deep", "1 e20 1. at a behind e1 for 40s"},
		},
		"a chain": { // w5 waits for w2 since 20; w2 waits for w1 only since 70
			[]blocking.Queue{
				queue("b", 2, held["w2"], entry(20, "w5")), queue("a", 1, held["w1"], entry(70, "w2")),
			},
			[]string{
				"w1: 2 wait 1m0s, 2 deep", "1 e70 1. at a behind e1 for 30s", "2 e20 1. at b behind e2 for 30s",
			},
		},
		"no chain without a name": { // each entry is an actor of its own
			[]blocking.Queue{
				queue("b", 4, held[""], entry(20, "w5")), queue("a", 1, held["w1"], entry(70, "")),
			},
			[]string{
				": 1 wait 1m20s, 1 deep", "1 e20 1. at b behind e4 for 1m20s", "w1: 1 wait 30s, 1 deep",
				"1 e70 1. at a behind e1 for 30s",
			},
		},
		"the worst first": {
			[]blocking.Queue{
				queue("a", 1, held["w1"], entry(80, "w5")), queue("b", 2, held["w2"], entry(20, "w6")),
			},
			[]string{
				"w2: 1 wait 1m20s, 1 deep", "1 e20 1. at b behind e2 for 1m20s", "w1: 1 wait 20s, 1 deep",
				"1 e80 1. at a behind e1 for 20s",
			},
		},
		"a set that keeps one lock and waits for another": {
			[]blocking.Queue{queue("a", 1, held["w1"], set), queue("b", 9, set, entry(50, "w5"))},
			[]string{
				"w1: 2 wait 2m21s, 2 deep", "1 e9 1. at a behind e1 for 1m31s",
				"2 e50 1. at b behind e9 for 50s",
			},
		},
		"a set behind two": { // once, and its place counts
			[]blocking.Queue{
				queue("b", 2, held["w2"], set, entry(50, "w5")), queue("a", 1, held["w1"], set),
			},
			[]string{
				"w1: 1 wait 1m31s, 1 deep", "1 e9 1. at a behind e1 for 1m31s", "w2: 1 wait 50s, 1 deep",
				"1 e50 2. at b behind e2 for 50s",
			},
		},
		"a cycle that is not refused yet": {
			[]blocking.Queue{
				queue("a", 1, held["w1"], entry(20, "w2")), queue("b", 2, held["w2"], entry(30, "w1")),
			},
			[]string{
				"w1 in a cycle: 2 wait 2m30s, 2 deep", "1 e20 1. at a behind e1 for 1m20s",
				"2 e30 1. at b behind e2 for 1m10s",
			},
		},
		"a place of a semaphore that may come free": { // w1 waits for a second one
			[]blocking.Queue{orOf(queue("a", 1, held["w1"], entry(20, "w1")), held["w2"])},
			[]string{"w2: 1 wait 1m20s, 1 deep", "1 e20 1. at a behind e2 for 1m20s"},
		},
		"a semaphore of which all wait": {
			[]blocking.Queue{orOf(queue("a", 1, held["w1"], entry(20, "w1"), entry(30, "w2")), held["w2"])},
			[]string{
				"w1 in a cycle: 2 wait 2m30s, 1 deep", "1 e20 1. at a behind e1 for 1m20s",
				"1 e30 2. at a behind e1 for 1m10s",
			},
		},
	} {
		if diff := cmp.Diff(
			tc.want, lines(blocking.Of(tc.queues, after(100), everything())),
		); diff != "" {
			t.Errorf("%s (-want +got)\n%s", what, diff)
		}
	}
}

// TestForestIsBounded: what is not listed counts all the same.
func TestForestIsBounded(t *testing.T) {
	queues := []blocking.Queue{queue("a", 1, entry(1, "w1"))}
	for i := range 9 { // w2 waits for w1, w3 for w2, and so on
		number := 10 + i
		if i > 0 {
			queues = append(queues, queue(fmt.Sprintf("l%d", i), 1, entry(100+i, fmt.Sprintf("w%d", i+1))))
		}
		queues[i].Behind = append(queues[i].Behind, entry(number, fmt.Sprintf("w%d", i+2)))
	}
	queues = append(queues, queue("z", 1, entry(2, "v"), entry(90, "u")))
	f := blocking.Of(queues, after(200), blocking.Limits{Trees: 1, Waits: 4, Depth: 3})
	if len(f.Trees) != 1 || f.Heads != 2 || f.Waiting != 10 {
		t.Fatalf("%d trees of %d, %d wait, want 1 of 2 and 10", len(f.Trees), f.Heads, f.Waiting)
	}
	if one := f.Trees[0]; len(one.Waits) != 3 || one.Waiting != 9 || one.Depth != 9 {
		t.Errorf(
			"%d are listed of %d, %d deep, want 3 of 9, 9 deep", len(one.Waits), one.Waiting, one.Depth,
		)
	}
	if f = blocking.Of(queues, after(200), blocking.Limits{Trees: 1, Waits: 2, Depth: 9}); len(
		f.Trees[0].Waits,
	) != 2 {
		t.Errorf("%d are listed, want 2", len(f.Trees[0].Waits))
	}
}

// TestFurtherOnesCount: the tree counts waiters beyond the ones that it lists by name.
func TestFurtherOnesCount(t *testing.T) {
	one := queue("a", 1, entry(1, "w1"), entry(10, "w2"))
	one.Further = 4000
	f := blocking.Of([]blocking.Queue{one}, after(200), everything())
	if tree := f.Trees[0]; f.Waiting != 4001 || tree.Waiting != 4001 ||
		tree.Heads[0].Waiting != 4001 || len(tree.Waits) != 1 {
		t.Errorf(
			"%d wait, %d in the tree, %d at its head, and %d are listed", f.Waiting, tree.Waiting,
			tree.Heads[0].Waiting, len(tree.Waits),
		)
	}
}

// TestManyGoByOneName: the forest does not treat many entries of one name as one actor.
func TestManyGoByOneName(t *testing.T) {
	one := queue("a", 1, entry(1, "crowd"))
	for i := range 101 {
		one.Behind = append(one.Behind, entry(10+i, "crowd"))
	}
	f := blocking.Of([]blocking.Queue{one}, after(200), everything())
	if len(f.Trees) != 1 || f.Trees[0].Cycle || f.Trees[0].Named || f.Trees[0].Waiting != 101 {
		t.Errorf("%d trees, the first %+v", len(f.Trees), f.Trees[0])
	}
}

// TestEverybodyIsCountedOnce, whatever the order in which queues are given.
func TestEverybodyIsCountedOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		queues, number, waiting := []blocking.Queue{}, 0, map[lock.ID]bool{}
		next := func() *lock.Entry {
			number++
			return entry(number, rapid.SampledFrom([]string{"", "w1", "w2", "w3", "w4"}).Draw(t, "holder"))
		}
		var sets []*lock.Entry
		for i := range rapid.IntRange(0, 6).Draw(t, "locks") {
			q := queue(fmt.Sprintf("l%d", i), number, next())
			for range rapid.IntRange(1, 4).Draw(t, "behind") {
				e := next()
				if len(sets) > 0 && rapid.Bool().Draw(t, "a set") {
					e = sets[0]
					sets = nil
				} else {
					sets = append(sets, e)
				}
				q.Behind = append(q.Behind, e)
				waiting[e.ID] = true
			}
			queues = append(queues, q)
		}
		f := blocking.Of(clone(queues), after(500), everything())
		listed := map[lock.ID]bool{}
		for _, tree := range f.Trees {
			if len(tree.Heads) == 0 || len(tree.Waits) != tree.Waiting || tree.Blamed < 0 {
				t.Fatalf("tree %+v", tree)
			}
			for _, w := range tree.Waits {
				if listed[w.Entry.ID] {
					t.Fatalf("%s is listed twice", w.Entry.ID)
				}
				listed[w.Entry.ID] = true
			}
		}
		if len(listed) != len(waiting) || f.Waiting != len(waiting) {
			t.Fatalf("%d are listed and %d counted of %d", len(listed), f.Waiting, len(waiting))
		}
		other := clone(queues)
		slices.Reverse(other)
		if diff := cmp.Diff(lines(f), lines(blocking.Of(other, after(500), everything()))); diff != "" {
			t.Fatalf("in another order (-one +other)\n%s", diff)
		}
	})
}

func clone(queues []blocking.Queue) []blocking.Queue {
	out := slices.Clone(queues)
	for i := range out {
		out[i].Behind = slices.Clone(out[i].Behind)
	}
	return out
}
