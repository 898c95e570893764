package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	_ "github.com/go-sql-driver/mysql" // registers the driver
	_ "github.com/jackc/pgx/v5/stdlib" // registers the driver
	_ "modernc.org/sqlite"             // registers the driver

	"github.com/fencepost/fencepost/fencekit/internal/sqlkit"
	"github.com/fencepost/fencepost/test/rig"
)

func postgresql(ctx context.Context, dir string) (measure, func(), error) {
	server, err := rig.StartPostgreSQL(ctx, dir)
	if err != nil {
		return nil, nil, err
	}
	end := func() { _ = server.Close() }
	db, err := sql.Open("pgx", "postgres://postgres@"+server.Address()+"/postgres")
	if err == nil {
		err = errors.Join(create(ctx, db, "postgresql"), db.Close())
	}
	return func(
		ctx context.Context, n int, kinds [2]transaction,
	) (took [2][]time.Duration, err error) {
		return pgbench(ctx, dir+"-pgbench", server.Address(), n, kinds)
	}, end, err
}

// pgbench picks a kind at random for each transaction, and logs how long it took.
func pgbench(
	ctx context.Context, dir, address string, n int, kinds [2]transaction,
) (took [2][]time.Duration, err error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return took, err
	}
	program, err := rig.PostgreSQLProgram("pgbench")
	if err != nil {
		return took, err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return took, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	command := exec.CommandContext(ctx, program, "-h", host, "-p", port, "-U", "postgres",
		"-n", "-M", "prepared", "-t", strconv.Itoa(2*n), "-l", "-f", "0", "-f", "1", "postgres")
	command.Dir = dir
	for i, kind := range kinds {
		if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), script(kind), 0o600); err != nil {
			return took, err
		}
	}
	if out, err := command.CombinedOutput(); err != nil {
		return took, fmt.Errorf("%w: %s", err, out)
	}
	return readLog(dir)
}

func script(of transaction) []byte {
	text := fmt.Appendf(nil, "\\set id random(1, %d)\n\\set balance random(1, 1000000000)\n"+
		"\\set fence 34\n\\set lock 7\n", rows)
	for _, statement := range of {
		text = append(text, strings.ReplaceAll(statement.SQL, "\n", " ")+";\n"...)
	}
	return text
}

// readLog reads lines of client, transaction, microseconds, script.
func readLog(dir string) (took [2][]time.Duration, err error) {
	logs, err := filepath.Glob(filepath.Join(dir, "pgbench_log.*"))
	if err != nil || len(logs) != 1 {
		return took, fmt.Errorf("pgbench has written %d logs: %w", len(logs), err)
	}
	text, err := os.ReadFile(logs[0])
	for line := range strings.Lines(string(text)) {
		var client, number, us, kind int
		if _, err := fmt.Sscan(line, &client, &number, &us, &kind); err != nil {
			return took, err
		}
		took[kind] = append(took[kind], time.Duration(us)*time.Microsecond)
	}
	return took, err
}

func mariadb(ctx context.Context, dir string) (measure, func(), error) {
	server, err := rig.StartMariaDB(ctx, dir)
	if err != nil {
		return nil, nil, err
	}
	end := func() { _ = server.Close() }
	at := "root@tcp(" + server.Address() + ")/"
	db, err := sql.Open("mysql", at)
	if err != nil {
		return nil, end, err
	}
	_, err = db.ExecContext(ctx, "CREATE DATABASE costs")
	if err = errors.Join(err, db.Close()); err != nil {
		return nil, end, err
	}
	m, err := loop(ctx, "mysql", "mysql", at+"costs?interpolateParams=true")
	return m, end, err
}

func sqlite(ctx context.Context, dir string) (measure, func(), error) {
	m, err := loop(ctx, "sqlite", "sqlite",
		"file:"+dir+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	return m, func() {}, err
}

// loop alternates the kinds on one connection.
func loop(ctx context.Context, name, driver, address string) (measure, error) {
	db, err := sql.Open(driver, address)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	if err := create(ctx, db, name); err != nil {
		return nil, err
	}
	return func(
		ctx context.Context, n int, kinds [2]transaction,
	) (took [2][]time.Duration, err error) {
		for i := range 2 * n {
			kind := i % 2
			began := time.Now()
			for _, statement := range kinds[kind] {
				if _, err := statement.Exec(ctx, db, values()); err != nil {
					return took, err
				}
			}
			took[kind] = append(took[kind], time.Since(began))
		}
		return took, nil
	}, nil
}

func values() sqlkit.Values {
	//nolint:gosec // no secrets
	id, balance := 1+rand.IntN(rows), 1+rand.IntN(1_000_000_000)
	return sqlkit.Values{"lock": "7", "id": id, "fence": 34, "balance": balance}
}

// create makes the table, with the columns and the table of the check.
func create(ctx context.Context, db *sql.DB, name string) error {
	numbers := fmt.Sprintf("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "+
		"WHERE i < %d) SELECT i, 0 FROM n", rows)
	if name == "mysql" {
		numbers = fmt.Sprintf("SELECT seq, 0 FROM seq_1_to_%d", rows)
	}
	texts := append([]string{
		"CREATE TABLE account (id bigint PRIMARY KEY, balance bigint NOT NULL)",
		"INSERT INTO account " + numbers,
	}, strings.Split(sqlkit.Text(filepath.Join(name, "schema.sql")), ";")...)
	for _, text := range texts {
		if statement := sqlkit.NewStatement("", text); statement.SQL != "" {
			if _, err := db.ExecContext(ctx, statement.SQL); err != nil {
				return err
			}
		}
	}
	return nil
}
