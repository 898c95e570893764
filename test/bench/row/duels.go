package row

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/fencepost/fencepost/test/bench/load"
)

const (
	manyClients = 128
	members     = 3 // of each cluster in S13
)

// duel is two sides that take turns, and the lines of the table that their rounds give.
type duel struct {
	ours, theirs starter
	lines        []line
}

// line compares one figure of a duel.
type line struct {
	id, what string
	figure   figure
	bar      bar // of the ratio
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
		func(r *load.Result, u usage) float64 { return u.server / r.PerSecond() }, micros,
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
		dir := b.dir
		defer func() { b.dir = dir }()
		for i, d := range lines {
			b.dir = filepath.Join(dir, strconv.Itoa(i))
			if err := os.MkdirAll(b.dir, 0o700); err != nil {
				return outcomes, err
			}
			o, err := b.duel(ctx, d)
			if err != nil {
				return outcomes, err
			}
			outcomes = append(outcomes, o...)
		}
		return outcomes, nil
	}
}

// duel starts both sides, lets them take turns, and stops them.
func (b *bench) duel(ctx context.Context, d duel) (_ []Outcome, err error) {
	var cs closers
	defer cs.closeInto(&err)
	us, err := d.ours(ctx, b, &cs)
	if err != nil {
		return nil, err
	}
	them, err := d.theirs(ctx, b, &cs)
	if err != nil {
		return nil, err
	}
	return b.compare(ctx, d.lines, us, them)
}

const (
	free    = "uncontended, 128 clients"
	oneLock = "32 clients on one lock"
	cpu     = "processor time of the servers for a cycle, "

	onZooKeeper   = ", on ZooKeeper, against "
	againstV3lock = ", against `v3lock` over HTTP, a lease each"
	againstMutex  = ", against `concurrency.Mutex`"
	againstRedis  = ", against Redis, each write flushed"
)

// locks are the rows against the stores' own locks.
var locks = map[string][]duel{
	"S1": {{fencepost(embedded, manyClients), v3lock(1, manyClients), []line{
		{"S1", free + againstV3lock, speed, bar{}},
		{"S15", cpu + free + againstV3lock, perCycle, atMost(0.14)},
	}}},
	"S2": {{fencepost(embedded, manyClients), mutex(1, manyClients), []line{
		{"S2", free + againstMutex + ", shared session", speed, atLeast(1)},
		{"S15", cpu + free + againstMutex + ", shared session", perCycle, atMost(1)},
	}}},
	"S4": {{fencepost(embedded, 1), v3lock(1, 1), []line{
		{"S4", "one client" + againstV3lock, speed, atLeast(3.5)},
	}}},
	"S5": {{fencepostQueue(embedded), mutexQueue(1), []line{
		{"S5", oneLock + againstMutex, speed, atLeast(6)},
		{"S16", cpu + oneLock + againstMutex, perCycle, atMost(0.3)},
	}}},
	"S6": {
		{zooFencepost(queueing, true), zkLocks(queueing, true), []line{
			{"S6", oneLock + onZooKeeper + "go-zookeeper's lock", speed, atLeast(1)},
		}},
		{zooFencepost(queueing, true), curator(queueing, true), []line{
			{"S6", oneLock + onZooKeeper + "Curator's `InterProcessMutex`", speed, atLeast(1)},
		}},
		{zooFencepost(manyClients, false), zkLocks(manyClients, false), []line{
			{"S6", free + onZooKeeper + "go-zookeeper's lock", speed, atLeast(0.9)},
		}},
		{zooFencepost(manyClients, false), curator(manyClients, false), []line{
			{"S6", free + onZooKeeper + "Curator's `InterProcessMutex`", speed, atLeast(0.9)},
		}},
	},
	"S13": {
		{fencepost(members, manyClients), v3lock(members, manyClients), []line{
			{"S13", "S1 on a cluster of three", speed, atLeast(6)},
		}},
		{fencepost(members, manyClients), mutex(members, manyClients), []line{
			{"S13", "S2 on a cluster of three", speed, atLeast(1.1)},
		}},
		{fencepostQueue(members), mutexQueue(members), []line{
			{"S13", "S5 on a cluster of three", speed, atLeast(2)},
		}},
	},
	"Redis": {
		{fencepost(embedded, manyClients), redis(manyClients), []line{
			{"Redis", free + againstRedis, speed, bar{}},
			{"Redis", cpu + free + againstRedis, perCycle, bar{}},
		}},
		{fencepost(embedded, 1), redis(1), []line{{"Redis", "one client" + againstRedis, speed, bar{}}}},
		{fencepostQueue(embedded), redisQueue, []line{
			{"Redis", oneLock + againstRedis + ", which has no queue", speed, bar{}},
		}},
	},
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
		duel{many, older(many), []line{
			{"older", free, speed, fast}, {"older", cpu + free, perCycle, atMost(0.75)},
		}},
		duel{one, older(one), []line{{"older", "one client", speed, fast}}},
		duel{queue, older(queue), []line{
			{"older", oneLock, speed, fast}, {"older", cpu + oneLock, perCycle, atMost(1.05)},
		}},
	)(ctx, b)
}

// older starts what a starter of ours starts, with the older binary.
func older(start starter) starter {
	return func(ctx context.Context, b *bench, cs *closers) (c contender, err error) {
		err = b.withOlder(ctx, func() error {
			c, err = start(ctx, b, cs)
			return err
		})
		c.name = "older"
		return c, err
	}
}

// withOlder calls start, which starts servers, with the older binary in place of ours.
func (b *bench) withOlder(ctx context.Context, start func() error) error {
	newer, err := b.apiBinary(ctx)
	if err != nil {
		return err
	}
	b.api = b.Older
	defer func() { b.api = newer }()
	return start()
}
