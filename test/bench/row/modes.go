package row

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/fencepost/fencepost/test/bench/load"
)

// setSize is how many locks the sets of the row "sets" have.
const setSize = 8

// runSets compares the latency of acquiring a set with that of one lock, by one
// client of one server.
func runSets(ctx context.Context, b *bench) (_ []Outcome, err error) {
	var cs closers
	defer cs.closeInto(&err)
	s, err := b.serve(ctx, embedded, &cs)
	if err != nil {
		return nil, err
	}
	sets := contender{"a set of 8", s.pids, s.watched(b, b.uncontended(s.load.SetWorkers(1, setSize)))}
	single := contender{"one lock", s.pids, s.watched(b, b.uncontended(s.load.Workers(1)))}
	c, err := b.compareBy(ctx, sets, single, func(r *load.Result, _ usage) float64 { return r.Acquire.Percentile(50).Seconds() })
	if err != nil {
		return nil, err
	}
	const most = 2
	sum := load.Summarize(c.pairs)
	o := c.outcome("sets", fmt.Sprintf("acquire %d locks as a set, one client, against one lock of ours", setSize), 0)
	o.Ours, o.Theirs = millis(c.ours.Percentile(50)), millis(c.theirs.Percentile(50))
	o.Bar, o.Met = fmt.Sprintf("≤ %d×", most), verdict(sum.Ratio <= most)
	o.Notes = append([]string{"Compared are the medians of the latency of an acquire."}, c.disturbance()...)
	return []Outcome{o}, nil
}

// order compares clients that name themselves, and hold another lock all the
// while, with clients that do the same without a name: what it costs to learn in
// which order locks are taken.
func order() throughput {
	return throughput{
		id: "order", what: "S1 under a held lock, by holders with names, whose order is learnt, against ones without", atLeast: 0.95,
		ours: nested(true), theirs: nested(false),
		notes: []string{"Both sides are Fencepost. That the order of every cycle was learnt, or of none, was checked."},
	}
}

// nested starts the server for clients that each hold a lock and take others.
func nested(named bool) starter {
	return func(ctx context.Context, b *bench, cs *closers) (contender, error) {
		s, err := b.serve(ctx, embedded, cs)
		if err != nil {
			return contender{}, err
		}
		s.load.Named = named
		const longest = 3600 // seconds, the longest lease by default
		keep := s.load
		keep.TTLSeconds = longest
		for i, w := range keep.Workers(manyClients) {
			if _, err := w.Acquire(ctx, fmt.Sprintf("held:%d", i)); err != nil {
				return contender{}, err
			}
		}
		name := map[bool]string{true: "named", false: "nameless"}[named]
		return contender{name, s.pids, s.learnt(named, s.watched(b, b.uncontended(s.load.Workers(manyClients))))}, nil
	}
}

// learnt fails a round in which the server did not learn the orders, or did
// although it should not.
func (s *served) learnt(named bool, run roundFunc) roundFunc {
	return func(ctx context.Context, round int) (*load.Result, error) {
		r, err := run(ctx, round)
		if err != nil {
			return nil, err
		}
		seen, err := s.ordersOf(ctx, round)
		if err == nil && (named && seen < r.Cycles || !named && seen > 0) {
			err = fmt.Errorf("%d orders were learnt in %d cycles, by clients with names: %t", seen, r.Cycles, named)
		}
		return r, err
	}
}

// ordersOf returns how many orders were learnt of the locks of a round.
func (s *served) ordersOf(ctx context.Context, round int) (seen int64, err error) {
	bearer, err := s.Token(tenant, "admin", "operator")
	if err != nil {
		return 0, err
	}
	resp, err := get(ctx, s.URL()+"/admin/lock-order?limit=1000", bearer)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	var report struct {
		Orders []struct {
			To   string
			Seen int64
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&report); err != nil {
		return 0, err
	}
	for _, o := range report.Orders {
		var of, worker int
		if _, err := fmt.Sscanf(o.To, "bench:%d:%d:*", &of, &worker); err == nil && of == round {
			seen += o.Seen
		}
	}
	return seen, nil
}
