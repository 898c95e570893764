// Costs measures how much longer a write takes with its check: in PostgreSQL by pgbench, in
// MariaDB and SQLite by a loop. Each commit is flushed to the disk. Transactions with the check and
// without it alternate, so that what else the machine does delays both. Run it in fencekit:
//
//	go run ./costs [-n 2000]
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fencepost/fencepost/fencekit/internal/sqlkit"
)

// rows is the number of accounts; each transaction writes to one or ten of them.
const rows = 10_000

// transaction is what one commit writes.
type transaction []sqlkit.Statement

// resource measures n transactions of each kind, in turns.
type resource struct {
	name, mark, begin string
	start             func(ctx context.Context, dir string) (measure, func(), error)
}

// measure returns how long n transactions of each kind take.
type measure func(ctx context.Context, n int, kinds [2]transaction) ([2][]time.Duration, error)

func main() {
	n := flag.Int("n", 2000, "number of transactions of each kind")
	flag.Parse()
	for _, r := range []resource{
		{"postgresql", ":", "BEGIN", postgresql},
		{"mysql", "?", "BEGIN", mariadb},
		{"sqlite", "?", "BEGIN IMMEDIATE", sqlite},
	} {
		if err := run(context.Background(), r, *n); err != nil {
			fmt.Fprintln(os.Stderr, r.name, err)
			os.Exit(1)
		}
	}
}

func run(ctx context.Context, r resource, n int) error {
	dir, err := os.MkdirTemp("", "fencekit-costs-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	measure, end, err := r.start(ctx, filepath.Join(dir, "data"))
	if err != nil {
		return err
	}
	defer end()
	for _, way := range r.ways() {
		took, err := measure(ctx, n, way.kinds)
		if err != nil {
			return err
		}
		plain, check := compare(took)
		fmt.Printf("%-10s  %-21s  %v, and the check %v: %+.1f %%\n",
			r.name, way.name, plain, check, 100*float64(check)/float64(plain))
	}
	return nil
}

// way is a transaction without the check, and with it.
type way struct {
	name  string
	kinds [2]transaction
}

func (r resource) ways() []way {
	sql := sqlkit.Statements(r.mark, filepath.Join(r.name, "check.sql"))
	statement := func(text string) sqlkit.Statement { return sqlkit.NewStatement(r.mark, text) }
	plain := statement("UPDATE account SET balance = :balance WHERE id = :id")
	raise := transaction{sql["raise"]}
	if r.name == "mysql" {
		raise = append(raise, sql["raised"])
	}
	in := func(first transaction, updates int) transaction {
		return slices.Concat(
			transaction{statement(r.begin)},
			first,
			slices.Repeat(transaction{plain}, updates),
			transaction{statement("COMMIT")},
		)
	}
	return []way{
		{"one row", [2]transaction{{plain}, {sql["write"]}}},
		{"many rows, 1 update", [2]transaction{in(nil, 1), in(raise, 1)}},
		{"many rows, 10 updates", [2]transaction{in(nil, 10), in(raise, 10)}},
	}
}

// compare returns the median time without the check, and by how much longer the check makes it: the
// median of pairs that were measured one after the other.
func compare(took [2][]time.Duration) (plain, check time.Duration) {
	var more []time.Duration
	for i := range min(len(took[0]), len(took[1])) {
		more = append(more, took[1][i]-took[0][i])
	}
	return median(took[0]), median(more)
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2].Round(time.Microsecond)
}
