package history_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fencepost/fencepost/test/faults/history"
)

const ttl = 2 * time.Second

// at makes a time of hundredths of a second.
func at(n int) time.Duration { return time.Duration(n) * 10 * time.Millisecond }

func op(kind history.Kind, entry string, call, ret int, outcome history.Outcome) history.Op {
	return history.Op{
		Lock: "l", Kind: kind, Entry: entry, TTL: ttl, Call: at(call), Return: at(ret), Outcome: outcome,
	}
}

func acquire(entry string, call, ret int, fence int64) history.Op {
	o := op(history.Acquire, entry, call, ret, history.OK)
	o.Fence = fence
	return o
}

func renew(entry string, call, ret int) history.Op {
	return op(history.Renew, entry, call, ret, history.OK)
}

func release(entry string, call, ret int) history.Op {
	return op(history.Release, entry, call, ret, history.OK)
}

func lost(kind history.Kind, entry string, call, ret int, reason string) history.Op {
	o := op(kind, entry, call, ret, history.Lost)
	o.Reason = reason
	return o
}

func remove(entry string, call, ret int) history.Op {
	return op(history.Remove, entry, call, ret, history.OK)
}

func waiting(o history.Op) history.Op {
	o.Waiting = true
	return o
}

func TestCheckAccepts(t *testing.T) {
	for name, ops := range map[string][]history.Op{
		"one after the other": {
			acquire("a", 0, 1, 5), renew("a", 10, 11), release("a", 20, 21),
			acquire("b", 22, 23, 6), release("b", 24, 25),
		},
		"a waiter that overlaps the holder": {
			acquire("a", 0, 1, 5), acquire("b", 2, 30, 6), release("a", 20, 31), release("b", 40, 41),
		},
		"expired after its TTL and taken over": {
			acquire("a", 0, 1, 5), acquire("b", 100, 201, 6), lost(history.Renew, "a", 210, 211, "expired"),
		},
		"expired, seen by its own renewal": {
			acquire("a", 0, 1, 5), lost(history.Renew, "a", 199, 201, "expired"), acquire("b", 300, 301, 7),
		},
		"the lease of a waited grant counts from the release before it": {
			acquire("a", 0, 1, 5), acquire("b", 2, 100, 6), release("a", 90, 91),
			lost(history.Renew, "b", 280, 291, "expired"),
		},
		"an acquire of unknown outcome": {
			op(history.Acquire, "", 0, 10, history.Unknown), acquire("b", 20, 21, 9),
		},
		"a release of unknown outcome that happened": {
			acquire("a", 0, 1, 5), op(history.Release, "a", 2, 3, history.Unknown), acquire("b", 10, 11, 6),
		},
		"a release of unknown outcome that happened late": {
			acquire("a", 0, 1, 5), op(history.Release, "a", 2, 3, history.Unknown),
			renew("a", 10, 11), acquire("b", 20, 21, 6), renew("b", 30, 31),
		},
		"a release of unknown outcome that never happened": {
			acquire("a", 0, 1, 5), op(history.Release, "a", 2, 3, history.Unknown),
			renew("a", 10, 11), acquire("b", 200, 211, 6),
		},
		"a renewal of unknown outcome": {
			acquire("a", 0, 1, 5), op(history.Renew, "a", 150, 151, history.Unknown),
			acquire("b", 152, 200, 6),
		},
		"told of the same grant twice": {
			acquire("a", 0, 1, 5), acquire("a", 2, 3, 5), release("a", 4, 5),
		},
		"a waiting entry leaves the queue": {
			acquire("a", 0, 1, 5), waiting(renew("b", 2, 3)), waiting(release("b", 4, 5)),
			release("a", 6, 7), acquire("c", 8, 9, 7),
		},
		"an entry removed while it waited is told so": {
			acquire("a", 0, 1, 5), remove("b", 2, 3), lost(history.Acquire, "b", 1, 4, "expired"),
			release("a", 5, 6),
		},
		"a holder removed from outside": {
			acquire("a", 0, 1, 5), remove("a", 2, 3), acquire("b", 4, 5, 6),
			lost(history.Release, "a", 6, 7, "expired"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := history.Check(ops, history.CheckOptions{Timeout: time.Minute}); err != nil {
				t.Errorf("Check() = %v, want nil", err)
			}
		})
	}
}

