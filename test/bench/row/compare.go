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
	name    string
	pids    []int // of its servers
	clients []int // of processes that make its load, besides this one
	workers []load.Worker
	load    func([]load.Worker) roundFunc
	note    string // of what was started
}

// compare lets both sides take turns and summarizes their figures.
func (b *bench) compare(
	ctx context.Context, lines []line, ours, theirs contender,
) ([]Outcome, error) {
	pairs := make([][]load.Pair, len(lines))
	us, them, rest := load.NewHistogram(), load.NewHistogram(), 0.0
	for round := range b.Rounds {
		a, au, err := b.round(ctx, ours, round)
		if err != nil {
			return nil, err
		}
		z, zu, err := b.round(ctx, theirs, round)
		if err != nil {
			return nil, err
		}
		rest = max(rest, au.rest, zu.rest)
		us.Merge(a.Acquire)
		them.Merge(z.Acquire)
		for i, l := range lines {
			pairs[i] = append(pairs[i], load.Pair{Ours: l.figure.of(a, au), Theirs: l.figure.of(z, zu)})
		}
	}
	outcomes := make([]Outcome, len(lines))
	for i, l := range lines {
		o := &outcomes[i]
		o.ID, o.What = l.id, l.what
		o.compared(pairs[i], l.figure.text, l.bar)
		o.latencies(us, them)
	}
	outcomes[0].Notes = append(disturbance(rest), theirs.note)
	return outcomes, nil
}

// round lets a contender run once and reports what it did.
func (b *bench) round(ctx context.Context, c contender, round int) (*load.Result, usage, error) {
	start := spend(c.pids, c.clients...)
	r, err := c.load(c.workers)(ctx, round)
	if err != nil {
		return nil, usage{}, fmt.Errorf("%s, round %d: %w", c.name, round+1, err)
	}
	if r.Cycles == 0 {
		return nil, usage{}, fmt.Errorf("%s, round %d: no cycle ended", c.name, round+1)
	}
	used := spend(c.pids, c.clients...).since(start)
	b.logf(
		"round %d: %-18s %8.0f/s  acquire p50 %v p99 %v  cores: server %.2f, load %.2f, rest %.2f",
		round+1, c.name, r.PerSecond(), r.Acquire.Percentile(50), r.Acquire.Percentile(99), used.server,
		used.load, used.rest,
	)
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

func spend(pids []int, clients ...int) spending {
	return spending{
		at: time.Now(), server: cpuTime(pids...), load: cpuTime(append(clients, os.Getpid())...),
		all: busyTime(),
	}
}

func (s spending) since(then spending) usage {
	wall := s.at.Sub(then.at).Seconds()
	u := usage{
		server: (s.server - then.server).Seconds() / wall, load: (s.load - then.load).Seconds() / wall,
	}
	u.rest = max(0, (s.all-then.all).Seconds()/wall-u.server-u.load)
	return u
}

// disturbance returns a note if other work took part of the machine.
func disturbance(rest float64) []string {
	const tolerable = 0.5
	if rest <= tolerable {
		return nil
	}
	return []string{fmt.Sprintf("Disturbed: in one round %.1f cores were busy with other work.", rest)}
}
