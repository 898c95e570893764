package rig

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// Reserved ports lie below the range from which systems take the port of an
// outgoing connection (from 32768 on Linux, 49152 elsewhere), so that no client
// of this machine sits on the port of a server while that one is being restarted.
const (
	lowestPort  = 15000
	highestPort = 32000
)

// port is a loopback port that no other rig on this machine uses until it is
// given back, even while nothing listens on it.
type port struct {
	number int
	lock   *os.File
}

// reservePort finds a free port and marks it as taken by a lock on a file named
// after it. The kernel drops the lock when the process dies.
func reservePort() (*port, error) {
	dir := filepath.Join(os.TempDir(), "fencepost-rig-ports")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("reserve a port: %w", err)
	}
	var last error
	for range 200 {
		number := lowestPort + rand.IntN(highestPort-lowestPort)
		p, err := lockPort(dir, number)
		if err == nil {
			return p, nil
		}
		last = err
	}
	return nil, fmt.Errorf("reserve a port: %w", last)
}

func lockPort(dir string, number int) (*port, error) {
	f, err := os.OpenFile(filepath.Join(dir, strconv.Itoa(number)), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	p := &port{number: number, lock: f}
	l, err := net.Listen("tcp", p.address())
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if err := l.Close(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return p, nil
}

func (p *port) address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.number)) }

// release gives the port back. The file stays: removing it would let two rigs
// lock two files of one name.
func (p *port) release() error { return p.lock.Close() }

func reservePorts(n int) ([]*port, error) {
	ports := make([]*port, 0, n)
	for range n {
		p, err := reservePort()
		if err != nil {
			return nil, errors.Join(err, releasePorts(ports))
		}
		ports = append(ports, p)
	}
	return ports, nil
}

func releasePorts(ports []*port) error {
	var errs []error
	for _, p := range ports {
		errs = append(errs, p.release())
	}
	return errors.Join(errs...)
}