func TestCheckRejects(t *testing.T) {
	for name, ops := range map[string][]history.Op{
		"two holders": {acquire("a", 0, 1, 5), acquire("b", 10, 11, 6), release("a", 20, 21)},
		"taken over before the TTL of the last renewal": {
			acquire("a", 0, 1, 5), renew("a", 100, 101), acquire("b", 150, 290, 6),
		},
		"the fence goes back": {
			acquire("a", 0, 1, 5), release("a", 2, 3), acquire("b", 4, 5, 4), release("b", 6, 7),
		},
		"the fence is handed out twice": {
			acquire("a", 0, 1, 5), release("a", 2, 3), acquire("b", 4, 5, 5), release("b", 6, 7),
		},
		"granted after it was removed from the queue": {
			acquire("a", 0, 1, 5), remove("b", 2, 3), release("a", 10, 11), acquire("b", 1, 12, 6),
		},
		"granted after it left the queue": {
			acquire("a", 0, 1, 5), waiting(release("b", 2, 3)), release("a", 10, 11), acquire("b", 1, 12, 6),
		},
		"told of the grant again after the release": {
			acquire("a", 0, 1, 5), release("a", 2, 3), acquire("a", 4, 5, 5),
		},
		"renewed after the release": {acquire("a", 0, 1, 5), release("a", 2, 3), renew("a", 4, 5)},
		"renewed after another had it": {
			acquire("a", 0, 1, 5), acquire("b", 100, 201, 6), renew("a", 210, 211),
		},
		"renewed after it was removed": {acquire("a", 0, 1, 5), remove("a", 2, 3), renew("a", 4, 5)},
		"a waiting entry renewed after it was removed": {
			remove("b", 2, 3), waiting(renew("b", 4, 5)),
		},
		"released twice with success": {acquire("a", 0, 1, 5), release("a", 2, 3), release("a", 4, 5)},
		"a late release takes the newer holder away": {
			acquire("a", 0, 1, 5), op(history.Release, "a", 2, 3, history.Unknown), acquire("b", 10, 11, 6),
			acquire("c", 20, 21, 7), renew("b", 30, 31),
		},
		"lost before the TTL": {acquire("a", 0, 1, 5), lost(history.Renew, "a", 100, 101, "expired")},
		"a waited grant lost before its TTL": {
			acquire("a", 0, 1, 5), acquire("b", 2, 100, 6), release("a", 90, 91),
			// it may have been renewed a quarter of a second before the release
			lost(history.Renew, "b", 260, 264, "expired"),
		},
		"called released, though nobody released it": {
			acquire("a", 0, 1, 5), lost(history.Renew, "a", 300, 301, "released"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := history.Check(ops, history.CheckOptions{Timeout: time.Minute})
			if !errors.Is(err, history.ErrNotLinearizable) {
				t.Errorf("Check() = %v, want ErrNotLinearizable", err)
			}
		})
	}
}

func TestCheckNamesTheLockAndDrawsIt(t *testing.T) {
	bad := []history.Op{acquire("a", 0, 1, 5), acquire("b", 10, 11, 6)}
	good := acquire("c", 0, 1, 5)
	good.Lock = "fine"
	dir := t.TempDir()
	err := history.Check(append(bad, good), history.CheckOptions{Timeout: time.Minute, Dir: dir})
	if err == nil {
		t.Fatal("Check() = nil, want a violation")
	}
	t.Log(err)
	if _, err := os.Stat(filepath.Join(dir, "l.html")); err != nil {
		t.Errorf("no picture of lock l: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "fine.html")); err == nil {
		t.Error("a picture of the lock that is fine")
	}
}

func TestCheckWantsFewUnknowns(t *testing.T) {
	ops := make([]history.Op, history.MaxUnknown+1)
	for i := range ops {
		ops[i] = op(history.Acquire, "", i, i+1, history.Unknown)
	}
	if err := history.Check(ops, history.CheckOptions{Timeout: time.Minute}); !errors.Is(
		err, history.ErrTooManyUnknown,
	) {
		t.Errorf("Check() = %v, want ErrTooManyUnknown", err)
	}
}

func TestCheckTimeoutIsAFailure(t *testing.T) {
	ops := long(2000)
	if err := history.Check(ops, history.CheckOptions{Timeout: time.Nanosecond}); !errors.Is(
		err, history.ErrCheckerTimeout,
	) {
		t.Errorf("Check() = %v, want ErrCheckerTimeout", err)
	}
}

// long is a legal history of n holds, each with a release of unknown outcome,
// under eight clients that wait for each other.
func long(n int) []history.Op {
	var ops []history.Op
	for i := range n {
		entry, start := fmt.Sprint("e", i), 10*i
		ops = append(
			ops, acquire(entry, max(0, start-70), start+1, int64(i+1)), renew(entry, start+2, start+3),
		)
		last := release(entry, start+4, start+5)
		if i%20 == 0 {
			last.Outcome = history.Unknown
		}
		ops = append(ops, last)
	}
	return ops
}

func TestCheckIsFastEnough(t *testing.T) {
	start := time.Now()
	if err := history.Check(long(3000), history.CheckOptions{Timeout: time.Minute}); err != nil {
		t.Fatal(err)
	}
	t.Logf("9000 operations, 150 of unknown outcome, 8 at a time: %v", time.Since(start))
}
