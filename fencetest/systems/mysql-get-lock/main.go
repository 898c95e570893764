// Command mysql-get-lock takes named locks with GET_LOCK, of MariaDB or MySQL.
package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"log"
	"os"

	"github.com/fencepost/fencepost/fencetest/systems/protocol"
	"github.com/go-sql-driver/mysql"
)

func main() {
	db, err := sql.Open("mysql", "root@tcp("+os.Getenv("FENCETEST_SERVER")+")/")
	if err != nil {
		log.Fatal(err)
	}
	if err = db.Ping(); err != nil {
		log.Fatal(err)
	}
	ask := func(ctx context.Context, conn *sql.Conn, query string, args ...any) (bool, error) {
		var yes sql.NullBool
		err := conn.QueryRowContext(ctx, query, args...).Scan(&yes)
		return yes.Bool, err
	}
	ctx := context.Background()
	protocol.Run(func(_ context.Context, want protocol.Request) (*protocol.Held, error) {
		conn, err := db.Conn(ctx) // the lock is of this session
		if err != nil {
			return nil, err
		}
		yes, err := ask(ctx, conn, "SELECT GET_LOCK(?, ?)", want.Name, want.Wait.Seconds())
		if err == nil && !yes {
			err = protocol.ErrNotHeld
		}
		if err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		lostUnless := func(query string) func(context.Context) error {
			return func(ctx context.Context) error {
				yes, err := ask(ctx, conn, query, want.Name)
				ended := errors.Is(err, driver.ErrBadConn) || errors.Is(err, mysql.ErrInvalidConn)
				if err == nil && !yes || ended {
					return protocol.ErrLost // the locks of a session end with it
				}
				return err
			}
		}
		return &protocol.Held{
			Check: lostUnless("SELECT IS_USED_LOCK(?) = CONNECTION_ID()"),
			Release: func(ctx context.Context) error {
				err := lostUnless("SELECT RELEASE_LOCK(?)")(ctx)
				return errors.Join(err, conn.Close())
			},
		}, nil
	})
}
