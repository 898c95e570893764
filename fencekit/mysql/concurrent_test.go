package mysql

import (
	"context"
	"database/sql"
	"strconv"
	"testing"

	"github.com/fencepost/fencepost/fencekit/internal/sqlkit"
)

const waiting = "SELECT count(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'"

// TestTwoTransactions: the second waits for the first, and reads what it committed. A stale one
// never commits.
func TestTwoTransactions(t *testing.T) {
	for i, level := range []sql.IsolationLevel{
		sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable,
	} {
		t.Run(level.String(), func(t *testing.T) {
			address := create(t, "two"+strconv.Itoa(i), "schema.sql")
			two := sqlkit.Two{
				DB: sqlkit.Open(t, "mysql", address), Level: level, Waiting: waiting,
				First: sqlkit.Add("?", raise, 33, 1), Second: sqlkit.Add("?", raise, 34, 10),
			}
			if err := two.Run(t); err != nil {
				t.Error(err)
			}
			sqlkit.Expect(t, two.DB, 111)
			two.First, two.Second = sqlkit.Add("?", raise, 36, 1), sqlkit.Add("?", raise, 35, 10)
			if err := two.Run(t); !sqlkit.IsStale(err, 36) {
				t.Errorf("the stale one ends with %v", err)
			}
			sqlkit.Expect(t, two.DB, 112)
		})
	}
}

// TestRepeatedWriteIsNotStale: whatever the driver counts, a write that changes nothing is no
// refusal, and a stale one is.
func TestRepeatedWriteIsNotStale(t *testing.T) {
	for name, option := range map[string]string{"changed": "", "matched": "&clientFoundRows=true"} {
		t.Run(name, func(t *testing.T) {
			db := sqlkit.Open(t, "mysql", create(t, name, "schema.sql")+option)
			for range 2 {
				if err := write(t.Context(), db, 33, 90); err != nil {
					t.Error(err)
				}
				if err := raise(t.Context(), db, 33); err != nil {
					t.Error(err)
				}
			}
			if err := write(t.Context(), db, 32, 90); !sqlkit.IsStale(err, 33) {
				t.Errorf("a stale write ends with %v", err)
			}
			if err := raise(t.Context(), db, 32); !sqlkit.IsStale(err, 33) {
				t.Errorf("a stale raise ends with %v", err)
			}
		})
	}
}

// TestOldSnapshotHidesNoFence: a transaction that has read before sees the newest fence.
func TestOldSnapshotHidesNoFence(t *testing.T) {
	db := sqlkit.Open(t, "mysql", create(t, "snapshot", "schema.sql"))
	for name, step := range map[string]func(context.Context, sqlkit.DB, uint64) error{
		"write": func(ctx context.Context, db sqlkit.DB, fence uint64) error {
			return write(ctx, db, fence, 0)
		},
		"raise": raise,
	} {
		t.Run(name, func(t *testing.T) {
			tx, err := db.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer tx.Rollback() //nolint:errcheck // the test has what it wants
			if _, err := sqlkit.PlainRead().Number(t.Context(), tx, nil); err != nil {
				t.Fatal(err)
			}
			if err := step(t.Context(), db, 34); err != nil {
				t.Fatal(err)
			}
			if err := step(t.Context(), tx, 33); !sqlkit.IsStale(err, 34) {
				t.Errorf("a stale one ends with %v", err)
			}
		})
	}
}

// TestTriggerRefusesAllThatHasNoFence: a session without the variables cannot write, and one with
// a stale fence can neither insert nor delete.
func TestTriggerRefusesAllThatHasNoFence(t *testing.T) {
	address := create(t, "refusals", "schema.sql", "trigger.sql")
	db := sqlkit.Open(t, "mysql", address)
	db.SetMaxOpenConns(1) // which has the variables
	run := func(text string) error {
		_, err := db.ExecContext(t.Context(), text)
		return err
	}
	if run("UPDATE account SET balance = 0") == nil {
		t.Error("a session without a fence writes")
	}
	for _, text := range []string{
		"SET @fencepost_lock = 'account:7', @fencepost_fence = 34",
		"UPDATE account SET balance = 70",
		"SET @fencepost_fence = 33",
	} {
		if err := run(text); err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range []string{
		"UPDATE account SET balance = 0", "INSERT INTO account VALUES (8, 0, 0)", "DELETE FROM account",
	} {
		if err := run(text); !sqlkit.IsStale(refused(err), 34) {
			t.Errorf("%s with a stale fence: %v", text, err)
		}
	}
	sqlkit.Expect(t, db, 70)
}
