package row

import (
	"context"
	"errors"
)

// runOlder compares the server with one of an older revision, whose binary [Config] names,
// by the same load in turns: what a change cost, or gained.
func runOlder(ctx context.Context, b *bench) ([]Outcome, error) {
	if b.Older == "" {
		return nil, errors.New("name the binary of the older server by -older")
	}
	many, one, queue := fencepost(embedded, manyClients), fencepost(embedded, 1), fencepostQueue(embedded)
	type part func(context.Context, *bench) ([]Outcome, error)
	const atLeast, atMost = 0.95, 1.05 // rounds of one binary differ by as much
	var outcomes []Outcome
	for _, p := range []part{
		throughput{id: "older", what: "uncontended, 128 clients", atLeast: atLeast, ours: many, theirs: older(many)}.run,
		throughput{id: "older", what: "one client", atLeast: atLeast, ours: one, theirs: older(one)}.run,
		throughput{id: "older", what: "32 clients on one lock", atLeast: atLeast, ours: queue, theirs: older(queue)}.run,
		cost{id: "older", what: "processor time of a cycle, uncontended, 128 clients", atMost: atMost, ours: many, theirs: older(many)}.run,
		cost{id: "older", what: "processor time of a cycle, 32 clients on one lock", atMost: atMost, ours: queue, theirs: older(queue)}.run,
	} {
		o, err := p(ctx, b)
		outcomes = append(outcomes, o...)
		if err != nil {
			return outcomes, err
		}
	}
	return outcomes, nil
}

// older starts what a starter of ours starts, with the older binary.
func older(start starter) starter {
	return func(ctx context.Context, b *bench, cs *closers) (contender, error) {
		newer, err := b.apiBinary(ctx)
		if err != nil {
			return contender{}, err
		}
		b.api = b.Older
		defer func() { b.api = newer }()
		c, err := start(ctx, b, cs)
		c.name = "older"
		return c, err
	}
}
