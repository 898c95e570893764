package deadlock_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/deadlock"
)

// crowd is a table of 10 000 entries; 1 000 wait. All of them name their
// holders. chained has each waiter hold a lock that the next one waits for;
// otherwise all wait for one lock.
func crowd(b *testing.B, chained bool) *deadlock.Table {
	b.Helper()
	table, number := deadlock.NewTable(), uint64(0)
	join := func(holder string, locks ...string) {
		number++
		if _, err := table.Insert(
			named(lock.ID(fmt.Sprint(number)), number, holder, locks...),
		); err != nil {
			b.Fatal(err)
		}
	}
	for i := range 9000 {
		join(fmt.Sprint("w", i), fmt.Sprint("lock", i))
	}
	for i := range 1000 {
		if chained {
			join(fmt.Sprint("w", i+1), fmt.Sprint("lock", i))
		} else {
			join(fmt.Sprint("w", i+1), "lock0")
		}
	}
	return table
}

func BenchmarkCycle(b *testing.B) {
	for _, c := range []struct {
		name    string
		chained bool
		holder  string // of the new entry
		lock    string
		closes  bool
	}{
		{"none, one queue of 1000", false, "w5000", "lock0", false},
		{"none, a chain of 1000", true, "w5000", "lock1000", false},
		{"closed, one queue of 1000", false, "w0", "lock1", true},
		{"closed, a chain of 1000", true, "w0", "lock1000", true},
		{"a holder with nothing else", true, "new", "lock1000", false},
	} {
		b.Run(c.name, func(b *testing.B) {
			table := crowd(b, c.chained)
			e := named("new", 0, c.holder, c.lock)
			for b.Loop() {
				if cycle := table.Cycle(e); (cycle != nil) != c.closes {
					b.Fatalf("a cycle of %d", len(cycle))
				}
			}
		})
	}
}

// BenchmarkList lists 100 000 held locks that the store wrote 40 at a time, by few
// holders and by many; and 5 000 who wait for one.
func BenchmarkList(b *testing.B) {
	for _, c := range []struct {
		name           string
		holders, waits int
	}{
		{"100000 holders", 100_000, 0},
		{"50 holders", 50, 0},
		{"1 holder", 1, 0},
		{"50 holders, and 5000 wait", 50, 5000},
	} {
		b.Run(c.name, func(b *testing.B) {
			random := rand.New(rand.NewPCG(1, 1))
			id := func() lock.ID { return lock.ID(fmt.Sprintf("%016x", random.Uint64())) }
			entries := []*lock.Entry{named(id(), 1, "hog", "hot")}
			for i := range 100_000 {
				entries = append(
					entries, named(id(), uint64(2+i/40), fmt.Sprint("w", i%c.holders), fmt.Sprint("lock", i)),
				)
			}
			for i := range c.waits { // entries of one lock are not written together
				entries = append(entries, named(id(), uint64(10_000+i), fmt.Sprint("waiter", i), "hot"))
			}
			for b.Loop() {
				table := deadlock.NewTable()
				for _, e := range entries {
					if _, err := table.Insert(e); err != nil {
						b.Fatal(err)
					}
					table.Detect()
				}
			}
		})
	}
}
