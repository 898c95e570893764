// Package sqlkit is what the databases of the kit share: their files of SQL, and the ways to write.
package sqlkit

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/fencepost/fencepost/fencekit/internal/kittest"
)

// SQL is account 7 in a database, on a connection of its own.
type SQL struct {
	*sql.Conn
	db    *sql.DB
	read  func(ctx context.Context, fence uint64) (int64, error)
	write func(ctx context.Context, fence uint64, balance int) error
}

// NewSQL opens an account that a driver of database/sql reaches; bind says how to read and write.
func NewSQL(ctx context.Context, driver, address string, bind func(*SQL)) (kittest.Account, error) {
	db, err := sql.Open(driver, address)
	if err != nil {
		return nil, err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	s := &SQL{Conn: conn, db: db}
	bind(s)
	return s, nil
}

// Do sets what Read and Write do.
func (s *SQL) Do(
	read func(ctx context.Context, fence uint64) (int64, error),
	write func(ctx context.Context, fence uint64, balance int) error,
) {
	s.read, s.write = read, write
}

// Read returns the balance.
func (s *SQL) Read(ctx context.Context, fence uint64) (int, error) {
	balance, err := s.read(ctx, fence)
	return int(balance), err
}

// Write writes the balance.
func (s *SQL) Write(ctx context.Context, fence uint64, balance int) error {
	return s.write(ctx, fence, balance)
}

// Close closes the connection.
func (s *SQL) Close() error { return errors.Join(s.Conn.Close(), s.db.Close()) }

// In runs work in a transaction.
func (s *SQL) In(ctx context.Context, work func(tx DB) error) error {
	tx, err := s.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := work(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// ValuesOf returns the parameters of all statements about account 7.
func ValuesOf(fence uint64, balance int) Values {
	return Values{"lock": "account:7", "id": 7, "fence": int64(fence), "balance": balance}
}

// Execute runs texts of SQL, each on its own.
func Execute(t *testing.T, driver, address string, texts ...string) {
	t.Helper()
	db, err := sql.Open(driver, address)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, text := range texts {
		if _, err := db.ExecContext(t.Context(), text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
}

// Accounts returns what makes the table with account 7.
func Accounts() []string {
	return []string{
		"CREATE TABLE account (id bigint PRIMARY KEY, balance bigint NOT NULL)",
		"INSERT INTO account VALUES (7, 100)",
	}
}
