// Package mysql tests the SQL files of this folder on a real MariaDB.
package mysql

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/fencepost/fencepost/client/fencesql"
	"github.com/fencepost/fencepost/fencekit/internal/kittest"
	"github.com/fencepost/fencepost/fencekit/internal/sqlkit"
	"github.com/fencepost/fencepost/test/rig"
)

var server = &sqlkit.Server{Start: rig.StartMariaDB}

func TestMain(m *testing.M) { kittest.Main(m, ways(), server.Close) }

func ways() []kittest.Way {
	return []kittest.Way{
		{Name: "unchecked", Unchecked: true, Open: open(sqlkit.Unchecked("?"))},
		{Name: "one-row", Open: open(oneRow)},
		{Name: "many-rows", Open: open(sqlkit.Raised("?", raise))},
		{Name: "fencesql", Open: open(sqlkit.Guarded("?", fencesql.MySQL))},
		{Name: "trigger", Open: open(trigger)},
		{Name: "stopped-in-transaction", Broken: true, Open: open(
			sqlkit.Stopped("?", statements()["limit"], raise),
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
		return sqlkit.NewSQL(ctx, "mysql", address, bind)
	}
}

func statements() map[string]sqlkit.Statement { return sqlkit.Statements("?", "check.sql") }

func oneRow(s *sqlkit.SQL) {
	sql := statements()
	s.Do(func(ctx context.Context, fence uint64) (balance int64, err error) {
		values := sqlkit.ValuesOf(fence, 0)
		if _, err := sql["claim"].Exec(ctx, s, values); err != nil {
			return 0, err
		}
		var known uint64
		row := s.QueryRowContext(ctx, sql["read"].SQL, values["id"])
		if err := row.Scan(&balance, &known); err != nil {
			return 0, err
		}
		return balance, refuse(fence, known)
	}, func(ctx context.Context, fence uint64, balance int) error {
		return write(ctx, s, fence, balance)
	})
}

// write asks for the fence only if no row was affected.
func write(ctx context.Context, db sqlkit.DB, fence uint64, balance int) error {
	sql, values := statements(), sqlkit.ValuesOf(fence, balance)
	n, err := sql["write"].Exec(ctx, db, values)
	if err != nil || n > 0 {
		return err
	}
	known, err := sql["known"].Number(ctx, db, values)
	if err != nil {
		return err
	}
	return refuse(fence, uint64(known))
}

// raise is first in a transaction under a lock.
func raise(ctx context.Context, db sqlkit.DB, fence uint64) error {
	sql, values := statements(), sqlkit.ValuesOf(fence, 0)
	if _, err := sql["raise"].Exec(ctx, db, values); err != nil {
		return err
	}
	known, err := sql["raised"].Number(ctx, db, values)
	if err != nil {
		return err
	}
	return refuse(fence, uint64(known))
}

func refuse(fence, known uint64) error {
	if known > fence {
		return &kittest.Stale{Known: known}
	}
	return nil
}

// trigger is the program that cannot be changed: its wrapper raises the fence, and sets up the
// session.
func trigger(s *sqlkit.SQL) {
	s.Do(func(ctx context.Context, fence uint64) (int64, error) {
		if err := raise(ctx, s, fence); err != nil {
			return 0, err
		}
		const set = "SET @fencepost_lock = ?, @fencepost_fence = ?"
		if _, err := s.ExecContext(ctx, set, "account:7", fence); err != nil {
			return 0, err
		}
		return sqlkit.PlainRead().Number(ctx, s, nil)
	}, func(ctx context.Context, fence uint64, balance int) error {
		_, err := sqlkit.PlainWrite("?").Exec(ctx, s, sqlkit.ValuesOf(fence, balance))
		return refused(err)
	})
}

// refused turns the trigger's refusal into what the other ways return.
func refused(err error) error {
	refusal := new(mysql.MySQLError)
	if !errors.As(err, &refusal) {
		return err
	}
	text, found := strings.CutPrefix(refusal.Message, "stale_fence: ")
	if !found {
		return err
	}
	known, err := strconv.ParseUint(text, 10, 64)
	return errors.Join(err, &kittest.Stale{Known: known})
}

// create makes a database with account 7, and returns its address.
func create(t *testing.T, name string, files ...string) string {
	t.Helper()
	config := mysql.NewConfig()
	config.User, config.Net, config.Addr = "root", "tcp", server.Get(t).Address()
	config.InterpolateParams = true // one request for a statement
	sqlkit.Execute(t, "mysql", config.FormatDSN(), "CREATE DATABASE `"+name+"`")
	config.DBName = name
	texts := sqlkit.Accounts()
	for _, file := range files {
		texts = append(texts, split(sqlkit.Text(file))...)
	}
	sqlkit.Execute(t, "mysql", config.FormatDSN(), texts...)
	return config.FormatDSN()
}

// split does what the program mysql does with a file: the server takes one statement at a time.
func split(text string) (all []string) {
	between := ";"
	if _, after, found := strings.Cut(text, "DELIMITER //"); found {
		text, between = strings.ReplaceAll(after, "DELIMITER ;", ""), "//"
	}
	for statement := range strings.SplitSeq(text, between) {
		if strings.TrimSpace(statement) != "" {
			all = append(all, statement)
		}
	}
	return all
}
