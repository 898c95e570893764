package row

import (
	"context"

	"github.com/fencepost/fencepost/test/bench/load"
)

// peer is a side that is measured by itself, to see whether this machine
// resembles the one on which the bars were set.
type peer struct {
	what  string
	start starter
}

func runCeiling(ctx context.Context, b *bench) ([]Outcome, error) {
	return b.each(ctx, []peer{
		{"empty answers, 32 clients", empty(32)},
		{"empty answers, 128 clients", empty(manyClients)},
	})
}

func runPeers(ctx context.Context, b *bench) ([]Outcome, error) {
	return b.each(ctx, []peer{
		{"mutex, 1 client", mutex(1, 1)},
		{"mutex, 32 clients", mutex(1, 32)},
		{"mutex, 128 clients", mutex(1, manyClients)},
		{"mutex, 32 on one lock", mutexQueue(1)},
		{"mutex, 128 clients, three members", mutex(members, manyClients)},
		{"mutex, 32 on one lock, three members", mutexQueue(members)},
		{"v3lock, 1 client", v3lock(1, 1)},
		{"v3lock, 32 clients", v3lock(1, 32)},
		{"v3lock, 128 clients", v3lock(1, manyClients)},
		{"v3lock, 128 clients, three members", v3lock(members, manyClients)},
	})
}

func (b *bench) each(ctx context.Context, peers []peer) ([]Outcome, error) {
	var outcomes []Outcome
	for _, p := range peers {
		b.logf("%s", p.what)
		o, err := b.alone(ctx, p.what, p.start)
		if err != nil {
			return outcomes, err
		}
		outcomes = append(outcomes, o)
	}
	return outcomes, nil
}

func (b *bench) alone(ctx context.Context, what string, start starter) (_ Outcome, err error) {
	var cs closers
	defer cs.closeInto(&err)
	c, err := start(ctx, b, &cs)
	if err != nil {
		return Outcome{}, err
	}
	var rates []float64
	all := load.NewHistogram()
	for round := range b.Rounds {
		r, _, err := b.round(ctx, c, round)
		if err != nil {
			return Outcome{}, err
		}
		rates = append(rates, r.PerSecond())
		all.Merge(r.Acquire)
	}
	return Outcome{
		ID: b.row, What: what, Theirs: number(load.Median(rates)) + "/s",
		TheirP50: millis(all.Percentile(50)), TheirP99: millis(all.Percentile(99)),
	}, nil
}
