package tfstate

import (
	"context"
	"errors"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"
)

// postgresql is a row of a table, which the first holder creates. Each call is one statement on a
// connection of its own: a stopped process blocks no other.
type postgresql struct {
	config *pgconn.Config
	name   string
}

const (
	createTable = `CREATE TABLE IF NOT EXISTS fencepost_states
(name text PRIMARY KEY, fence bigint NOT NULL, state bytea)`

	raiseFence = `INSERT INTO fencepost_states AS s (name, fence) VALUES ($1, $2)
ON CONFLICT (name) DO UPDATE SET fence = excluded.fence WHERE s.fence <= excluded.fence`

	writeState = `UPDATE fencepost_states SET fence = $2, state = $3 WHERE name = $1 AND fence <= $2`
	readState  = `SELECT state FROM fencepost_states WHERE name = $1`
	readFence  = `SELECT fence::text FROM fencepost_states WHERE name = $1`

	undefinedTable = "42P01"
)

func (p *postgresql) Raise(ctx context.Context, fence uint64) error {
	err := p.change(ctx, raiseFence, fence)
	if failed := new(pgconn.PgError); errors.As(err, &failed) && failed.Code == undefinedTable {
		_, created := p.do(ctx, createTable) // fails if another process creates it, too
		if err = p.change(ctx, raiseFence, fence); err != nil {
			err = errors.Join(created, err)
		}
	}
	return err
}

func (p *postgresql) Read(ctx context.Context) ([]byte, error) {
	data, err := p.value(ctx, readState)
	if failed := new(pgconn.PgError); errors.As(err, &failed) && failed.Code == undefinedTable {
		return nil, nil
	}
	return data, err
}

func (p *postgresql) Write(ctx context.Context, fence uint64, data []byte) error {
	if len(data) == 0 {
		data = nil // NULL
	}
	return p.change(ctx, writeState, fence, data)
}

// change runs a statement that changes no row if the fence of the row is higher.
func (p *postgresql) change(ctx context.Context, sql string, fence uint64, more ...[]byte) error {
	args := append([][]byte{[]byte(p.name), strconv.AppendUint(nil, fence, 10)}, more...)
	result, err := p.do(ctx, sql, args...)
	if err != nil || result.CommandTag.RowsAffected() > 0 {
		return err
	}
	text, err := p.value(ctx, readFence)
	if err != nil {
		return err
	}
	known, err := strconv.ParseUint(string(text), 10, 64)
	return errors.Join(err, compare(fence, known))
}

// value returns the value of the row, or nil.
func (p *postgresql) value(ctx context.Context, sql string) ([]byte, error) {
	result, err := p.do(ctx, sql, []byte(p.name))
	if err != nil || len(result.Rows) == 0 {
		return nil, err
	}
	return result.Rows[0][0], nil
}

func (p *postgresql) do(ctx context.Context, sql string, args ...[]byte) (*pgconn.Result, error) {
	db, err := pgconn.ConnectConfig(ctx, p.config)
	if err != nil {
		return nil, err
	}
	defer func() { _ = db.Close(ctx) }() // the answer is known
	binary := []int16{0, 0, 1}
	result := db.ExecParams(ctx, sql, args, nil, binary[:len(args)], []int16{1}).Read()
	return result, result.Err
}
