package row

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/fencepost/fencepost/test/bench/load"
)

// debugAddress finds a free port for the server's profiler, which does not print its address. If
// another process takes the port in between, the server fails to start.
func debugAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// profiled records the server's processor profile during the last round, if
// profiles are wanted; that round is a few percent slower for it.
func (s *served) profiled(b *bench, run roundFunc) roundFunc {
	if b.Profiles == "" {
		return run
	}
	return func(ctx context.Context, round int) (*load.Result, error) {
		if round != b.Rounds-1 {
			return run(ctx, round)
		}
		saved := make(chan error, 1)
		go func() {
			whole := max(time.Second, (b.Warmup + b.Duration).Truncate(time.Second))
			saved <- b.saveProfile(
				ctx, s.replica, fmt.Sprintf("profile?seconds=%.0f", whole.Seconds()), "cpu",
			)
		}()
		r, err := run(ctx, round)
		return r, errors.Join(err, <-saved)
	}
}

// saveProfile stores one profile of a server, as
// <row>-<number of the server within the row>.<kind>.pprof.
func (b *bench) saveProfile(ctx context.Context, r *replica, which, kind string) (err error) {
	resp, err := get(ctx, "http://"+r.debug+"/debug/pprof/"+which, "")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	f, err := os.Create(
		filepath.Join(b.Profiles, fmt.Sprintf("%s-%d.%s.pprof", b.row, r.number, kind)),
	)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = io.Copy(f, resp.Body)
	return err
}
