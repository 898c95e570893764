package row

import (
	"context"
	"fmt"
	"time"

	"github.com/fencepost/fencepost/test/bench/load"
)

// runS8 measures the memory that waiting requests cost the server.
func runS8(ctx context.Context, b *bench) (_ []Outcome, err error) {
	if err := allowClients(b.Waiters); err != nil {
		return nil, err
	}
	var all, anonymous []float64
	for round := range b.Rounds {
		before, after, err := b.memoryOfWaiting(ctx, b.Waiters)
		if err != nil {
			return nil, err
		}
		grown := footprint{after.all - before.all, after.anonymous - before.anonymous}
		n := 1024 * float64(b.Waiters)
		b.logf("round %d: %.1f KiB resident for each of %d, %.1f KiB of it anonymous",
			round+1, grown.all/n, b.Waiters, grown.anonymous/n)
		all, anonymous = append(all, grown.all/n), append(anonymous, grown.anonymous/n)
	}
	return []Outcome{b.outcomeS8(load.Median(all), load.Median(anonymous))}, nil
}

func (b *bench) outcomeS8(kib, anonymous float64) Outcome {
	const most = 32
	return Outcome{
		ID:   "S8",
		What: fmt.Sprintf("memory of a waiting request, %s on one lock", number(float64(b.Waiters))),
		Ours: fmt.Sprintf("%.1f KiB", kib), Bar: fmt.Sprintf("≤ %d KiB", most), Met: verdict(kib <= most),
		Notes: []string{
			fmt.Sprintf("%.1f KiB of it are Go's heap and stacks, the rest pages of files.", anonymous),
		},
	}
}

// memoryOfWaiting returns the memory of a fresh server, and that with n requests that wait.
func (b *bench) memoryOfWaiting(ctx context.Context, n int) (before, after footprint, err error) {
	var cs closers
	defer cs.closeInto(&err)
	r, err := b.startReplica(ctx, "", &cs)
	if err != nil {
		return before, after, err
	}
	if before, err = steadyFootprint(ctx, r, 3*time.Second); err != nil {
		return before, after, err
	}
	q, err := queueUp(ctx, r, "bench", n, &cs)
	if err != nil {
		return before, after, err
	}
	cs.add(q.Close)
	after, err = steadyFootprint(ctx, r, 15*time.Second)
	if err == nil && b.Profiles != "" {
		err = b.saveProfile(ctx, r, "heap", "heap")
	}
	return before, after, err
}

// steadyFootprint returns the median over a time, which is long enough for the
// collector to have run and short of the end of the waits.
func steadyFootprint(ctx context.Context, r *replica, over time.Duration) (footprint, error) {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	var all, anonymous []float64
	for end := time.Now().Add(over); time.Now().Before(end); {
		now, err := measure(r.PID())
		if err != nil {
			return footprint{}, err
		}
		all, anonymous = append(all, now.all), append(anonymous, now.anonymous)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return footprint{}, ctx.Err()
		}
	}
	return footprint{load.Median(all), load.Median(anonymous)}, nil
}
