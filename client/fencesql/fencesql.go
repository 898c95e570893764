// Package fencesql compares the fence of a holder in the transaction that writes, in PostgreSQL,
// MySQL, MariaDB and SQLite. The tables are in fencekit.
//
//	guard := fencesql.Guard{Lock: held.Name(), Fence: held.Fence(), Resource: "accounts"}
//	if err := guard.Raise(ctx, tx); err != nil { // first in the transaction
//		return err // roll back
//	}
//
// After the transaction, report a [StaleFence] to operators:
//
//	var stale *fencesql.StaleFence
//	if errors.As(err, &stale) {
//		err = errors.Join(err, stale.Report(ctx, c))
//	}
package fencesql

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/fencepost/fencepost/client"
)

// Dialect is a variant of SQL.
type Dialect int

// The dialects. MySQL is MariaDB's, too.
const (
	PostgreSQL Dialect = iota
	SQLite
	MySQL
)

// Guard compares the fence of a grant with the greatest that a database has seen.
type Guard struct {
	// Lock is the name of the lock, and of its row in the table of fences.
	Lock  string
	Fence uint64
	// Resource is what the lock protects, for reports. It is no secret.
	Resource string
	Dialect  Dialect
}

// Tx is a [sql.Tx], or what wraps one. A [sql.DB] and a [sql.Conn] are none: they may commit each
// statement, and then the guard protects nothing.
type Tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	Commit() error
	Rollback() error
}

// Raise raises the fence of the lock in the table of fences, and locks its row until the
// transaction ends. Call it before the transaction reads or writes anything else. If a later holder
// was here, the error is a [*StaleFence]: roll back. An unknown dialect is an error.
func (g Guard) Raise(ctx context.Context, tx Tx) error {
	if g.Dialect < PostgreSQL || g.Dialect > MySQL {
		return fmt.Errorf("fencesql: there is no dialect %d", g.Dialect)
	}
	fence := int64(g.Fence) //nolint:gosec // fences are below 2^53
	query, args := raise, []any{g.Lock, fence}
	if g.Dialect == MySQL {
		if _, err := tx.ExecContext(ctx, raiseMySQL, g.Lock, fence, fence); err != nil {
			return err
		}
		query, args = raisedMySQL, args[:1]
	}
	var known uint64
	if err := tx.QueryRowContext(ctx, query, args...).Scan(&known); err != nil {
		return err
	}
	return g.Check(known)
}

// Check returns a [*StaleFence] if known is greater than the fence of the guard. It is for a fence
// in a row of your own: read it if a conditional UPDATE affected no row.
func (g Guard) Check(known uint64) error {
	if known <= g.Fence {
		return nil
	}
	return &StaleFence{Lock: g.Lock, Presented: g.Fence, Known: known, Resource: g.Resource}
}

// StaleFence means that a later holder of the lock has written.
type StaleFence struct {
	Lock, Resource string
	// Presented is the fence of the refused holder, Known the greatest that the database has seen.
	Presented, Known uint64
}

// Error names the lock and both fences.
func (s *StaleFence) Error() string {
	return fmt.Sprintf("fencepost: the fence %d of %s is stale: %d has written",
		s.Presented, s.Lock, s.Known)
}

// Report shows the refused write to operators. Call it after the transaction: the request can take
// as long as the client retries.
func (s *StaleFence) Report(ctx context.Context, c *client.Client) error {
	return c.StaleWrite(ctx, s.Lock, s.Presented, s.Known, s.Resource)
}

const (
	raise = `INSERT INTO fences (name, fence) VALUES ($1, $2)
ON CONFLICT (name) DO UPDATE
SET fence = CASE WHEN fences.fence < excluded.fence THEN excluded.fence ELSE fences.fence END
RETURNING fence`

	raiseMySQL = `INSERT INTO fences (name, fence) VALUES (?, ?)
ON DUPLICATE KEY UPDATE fence = GREATEST(fence, ? + 0)`

	raisedMySQL = `SELECT fence FROM fences WHERE name = ? FOR UPDATE`
)
