package sqlkit

import (
	"context"
	"database/sql"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// Statement is a statement of an SQL file, for a driver.
type Statement struct {
	SQL   string
	names []string // of its parameters, in order
}

// Values of the parameters of a statement, by name.
type Values map[string]any

// DB is a [sql.DB], a [sql.Conn] or a [sql.Tx].
type DB interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Exec runs the statement, and returns how many rows it affected as the driver counts them.
func (s Statement) Exec(ctx context.Context, db DB, values Values) (int64, error) {
	result, err := db.ExecContext(ctx, s.SQL, s.args(values)...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// Number runs the statement, and returns the first column of its first row. Without a row the
// error is [sql.ErrNoRows].
func (s Statement) Number(ctx context.Context, db DB, values Values) (n int64, err error) {
	return n, db.QueryRowContext(ctx, s.SQL, s.args(values)...).Scan(&n)
}

func (s Statement) args(values Values) (args []any) {
	for _, name := range s.names {
		args = append(args, values[name])
	}
	return args
}

// named is how a file names the statement that follows, as sqlc, HugSQL and aiosql do.
var named = regexp.MustCompile(`(?m)^-- name: (\S+)\n`)

// Statements reads the named statements of SQL files. A parameter, such as :fence, becomes the
// driver's: ? or, if the mark is $, $1 and so on. With the mark : it stays, for pgbench.
func Statements(mark string, files ...string) map[string]Statement {
	statements := map[string]Statement{}
	for _, file := range files {
		text := Text(file)
		at := named.FindAllStringSubmatchIndex(text, -1)
		for i, match := range at {
			end := len(text)
			if i+1 < len(at) {
				end = at[i+1][0]
			}
			statements[text[match[2]:match[3]]] = NewStatement(mark, text[match[1]:end])
		}
	}
	return statements
}

// Text returns a file of the package under test.
func Text(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		panic(err) // it is a file of the repository
	}
	return string(text)
}

// parameter is :fence, but not a cast (::bigint), nor a comment, which has none.
var parameter = regexp.MustCompile(`([^:\w]):([a-z]+)`)

// NewStatement returns a statement for a driver, see [Statements].
func NewStatement(mark, text string) (s Statement) {
	s.SQL = parameter.ReplaceAllStringFunc(withoutComments(text), func(found string) string {
		before, name, _ := strings.Cut(found, ":")
		s.names = append(s.names, name)
		switch mark {
		case "$":
			return before + "$" + strconv.Itoa(len(s.names))
		case ":":
			return found
		}
		return before + mark
	})
	return s
}

var comment = regexp.MustCompile(`(?m)--.*$`)

func withoutComments(text string) string {
	return strings.TrimSuffix(strings.TrimSpace(comment.ReplaceAllString(text, "")), ";")
}
