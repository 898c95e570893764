package row

import (
	"context"
	"fmt"
	"time"

	"github.com/fencepost/fencepost/test/bench/load"
)

// cost is a row that compares the processor time that the servers of each side take for
// a cycle: the API server and its store, or the peer's store. What the clients take is
// not in it, so it says the same on a machine where they have processors of their own.
type cost struct {
	id, what     string
	ours, theirs starter
	atMost       float64 // the ratio
}

func (k cost) run(ctx context.Context, b *bench) (_ []Outcome, err error) {
	var cs closers
	defer cs.closeInto(&err)
	us, err := k.ours(ctx, b, &cs)
	if err != nil {
		return nil, err
	}
	them, err := k.theirs(ctx, b, &cs)
	if err != nil {
		return nil, err
	}
	c, err := b.compareBy(ctx, us, them, perCycle)
	if err != nil {
		return nil, err
	}
	return []Outcome{c.outcomeOfCost(k)}, nil
}

// perCycle is the seconds of processor time that the servers took for a cycle. Both
// figures are rates, so that the warm-up, which only one of them counts, does no harm.
func perCycle(r *load.Result, u usage) float64 { return u.server / r.PerSecond() }

func (c *comparison) outcomeOfCost(k cost) Outcome {
	s := load.Summarize(c.pairs)
	return Outcome{
		ID: k.id, What: k.what, Ours: micros(seconds(s.Ours)), Theirs: micros(seconds(s.Theirs)),
		Ratio: spread(s), Bar: fmt.Sprintf("≤ %s×", trim(k.atMost)), Met: verdict(s.Ratio <= k.atMost),
		OurP50: millis(c.ours.Percentile(50)), OurP99: millis(c.ours.Percentile(99)),
		TheirP50: millis(c.theirs.Percentile(50)), TheirP99: millis(c.theirs.Percentile(99)),
		Notes: []string{"Processor time of the servers alone, for an acquire and its release; the clients' is not in it."},
	}
}

func micros(d time.Duration) string { return fmt.Sprintf("%d µs", d.Microseconds()) }

// runS15 compares with both of etcd's own locks.
func runS15(ctx context.Context, b *bench) ([]Outcome, error) {
	var outcomes []Outcome
	for _, part := range []cost{
		{
			id: "S15", what: "processor time of a cycle, uncontended, 128 clients, against `concurrency.Mutex`, shared session", atMost: 0.75,
			ours: fencepost(embedded, manyClients), theirs: mutex(1, manyClients),
		},
		{
			id: "S15", what: "processor time of a cycle, uncontended, 128 clients, against `v3lock` over HTTP, a lease each", atMost: 0.12,
			ours: fencepost(embedded, manyClients), theirs: v3lock(1, manyClients),
		},
	} {
		o, err := part.run(ctx, b)
		outcomes = append(outcomes, o...)
		if err != nil {
			return outcomes, err
		}
	}
	return outcomes, nil
}

func s16() cost {
	return cost{
		id: "S16", what: "processor time of a cycle, 32 clients on one lock, against `concurrency.Mutex`", atMost: 0.25,
		ours: fencepostQueue(embedded), theirs: mutexQueue(1),
	}
}
