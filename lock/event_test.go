package lock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
)

func TestEventsOfEntries(t *testing.T) {
	waits := &lock.Entry{WaitUntil: time.Unix(1, 0)}
	try := &lock.Entry{}
	join := func(e *lock.Entry, holds bool) lock.EventKind {
		what, _ := lock.EventOfJoin(e, holds)
		return what.Kind
	}
	end := func(e *lock.Entry, held bool, why, rejected lock.Reason) string {
		what, ok := lock.EventOfEnd(e, held, why, rejected)
		if !ok {
			return ""
		}
		if what.Held != held || what.Entry != e {
			t.Errorf("%+v is of another entry, or held otherwise", what)
		}
		return string(what.Kind) + " " + string(what.Reason)
	}
	for _, c := range []struct {
		name      string
		got, want string
	}{
		{"it waits", string(join(waits, false)), "lock.enqueued"},
		{"it holds", string(join(waits, true)), "lock.acquired"},
		{"a try waits", string(join(try, false)), ""},
		{"a try holds", string(join(try, true)), "lock.acquired"},
		{"released", end(waits, true, lock.Released, ""), "lock.released released"},
		{"a waiter leaves", end(waits, false, lock.Released, ""), "lock.released released"},
		{"expired", end(waits, false, lock.Expired, ""), "lock.expired expired"},
		{"a try expires", end(try, false, lock.Expired, ""), "lock.expired expired"},
		{"revoked", end(waits, true, lock.Revoked, ""), "lock.revoked revoked"},
		{
			"waited for long enough", end(waits, false, lock.WaitTimeout, ""),
			"lock.wait_timeout wait_timeout",
		},
		{"its client is gone", end(waits, false, lock.Withdrawn, ""), "lock.released withdrawn"},
		{"its client is gone, it held", end(waits, true, lock.Withdrawn, ""), "lock.released withdrawn"},
		{"a try gives way", end(try, false, lock.Withdrawn, ""), ""},
		{"a rejected try gives way", end(try, false, lock.Withdrawn, lock.Mismatched), ""},
		{
			"a try held, and its client is gone", end(try, true, lock.Withdrawn, ""),
			"lock.released withdrawn",
		},
		{"a cycle", end(waits, false, lock.Withdrawn, lock.Deadlocked), "lock.deadlock_refused deadlock"},
		{
			"a cycle, as the store says", end(waits, false, lock.Deadlocked, ""),
			"lock.deadlock_refused deadlock",
		},
		{"superseded", end(waits, false, lock.Superseded, ""), "lock.superseded superseded"},
		{
			"another mode", end(waits, false, lock.Withdrawn, lock.Mismatched),
			"lock.released mode_mismatch",
		},
		{
			"a client leaves a cycle", end(waits, false, lock.Released, lock.Deadlocked),
			"lock.released released",
		},
		{"a reason of a later version", end(waits, true, "closed", ""), "lock.released closed"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %q, want %q", c.name, c.got, c.want)
		}
	}
}

func TestEventIDs(t *testing.T) {
	for _, text := range []string{"0-0", "1042-1", "9007199254740991-4294967295"} {
		if id, err := lock.ParseEventID(text); err != nil || id.String() != text {
			t.Errorf("ParseEventID(%q) is %v, %v", text, id, err)
		}
	}
	for _, text := range []string{
		"", "1", "-", "1-", "-1", "1-2-3", "+1-1", "01-1", "1-01", "1-+1", "1 -1", "1-1 ", "a-1",
		"9007199254740992-1", "1-4294967296", "-1-1", "1_0-1", "0x1-1", strings.Repeat("1", 1<<20) + "-1",
	} {
		if id, err := lock.ParseEventID(text); err == nil {
			t.Errorf("ParseEventID(%.30q) is %v", text, id)
		}
	}
	order := []lock.EventID{
		lock.Before(1),
		{Number: 1, Index: 1},
		{Number: 1, Index: 2},
		lock.Before(2),
		{Number: 10, Index: 1},
	}
	for i := range order {
		for j := range order {
			want := 0
			if i != j {
				want = map[bool]int{true: -1, false: 1}[i < j]
			}
			if got := order[i].Compare(order[j]); got != want {
				t.Errorf("%v against %v: %d, want %d", order[i], order[j], got, want)
			}
		}
	}
}
