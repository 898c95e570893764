package service

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/figures"
	"github.com/fencepost/fencepost/service/lists"
)

// Series are recent events, as this replica saw them.
type Series struct {
	figures.Summary
	Revision uint64
	Now      time.Time
}

// Series returns what happened to a tenant in steps of [figures.Step] or [figures.HourStep]. With
// "" it covers all tenants except the replicas' own. It returns the errors of [Console.Overview].
func (c *Console) Series(tenant string, step time.Duration) (*Series, error) {
	if err := c.Service.view.Progress.Missing(); err != nil {
		return nil, err
	}
	return &Series{
		Revision: c.Service.view.Progress.Number(), Now: c.Service.Now(),
		Summary: c.Service.figures.Series(tenant, step, time.Now()),
	}, nil
}

// History is what happened to a lock, as this replica saw it since it started. The signs are of
// requests to this replica.
type History struct {
	figures.History
	lock.Ref
	Revision    uint64
	Since       time.Time // when the replica started
	Now         time.Time
	Replicas    int // running replicas: others may have handled renewals; 0 if unknown
	StaleWrites int // kept reports about the lock
	Advised     time.Duration
}

// History returns what happened to a lock. It returns the errors of [Console.Overview].
func (c *Console) History(ctx context.Context, r lock.Ref) (*History, error) {
	if err := c.Service.view.Progress.Missing(); err != nil {
		return nil, err
	}
	out := &History{
		Ref: r, Since: c.began, Now: c.Service.Now(), Revision: c.Service.view.Progress.Number(),
		History: c.Service.figures.History(r, time.Now()),
	}
	out.Advised = c.Service.Locks.advisedTTL(out.Figures)
	out.StaleWrites = len(c.reportsOf(ctx, r))
	if c.ConsoleConfig.Replicas != nil {
		live, _ := c.ConsoleConfig.Replicas()
		out.Replicas = len(live)
	}
	return out, nil
}

// HeatMap shows how many entries waited for the most contended locks.
type HeatMap struct {
	Rows      []HeatRow
	Truncated bool
	From      time.Time // when the first cell begins
	Revision  uint64
	Now       time.Time
}

// HeatRow is one lock of a heat map.
type HeatRow struct {
	lock.Ref
	Cells []float64 // average waiters, the oldest step first
	Total float64
}

// HeatMap returns the most contended locks of the last quarter of an hour in sight, as this
// replica saw them. It returns the errors of [Console.Overview].
func (c *Console) HeatMap(s lists.Sight, most int) (*HeatMap, error) {
	if err := c.Service.view.Progress.Missing(); err != nil {
		return nil, err
	}
	now := time.Now()
	out := &HeatMap{
		From: figures.HeatFrom(now), Revision: c.Service.view.Progress.Number(), Now: c.Service.Now(),
	}
	heats, cut := c.Service.figures.Heats(now)
	out.Truncated = cut
	for _, h := range heats {
		if s.Sees(h.Ref) {
			out.add(h, now)
		}
	}
	return out.hottest(most), nil
}

func (m *HeatMap) add(h figures.LockHeat, now time.Time) {
	row := HeatRow{Ref: h.Ref, Cells: h.Read(now)}
	for _, n := range row.Cells {
		row.Total += n
	}
	if row.Total > 0 {
		m.Rows = append(m.Rows, row)
	}
}

func (m *HeatMap) hottest(most int) *HeatMap {
	slices.SortFunc(m.Rows, func(a, b HeatRow) int {
		return cmp.Or(
			cmp.Compare(b.Total, a.Total), cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Name, b.Name),
		)
	})
	if len(m.Rows) > most {
		m.Rows, m.Truncated = m.Rows[:most], true
	}
	return m
}
