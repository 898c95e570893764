// Command postgres-advisory takes advisory locks of PostgreSQL's sessions.
package main

import (
	"context"
	"log"
	"os"

	"github.com/fencepost/fencepost/fencetest/systems/protocol"
	"github.com/jackc/pgx/v5"
)

const (
	lock   = "SELECT pg_advisory_lock(hashtextextended($1, 0))"
	unlock = "SELECT pg_advisory_unlock(hashtextextended($1, 0))"
)

func main() {
	// Poolers need the simple protocol, says pgx.
	url := "postgres://postgres@" + os.Getenv("FENCETEST_SERVER") +
		"/postgres?sslmode=disable&default_query_exec_mode=simple_protocol"
	conn, err := pgx.Connect(context.Background(), url)
	if err != nil {
		log.Fatal(err)
	}
	protocol.Run(func(ctx context.Context, want protocol.Request) (*protocol.Held, error) {
		if conn.IsClosed() { // a query that is cancelled closes it, and so does a failure
			if conn, err = pgx.Connect(ctx, url); err != nil {
				return nil, err
			}
		}
		if _, err := conn.Exec(ctx, lock, want.Name); err != nil {
			return nil, err
		}
		return &protocol.Held{Check: func(ctx context.Context) error {
			return verdict(conn, conn.Ping(ctx))
		}, Release: func(ctx context.Context) error {
			held := false
			err := conn.QueryRow(ctx, unlock, want.Name).Scan(&held)
			if err == nil && !held {
				return protocol.ErrLost
			}
			return verdict(conn, err)
		}}, nil
	})
}

// verdict of a session that has ended: its locks have, too.
func verdict(conn *pgx.Conn, err error) error {
	if conn.IsClosed() {
		return protocol.ErrLost
	}
	return err
}
