// Package sqlite tests the SQL files of this folder in SQLite.
package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"modernc.org/sqlite"

	"github.com/fencepost/fencepost/client/fencesql"
	"github.com/fencepost/fencepost/fencekit/internal/kittest"
	"github.com/fencepost/fencepost/fencekit/internal/sqlkit"
)

// held is the fence of the process, which the functions of the trigger return; NULL for 0.
var held atomic.Uint64

func TestMain(m *testing.M) {
	define("fence_lock", func() driver.Value { return "account:7" })
	define("fence", func() driver.Value {
		if held.Load() == 0 {
			return nil
		}
		return int64(held.Load())
	})
	kittest.Main(m, ways())
}

func define(name string, value func() driver.Value) {
	sqlite.MustRegisterScalarFunction(
		name, 0, func(*sqlite.FunctionContext, []driver.Value) (driver.Value, error) {
			return value(), nil
		},
	)
}

func ways() []kittest.Way {
	return []kittest.Way{
		{Name: "unchecked", Unchecked: true, Open: open(sqlkit.Unchecked("?"))},
		{Name: "one-row", Open: open(oneRow)},
		{Name: "many-rows", Open: open(sqlkit.Raised("?", raise))},
		{Name: "fencesql", Open: open(sqlkit.Guarded("?", fencesql.SQLite))},
		{Name: "trigger", Open: open(trigger)},
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
		kittest.LateWrite(t, fencepost, way, create(t, files...))
	}
}

func open(bind func(*sqlkit.SQL)) func(context.Context, string) (kittest.Account, error) {
	return func(ctx context.Context, address string) (kittest.Account, error) {
		return sqlkit.NewSQL(ctx, "sqlite", address, bind)
	}
}

func statements() map[string]sqlkit.Statement { return sqlkit.Statements("?", "check.sql") }

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

// trigger is the code that cannot be changed: the code that opens its connection raises the
// fence.
func trigger(s *sqlkit.SQL) {
	s.Do(func(ctx context.Context, fence uint64) (int64, error) {
		held.Store(fence)
		if err := raise(ctx, s, fence); err != nil {
			return 0, err
		}
		return sqlkit.PlainRead().Number(ctx, s, nil)
	}, func(ctx context.Context, fence uint64, balance int) error {
		values := sqlkit.ValuesOf(fence, balance)
		_, err := sqlkit.PlainWrite("?").Exec(ctx, s, values)
		if refused := new(sqlite.Error); errors.As(err, &refused) &&
			strings.Contains(refused.Error(), "stale_fence") {
			return raise(ctx, s, fence)
		}
		return err
	})
}

// create makes a database with account 7, and returns its address.
func create(t *testing.T, files ...string) string {
	t.Helper()
	address := url.URL{
		Scheme: "file", OmitHost: true, Path: filepath.Join(t.TempDir(), "account.db"),
		RawQuery: url.Values{
			"_pragma": {"busy_timeout(5000)", "journal_mode(WAL)"}, "_txlock": {"immediate"},
		}.Encode(),
	}
	texts := sqlkit.Accounts()
	for _, file := range files {
		texts = append(texts, sqlkit.Text(file))
	}
	sqlkit.Execute(t, "sqlite", address.String(), texts...)
	return address.String()
}
