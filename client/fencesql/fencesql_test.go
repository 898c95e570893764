package fencesql_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/client"
	"github.com/fencepost/fencepost/client/fencesql"
)

// TestRaise: a greater fence in the table is a StaleFence, an equal one is none. fencekit runs the
// statements in real databases.
func TestRaise(t *testing.T) {
	for dialect, want := range map[fencesql.Dialect]string{
		fencesql.PostgreSQL: "INSERT [account:7 34]; ", fencesql.SQLite: "INSERT [account:7 34]; ",
		fencesql.MySQL: "INSERT [account:7 34 34]; SELECT [account:7]; ",
	} {
		for known, stale := range map[int64]bool{33: false, 34: false, 35: true} {
			table := &fences{known: known}
			db := sql.OpenDB(table)
			guard := fencesql.Guard{Lock: "account:7", Fence: 34, Resource: "accounts", Dialect: dialect}
			var refused *fencesql.StaleFence
			tx, err := db.BeginTx(t.Context(), nil)
			if err == nil {
				err = guard.Raise(t.Context(), tx)
			}
			if errors.As(err, &refused) != stale || !stale && err != nil || table.log != want {
				t.Errorf("dialect %d, known %d: %v after %s", dialect, known, err, table.log)
			}
			_ = db.Close()
		}
	}
}

// TestUnknownDialectIsRefused: it does not run the statements of another one.
func TestUnknownDialectIsRefused(t *testing.T) {
	for _, dialect := range []fencesql.Dialect{-1, fencesql.MySQL + 1} {
		table := &fences{}
		db := sql.OpenDB(table)
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		guard := fencesql.Guard{Lock: "account:7", Fence: 34, Dialect: dialect}
		if err := guard.Raise(t.Context(), tx); err == nil || table.log != "" {
			t.Errorf("dialect %d: %v after %s", dialect, err, table.log)
		}
		_ = db.Close()
	}
}

// TestOnlyTransactionsAreGuarded: what may commit each statement does not compile.
func TestOnlyTransactionsAreGuarded(t *testing.T) {
	method, _ := reflect.TypeFor[fencesql.Guard]().MethodByName("Raise")
	accepted := method.Type.In(2)
	for of, want := range map[reflect.Type]bool{
		reflect.TypeFor[*sql.Tx](): true, reflect.TypeFor[*sql.DB](): false,
		reflect.TypeFor[*sql.Conn](): false,
	} {
		if got := of.AssignableTo(accepted); got != want {
			t.Errorf("Raise takes %v: %v", of, got)
		}
	}
}

// TestReport: the report has the lock, both fences and the resource.
func TestReport(t *testing.T) {
	var got string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = r.URL.Path + " " + strings.TrimSpace(string(body))
		w.WriteHeader(http.StatusNoContent)
	}))
	defer server.Close()
	c, err := client.New(client.Config{URLs: []string{server.URL}, Token: client.Bearer("T")})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	err = fencesql.Guard{Lock: "account:7", Fence: 34, Resource: "accounts"}.Check(35)
	var stale *fencesql.StaleFence
	if !errors.As(err, &stale) || !strings.Contains(err.Error(), "34") {
		t.Fatal(err)
	}
	if err := stale.Report(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	const want = `/locks/account:7/stale-writes ` +
		`{"fence_presented":34,"fence_known":35,"resource":"accounts"}`
	if got != want {
		t.Errorf("the client sends %s", got)
	}
}

// fences is a database that logs statements, and has one row.
type fences struct {
	known int64
	log   string
}

func (f *fences) Connect(context.Context) (driver.Conn, error) { return conn{f}, nil }
func (f *fences) Driver() driver.Driver                        { return nil }

type conn struct{ *fences }

func (conn) Prepare(string) (driver.Stmt, error) { return nil, errors.ErrUnsupported }
func (conn) Close() error                        { return nil }
func (c conn) Begin() (driver.Tx, error)         { return c, nil }
func (conn) Commit() error                       { return nil }
func (conn) Rollback() error                     { return nil }

func (c conn) QueryContext(
	_ context.Context, query string, args []driver.NamedValue,
) (driver.Rows, error) {
	word, _, _ := strings.Cut(query, " ")
	values := make([]any, 0, len(args))
	for _, arg := range args {
		values = append(values, arg.Value)
	}
	c.log += fmt.Sprint(word, " ", values, "; ")
	return &row{known: c.known}, nil
}

func (c conn) ExecContext(
	ctx context.Context, query string, args []driver.NamedValue,
) (driver.Result, error) {
	_, err := c.QueryContext(ctx, query, args)
	return driver.RowsAffected(1), err
}

type row struct {
	known int64
	over  bool
}

func (*row) Columns() []string { return []string{"fence"} }
func (*row) Close() error      { return nil }

func (r *row) Next(dest []driver.Value) error {
	if r.over {
		return io.EOF
	}
	r.over, dest[0] = true, r.known
	return nil
}
