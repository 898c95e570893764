package history_test

import (
	"errors"
	"testing"

	"github.com/fencepost/fencepost/test/faults/history"
)

func joined(entry string, revision int64, seen int) history.Change {
	return history.Change{Lock: "l", Entry: entry, Revision: revision, Joined: true, At: at(seen)}
}

func left(entry string, revision int64, seen int, reason string) history.Change {
	return history.Change{Lock: "l", Entry: entry, Revision: revision, At: at(seen), Reason: reason}
}

func until(end int, o history.Op) history.Op {
	o.Until = at(end)
	return o
}

func truth(t *testing.T, changes ...history.Change) *history.Truth {
	t.Helper()
	truth, err := history.NewTruth(changes)
	if err != nil {
		t.Fatal(err)
	}
	return truth
}

func TestTruthAccepts(t *testing.T) {
	told := truth(
		t,
		joined("a", 5, 1),
		joined("b", 6, 5),
		joined("c", 7, 6),
		left("c", 8, 7, "wait_timeout"),
		left("a", 9, 20, "released"),
		left("b", 10, 320, "expired"),
		joined("d", 12, 330),
		left("d", 13, 340, "released"),
		// the write of e was repeated after its first entry had ended unnoticed
		joined("e", 14, 341),
		left("e", 15, 350, ""),
		joined("e", 16, 355),
		left("e", 17, 364, "released"),
	)
	ops := []history.Op{
		acquire("a", 0, 2, 5), renew("a", 10, 11), release("a", 19, 21), acquire("b", 4, 20, 6),
		renew("b", 110, 111), lost(history.Renew, "b", 330, 331, "expired"),
		op(history.Acquire, "c", 5, 8, history.Refused), acquire("d", 329, 331, 12),
		release("d", 335, 340), acquire("e", 340, 360, 16), renew("e", 361, 362), release("e", 363, 364),
	}
	if err := told.Check(ops); err != nil {
		t.Errorf("Check() = %v, want nil", err)
	}
	if err := told.Orphans(); err != nil {
		t.Errorf("Orphans() = %v, want nil", err)
	}
}

func TestTruthRejectsAnswers(t *testing.T) {
	for _, test := range []struct {
		name  string
		truth []history.Change
		ops   []history.Op
		want  error
	}{
		{
			"a grant of an entry that left before its turn",
			[]history.Change{
				joined("a", 5, 1), joined("b", 6, 2), left("b", 7, 3, ""), left("a", 8, 4, "released"),
			},
			[]history.Op{acquire("b", 1, 5, 6)},
			history.ErrNeverHead,
		},
		{
			"a grant while the one before is still there",
			[]history.Change{joined("a", 5, 1), joined("b", 6, 2)},
			[]history.Op{acquire("b", 1, 5, 6)},
			history.ErrNeverHead,
		},
		{
			"a grant of an entry that left together with the one before",
			[]history.Change{
				joined("a", 5, 1), joined("b", 6, 2), left("b", 7, 3, ""), left("a", 7, 3, "released"),
			},
			[]history.Op{acquire("b", 1, 5, 6)},
			history.ErrNeverHead,
		},
		{
			"another fence than the revision",
			[]history.Change{joined("a", 5, 1)},
			[]history.Op{acquire("a", 0, 1, 4)},
			history.ErrWrongFence,
		},
		{
			"two grants of an entry that came back",
			[]history.Change{joined("a", 5, 1), left("a", 6, 2, "released"), joined("a", 7, 3)},
			[]history.Op{acquire("a", 0, 1, 5), release("a", 1, 2), acquire("a", 2, 4, 7)},
			history.ErrGrantedTwice,
		},
		{
			"a renewal of an entry whose second life has ended",
			[]history.Change{
				joined("a", 5, 1), left("a", 6, 2, ""), joined("a", 7, 3), left("a", 8, 30, "released"),
			},
			[]history.Op{acquire("a", 0, 10, 7), release("a", 28, 30), renew("a", 31, 32)},
			history.ErrAfterEnd,
		},
		{"an entry out of nowhere", nil, []history.Op{acquire("a", 0, 1, 4)}, history.ErrNoEntry},
		{
			"a renewal after the removal was seen",
			[]history.Change{joined("a", 5, 1), left("a", 6, 10, "released")},
			[]history.Op{acquire("a", 0, 2, 5), release("a", 8, 9), renew("a", 10, 11)},
			history.ErrAfterEnd,
		},
		{
			"an expiry before the TTL of the last renewal",
			[]history.Change{joined("a", 5, 1), left("a", 6, 299, "expired")},
			[]history.Op{acquire("a", 0, 2, 5), renew("a", 100, 101)},
			history.ErrTooSoon,
		},
		{
			"an expiry before the time that a waited grant was given",
			[]history.Change{joined("a", 5, 1), left("a", 6, 399, "expired")},
			[]history.Op{until(400, acquire("a", 0, 200, 5))},
			history.ErrTooSoon,
		},
		{
			"a removal that nobody asked for",
			[]history.Change{joined("a", 5, 1), left("a", 6, 10, "released")},
			[]history.Op{acquire("a", 0, 2, 5), release("a", 11, 12)},
			history.ErrTooSoon,
		},
		{
			"two clients that count on the lock at once",
			[]history.Change{joined("a", 5, 1), left("a", 6, 60, "released"), joined("b", 7, 61)},
			[]history.Op{acquire("a", 0, 2, 5), release("a", 70, 71), acquire("b", 50, 62, 7)},
			history.ErrOverlap,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			if err := truth(t, test.truth...).Check(test.ops); !errors.Is(err, test.want) {
				t.Errorf("Check() = %v, want %v", err, test.want)
			}
		})
	}
}

