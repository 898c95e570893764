package row

import (
	"context"
	"fmt"

	"github.com/fencepost/fencepost/test/bench/load"
	"github.com/fencepost/fencepost/test/bench/side"
)

// openWorkers is how many cycles of a fixed rate may be under way at once.
const openWorkers = 256

// runS10 compares the p99 of an acquire with that of a bare put at one rate.
func runS10(ctx context.Context, b *bench) (_ []Outcome, err error) {
	var cs closers
	defer cs.closeInto(&err)
	s, err := b.serve(ctx, embedded, &cs)
	if err != nil {
		return nil, err
	}
	etcd, err := b.startEtcd(ctx, "peer", 1, &cs)
	if err != nil {
		return nil, err
	}
	fast := s.contender(b, s.load.Workers(manyClients), b.uncontended)
	most, err := b.maximum(ctx, fast)
	if err != nil {
		return nil, err
	}
	rate := most / 2
	ours := s.contender(b, s.load.Workers(openWorkers), b.steady(rate))
	theirs := contender{
		name: "bare put", pids: etcd.pids(),
		workers: side.NewPutWorkers(etcd.client, openWorkers), load: b.steady(rate),
	}
	what := "p99 of an acquire at " + number(rate) + "/s, open loop, against a bare etcd put"
	return b.compare(ctx, []line{{"S10", what, p99, atMost(4)}}, ours, theirs)
}

// maximum finds how many cycles a second a side makes at full speed.
func (b *bench) maximum(ctx context.Context, c contender) (float64, error) {
	var rates []float64
	for round := range b.Rounds {
		r, _, err := b.round(ctx, c, round)
		if err != nil {
			return 0, err
		}
		rates = append(rates, r.PerSecond())
	}
	return load.Median(rates), nil
}

// steady returns rounds with cycles at a fixed rate, on names that come back
// as seldom as in the uncontended rows.
func (b *bench) steady(rate float64) func([]load.Worker) roundFunc {
	return func(workers []load.Worker) roundFunc {
		return func(ctx context.Context, round int) (*load.Result, error) {
			const names = manyClients * namesPerWorker
			return load.Open{
				Workers: workers, Rate: rate, Warmup: b.Warmup, Duration: b.Duration,
				Name: func(cycle int) string { return fmt.Sprintf("bench:steady:%d:%d", round, cycle%names) },
			}.Run(ctx)
		}
	}
}
