package rig

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
)

// Database is a running server. PostgreSQL and MariaDB have every flush on, and their administrator
// needs no password.
type Database struct {
	*Program
	port *port
	end  syscall.Signal
}

// Address returns where the server listens, as host:port.
func (d *Database) Address() string { return d.port.address() }

// Close ends the server without a checkpoint, which takes long on a busy disk: nothing reads the
// data again.
func (d *Database) Close() error {
	var err error
	if d.Program != nil {
		err = d.End(d.end)
	}
	return errors.Join(err, d.port.release())
}

// StartPostgreSQL starts a server of Debian's package postgresql with its data in dir. The
// administrator is postgres. The log is dir.log.
func StartPostgreSQL(ctx context.Context, dir string) (*Database, error) {
	initdb, err := PostgreSQLProgram("initdb")
	if err != nil {
		return nil, err
	}
	return startDatabase(
		ctx,
		dir,
		syscall.SIGQUIT, // its processes end at once
		ProgramConfig{
			Binary: initdb,
			Args:   []string{"-D", dir, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"},
		},
		func(port int) ProgramConfig {
			return ProgramConfig{Binary: filepath.Join(filepath.Dir(initdb), "postgres"), Args: []string{
				"-D", dir, "-c", "port=" + strconv.Itoa(port), "-c", "listen_addresses=127.0.0.1",
				"-c", "unix_socket_directories=",
			}}
		},
		func(ctx context.Context, address string) error {
			host, port, err := net.SplitHostPort(address)
			if err != nil {
				return err
			}
			ready := filepath.Join(filepath.Dir(initdb), "pg_isready")
			return exec.CommandContext(ctx, ready, "-h", host, "-p", port).Run()
		},
	)
}

// PostgreSQLProgram returns the path of a program of the newest PostgreSQL that is installed.
// Debian keeps those of the server out of the path.
func PostgreSQLProgram(name string) (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if err == nil && len(found) > 0 {
		return found[len(found)-1], nil
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("install Debian's package postgresql: %w", err)
	}
	return path, nil
}

// StartMariaDB starts a server of Debian's package mariadb-server-core with its data in dir. The
// administrator is root. The log is dir.log.
func StartMariaDB(ctx context.Context, dir string) (*Database, error) {
	return startDatabase(
		ctx,
		dir,
		syscall.SIGKILL,
		ProgramConfig{Binary: "mariadb-install-db", Args: []string{
			"--no-defaults", "--datadir=" + dir, "--auth-root-authentication-method=normal",
			"--skip-test-db",
		}},
		func(port int) ProgramConfig {
			return ProgramConfig{Binary: "/usr/sbin/mariadbd", Args: []string{
				"--no-defaults", "--datadir=" + dir, "--port=" + strconv.Itoa(port),
				"--bind-address=127.0.0.1", "--socket=socket", "--pid-file=pid",
			}}
		},
		accepts,
	)
}

func startDatabase(
	ctx context.Context, dir string, end syscall.Signal,
	initialize ProgramConfig, serve func(port int) ProgramConfig,
	ready func(ctx context.Context, address string) error,
) (*Database, error) {
	if err := open(dir); err != nil {
		return nil, err
	}
	run := func(config ProgramConfig) (*Program, error) {
		config.Log, config.Unprivileged = dir+".log", true
		return StartProgram(config)
	}
	first, err := run(initialize)
	if err != nil {
		return nil, err
	}
	if err := first.Wait(ctx); err != nil {
		return nil, fmt.Errorf("initialize the database: %w", err)
	}
	d := &Database{end: end}
	if d.port, err = reservePort(); err != nil {
		return nil, err
	}
	if d.Program, err = run(serve(d.port.number)); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	err = d.Await(ctx, "the database", func(ctx context.Context) error {
		return ready(ctx, d.Address())
	})
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}
