package row

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fencepost/fencepost/test/bench/load"
)

const (
	manyClients = 128
	members     = 3 // of each cluster in S13
)

const fifoNote = "The history of every round was checked: no two clients held the lock at once, " +
	"fences grew from each grant to the next, and no request was granted before one that was sent " +
	"five rounds of the queue earlier."

// duel is a line of the table in which two sides take turns.
type duel struct {
	what         string
	ours, theirs starter
	bar          bar // of the ratio
	figure       figure
	notes        []string
}

// figure is what a duel compares, in cycles per second or in seconds.
type figure struct {
	of   func(*load.Result, usage) float64
	text func(float64) string
}

var (
	speed = figure{func(r *load.Result, _ usage) float64 { return r.PerSecond() }, perSecond}
	// perCycle is the processor time that the servers took for a cycle. Both figures are
	// rates, so the warm-up, which only one of them counts, does no harm.
	perCycle = figure{
		func(r *load.Result, u usage) float64 { return u.server / r.PerSecond() },
		micros,
	}
	p99 = figure{
		func(r *load.Result, _ usage) float64 { return r.Acquire.Percentile(99).Seconds() },
		func(s float64) string { return millis(seconds(s)) },
	}
)

func perSecond(f float64) string { return number(f) + "/s" }

func micros(s float64) string { return fmt.Sprintf("%d µs", seconds(s).Microseconds()) }

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// duels returns what runs the lines of a row one after the other.
func duels(lines ...duel) func(context.Context, *bench) ([]Outcome, error) {
	return func(ctx context.Context, b *bench) (outcomes []Outcome, err error) {
		for _, d := range lines {
			o, err := b.duel(ctx, d)
			if err != nil {
				return outcomes, err
			}
			outcomes = append(outcomes, o)
		}
		return outcomes, nil
	}
}

// duel starts both sides, lets them take turns, and stops them.
func (b *bench) duel(ctx context.Context, d duel) (_ Outcome, err error) {
	var cs closers
	defer cs.closeInto(&err)
	us, err := d.ours(ctx, b, &cs)
	if err != nil {
		return Outcome{}, err
	}
	them, err := d.theirs(ctx, b, &cs)
	if err != nil {
		return Outcome{}, err
	}
	return b.compare(ctx, d, us, them)
}

const (
	cpuNote = "Processor time of the servers alone, for an acquire and its release."
	cpuMany = "processor time of a cycle, uncontended, 128 clients"
	cpuOne  = "processor time of a cycle, 32 clients on one lock"
)

// locks are the rows against the stores' own locks.
var locks = map[string][]duel{
	"S1": {{
		what: "uncontended, 128 clients, against `v3lock` over HTTP, a lease each",
		ours: fencepost(embedded, manyClients), theirs: v3lock(1, manyClients), figure: speed,
	}},
	"S2": {{
		what: "uncontended, 128 clients, against `concurrency.Mutex`, shared session",
		ours: fencepost(embedded, manyClients), theirs: mutex(1, manyClients), figure: speed,
		bar: atLeast(1),
	}},
	"S3": {{
		what: "uncontended, 128 clients, against two empty answers of gin",
		ours: fencepost(embedded, manyClients), theirs: empty(manyClients), figure: speed,
	}},
	"S4": {{
		what: "one client, against `v3lock` over HTTP, a lease each",
		ours: fencepost(embedded, 1), theirs: v3lock(1, 1), figure: speed, bar: atLeast(3.5),
	}},
	"S5": {{
		what: "32 clients on one lock, against `concurrency.Mutex`",
		ours: fencepostQueue(embedded), theirs: mutexQueue(1), figure: speed, bar: atLeast(6),
		notes: []string{fifoNote},
	}},
	"S6": {
		{
			what: "32 clients on one lock, on ZooKeeper, against go-zookeeper's lock",
			ours: zooFencepost(queueing, true), theirs: zkLocks(queueing, true), figure: speed,
			bar: atLeast(1), notes: []string{fifoNote},
		},
		{
			what: "uncontended, 128 clients, on ZooKeeper, against go-zookeeper's lock, " +
				"a connection each",
			ours: zooFencepost(manyClients, false), theirs: zkLocks(manyClients, false),
			figure: speed, bar: atLeast(0.9),
		},
	},
	"S13": {
		{
			what: "S1 on a cluster of three", figure: speed, bar: atLeast(6),
			ours: fencepost(members, manyClients), theirs: v3lock(members, manyClients),
		},
		{
			what: "S2 on a cluster of three", figure: speed, bar: atLeast(1.1),
			ours: fencepost(members, manyClients), theirs: mutex(members, manyClients),
		},
		{
			what: "S5 on a cluster of three", figure: speed, bar: atLeast(2),
			ours: fencepostQueue(members), theirs: mutexQueue(members), notes: []string{fifoNote},
		},
	},
	"S15": {
		{
			what: cpuMany + ", against `concurrency.Mutex`, shared session", figure: perCycle,
			ours: fencepost(embedded, manyClients), theirs: mutex(1, manyClients),
			bar: atMost(1), notes: []string{cpuNote},
		},
		{
			what: cpuMany + ", against `v3lock` over HTTP, a lease each", figure: perCycle,
			ours: fencepost(embedded, manyClients), theirs: v3lock(1, manyClients),
			bar: atMost(0.14), notes: []string{cpuNote},
		},
	},
	"S16": {{
		what: cpuOne + ", against `concurrency.Mutex`", figure: perCycle,
		ours: fencepostQueue(embedded), theirs: mutexQueue(1),
		bar: atMost(0.3), notes: []string{cpuNote},
	}},
}

// runOlder compares the server with one of an older revision, whose binary [Config] names,
// by the same load in turns.
func runOlder(ctx context.Context, b *bench) ([]Outcome, error) {
	if b.Older == "" {
		return nil, errors.New("name the binary of the older server by -older")
	}
	many, one := fencepost(embedded, manyClients), fencepost(embedded, 1)
	queue := fencepostQueue(embedded)
	fast := atLeast(0.95) // rounds of one binary differ by as much
	return duels(
		duel{what: "uncontended, 128 clients", ours: many, figure: speed, bar: fast, theirs: older(many)},
		duel{what: "one client", ours: one, figure: speed, bar: fast, theirs: older(one)},
		duel{what: "32 clients on one lock", ours: queue, figure: speed, bar: fast, theirs: older(queue)},
		duel{what: cpuMany, ours: many, figure: perCycle, bar: atMost(0.75), theirs: older(many)},
		duel{what: cpuOne, ours: queue, figure: perCycle, bar: atMost(1.05), theirs: older(queue)},
	)(ctx, b)
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
