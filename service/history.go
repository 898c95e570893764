package service

import (
	"cmp"
	"slices"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/lists"
	"github.com/fencepost/fencepost/service/series"
	"github.com/fencepost/fencepost/service/view"
)

// Series are what happened in the last quarter of an hour, as this replica saw it.
type Series struct {
	series.Summary
	Revision uint64
	Now      time.Time
}

// Series tells what happened lately in a tenant, or with "" in all but that of the replicas.
// Errors as for [Console.Overview].
func (c *Console) Series(tenant string) (*Series, error) {
	if err := c.Service.view.Missing(); err != nil {
		return nil, err
	}
	now := time.Now()
	return &Series{Summary: c.Service.view.Series(tenant).Read(now), Revision: c.Service.view.Number(), Now: c.Service.Now()}, nil
}

// History is what happened to a lock, as this replica saw it since it started.
type History struct {
	view.History
	lock.Ref
	Since time.Time // when the replica began
	Now   time.Time

	Signs    []Sign // of leases that were too short, the latest first: of requests to this replica
	TooLate  uint64 // entries that were renewed or released after they had expired
	Late     uint64 // renewals after more than two thirds of the lease
	Replicas int    // that run: another one may have taken the renewals between two; 0 if unknown
	Advised  time.Duration

	Heat     []float64 // how many waited on average, the oldest step first; nil if that is not kept
	HeatFrom time.Time // when the first of these steps began
}

// History tells what happened to a lock. Errors as for [Console.Overview].
func (c *Console) History(r lock.Ref) (*History, error) {
	if err := c.Service.view.Missing(); err != nil {
		return nil, err
	}
	out := &History{History: c.Service.view.History(r), Ref: r, Since: c.began, Now: c.Service.Now()}
	out.Signs, out.TooLate, out.Late = c.Service.evidence.read(r)
	for i := range out.Signs {
		out.Signs[i].complete(out.Past)
	}
	out.Advised = c.Service.advisedTTL(out.Figures)
	now := time.Now()
	if h, kept := c.Service.view.HeatOf(r); kept && !h.Idle(now) {
		out.Heat, out.HeatFrom = h.Read(now), heatFrom(now)
	}
	if c.ConsoleConfig.Replicas != nil {
		live, _ := c.ConsoleConfig.Replicas()
		out.Replicas = len(live)
	}
	return out, nil
}

// complete adds what the lock's past tells of the entry.
func (s *Sign) complete(past []view.Past) {
	for _, p := range past {
		if p.Entry != s.Entry || p.Number != s.Number {
			continue
		}
		s.Holder = p.Holder
		if p.Kind == lock.EventExpired && s.Kind != RenewedLate {
			s.After = max(0, s.At.Sub(p.At))
		}
	}
}

// HeatMap is how many waited for the locks where most did.
type HeatMap struct {
	Rows      []HeatRow
	Truncated bool
	From      time.Time // when the first cell begins
	Revision  uint64
	Now       time.Time
}

// HeatRow is one lock.
type HeatRow struct {
	lock.Ref
	Cells []float64 // how many waited on average, the oldest step first
	Total float64
}

// HeatMap tells of the locks that somebody may see for which ones most waited in the last quarter of
// an hour, as this replica saw it. Errors as for [Console.Overview].
func (c *Console) HeatMap(s lists.Sight, most int) (*HeatMap, error) {
	if err := c.Service.view.Missing(); err != nil {
		return nil, err
	}
	now := time.Now()
	heats, full := c.Service.view.Heats(now)
	out := &HeatMap{Truncated: full, Revision: c.Service.view.Number(), Now: c.Service.Now()}
	out.From = heatFrom(now)
	for _, h := range heats {
		if s.Sees(h.Ref) {
			out.add(h, now)
		}
	}
	return out.hottest(most), nil
}

// heatFrom is when the first step begins of what is known at an instant.
func heatFrom(now time.Time) time.Time {
	step := now.UnixNano()/int64(series.HeatStep) - series.HeatSteps + 1
	return time.Unix(0, step*int64(series.HeatStep))
}

func (m *HeatMap) add(h view.Heat, now time.Time) {
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
		return cmp.Or(cmp.Compare(b.Total, a.Total), cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Name, b.Name))
	})
	if len(m.Rows) > most {
		m.Rows, m.Truncated = m.Rows[:most], true
	}
	return m
}
