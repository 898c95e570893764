package row

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fencepost/fencepost/test/bench/load"
	"github.com/fencepost/fencepost/test/rig"
)

const (
	fewWaiters = 10
	handovers  = 500
	// burst is how many requests may be on their way into a queue while it fills,
	// so that neither the server's backlog of connections nor its store overflows:
	// what is measured is a queue that is full, not how it fills.
	burst = 256
	// spareFiles is what a process opens besides the connections.
	spareFiles = 500
	// fillTime bounds how long a queue may take to fill.
	fillTime = 30 * time.Second
)

// queueUp puts n requests behind a holder of the lock name.
func queueUp(ctx context.Context, r *rig.Replica, name string, n int, cs *closers) (*load.Queue, error) {
	f, err := clients(r, n+1, cs)
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
	if err := allowOpenFiles(uint64(b.Waiters + spareFiles)); err != nil {
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
	return []Outcome{b.outcomeS7(load.Summarize(pairs), many, few)}, nil
}

func (b *bench) handovers(ctx context.Context, r *rig.Replica, round, waiters int) (_ *load.Histogram, err error) {
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
	b.logf("round %d: %5d waiters: mean %v p50 %v p99 %v", round+1, waiters, h.Mean(), h.Percentile(50), h.Percentile(99))
	return h, awaitFigure(ctx, r, waitingFigure, 0)
}

func (b *bench) outcomeS7(s load.Summary, many, few *load.Histogram) Outcome {
	const atMost = 1.5
	return Outcome{
		ID: "S7", What: fmt.Sprintf("hand-over with %s waiters on the lock, against %d", number(float64(b.Waiters)), fewWaiters),
		Ours: millis(seconds(s.Ours)), Theirs: millis(seconds(s.Theirs)),
		Ratio: spread(s), Bar: fmt.Sprintf("≤ %s×", trim(atMost)), Met: verdict(s.Ratio <= atMost),
		OurP50: millis(many.Percentile(50)), OurP99: millis(many.Percentile(99)),
		TheirP50: millis(few.Percentile(50)), TheirP99: millis(few.Percentile(99)),
		Notes: []string{fmt.Sprintf("Both figures are Fencepost's: the mean time from a release being sent to the next client having its grant, "+
			"over %d hand-overs a round; whoever is granted releases at once and queues again. Every hand-over went to the next in line.", handovers)},
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// footprint is the memory of the server at one moment, in bytes.
type footprint struct{ resident, heap float64 }

// runS8 measures the memory that waiting requests cost the server.
func runS8(ctx context.Context, b *bench) (_ []Outcome, err error) {
	if err := allowOpenFiles(uint64(b.Waiters + spareFiles)); err != nil {
		return nil, err
	}
	var each []float64
	var heap []float64
	for round := range b.Rounds {
		resident, used, err := b.memoryOfWaiting(ctx)
		if err != nil {
			return nil, err
		}
		b.logf("round %d: %.1f KiB resident, %.1f KiB of heap and stacks for each of %d", round+1, resident/1024, used/1024, b.Waiters)
		each, heap = append(each, resident/1024), append(heap, used/1024)
	}
	const atMost = 24
	kib := load.Median(each)
	return []Outcome{{
		ID: "S8", What: fmt.Sprintf("memory of a waiting request, %s on one lock", number(float64(b.Waiters))),
		Ours: fmt.Sprintf("%.1f KiB", kib), Bar: fmt.Sprintf("≤ %d KiB", atMost), Met: verdict(kib <= atMost),
		Notes: []string{fmt.Sprintf("Growth of the server's resident memory from before the requests to when all of them wait, connections included, "+
			"divided by their number, each round on a fresh server. The Go runtime's own account (`%s`) grows by %.1f KiB.", heapFigure, load.Median(heap))},
	}}, nil
}

func (b *bench) memoryOfWaiting(ctx context.Context) (resident, heap float64, err error) {
	var cs closers
	defer cs.closeInto(&err)
	r, err := b.startReplica(ctx, "", &cs)
	if err != nil {
		return 0, 0, err
	}
	before, err := steadyFootprint(ctx, r)
	if err != nil {
		return 0, 0, err
	}
	q, err := queueUp(ctx, r, "bench", b.Waiters, &cs)
	if err != nil {
		return 0, 0, err
	}
	cs.add(q.Close)
	after, err := steadyFootprint(ctx, r)
	n := float64(b.Waiters)
	return (after.resident - before.resident) / n, (after.heap - before.heap) / n, err
}

// steadyFootprint returns the memory when it has stopped growing: at the
// highest of a few seconds.
func steadyFootprint(ctx context.Context, r *rig.Replica) (highest footprint, err error) {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for range 10 {
		resident, err := residentBytes(r.PID())
		if err != nil {
			return footprint{}, err
		}
		heap, err := figure(ctx, r, heapFigure)
		if err != nil {
			return footprint{}, err
		}
		highest.resident = max(highest.resident, float64(resident))
		highest.heap = max(highest.heap, heap)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return footprint{}, ctx.Err()
		}
	}
	return highest, nil
}
