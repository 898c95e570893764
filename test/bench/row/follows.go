package row

import (
	"context"
	"time"

	"github.com/fencepost/fencepost/test/bench/load"
)

// runS18 starts replicas on one store. One of them serves all requests, and the others follow. It
// compares what they spend on a cycle. With [Config.Older] an older server follows too, under the
// same load.
func runS18(ctx context.Context, b *bench) (_ []Outcome, err error) {
	var cs closers
	defer cs.closeInto(&err)
	serves, err := b.serve(ctx, 1, &cs)
	if err != nil {
		return nil, err
	}
	follows, err := b.startReplica(ctx, serves.store, &cs)
	if err != nil {
		return nil, err
	}
	c := serves.contender(b, serves.load.Workers(manyClients), b.uncontended)
	c.pids = []int{serves.PID()}
	rounds := c.load
	c.load = func(w []load.Worker) roundFunc {
		return (&served{replica: follows}).profiled(b, rounds(w))
	}
	all := []*follower{{replica: follows, Outcome: Outcome{
		ID: "S18", What: cpu + "of a replica that follows, against the one that serves, " + free,
	}, bar: atMost(0.12)}}
	if b.Older != "" {
		old := &follower{Outcome: Outcome{ID: "S18", What: "the same, of an older revision"}}
		all = append(all, old)
		err := b.withOlder(ctx, func() (err error) {
			old.replica, err = b.startReplica(ctx, serves.store, &cs)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return b.follow(ctx, c, all)
}

// follower is a replica that serves nothing, and the line of the table that it gives.
type follower struct {
	*replica
	Outcome
	bar   bar
	pairs []load.Pair
}

func (b *bench) follow(ctx context.Context, c contender, all []*follower) ([]Outcome, error) {
	rest := 0.0
	for round := range b.Rounds {
		before := make([]time.Duration, len(all))
		for i, f := range all {
			before[i] = cpuTime(f.PID())
		}
		start := time.Now()
		r, used, err := b.round(ctx, c, round)
		if err != nil {
			return nil, err
		}
		elapsed := time.Since(start)
		for i, f := range all {
			cores := (cpuTime(f.PID()) - before[i]).Seconds() / elapsed.Seconds()
			used.rest -= cores
			p := load.Pair{Ours: cores / r.PerSecond(), Theirs: used.server / r.PerSecond()}
			f.pairs = append(f.pairs, p)
			b.logf("         follower %d: %s for a cycle, server %s", i, micros(p.Ours), micros(p.Theirs))
		}
		rest = max(rest, used.rest)
	}
	outcomes := make([]Outcome, len(all))
	for i, f := range all {
		f.compared(f.pairs, micros, f.bar)
		outcomes[i] = f.Outcome
	}
	outcomes[0].Notes = disturbance(rest)
	return outcomes, nil
}
