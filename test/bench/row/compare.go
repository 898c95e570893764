package row

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/fencepost/fencepost/test/bench/load"
)

// contender is one side of a comparison.
type contender struct {
	name string
	pids []int // of its servers
	run  roundFunc
}

// comparison is what two contenders did in turns.
type comparison struct {
	pairs        []load.Pair // of the figure compared
	ours, theirs *load.Histogram
}

// duel starts both sides, lets them take turns, and stops them.
func (b *bench) duel(ctx context.Context, ours, theirs starter) (_ *comparison, err error) {
	var cs closers
	defer cs.closeInto(&err)
	us, err := ours(ctx, b, &cs)
	if err != nil {
		return nil, err
	}
	them, err := theirs(ctx, b, &cs)
	if err != nil {
		return nil, err
	}
	return b.compare(ctx, us, them)
}

func (b *bench) compare(ctx context.Context, ours, theirs contender) (*comparison, error) {
	return b.compareBy(ctx, ours, theirs, (*load.Result).PerSecond)
}

// compareBy lets both sides take turns and keeps one figure of each round.
func (b *bench) compareBy(ctx context.Context, ours, theirs contender, figure func(*load.Result) float64) (*comparison, error) {
	c := &comparison{ours: load.NewHistogram(), theirs: load.NewHistogram()}
	for round := range b.Rounds {
		a, err := b.round(ctx, ours, round)
		if err != nil {
			return nil, err
		}
		z, err := b.round(ctx, theirs, round)
		if err != nil {
			return nil, err
		}
		c.ours.Merge(a.Acquire)
		c.theirs.Merge(z.Acquire)
		c.pairs = append(c.pairs, load.Pair{Ours: figure(a), Theirs: figure(z)})
	}
	return c, nil
}

// round lets a contender run once and reports what it did, with the processor
// time of its servers and of the load, in cores.
func (b *bench) round(ctx context.Context, c contender, round int) (*load.Result, error) {
	start, server, self := time.Now(), cpuTime(c.pids...), cpuTime(os.Getpid())
	r, err := c.run(ctx, round)
	if err != nil {
		return nil, fmt.Errorf("%s, round %d: %w", c.name, round+1, err)
	}
	if r.Cycles == 0 {
		return nil, fmt.Errorf("%s, round %d: no cycle ended", c.name, round+1)
	}
	wall := time.Since(start).Seconds()
	b.logf("round %d: %-18s %8.0f/s  acquire p50 %v p99 %v  cores: server %.2f load %.2f",
		round+1, c.name, r.PerSecond(), r.Acquire.Percentile(50), r.Acquire.Percentile(99),
		(cpuTime(c.pids...)-server).Seconds()/wall, (cpuTime(os.Getpid())-self).Seconds()/wall)
	return r, nil
}
