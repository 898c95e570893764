package rig

import (
	"context"
	"errors"
	"net"
	"syscall"
)

// StartServer starts a program that listens on the port that it gets, and returns when the server
// accepts connections. The log is dir.log.
func StartServer(
	ctx context.Context, dir string, serve func(port int) ProgramConfig,
) (*Database, error) {
	d := &Database{end: syscall.SIGKILL}
	var err error
	if d.port, err = reservePort(); err != nil {
		return nil, err
	}
	config := serve(d.port.number)
	config.Log = dir + ".log"
	if d.Program, err = StartProgram(config); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	err = d.Await(ctx, config.Binary, func(ctx context.Context) error {
		return accepts(ctx, d.Address())
	})
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// accepts fails unless a server accepts a connection.
func accepts(ctx context.Context, address string) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}
