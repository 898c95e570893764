package row

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fencepost/fencepost/test/bench/chart"
	"github.com/fencepost/fencepost/test/bench/load"
)

// mostClients is the right end of the chart of throughput.
const mostClients = 512

// Charts measures what the three charts show, and writes them into [Config.Charts].
func Charts(ctx context.Context, config Config) error {
	b := &bench{Config: config}
	for _, c := range []struct {
		file string
		draw func(context.Context) (chart.Chart, error)
	}{
		{"throughput", b.drawThroughput},
		{"latency", b.drawLatency},
		{"memory", b.drawMemory},
	} {
		b.row, b.dir = c.file, filepath.Join(b.Dir, c.file)
		if err := os.MkdirAll(b.dir, 0o700); err != nil {
			return err
		}
		drawn, err := c.draw(ctx)
		if err == nil {
			err = os.WriteFile(filepath.Join(b.Charts, c.file+".svg"), drawn.SVG(), 0o644)
		}
		if err != nil {
			return fmt.Errorf("chart of %s: %w", c.file, err)
		}
	}
	return nil
}

// drawThroughput has all sides take turns with each number of clients.
func (b *bench) drawThroughput(ctx context.Context) (c chart.Chart, err error) {
	clients := []int{512, 128, 32, 8, 1} // the most first, in which Java compiles
	var cs closers
	defer cs.closeInto(&err)
	sides, err := b.allSides(ctx, &cs)
	if err != nil {
		return c, err
	}
	figures := make([][][]float64, len(sides)) // of a side, with clients, of a round
	for round := range b.Rounds {
		for k, n := range clients {
			for i, side := range sides {
				if figures[i] == nil {
					figures[i] = make([][]float64, len(clients))
				}
				side.workers = side.workers[:n]
				r, _, err := b.round(ctx, side, round*len(clients)+k)
				if err != nil {
					return c, err
				}
				figures[i][k] = append(figures[i][k], r.PerSecond())
			}
		}
	}
	c = chart.Chart{
		Title: "Locks acquired and released, each client with locks of its own",
		X:     chart.Axis{Label: "clients", Log: true, Ticks: []float64{1, 8, 32, 128, 512}},
		Y:     chart.Axis{Label: "cycles a second", Log: true},
	}
	for i, side := range sides {
		c.Series = append(c.Series, seriesOf(side.name, clients, figures[i]))
	}
	return c, nil
}

// allSides starts the server and its peers, each in a folder of its own.
func (b *bench) allSides(ctx context.Context, cs *closers) ([]contender, error) {
	var sides []contender
	row := b.dir
	defer func() { b.dir = row }()
	for _, side := range []struct {
		name  string
		start starter
	}{
		{"Fencepost", fencepost(embedded, mostClients)},
		{"etcd's Go mutex", mutex(1, mostClients)},
		{"etcd's v3lock", v3lock(1, mostClients)},
		{"ZooKeeper's recipe", zkLocks(mostClients, false)},
		{"Redis, no queue", redis(mostClients)},
	} {
		b.dir = filepath.Join(row, side.name)
		if err := os.MkdirAll(b.dir, 0o700); err != nil {
			return nil, err
		}
		c, err := side.start(ctx, b, cs)
		if err != nil {
			return nil, err
		}
		c.name = side.name
		sides = append(sides, c)
	}
	return sides, nil
}

// seriesOf is a line through medians, in the order of x.
func seriesOf(name string, x []int, figures [][]float64) chart.Series {
	s := chart.Series{Name: name}
	for i, values := range figures {
		s.Points = append(s.Points, chart.Point{X: float64(x[i]), Y: load.Median(values)})
	}
	slices.SortFunc(s.Points, func(a, b chart.Point) int { return int(a.X - b.X) })
	return s
}

// drawLatency measures latencies at fractions of the most that the server can do.
func (b *bench) drawLatency(ctx context.Context) (c chart.Chart, err error) {
	var cs closers
	defer cs.closeInto(&err)
	s, err := b.serve(ctx, embedded, &cs)
	if err != nil {
		return c, err
	}
	most, err := b.maximum(ctx, s.contender(b, s.load.Workers(manyClients), b.uncontended))
	if err != nil {
		return c, err
	}
	percentages := []float64{10, 25, 50, 70, 80, 90}
	c = chart.Chart{
		Title: "Latency of an acquire under open load",
		X: chart.Axis{
			Label: "rate, % of the most (" + number(most) + " cycles a second)", Ticks: percentages,
		},
		Y:      chart.Axis{Label: "milliseconds", Log: true},
		Series: []chart.Series{{Name: "p99.9"}, {Name: "p99"}, {Name: "p90"}, {Name: "p50"}},
	}
	workers := s.load.Workers(openWorkers)
	for i, percentage := range percentages {
		side := s.contender(b, workers, b.steady(most*percentage/100))
		all := load.NewHistogram()
		for round := range b.Rounds {
			r, _, err := b.round(ctx, side, i*b.Rounds+round)
			if err != nil {
				return c, err
			}
			all.Merge(r.Acquire)
		}
		for k, p := range []float64{99.9, 99, 90, 50} {
			ms := float64(all.Percentile(p)) / float64(time.Millisecond)
			c.Series[k].Points = append(c.Series[k].Points, chart.Point{X: percentage, Y: ms})
		}
	}
	return c, nil
}

// drawMemory measures the server with more and more requests that wait for one lock.
func (b *bench) drawMemory(ctx context.Context) (chart.Chart, error) {
	c := chart.Chart{
		Title:  "Memory of the server while requests wait for one lock",
		X:      chart.Axis{Label: "waiting requests"},
		Y:      chart.Axis{Label: "resident MB"},
		Series: []chart.Series{{Name: "all"}, {Name: "heap and stacks"}},
	}
	if err := allowClients(b.Waiters); err != nil {
		return c, err
	}
	add := func(waiters int, f footprint) {
		for i, bytes := range []float64{f.all, f.anonymous} {
			c.Series[i].Points = append(c.Series[i].Points, chart.Point{X: float64(waiters), Y: bytes / 1e6})
		}
	}
	for i, n := range []int{b.Waiters / 10, b.Waiters / 4, b.Waiters / 2, b.Waiters} {
		before, after, err := b.memoryOfWaiting(ctx, n)
		if err != nil {
			return c, err
		}
		b.logf("%d waiting requests: %.0f MB, before them %.0f MB", n, after.all/1e6, before.all/1e6)
		if i == 0 {
			add(0, before)
		}
		add(n, after)
	}
	return c, nil
}
