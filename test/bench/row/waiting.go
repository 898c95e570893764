package row

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fencepost/fencepost/test/bench/load"
)

const (
	fewWaiters = 10
	handovers  = 500
	// burst is how many requests may be on their way into a queue while it fills,
	// so that neither the server's backlog of connections nor its store overflows:
	// what is measured is a queue that is full, not how it fills.
	burst = 256
	// spareFiles is what a process opens, or keeps back, besides the connections.
	spareFiles = 1000
	// fillTime bounds how long a queue may take to fill.
	fillTime = 30 * time.Second
)

// queueUp puts n requests behind a holder of the lock name.
func queueUp(
	ctx context.Context,
	r *replica,
	name string,
	n int,
	cs *closers,
) (*load.Queue, error) {
	f, err := clients(r, cs)
	if err != nil {
		return nil, err
	}
	f.WaitSeconds = queueSeconds
	ctx, cancel := context.WithTimeout(ctx, fillTime)
	defer cancel()
	return load.FillQueue(ctx, name, f.Workers(n+1), burst, waiting(r))
}

// runS7 compares handovers behind which many requests wait with handovers
// behind which few do.
func runS7(ctx context.Context, b *bench) (_ []Outcome, err error) {
	if err := allowClients(b.Waiters); err != nil {
		return nil, err
	}
	var cs closers
	defer cs.closeInto(&err)
	r, err := b.startReplica(ctx, "", &cs)
	if err != nil {
		return nil, err
	}
	var pairs []load.Pair
	many, few := load.NewHistogram(), load.NewHistogram()
	for round := range b.Rounds {
		with, err := b.handovers(ctx, r, round, b.Waiters)
		if err != nil {
			return nil, err
		}
		without, err := b.handovers(ctx, r, round, fewWaiters)
		if err != nil {
			return nil, err
		}
		many.Merge(with)
		few.Merge(without)
		pairs = append(pairs, load.Pair{Ours: with.Mean().Seconds(), Theirs: without.Mean().Seconds()})
	}
	return []Outcome{b.outcomeS7(pairs, many, few)}, nil
}

func (b *bench) handovers(
	ctx context.Context,
	r *replica,
	round, waiters int,
) (_ *load.Histogram, err error) {
	var cs closers
	defer cs.closeInto(&err)
	q, err := queueUp(ctx, r, fmt.Sprintf("bench:%d:%d", round, waiters), waiters, &cs)
	if err != nil {
		return nil, err
	}
	h, err := q.Handovers(ctx, handovers)
	if err = errors.Join(err, q.Close()); err != nil {
		return nil, err
	}
	b.logf(
		"round %d: %5d waiters: mean %v p50 %v p99 %v", round+1, waiters, h.Mean(), h.Percentile(50),
		h.Percentile(99),
	)
	return h, awaitFigure(ctx, r, waitingFigure, 0)
}

func (b *bench) outcomeS7(pairs []load.Pair, many, few *load.Histogram) Outcome {
	o := Outcome{
		ID: "S7", What: fmt.Sprintf("hand-over with %s waiters on the lock, against %d",
			number(float64(b.Waiters)), fewWaiters),
	}
	o.compared(pairs, p99.text, atMost(1.5))
	o.latencies(many, few)
	return o
}
