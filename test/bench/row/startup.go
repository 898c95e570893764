package row

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/fencepost/fencepost/test/bench/load"
	"github.com/fencepost/fencepost/test/bench/side"
)

// longTTL is the lease of locks that must outlive a row, in seconds.
const longTTL = 3600

// runStart measures the size of the binary, and from the start of the process to /readyz on
// an empty data folder.
func runStart(ctx context.Context, b *bench) ([]Outcome, error) {
	var took []float64
	for round := range b.Rounds {
		s, err := b.firstStart(ctx)
		if err != nil {
			return nil, err
		}
		b.logf("round %d: ready %.2f s after the start on an empty folder", round+1, s)
		took = append(took, s)
	}
	binary, err := os.Stat(b.api)
	if err != nil {
		return nil, err
	}
	const seconds, megabytes = 1, 60
	start, size := load.Median(took), float64(binary.Size())/1e6
	return []Outcome{
		{
			ID: "start", What: "start to ready, empty data folder", Ours: fmt.Sprintf("%.2f s", start),
			Bar: fmt.Sprintf("≤ %d s", seconds), Met: verdict(start <= seconds),
		},
		{
			ID: "start", What: "size of the binary, stripped", Ours: fmt.Sprintf("%.1f MB", size),
			Bar: fmt.Sprintf("≤ %d MB", megabytes), Met: verdict(size <= megabytes),
		},
	}, nil
}

// firstStart returns how many seconds a fresh server took to be ready.
func (b *bench) firstStart(ctx context.Context) (seconds float64, err error) {
	var cs closers
	defer cs.closeInto(&err)
	r, err := b.startReplica(ctx, "", &cs)
	if err != nil {
		return 0, err
	}
	return r.took.Seconds(), nil
}

// runS12 measures from the start of the process to /readyz on a data folder
// with many held locks, after kill -9 and after an orderly end.
func runS12(ctx context.Context, b *bench) (_ []Outcome, err error) {
	var cs closers
	defer cs.closeInto(&err)
	r, err := b.startReplica(ctx, "", &cs)
	if err != nil {
		return nil, err
	}
	if err := b.fill(ctx, r, &cs); err != nil {
		return nil, err
	}
	var killed []float64
	for range b.Rounds {
		if err := r.Kill(); err != nil {
			return nil, err
		}
		took, err := b.restart(ctx, r, "kill -9")
		if err != nil {
			return nil, err
		}
		killed = append(killed, took.Seconds())
	}
	if err := r.Terminate(ctx); err != nil {
		return nil, err
	}
	ended, err := b.restart(ctx, r, "SIGTERM")
	if err != nil {
		return nil, err
	}
	return []Outcome{b.outcomeS12(load.Median(killed), ended)}, nil
}

// fill holds many locks for longer than the row takes.
func (b *bench) fill(ctx context.Context, r *replica, cs *closers) error {
	f, err := clients(r, cs)
	if err != nil {
		return err
	}
	start := time.Now()
	body := fmt.Appendf(nil, `{"ttl_seconds":%d}`, longTTL)
	if err := askAll(
		ctx, f.Clients(manyClients), b.Entries, heldLock, body, func(side.Ticket) {},
	); err != nil {
		return err
	}
	b.logf("%d locks taken in %v", b.Entries, time.Since(start).Round(time.Millisecond))
	return nil
}

func heldLock(i int) string { return fmt.Sprintf("bench:held:%d", i) }

// restart starts the server, which does not run, and checks that nothing is lost.
func (b *bench) restart(ctx context.Context, r *replica, after string) (time.Duration, error) {
	start := time.Now()
	if err := r.Restart(ctx); err != nil {
		return 0, err
	}
	took := time.Since(start)
	n, err := countLocks(ctx, r, tenant)
	if err != nil {
		return 0, err
	}
	if n != b.Entries {
		return 0, fmt.Errorf("after %s %d of %d locks are listed", after, n, b.Entries)
	}
	b.logf(
		"ready %v after the start that followed %s; all locks are listed", took.Round(time.Millisecond),
		after,
	)
	return took, nil
}

func (b *bench) outcomeS12(killed float64, ended time.Duration) Outcome {
	const atMost = 5
	return Outcome{
		ID: "S12",
		What: fmt.Sprintf(
			"start to ready, data folder of %s entries, after kill -9", number(float64(b.Entries)),
		),
		Ours: fmt.Sprintf(
			"%.2f s", killed,
		), Bar: fmt.Sprintf("≤ %d s", atMost), Met: verdict(killed <= atMost),
		Notes: []string{fmt.Sprintf("After an orderly end it takes %.2f s.", ended.Seconds())},
	}
}
