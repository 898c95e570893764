// Package postgresql tests the SQL files of this folder on a real server.
package postgresql

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib" // registers the driver

	"github.com/fencepost/fencepost/client/fencesql"
	"github.com/fencepost/fencepost/fencekit/internal/kittest"
	"github.com/fencepost/fencepost/fencekit/internal/sqlkit"
	"github.com/fencepost/fencepost/test/rig"
)

var server = &sqlkit.Server{Start: rig.StartPostgreSQL}

func TestMain(m *testing.M) { kittest.Main(m, ways(), server.Close) }

func ways() []kittest.Way {
	return []kittest.Way{
		{Name: "unchecked", Unchecked: true, Open: open(sqlkit.Unchecked("$"))},
		{Name: "one-row", Open: open(oneRow)},
		{Name: "many-rows", Open: open(sqlkit.Raised("$", raise))},
		{Name: "fencesql", Open: open(sqlkit.Guarded("$", fencesql.PostgreSQL))},
		{Name: "trigger", Open: open(trigger)},
		{Name: "stopped-in-transaction", Broken: true, Open: open(
			sqlkit.Stopped("$", statements()["limit"], raise),
		)},
	}
}

// TestLateWrite: a holder that is stopped past its lease cannot write after the next one.
func TestLateWrite(t *testing.T) {
	fencepost := kittest.StartFencepost(t)
	for _, way := range ways() {
		files := []string{"schema.sql"}
		if way.Name == "trigger" {
			files = append(files, "trigger.sql")
		}
		kittest.LateWrite(t, fencepost, way, create(t, way.Name, files...))
	}
}

func open(bind func(*sqlkit.SQL)) func(context.Context, string) (kittest.Account, error) {
	return func(ctx context.Context, address string) (kittest.Account, error) {
		return sqlkit.NewSQL(ctx, "pgx", address, bind)
	}
}

func statements() map[string]sqlkit.Statement { return sqlkit.Statements("$", "check.sql") }

func oneRow(s *sqlkit.SQL) {
	sql := statements()
	s.Do(func(ctx context.Context, fence uint64) (int64, error) {
		return sql["read"].Number(ctx, s, sqlkit.ValuesOf(fence, 0))
	}, func(ctx context.Context, fence uint64, balance int) error {
		values := sqlkit.ValuesOf(fence, balance)
		n, err := sql["write"].Exec(ctx, s, values)
		if err != nil || n == 1 {
			return err
		}
		return sqlkit.Know(ctx, sql["known"], s, values)
	})
}

// raise is the first statement of a transaction under a lock.
func raise(ctx context.Context, db sqlkit.DB, fence uint64) error {
	return sqlkit.Raise(ctx, statements()["raise"], db, fence)
}

// trigger is the program that cannot be changed: its wrapper raises the fence, and sets up the
// session.
func trigger(s *sqlkit.SQL) {
	s.Do(func(ctx context.Context, fence uint64) (int64, error) {
		if err := raise(ctx, s, fence); err != nil {
			return 0, err
		}
		for name, value := range map[string]string{
			"fencepost.lock": "account:7", "fencepost.fence": strconv.FormatUint(fence, 10),
		} {
			if _, err := s.ExecContext(ctx, "SELECT set_config($1, $2, false)", name, value); err != nil {
				return 0, err
			}
		}
		return sqlkit.PlainRead().Number(ctx, s, nil)
	}, func(ctx context.Context, fence uint64, balance int) error {
		_, err := sqlkit.PlainWrite("$").Exec(ctx, s, sqlkit.ValuesOf(fence, balance))
		if refused := new(pgconn.PgError); errors.As(err, &refused) && refused.Code == "FP409" {
			known, err := strconv.ParseUint(refused.Detail, 10, 64)
			return errors.Join(err, &kittest.Stale{Known: known})
		}
		return err
	})
}

// create makes a database with account 7, and returns its address.
func create(t *testing.T, name string, files ...string) string {
	t.Helper()
	address := url.URL{
		Scheme: "postgres", User: url.User("postgres"), Host: server.Get(t).Address(), Path: "postgres",
		RawQuery: "sslmode=disable",
	}
	sqlkit.Execute(t, "pgx", address.String(), `CREATE DATABASE "`+name+`"`)
	address.Path = name
	texts := sqlkit.Accounts()
	for _, file := range files {
		texts = append(texts, sqlkit.Text(file))
	}
	sqlkit.Execute(t, "pgx", address.String(), texts...)
	return address.String()
}
