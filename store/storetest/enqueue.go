package storetest

import (
	"strings"
	"time"

	"github.com/fencepost/fencepost/lock"
)

func enqueueCases() []testCase {
	return []testCase{
		{name: "enqueue/returns the entry with its number", run: enqueueNumber},
		{name: "enqueue/every field survives", run: enqueueFields},
		{name: "enqueue/a retry joins its first attempt", run: enqueueRetry},
	}
}

// maxNumber is above every number that survives a JSON parser with doubles.
const maxNumber = 1 << 53

func enqueueNumber(t *trial) {
	draft := t.draft("a")
	placed := t.enqueue(t.A, draft)
	if placed.Number == 0 || placed.Number >= maxNumber {
		t.Errorf("Number = %d, want 0 < Number < 2^53", placed.Number)
	}
	want := clone(draft)
	want.Number, want.Handle = placed.Number, placed.Handle
	if diff := diff(want, placed); diff != "" {
		t.Errorf("Enqueue changed the entry (-want +got):\n%s", diff)
	}
	t.wantQueue(t.B, t.ref("a"), placed)
}

// enqueueFields reads entries with everything in them from the other client's
// queue, its feed, and a client that opens later.
func enqueueFields(t *trial) {
	b := t.follow(t.B)
	var placed []*lock.Entry
	for _, e := range t.richEntries() {
		got := t.enqueue(t.A, e)
		want := clone(e)
		want.Number, want.Handle = got.Number, got.Handle
		if diff := diff(want, got); diff != "" {
			t.Errorf("Enqueue changed the entry (-want +got):\n%s", diff)
		}
		placed = append(placed, got)
	}
	t.settle(b)
	late := t.follow(t.Reopen(t.T))
	for _, e := range placed {
		for _, c := range e.Claims {
			r := t.ref(c.Name)
			t.wantQueue(t.B, r, e)
			if diff := diff([]*lock.Entry{e}, b.state().entries(r)); diff != "" {
				t.Errorf("the feed changed the entry (-want +got):\n%s", diff)
			}
			if diff := diff([]*lock.Entry{e}, late.state().entries(r)); diff != "" {
				t.Errorf("the first view changed the entry (-want +got):\n%s", diff)
			}
		}
	}
}

// richEntries returns entries of distinct locks that between them use every
// field, and every legal extreme that an HTTP request can bring.
func (t *trial) richEntries() []*lock.Entry {
	shared, semaphore, set, one, long, bare := t.draft("shared"), t.draft("semaphore"), t.draft(
		"set-1", "set-2", "set-3",
	),
		t.draft("set-of-one"), t.draft(strings.Repeat("n", lock.MaxNameLength)), t.draft("bare")
	shared.Claims[0].Mode = lock.Shared
	shared.Holder, shared.Named = "Zoë \"the\\worker\"\n\t\u2028\x00<&>🔒", true
	shared.Metadata = map[string]string{"": "empty key", "empty value": "", "kéy/🔑\x01": "välue\n{}"}
	semaphore.Claims[0] = permits("semaphore", 5, 7)
	semaphore.Request, semaphore.TTL = "sha256:0123456789abcdef", longTTL+250*time.Millisecond
	set.Claims[1].Mode = lock.Shared
	set.Claims[2] = permits("set-3", 1, 3)
	one.Set = true
	long.Holder = strings.Repeat("漢", lock.MaxHolderLength)
	long.Metadata = map[string]string{"k": strings.Repeat("v", lock.MaxMetadataSize-1)}
	bare.Holder, bare.WaitUntil = "", time.Time{}
	return []*lock.Entry{shared, semaphore, set, one, long, bare}
}

// enqueueRetry repeats an entry, with other content, through both clients.
func enqueueRetry(t *trial) {
	b := t.follow(t.B)
	first := t.enqueue(t.A, t.repeatable("a"))
	behind := t.enqueue(t.B, t.draft("a"))
	for i := range 4 {
		retry := t.repeatable("a")
		retry.ID, retry.Holder, retry.TTL = first.ID, "someone else", longTTL+time.Second
		if diff := diff(first, t.enqueue(t.client(i), retry)); diff != "" {
			t.Errorf("the retry is not the first attempt (-want +got):\n%s", diff)
		}
		t.wantQueue(t.client(i+1), t.ref("a"), first, behind)
	}
	t.settle(b)
	if v := b.state(); v.whole() && v.joined[first.ID] != 1 {
		t.Errorf("the feed told of the entry %d times, want 1", v.joined[first.ID])
	}
}
