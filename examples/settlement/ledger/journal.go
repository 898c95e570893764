// Package ledger is the protected resource of the settlement example: a journal
// of payments in SQLite that accepts a write only if its fence is not below the
// newest fence it has seen for that lock.
//
// The check is what makes a lock with a lease safe. A holder that was paused for
// longer than its lease cannot know that it lost the lock; the ledger can,
// because the next holder has opened the batch with a higher fence.
package ledger

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"net/url"

	_ "modernc.org/sqlite" // the database/sql driver "sqlite"
)

//go:embed schema.sql
var schemaSQL string

// appendSQL decides and writes in one statement, so nothing can come between
// the comparison and the row: SQLite takes its only write lock before the
// statement reads.
//
//go:embed append.sql
var appendSQL string

// Entry is one accepted write, or one that was refused.
type Entry struct {
	// Seq is the place in the order of acceptance; set by the journal.
	Seq int64 `json:"seq"`
	// Lock is the name of the Fencepost lock that guards the batch.
	Lock string `json:"lock"`
	// Fence is the number that came with the lock.
	Fence int64 `json:"fence"`
	// Invoice is the invoice being paid; empty when the entry opens the batch.
	Invoice string `json:"invoice"`
	// AmountCents is the money moved, in cents.
	AmountCents int64 `json:"amount_cents"`
	// Worker is who wrote it, for the account.
	Worker string `json:"worker"`
}

// Refusal is a write that came with a fence below the newest one.
type Refusal struct {
	Entry
	// Known is the newest fence of the lock when the write was refused.
	Known int64 `json:"known"`
}

// StaleFenceError reports that a newer holder has been here.
type StaleFenceError struct {
	Lock             string
	Presented, Known int64
}

func (e *StaleFenceError) Error() string {
	return fmt.Sprintf("fence %d of %s is stale: %d is known", e.Presented, e.Lock, e.Known)
}

// ErrDifferent reports a repeated write (same lock, fence and invoice) whose
// amount differs from the one that was accepted.
var ErrDifferent = errors.New("this holder already paid this invoice with another amount")

// Journal is the table of accepted writes. It is safe for concurrent use, also
// by several processes on one file.
type Journal struct {
	db      *sql.DB
	fencing bool
}

// Open opens the journal in the file at path and creates it when missing. With
// fencing off every write is accepted, to show what that costs.
func Open(ctx context.Context, path string, fencing bool) (*Journal, error) {
	pragmas := url.Values{"_pragma": {"busy_timeout(5000)", "journal_mode(WAL)", "synchronous(FULL)"}}
	dsn := url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: pragmas.Encode()}
	db, err := sql.Open("sqlite", dsn.String())
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	db.SetMaxOpenConns(4)
	if _, err := db.ExecContext(ctx, schemaSQL); err != nil {
		return nil, errors.Join(fmt.Errorf("create journal: %w", err), db.Close())
	}
	return &Journal{db: db, fencing: fencing}, nil
}

// Close closes the file.
func (j *Journal) Close() error { return j.db.Close() }

// Append writes e unless its fence is stale; created is false when the same
// write was accepted before, so a write whose answer was lost can be repeated.
// It returns a *StaleFenceError or ErrDifferent when e is refused.
func (j *Journal) Append(ctx context.Context, e Entry) (created bool, err error) {
	result, err := j.db.ExecContext(ctx, appendSQL,
		sql.Named("lock", e.Lock), sql.Named("fence", e.Fence), sql.Named("invoice", e.Invoice),
		sql.Named("amount_cents", e.AmountCents), sql.Named("worker", e.Worker),
		sql.Named("unchecked", !j.fencing))
	if err != nil {
		return false, fmt.Errorf("append: %w", err)
	}
	rows, err := result.RowsAffected()
	if err != nil {
		return false, fmt.Errorf("append: %w", err)
	}
	if rows == 1 {
		return true, nil
	}
	return false, j.explain(ctx, e)
}

// explain says why e was not written. The decision is made already, and what is
// read here can only confirm it: rows never change and the newest fence only grows.
func (j *Journal) explain(ctx context.Context, e Entry) error {
	var amount, newest int64
	err := j.db.QueryRowContext(ctx, `
		SELECT amount_cents, (SELECT max(fence) FROM journal WHERE lock = ?1) FROM journal
		WHERE lock = ?1 AND fence = ?2 AND invoice = ?3`, e.Lock, e.Fence, e.Invoice).Scan(&amount, &newest)
	// A payment that was accepted stays accepted. Opening again is another matter:
	// the caller is about to read and decide, and may only do so with the newest fence.
	opensLate := j.fencing && e.Invoice == "" && newest > e.Fence
	switch {
	case errors.Is(err, sql.ErrNoRows) || opensLate:
		return j.refuse(ctx, e)
	case err != nil:
		return fmt.Errorf("read the earlier write: %w", err)
	case amount != e.AmountCents:
		return ErrDifferent
	}
	return nil
}

func (j *Journal) refuse(ctx context.Context, e Entry) error {
	stale := &StaleFenceError{Lock: e.Lock, Presented: e.Fence}
	err := j.db.QueryRowContext(ctx, `
		INSERT INTO refusals (lock, fence, known, invoice, worker)
		SELECT ?1, ?2, max(fence), ?3, ?4 FROM journal WHERE lock = ?1
		RETURNING known`, e.Lock, e.Fence, e.Invoice, e.Worker).Scan(&stale.Known)
	if err != nil {
		return fmt.Errorf("record the refusal of fence %d: %w", e.Fence, err)
	}
	return stale
}

// Settled returns the invoices paid under lock, in order. What it returns is
// only final for a caller that has opened the batch with the newest fence.
func (j *Journal) Settled(ctx context.Context, lock string) ([]string, error) {
	return query(ctx, j.db, func(invoice *string) []any { return []any{invoice} },
		`SELECT DISTINCT invoice FROM journal WHERE lock = ? AND invoice <> '' ORDER BY invoice`, lock)
}

// Entries returns every accepted write in the order of acceptance.
func (j *Journal) Entries(ctx context.Context) ([]Entry, error) {
	columns := func(e *Entry) []any {
		return []any{&e.Seq, &e.Lock, &e.Fence, &e.Invoice, &e.AmountCents, &e.Worker}
	}
	return query(ctx, j.db, columns,
		`SELECT seq, lock, fence, invoice, amount_cents, worker FROM journal ORDER BY seq`)
}

// Refusals returns every refused write in the order of arrival. Their Seq counts
// refusals, and the amount is not kept.
func (j *Journal) Refusals(ctx context.Context) ([]Refusal, error) {
	columns := func(r *Refusal) []any {
		return []any{&r.Seq, &r.Lock, &r.Fence, &r.Known, &r.Invoice, &r.Worker}
	}
	return query(ctx, j.db, columns,
		`SELECT seq, lock, fence, known, invoice, worker FROM refusals ORDER BY seq`)
}

// query returns the rows of a SELECT, each scanned into the columns of a T.
func query[T any](
	ctx context.Context,
	db *sql.DB,
	columns func(*T) []any,
	text string,
	args ...any,
) (all []T, err error) {
	rows, err := db.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	all = []T{} // JSON wants a list even when it is empty
	for rows.Next() {
		var one T
		if err := rows.Scan(columns(&one)...); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, rows.Err()
}
