package row

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fencepost/fencepost/test/bench/load"
)

const (
	// victimRate is how many cycles a second the tenant makes that is watched, and neighbours how
	// many tenants make the well-behaved load.
	victimRate = 100
	neighbours = 20

	// hostileAtOnce is how many requests of the hostile tenant are under way.
	hostileAtOnce = 64
)

// runS17 has one tenant do its worst in each way, and compares another tenant's acquires with
// those beside the same rate of requests of well-behaved tenants.
func runS17(ctx context.Context, b *bench) ([]Outcome, error) {
	if err := allowClients(4096); err != nil {
		return nil, err
	}
	var outcomes []Outcome
	var errs []error
	for _, w := range append(hostileWays(b), frontWays()...) {
		if !b.wants(w.name) {
			continue
		}
		o, err := b.hostileWay(ctx, w)
		if err != nil { // of the victim's requests too: then there are no figures
			b.logf("%s failed: %v", w.name, err)
			errs = append(errs, fmt.Errorf("%s: %w", w.name, err))
			continue
		}
		outcomes = append(outcomes, o)
	}
	mixes, err := b.runWriteMixes(ctx)
	return append(outcomes, mixes...), errors.Join(append(errs, err)...)
}

// wants reports whether to run a way.
func (b *bench) wants(name string) bool {
	return len(b.Ways) == 0 ||
		slices.ContainsFunc(b.Ways, func(part string) bool { return strings.Contains(name, part) })
}

// besides is what a tenant saw beside some load.
type besides struct {
	victim  *load.Result
	rate    float64 // requests a second of that load
	refused float64 // of these, for the tenant's quota of requests
	memory  footprint
}

// fair is the rate that well-behaved tenants have to make instead: what was let in, or what the
// tenant may ask where each of its requests costs more.
func (l *besides) fair(limit int) float64 {
	return min(l.rate, max(float64(limit), l.rate-l.refused))
}

func (b *bench) hostileWay(ctx context.Context, w hostileWay) (Outcome, error) {
	var pairs []load.Pair
	var memory, calm []float64
	ended := load.NewHistogram()
	for round := range b.Rounds {
		bad, err := b.besideHostile(ctx, w, round)
		if err != nil {
			return Outcome{}, err
		}
		rate := bad.fair(b.Limit)
		if w.alone {
			rate = 0
		}
		good, err := b.besideNeighbours(ctx, rate, round, w.secure)
		if err != nil {
			return Outcome{}, err
		}
		pair := load.Pair{Ours: p99.of(bad.victim, usage{}), Theirs: p99.of(good.victim, usage{})}
		b.logf(
			"%s, round %d: %s/s, %s/s of them refused; p99 %s, beside others (%s/s) %s; %s resident, and %s",
			w.name, round+1, number(bad.rate), number(bad.refused), p99.text(pair.Ours), number(good.rate),
			p99.text(pair.Theirs), megabytes(bad.memory.all), megabytes(good.memory.all),
		)
		pairs = append(pairs, pair)
		memory, calm = append(memory, bad.memory.all), append(calm, good.memory.all)
		ended.Merge(bad.victim.Release)
	}
	return w.outcome(pairs, ended.Percentile(99), load.Median(memory), load.Median(calm)), nil
}

// outcome compares the acquires. ended is the p99 of a renewal and a release together.
func (w hostileWay) outcome(pairs []load.Pair, ended time.Duration, memory, calm float64) Outcome {
	const most, acquires, ends = 5, 25 * time.Millisecond, 100 * time.Millisecond
	o := Outcome{ID: "S17", What: "p99 of an acquire next to a hostile tenant: " + w.name}
	s := o.compared(pairs, p99.text, atMost(most))
	fast := s.Ratio <= most || seconds(s.Ours) <= acquires
	o.Bar += fmt.Sprintf(" or %s; renewal and release ≤ %s", millis(acquires), millis(ends))
	o.Met = verdict(fast && ended <= ends)
	o.Notes = []string{fmt.Sprintf(
		"%s: renewal with release p99 %s; the server's memory %s, next to others %s.",
		w.name, millis(ended), megabytes(memory), megabytes(calm),
	)}
	return o
}

func megabytes(n float64) string { return fmt.Sprintf("%.1f MB", n/1e6) }