func TestTruthRejectsStores(t *testing.T) {
	again := joined("a", 6, 2)
	again.Rewritten = true
	for _, test := range []struct {
		name    string
		changes []history.Change
		want    error
	}{
		{"an entry written twice", []history.Change{joined("a", 5, 1), again}, history.ErrRewritten},
		{"an entry whose first write was not seen", []history.Change{again}, history.ErrRewritten},
		{
			"an entry removed twice",
			[]history.Change{joined("a", 5, 1), left("a", 6, 2, ""), left("a", 7, 3, "")},
			history.ErrNoEntry,
		},
		{
			"two entries at one revision",
			[]history.Change{joined("a", 5, 1), joined("b", 5, 1)},
			history.ErrSharedTurn,
		},
		{"a removal of an unknown entry", []history.Change{left("a", 5, 1, "")}, history.ErrNoEntry},
	} {
		t.Run(test.name, func(t *testing.T) {
			if _, err := history.NewTruth(test.changes); !errors.Is(err, test.want) {
				t.Errorf("NewTruth() = %v, want %v", err, test.want)
			}
		})
	}
	if err := truth(t, joined("a", 5, 1)).Orphans(); !errors.Is(err, history.ErrOrphan) {
		t.Errorf("Orphans() = %v, want ErrOrphan", err)
	}
}

func TestHeld(t *testing.T) {
	join := func(entry string, revision int64, mode string, limit int) history.Change {
		return history.Change{
			Lock: "a", Entry: entry, Revision: revision, Joined: true,
			Claim: history.Claim{Mode: mode, Limit: limit},
		}
	}
	leave := func(entry string, revision int64) history.Change {
		return history.Change{Lock: "a", Entry: entry, Revision: revision}
	}
	for name, c := range map[string]struct {
		changes []history.Change
		want    bool // of the entry e, which joined at 5
	}{
		"alone": {[]history.Change{join("e", 5, "exclusive", 0)}, true},
		"behind a writer": {
			[]history.Change{
				join("b", 4, "exclusive", 0), join("e", 5, "shared", 0), leave("e", 6), leave("b", 7),
			},
			false,
		},
		"after a writer": {
			[]history.Change{
				join("b", 4, "exclusive", 0), join("e", 5, "shared", 0), leave("b", 6), leave("e", 7),
			},
			true,
		},
		"reader beside a reader": {
			[]history.Change{join("b", 4, "shared", 0), join("e", 5, "shared", 0)}, true,
		},
		"writer beside a reader": {
			[]history.Change{join("b", 4, "shared", 0), join("e", 5, "exclusive", 0)}, false,
		},
		"the second of two": {
			[]history.Change{join("b", 4, "semaphore", 2), join("e", 5, "semaphore", 2)}, true,
		},
		"the third of two": {
			[]history.Change{
				join("b", 3, "semaphore", 2), join("c", 4, "semaphore", 2), join("e", 5, "semaphore", 2),
			},
			false,
		},
		"never there":               {[]history.Change{join("b", 5, "exclusive", 0)}, false},
		"there at another revision": {[]history.Change{join("e", 6, "exclusive", 0)}, false},
		"reader behind a waiting one": {
			[]history.Change{
				join("b", 3, "shared", 0), join("c", 4, "exclusive", 0), join("e", 5, "shared", 0),
			},
			false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			truth, err := history.NewTruth(c.changes)
			if err != nil {
				t.Fatal(err)
			}
			if got := truth.Held("a", "e", 5); got != c.want {
				t.Errorf("Held = %t, want %t", got, c.want)
			}
		})
	}
}
