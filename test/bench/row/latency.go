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
	rate, err := b.halfOfMaximum(
		ctx,
		contender{
			"Fencepost at full speed",
			s.pids,
			s.watched(b, b.uncontended(s.load.Workers(manyClients))),
		},
	)
	if err != nil {
		return nil, err
	}
	ours := contender{"Fencepost", s.pids, s.watched(b, b.steady(s.load.Workers(openWorkers), rate))}
	theirs := contender{
		"bare put",
		etcd.pids(),
		b.steady(side.NewPutWorkers(etcd.client, openWorkers), rate),
	}
	o, err := b.compare(ctx, duel{
		what: fmt.Sprintf("p99 of an acquire at %s/s, open loop, against a bare etcd put", number(rate)),
		bar:  atMost(4), figure: p99, notes: []string{s10Note},
	}, ours, theirs)
	return []Outcome{o}, err
}

const s10Note = "The rate is half of what 128 clients reached just before; the peer makes as many " +
	"puts as Fencepost makes acquires (which it releases too). Latency counts from when a request " +
	"should have started. The first two figures are medians of the rounds' p99."

// halfOfMaximum finds the rate for the row.
func (b *bench) halfOfMaximum(ctx context.Context, c contender) (float64, error) {
	var rates []float64
	for round := range b.Rounds {
		r, _, err := b.round(ctx, c, round)
		if err != nil {
			return 0, err
		}
		rates = append(rates, r.PerSecond())
	}
	return load.Median(rates) / 2, nil
}

// steady returns rounds with cycles at a fixed rate, on names that come back
// as seldom as in the uncontended rows.
func (b *bench) steady(workers []load.Worker, rate float64) roundFunc {
	return func(ctx context.Context, round int) (*load.Result, error) {
		const names = manyClients * namesPerWorker
		return load.Open{
			Workers: workers, Rate: rate, Warmup: b.Warmup, Duration: b.Duration,
			Name: func(cycle int) string { return fmt.Sprintf("bench:steady:%d:%d", round, cycle%names) },
		}.Run(ctx)
	}
}