// besideHostile runs the victim beside the hostile tenant, which has begun before.
func (b *bench) besideHostile(
	ctx context.Context,
	w hostileWay,
	round int,
) (out besides, err error) {
	return b.besideLoad(
		ctx,
		round,
		w.secure,
		func(ctx context.Context, r *replica, cs *closers) (func() counted, error) {
			a, err := newAttack(r, cs)
			if err != nil {
				return nil, err
			}
			ctx, cancel := context.WithCancel(ctx)
			if w.prepare != nil {
				if err := w.prepare(ctx, a); err != nil {
					cancel()
					return nil, err
				}
			}
			if err := a.limit(ctx, r, b.Limit); err != nil {
				cancel()
				return nil, err
			}
			var all sync.WaitGroup
			for i := range w.atOnce {
				all.Go(func() {
					for n := 0; ctx.Err() == nil; n++ {
						w.attack(ctx, a, i, n)
					}
				})
			}
			cs.add(func() error {
				cancel()
				all.Wait()
				return nil
			})
			return func() counted { return counted{a.sent.Load(), a.refused.Load()} }, nil
		},
	)
}

// besideNeighbours runs the victim beside tenants that make so many requests a second.
func (b *bench) besideNeighbours(
	ctx context.Context,
	rate float64,
	round int,
	secure bool,
) (out besides, err error) {
	return b.besideLoad(
		ctx,
		round,
		secure,
		func(ctx context.Context, r *replica, cs *closers) (func() counted, error) {
			var workers []load.Worker
			for i := range neighbours {
				f, err := clientsOf(r, fmt.Sprintf("neighbour-%d", i), cs)
				if err != nil {
					return nil, err
				}
				workers = append(workers, f.Workers(hostileAtOnce/neighbours+1)...)
			}
			paced := newPace(rate / 2) // a cycle is two requests
			var all sync.WaitGroup
			ctx, cancel := context.WithCancel(ctx)
			for i, w := range workers {
				all.Go(func() {
					for n := 0; paced.next(ctx); n++ {
						if _, err := w.Acquire(ctx, fmt.Sprintf("neighbour:%d:%d", i, n%namesPerWorker)); err == nil {
							_ = w.Release(ctx) // a client that is cut off at the end gets no answer
							paced.done.Add(2)
						}
					}
				})
			}
			cs.add(func() error {
				cancel()
				all.Wait()
				return nil
			})
			return func() counted { return counted{sent: paced.done.Load()} }, nil
		},
	)
}

// counted is requests of a load so far.
type counted struct{ sent, refused int64 }

// besideLoad runs the victim on a fresh server beside a load, which counts its requests.
func (b *bench) besideLoad(
	ctx context.Context,
	round int,
	secure bool,
	begin func(context.Context, *replica, *closers) (func() counted, error),
) (besides, error) {
	serve := func(ctx context.Context, cs *closers) (*served, error) {
		args := toLoopback
		if secure {
			pair, err := b.certificate()
			if err != nil {
				return nil, err
			}
			args = slices.Concat(args, pair)
		}
		return b.serve(ctx, embedded, cs, args...)
	}
	return b.besideLoadOn(ctx, round, serve, begin)
}

// besideLoadOn is besideLoad with the server that serve starts.
func (b *bench) besideLoadOn(
	ctx context.Context,
	round int,
	serve func(context.Context, *closers) (*served, error),
	begin func(context.Context, *replica, *closers) (func() counted, error),
) (out besides, err error) {
	var cs closers
	defer cs.closeInto(&err)
	s, err := serve(ctx, &cs)
	if err != nil {
		return out, err
	}
	s.load.Renews = true
	victim := s.load.Workers(openWorkers / 4)
	count, err := begin(ctx, s.replica, &cs)
	if err != nil {
		return out, err
	}
	before, began := count(), time.Now()
	if out.victim, err = s.profiled(b, b.steady(victimRate)(victim))(ctx, round); err != nil {
		return out, err
	}
	now, lasted := count(), time.Since(began).Seconds()
	out.rate, out.refused = float64(now.sent-before.sent)/lasted, float64(now.refused-before.refused)/
		lasted
	out.memory, err = measure(s.replica.PID())
	return out, err
}
