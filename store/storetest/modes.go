package storetest

import (
	"slices"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

func modeCases() []testCase {
	return []testCase{
		{name: "modes/readers together, a writer between them", run: modesReaders},
		{name: "modes/a semaphore lets in so many", run: modesSemaphore},
		{name: "modes/a semaphore with several permits and limits", run: modesPermits},
		{name: "modes/mixed in a set", run: modesMixed},
	}
}

// claiming returns a new entry with the claims.
func (t *trial) claiming(claims ...lock.Claim) *lock.Entry {
	e := t.draft()
	e.Claims, e.Set = claims, len(claims) > 1
	lock.Canonical(e.Claims)
	return e
}

// wantHolders checks the holders in the lock's queue: by each client's feed, and by
// each client's own read, which must come to the same.
func (t *trial) wantHolders(r lock.Ref, feeds []*feed, want ...*lock.Entry) {
	t.Helper()
	t.settle(feeds...)
	for i, f := range feeds {
		var told []*lock.Entry
		for _, p := range f.state().queues[r] {
			if p.Holds {
				told = append(told, p.Entry)
			}
		}
		if diff := diff(want, told); diff != "" {
			t.Errorf("holders of %s by feed %d (-want +got):\n%s", r.Name, i, diff)
		}
	}
	for _, s := range []store.Store{t.A, t.B} {
		queue := t.queue(s, r)
		if diff := diff(want, queue[:lock.Front(lock.ClaimsOn(queue, r.Name))]); diff != "" {
			t.Errorf("holders of %s by a read (-want +got):\n%s", r.Name, diff)
		}
	}
}

// modesReaders has readers on both sides of a writer.
func modesReaders(t *trial) {
	feeds := []*feed{t.follow(t.A), t.follow(t.B)}
	r, reader := t.ref("a"), lock.Claim{Name: "a", Mode: lock.Shared}
	first, second := t.enqueue(t.A, t.claiming(reader)), t.enqueue(t.B, t.claiming(reader))
	writer := t.enqueue(t.A, t.draft("a"))
	late := []*lock.Entry{t.enqueue(t.B, t.claiming(reader)), t.enqueue(t.A, t.claiming(reader))}
	t.wantHolders(r, feeds, first, second)
	t.remove(t.B, first, lock.Released)
	t.wantHolders(r, feeds, second)
	t.remove(t.A, second, lock.Released)
	t.wantHolders(r, feeds, writer)
	t.remove(t.B, writer, lock.Released)
	t.wantHolders(r, feeds, late...)
}

// modesSemaphore removes holders from the front, the middle and the end.
func modesSemaphore(t *trial) {
	feeds := []*feed{t.follow(t.A), t.follow(t.B)}
	var queue []*lock.Entry
	for i := range 7 {
		queue = append(
			queue, t.enqueue(t.client(i), t.claiming(permits("a", 1, 3))),
		)
	}
	t.wantHolders(t.ref("a"), feeds, queue[:3]...)
	for i, gone := range []int{1, 2, 0, 1} {
		t.remove(t.client(i), queue[gone], lock.Released)
		queue = slices.Delete(queue, gone, gone+1)
		t.wantHolders(t.ref("a"), feeds, queue[:min(3, len(queue))]...)
	}
}

func permits(name string, n, limit int) lock.Claim {
	return lock.Claim{Name: name, Mode: lock.Semaphore, Limit: limit, Permits: n}
}

// modesPermits has a deployment raise a limit and take it back, and a wide request wait.
func modesPermits(t *trial) {
	feeds := []*feed{t.follow(t.A), t.follow(t.B)}
	r, join := t.ref("a"), func(i, n, limit int) *lock.Entry {
		return t.enqueue(t.client(i), t.claiming(permits("a", n, limit)))
	}
	two, three, wide, one := join(0, 2, 3), join(1, 3, 5), join(2, 4, 5), join(3, 1, 3)
	t.wantHolders(r, feeds, two, three)
	t.remove(t.A, two, lock.Released)
	t.wantHolders(r, feeds, three) // one permit is left, and the wide request lets none pass
	t.remove(t.B, three, lock.Released)
	t.wantHolders(r, feeds, wide) // of 3 permits, as the last one has it, none is left
	t.remove(t.A, wide, lock.Released)
	t.wantHolders(r, feeds, one)
}

// modesMixed has a set read one lock, write another and count in a third.
func modesMixed(t *trial) {
	feeds := []*feed{t.follow(t.A), t.follow(t.B)}
	read, unit := lock.Claim{Name: "read", Mode: lock.Shared}, permits("units", 1, 2)
	write := lock.Claim{Name: "write", Mode: lock.Exclusive}
	reader, counter := t.enqueue(t.A, t.claiming(read)), t.enqueue(t.B, t.claiming(unit))
	set := t.enqueue(t.A, t.claiming(write, unit, read))
	behind := t.enqueue(t.B, t.claiming(write, unit))
	t.wantHolders(t.ref("read"), feeds, reader, set)
	t.wantHolders(t.ref("units"), feeds, counter, set)
	t.wantHolders(t.ref("write"), feeds, set)
	t.remove(t.B, set, lock.Released)
	t.wantHolders(t.ref("read"), feeds, reader)
	t.wantHolders(t.ref("units"), feeds, counter, behind)
	t.wantHolders(t.ref("write"), feeds, behind)
}
