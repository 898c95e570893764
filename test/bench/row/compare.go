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
	rest         float64 // highest of the rounds, see usage
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
	return b.compareBy(ctx, ours, theirs, func(r *load.Result, _ usage) float64 { return r.PerSecond() })
}

// compareBy lets both sides take turns and keeps one figure of each round.
func (b *bench) compareBy(ctx context.Context, ours, theirs contender, figure func(*load.Result, usage) float64) (*comparison, error) {
	c := &comparison{ours: load.NewHistogram(), theirs: load.NewHistogram()}
	for round := range b.Rounds {
		a, au, err := b.round(ctx, ours, round)
		if err != nil {
			return nil, err
		}
		z, zu, err := b.round(ctx, theirs, round)
		if err != nil {
			return nil, err
		}
		c.rest = max(c.rest, au.rest, zu.rest)
		c.ours.Merge(a.Acquire)
		c.theirs.Merge(z.Acquire)
		c.pairs = append(c.pairs, load.Pair{Ours: figure(a, au), Theirs: figure(z, zu)})
	}
	return c, nil
}

// round lets a contender run once and reports what it did.
func (b *bench) round(ctx context.Context, c contender, round int) (*load.Result, usage, error) {
	start := spend(c.pids)
	r, err := c.run(ctx, round)
	if err != nil {
		return nil, usage{}, fmt.Errorf("%s, round %d: %w", c.name, round+1, err)
	}
	if r.Cycles == 0 {
		return nil, usage{}, fmt.Errorf("%s, round %d: no cycle ended", c.name, round+1)
	}
	used := spend(c.pids).since(start)
	b.logf("round %d: %-18s %8.0f/s  acquire p50 %v p99 %v  cores: server %.2f, load %.2f, rest %.2f", round+1, c.name,
		r.PerSecond(), r.Acquire.Percentile(50), r.Acquire.Percentile(99), used.server, used.load, used.rest)
	return r, used, nil
}

// usage is how many cores were busy on average, and with what. The rest is the
// kernel's work that no process pays for and whatever else ran: well below half
// a core on a machine that is left alone.
type usage struct{ server, load, rest float64 }

// spending is the processor time that was used up to a moment.
type spending struct {
	at                time.Time
	server, load, all time.Duration
}

func spend(pids []int) spending {
	return spending{at: time.Now(), server: cpuTime(pids...), load: cpuTime(os.Getpid()), all: busyTime()}
}

func (s spending) since(then spending) usage {
	wall := s.at.Sub(then.at).Seconds()
	u := usage{server: (s.server - then.server).Seconds() / wall, load: (s.load - then.load).Seconds() / wall}
	u.rest = max(0, (s.all-then.all).Seconds()/wall-u.server-u.load)
	return u
}

// disturbance returns a note when other work took part of the machine.
func (c *comparison) disturbance() []string {
	const tolerable = 0.5
	if c.rest <= tolerable {
		return nil
	}
	return []string{fmt.Sprintf("Disturbed: in one round %.1f cores were busy with something else.", c.rest)}
}
