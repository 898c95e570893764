package postgresql

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fencepost/fencepost/fencekit/internal/sqlkit"
)

const waiting = `SELECT count(*) FROM pg_stat_activity
WHERE wait_event_type = 'Lock' AND datname = current_database()`

// TestTwoTransactions: the second waits for the first. It then reads what the first committed, or
// has to begin again; a stale one never commits.
func TestTwoTransactions(t *testing.T) {
	for _, c := range []struct {
		name          string
		level         sql.IsolationLevel
		first, second uint64
		result        string
		balance       int64
	}{
		{"read committed", sql.LevelReadCommitted, 33, 34, "", 101 + 10},
		{"read committed, stale", sql.LevelReadCommitted, 34, 33, "stale", 101},
		{"repeatable read", sql.LevelRepeatableRead, 33, 34, "40001", 101},
		{"repeatable read, stale", sql.LevelRepeatableRead, 34, 33, "40001", 101},
		{"serializable", sql.LevelSerializable, 33, 34, "40001", 101},
	} {
		t.Run(c.name, func(t *testing.T) {
			db := sqlkit.Open(t, "pgx", create(t, c.name, "schema.sql"))
			err := sqlkit.Two{
				DB: db, Level: c.level, Waiting: waiting,
				First:  sqlkit.Add("$", raise, c.first, 1),
				Second: sqlkit.Add("$", raise, c.second, 10),
			}.Run(t)
			if got := resultOf(err, c.first); got != c.result {
				t.Errorf("the second ends with %q (%v), want %q", got, err, c.result)
			}
			sqlkit.Expect(t, db, c.balance)
		})
	}
}

func resultOf(err error, known uint64) string {
	var failed *pgconn.PgError
	switch {
	case err == nil:
		return ""
	case sqlkit.IsStale(err, known):
		return "stale"
	case errors.As(err, &failed):
		return failed.Code
	}
	return err.Error()
}

// TestRowsAreComparedAfterTheWait: a stale write that waits for a newer one affects no row.
func TestRowsAreComparedAfterTheWait(t *testing.T) {
	db := sqlkit.Open(t, "pgx", create(t, "rows", "schema.sql"))
	write := func(fence uint64, balance int, want int64) func(context.Context, sqlkit.DB) error {
		return func(ctx context.Context, tx sqlkit.DB) error {
			n, err := statements()["write"].Exec(ctx, tx, sqlkit.ValuesOf(fence, balance))
			if n != want {
				t.Errorf("the write with the fence %d affects %d rows", fence, n)
			}
			return err
		}
	}
	two := sqlkit.Two{DB: db, Waiting: waiting, First: write(34, 70, 1), Second: write(33, 90, 0)}
	if err := two.Run(t); err != nil {
		t.Error(err)
	}
	sqlkit.Expect(t, db, 70)
}

// TestProgramsWithTheAdvisoryLockGoOn: an old program, which knows only the advisory lock, and a
// new one exclude each other, whichever begins.
func TestProgramsWithTheAdvisoryLockGoOn(t *testing.T) {
	advisory := sqlkit.Statements("$", "advisory.sql")
	take := func(ctx context.Context, tx sqlkit.DB, _ uint64) error {
		_, err := advisory["advisory"].Exec(ctx, tx, sqlkit.Values{"key": 7})
		return err
	}
	both := func(ctx context.Context, tx sqlkit.DB, fence uint64) error {
		if err := take(ctx, tx, fence); err != nil {
			return err
		}
		return sqlkit.Raise(ctx, advisory["raise"], tx, fence)
	}
	old, current := sqlkit.Add("$", take, 0, 1), sqlkit.Add("$", both, 33, 10)
	for name, two := range map[string]sqlkit.Two{
		"old first": {First: old, Second: current}, "new first": {First: current, Second: old},
	} {
		t.Run(name, func(t *testing.T) {
			two.DB, two.Waiting = sqlkit.Open(t, "pgx", create(t, name, "schema.sql")), waiting
			if err := two.Run(t); err != nil {
				t.Error(err)
			}
			sqlkit.Expect(t, two.DB, 111)
		})
	}
}

// TestTriggerRefusesAllThatHasNoFence: a session without the settings cannot write, and one with a
// stale fence can neither insert, delete nor truncate.
func TestTriggerRefusesAllThatHasNoFence(t *testing.T) {
	address := create(t, "refusals", "schema.sql", "trigger.sql")
	plain := sqlkit.Open(t, "pgx", address)
	const update = "UPDATE account SET balance = 0"
	if _, err := plain.ExecContext(t.Context(), update); err == nil {
		t.Error("a session without a fence writes")
	}
	options := "&options=-c%20fencepost.lock%3Daccount%3A7%20-c%20fencepost.fence%3D"
	newer := sqlkit.Open(t, "pgx", address+options+"34")
	if _, err := newer.ExecContext(t.Context(), "UPDATE account SET balance = 70"); err != nil {
		t.Error(err)
	}
	late := sqlkit.Open(t, "pgx", address+options+"33")
	for _, text := range []string{
		update, "INSERT INTO account VALUES (8, 0)", "DELETE FROM account", "TRUNCATE account",
	} {
		if _, err := late.ExecContext(t.Context(), text); resultOf(err, 0) != "FP409" {
			t.Errorf("%s with a stale fence: %v", text, err)
		}
	}
	sqlkit.Expect(t, plain, 70)
}
