package sqlkit

import (
	"context"
	"database/sql"
	"errors"

	"github.com/fencepost/fencepost/client/fencesql"
	"github.com/fencepost/fencepost/fencekit/internal/kittest"
)

// PlainRead reads account 7. A program that a trigger guards reads and writes like this.
func PlainRead() Statement {
	return Statement{SQL: "SELECT balance FROM account WHERE id = 7"}
}

// PlainWrite is the statement that the checks protect.
func PlainWrite(mark string) Statement {
	return NewStatement(mark, "UPDATE account SET balance = :balance WHERE id = 7")
}

// Unchecked writes without a check.
func Unchecked(mark string) func(*SQL) {
	return func(s *SQL) {
		s.Do(func(ctx context.Context, _ uint64) (int64, error) {
			return PlainRead().Number(ctx, s, nil)
		}, func(ctx context.Context, fence uint64, balance int) error {
			_, err := PlainWrite(mark).Exec(ctx, s, ValuesOf(fence, balance))
			return err
		})
	}
}

// Raised reads and writes in transactions whose first statement raises the fence of the lock.
func Raised(mark string, raise func(context.Context, DB, uint64) error) func(*SQL) {
	return func(s *SQL) {
		s.Do(func(ctx context.Context, fence uint64) (balance int64, err error) {
			err = s.In(ctx, func(tx DB) (err error) {
				if err := raise(ctx, tx, fence); err != nil {
					return err
				}
				balance, err = PlainRead().Number(ctx, tx, nil)
				return err
			})
			return balance, err
		}, func(ctx context.Context, fence uint64, balance int) error {
			return s.In(ctx, func(tx DB) error {
				if err := raise(ctx, tx, fence); err != nil {
					return err
				}
				_, err := PlainWrite(mark).Exec(ctx, tx, ValuesOf(fence, balance))
				return err
			})
		})
	}
}

// Guarded reads and writes with the package fencesql.
func Guarded(mark string, dialect fencesql.Dialect) func(*SQL) {
	return Raised(mark, func(ctx context.Context, db DB, fence uint64) error {
		guard := fencesql.Guard{Lock: "account:7", Fence: fence, Dialect: dialect}
		err := guard.Raise(ctx, db.(fencesql.Tx))
		if stale := new(fencesql.StaleFence); errors.As(err, &stale) {
			return &kittest.Stale{Known: stale.Known}
		}
		return err
	})
}

// Stopped is in one transaction from its read to its write. The limit is a statement by which the
// server ends the session meanwhile.
func Stopped(
	mark string, limit Statement, raise func(context.Context, DB, uint64) error,
) func(*SQL) {
	return func(s *SQL) {
		var tx *sql.Tx
		s.Do(func(ctx context.Context, fence uint64) (int64, error) {
			if tx != nil { // B looks at the end
				return PlainRead().Number(ctx, s, nil)
			}
			if _, err := limit.Exec(ctx, s, nil); err != nil {
				return 0, err
			}
			var err error
			if tx, err = s.BeginTx(ctx, nil); err != nil {
				return 0, err
			}
			if err := raise(ctx, tx, fence); err != nil {
				return 0, err
			}
			return PlainRead().Number(ctx, tx, nil)
		}, func(ctx context.Context, fence uint64, balance int) error {
			if _, err := PlainWrite(mark).Exec(ctx, tx, ValuesOf(fence, balance)); err != nil {
				return err
			}
			return tx.Commit()
		})
	}
}

// Know returns a [kittest.Stale] with the fence that a statement reads.
func Know(ctx context.Context, known Statement, db DB, values Values) error {
	fence, err := known.Number(ctx, db, values)
	if err != nil {
		return err
	}
	return &kittest.Stale{Known: uint64(fence)}
}

// Raise runs a statement that raises the fence of the lock and returns the greatest.
func Raise(ctx context.Context, raise Statement, db DB, fence uint64) error {
	known, err := raise.Number(ctx, db, ValuesOf(fence, 0))
	if err != nil || uint64(known) <= fence {
		return err
	}
	return &kittest.Stale{Known: uint64(known)}
}
