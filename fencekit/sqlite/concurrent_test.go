package sqlite

import (
	"testing"

	"github.com/fencepost/fencepost/fencekit/internal/sqlkit"
)

// TestTwoTransactions: the second begins after the first has committed, and a stale one is refused.
func TestTwoTransactions(t *testing.T) {
	two := sqlkit.Two{
		DB:    sqlkit.Open(t, "sqlite", create(t, "schema.sql")),
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
}

// TestTriggerGuardsEachStatement: a stale fence, and none, can neither update, insert nor delete.
func TestTriggerGuardsEachStatement(t *testing.T) {
	db := sqlkit.Open(t, "sqlite", create(t, "schema.sql", "trigger.sql"))
	held.Store(34)
	if _, err := db.ExecContext(t.Context(), "UPDATE account SET balance = 70"); err != nil {
		t.Fatal(err)
	}
	for _, fence := range []uint64{33, 0} {
		held.Store(fence)
		for _, text := range []string{
			"UPDATE account SET balance = 0", "INSERT INTO account VALUES (8, 0, 0)",
			"DELETE FROM account", "UPDATE OR IGNORE account SET balance = 0",
			"REPLACE INTO account VALUES (7, 0, 0)",
		} {
			if _, err := db.ExecContext(t.Context(), text); err == nil {
				t.Errorf("%s succeeds with the fence %d", text, fence)
			}
		}
	}
	sqlkit.Expect(t, db, 70)
}
