package storetest

import (
	"github.com/fencepost/fencepost/lock"
)

func readCases() []testCase {
	return []testCase{
		{name: "read/each client sees what the other has done", run: readLinearizable},
		{name: "read/the newest number is never behind", run: readNewest},
		{name: "read/a lock that nobody wants", run: readEmpty},
	}
}

// readLinearizable reads through one client right after the other one's write
// has returned.
func readLinearizable(t *trial) {
	for i := range 60 {
		writer, reader := t.client(i), t.client(i+1)
		e := t.enqueue(writer, t.draft("a"))
		t.wantQueue(reader, t.ref("a"), e)
		_, number, err := reader.Queue(t.ctx, t.ref("a"))
		if err != nil || number < e.Number {
			t.Fatalf("Queue is of number %d, %v, want at least %d", number, err, e.Number)
		}
		t.remove(writer, e, lock.Released)
		t.wantQueue(reader, t.ref("a"))
	}
}

func readNewest(t *trial) {
	last := uint64(0)
	for i := range 60 {
		e := t.enqueue(t.client(i), t.draft("a"))
		for j := range 2 {
			newest, err := t.client(i + j + 1).Newest(t.ctx)
			if err != nil || newest < e.Number || newest < last {
				t.Fatalf("Newest() = %d, %v after %d was written and %d was read", newest, err, e.Number, last)
			}
			last = newest
		}
	}
}

func readEmpty(t *trial) {
	e := t.enqueue(t.A, t.draft("a"))
	entries, number, err := t.B.Queue(t.ctx, t.ref("nobody"))
	if err != nil || len(entries) > 0 || number < e.Number {
		t.Errorf("Queue = %v, %d, %v, want no entries at %d or later", entries, number, err, e.Number)
	}
}
