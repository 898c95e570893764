package sqlkit

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/fencepost/fencepost/fencekit/internal/kittest"
)

// Two are two transactions of holders, on one database.
type Two struct {
	DB    *sql.DB
	Level sql.IsolationLevel
	// Waiting counts the transactions that wait for a row: a query. SQLite has none.
	Waiting string
	// First and Second are steps of the transactions. The second begins once the first is done, and
	// before the first one commits.
	First, Second func(ctx context.Context, tx DB) error
}

// Run runs both, and returns the error of the second.
func (two Two) Run(t *testing.T) error {
	t.Helper()
	first := two.begin(t)
	if err := two.First(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		second, err := two.DB.BeginTx(t.Context(), &sql.TxOptions{Isolation: two.Level})
		if err != nil {
			ended <- err
			return
		}
		if err := two.Second(t.Context(), second); err != nil {
			_ = second.Rollback()
			ended <- err
			return
		}
		ended <- second.Commit()
	}()
	two.awaitWaiting(t)
	if err := first.Commit(); err != nil {
		t.Fatal(err)
	}
	return <-ended
}

func (two Two) begin(t *testing.T) *sql.Tx {
	t.Helper()
	tx, err := two.DB.BeginTx(t.Context(), &sql.TxOptions{Isolation: two.Level})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

// awaitWaiting returns once the second transaction waits for the first.
func (two Two) awaitWaiting(t *testing.T) {
	t.Helper()
	if two.Waiting == "" {
		return
	}
	// InnoDB refreshes values that were not read for 100 ms
	tick := time.NewTicker(150 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); <-tick.C {
		var n int
		if err := two.DB.QueryRowContext(t.Context(), two.Waiting).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n == 1 {
			return
		}
	}
	t.Fatal("the second transaction does not wait for the first")
}

// Add returns a step that raises the fence, then adds to the balance that it reads.
func Add(
	mark string, raise func(context.Context, DB, uint64) error, fence uint64, amount int,
) func(context.Context, DB) error {
	return func(ctx context.Context, tx DB) error {
		if err := raise(ctx, tx, fence); err != nil {
			return err
		}
		balance, err := PlainRead().Number(ctx, tx, nil)
		if err != nil {
			return err
		}
		_, err = PlainWrite(mark).Exec(ctx, tx, ValuesOf(fence, int(balance)+amount))
		return err
	}
}

// Open opens a database for a test.
func Open(t *testing.T, driver, address string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// Expect fails unless account 7 has this balance.
func Expect(t *testing.T, db *sql.DB, want int64) {
	t.Helper()
	got, err := PlainRead().Number(t.Context(), db, nil)
	if err != nil || got != want {
		t.Errorf("the balance is %d, %v; want %d", got, err, want)
	}
}

// IsStale reports whether the check refused, and knows this fence.
func IsStale(err error, known uint64) bool {
	var stale *kittest.Stale
	return errors.As(err, &stale) && stale.Known == known
}
