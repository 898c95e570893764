package goose_test

import (
	"database/sql"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
	"github.com/pressly/goose/v3/lock/locktesting"
	_ "modernc.org/sqlite"

	"github.com/fencepost/fencepost/client"
	fencepost "github.com/fencepost/fencepost/contrib/goose"
)

// TestProviderLocking: of five migrators one applies all migrations, and the others none. Each has
// a client and a connection of its own, as a process has.
func TestProviderLocking(t *testing.T) {
	folder, path := migrations(t), filepath.Join(t.TempDir(), "db")
	locktesting.TestProviderLocking(t, func(t *testing.T) *goose.Provider {
		provider, err := goose.NewProvider(goose.DialectSQLite3, open(t, path), os.DirFS(folder),
			goose.WithLocker(fencepost.New(connect(t), t.Name(), client.Options{}, nil)))
		if err != nil {
			t.Fatal(err)
		}
		return provider
	})
}

// TestConcurrentLocking: of five lockers one acquires the lock while the others wait in vain.
func TestConcurrentLocking(t *testing.T) {
	locktesting.TestConcurrentLocking(t, nil, func(t *testing.T) lock.Locker {
		return fencepost.New(connect(t), t.Name(), client.Options{}, nil)
	}, 2*time.Second)
}

// connect returns a client of the server of clients/with-server, which make contrib-goose starts.
func connect(t *testing.T) *client.Client {
	t.Helper()
	c, err := client.New(client.Config{
		URLs: []string{os.Getenv("FENCEPOST_URL")}, Token: client.Bearer(os.Getenv("FENCEPOST_TOKEN")),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// migrations returns the folder that the tests of goose apply, in its published module.
func migrations(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(),
		"go", "list", "-m", "-f", "{{.Dir}}", "github.com/pressly/goose/v3").Output()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "testdata", "migrations")
}

func open(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}
