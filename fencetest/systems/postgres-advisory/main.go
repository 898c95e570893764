// Command postgres-advisory takes advisory locks of PostgreSQL's sessions.
package main

import (
	"context"
	"log"
	"os"

	"github.com/fencepost/fencepost/fencetest/systems/protocol"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	lock   = "SELECT pg_advisory_lock(hashtextextended($1, 0))"
	unlock = "SELECT pg_advisory_unlock(hashtextextended($1, 0))"
)

func main() {
	// Poolers need the simple protocol, says pgx.
	pool, err := pgxpool.New(context.Background(), "postgres://postgres@"+
		os.Getenv("FENCETEST_SERVER")+"/postgres?sslmode=disable&default_query_exec_mode=simple_protocol")
	if err != nil {
		log.Fatal(err)
	}
	if err = pool.Ping(context.Background()); err != nil {
		log.Fatal(err)
	}
	protocol.Run(func(ctx context.Context, want protocol.Request) (*protocol.Held, error) {
		conn, err := pool.Acquire(ctx) // the lock is of this session
		if err != nil {
			return nil, err
		}
		if _, err := conn.Exec(ctx, lock, want.Name); err != nil {
			conn.Release()
			return nil, err
		}
		return &protocol.Held{Check: func(ctx context.Context) error {
			return verdict(conn, conn.Ping(ctx))
		}, Release: func(ctx context.Context) error {
			held := false
			err := conn.QueryRow(ctx, unlock, want.Name).Scan(&held)
			if err == nil && !held {
				err = protocol.ErrLost
			}
			defer conn.Release()
			return verdict(conn, err)
		}}, nil
	})
}

// verdict of a session that has ended: its locks have, too.
func verdict(conn *pgxpool.Conn, err error) error {
	if conn.Conn().IsClosed() {
		conn.Release()
		return protocol.ErrLost
	}
	return err
}
