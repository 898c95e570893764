package handlers

import (
	"context"
	"fmt"
	"math"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/figures"
)

// maxHeatRows is how many locks a heat map has at most.
const maxHeatRows = 200

// getSeries shows the last quarter of an hour, or the last hours.
//
// @Summary     See recent activity
// @Description Returns grants, releases, expiries, waits and holds in steps. Every replica sees all events, so do not add up their answers.
// @Param       tenant query string false "Only this tenant; the token's own with the scope `tenant-admin`"
// @Param       step_seconds query int false "10: the last 15 minutes; 300: the last 7.5 hours" Enums(10, 300) default(10)
// @Success     200 {object} api.AdminSeries
// @Failure     503 {object} api.Problem "store_unavailable"
// @Router      /admin/series [get]
func getSeries(q *query) maker {
	s, step := q.sight(), q.step()
	if s.May != nil {
		q.reject(
			lock.Errorf(lock.Forbidden, "this is about all locks, and the caller is limited to some; "+
				"use a credential without that limit"),
		)
	}
	return func() (any, error) {
		found, err := q.r.endpoints.Console.Series(s.Tenant, step)
		if err != nil {
			return nil, err
		}
		out := &api.AdminSeries{
			Seen: q.r.endpoints.seen(found.Revision, found.Now), Tenant: s.Tenant,
			StepSeconds: api.SecondsOf(step), Points: []api.SeriesPoint{},
		}
		out.Whole = wholeOf(&found.Summary)
		if out.Whole != nil {
			out.Since = new(api.InstantOf(found.Since))
		}
		for _, p := range found.Points {
			out.Points = append(out.Points, pointOf(p))
		}
		return out, nil
	}
}

// wholeOf is nil before the first event.
func wholeOf(s *figures.Summary) *api.SeriesPoint {
	if s == nil || s.Since.IsZero() {
		return nil
	}
	return new(pointOf(s.Whole))
}

func pointOf(p figures.Point) api.SeriesPoint {
	return api.SeriesPoint{
		At: api.InstantOf(p.At), Waiting: rounded(p.Waiting), Holding: rounded(p.Holding),
		Grants: p.Grants, GrantsPerSecond: perSecond(p.Grants, p), Releases: p.Releases,
		ReleasesPerSecond: perSecond(p.Releases, p),
		Expiries:          p.Expiries, ExpiriesPerSecond: perSecond(p.Expiries, p),
		WaitSeconds: percentilesOf(p.Waits), HoldSeconds: percentilesOf(p.Holds),
	}
}

func perSecond(n int, p figures.Point) api.Seconds {
	if p.Over <= 0 {
		return 0
	}
	return rounded(float64(n) / p.Over.Seconds())
}

func rounded(n float64) api.Seconds { return api.Seconds(math.Round(n*1000) / 1000) }

// getLockHistory tells what happened to one lock.
//
// @Summary     See what happened to a lock
// @Description Returns recent events and holders of a lock, and evidence of leases that were too short, as this replica saw them since it started.
// @Param       tenant path string true "Tenant"
// @Param       name   path string true "Lock name"
// @Success     200 {object} api.AdminHistory
// @Failure     503 {object} api.Problem "store_unavailable"
// @Router      /admin/locks/{tenant}/{name}/history [get]
func getLockHistory(q *query) maker {
	of := lock.Ref{Tenant: q.r.Param("tenant"), Name: q.r.name}
	ctx := context.WithoutCancel(q.r.context())
	q.reject(q.r.operate(of.Tenant))
	return func() (any, error) {
		h, err := q.r.endpoints.Console.History(ctx, of)
		if err != nil {
			return nil, err
		}
		return q.r.endpoints.historyOf(h), nil
	}
}

func (a *endpoints) historyOf(h *service.History) *api.AdminHistory {
	out := &api.AdminHistory{
		Seen: a.seen(h.Revision, h.Now), Tenant: h.Tenant, Name: h.Name, Since: api.InstantOf(h.Since),
		Events: []api.PastEvent{}, Holders: []api.PastHolder{},
		RecommendedTTLReason: adviceOf(h.Figures, h.Advised),
	}
	if h.Advised > 0 {
		out.RecommendedTTLSeconds = new(api.SecondsOf(h.Advised))
	}
	for _, p := range h.Past {
		out.Events = append(out.Events, pastEvent(p))
		if p.Held && p.Reason != "" {
			out.Holders = append(out.Holders, api.PastHolder{
				ID: string(p.Entry), Holder: p.Holder, Fence: p.Number, Until: api.InstantOf(p.At),
				HeldSeconds: api.SecondsOf(p.Lasted), Ended: string(p.Reason),
			})
		}
	}
	out.Evidence, out.Waiting = evidenceOf(h), heatOf(h)
	return out
}

// heatOf is nil if nothing is kept.
func heatOf(h *service.History) *api.LockHeat {
	if h.Heat == nil {
		return nil
	}
	return &api.LockHeat{
		From: api.InstantOf(h.HeatFrom), StepSeconds: api.SecondsOf(figures.HeatStep),
		Average: averages(h.Heat),
	}
}

func averages(cells []float64) (out []api.Seconds) {
	for _, n := range cells {
		out = append(out, rounded(n))
	}
	return out
}

func pastEvent(p figures.Past) api.PastEvent {
	out := api.PastEvent{
		Event: p.ID.String(), Type: string(p.Kind), At: api.InstantOf(p.At), Entry: string(p.Entry),
		Holder: p.Holder, Number: p.Number, Held: p.Held && p.Reason != "",
	}
	if p.Held {
		out.LastedSeconds = new(api.SecondsOf(p.Lasted))
	}
	if p.Note != nil {
		out.RevokedBy, out.Reason = p.Note.By, p.Note.Reason
	}
	return out
}

func evidenceOf(h *service.History) api.LeaseEvidence {
	out := api.LeaseEvidence{
		WorkedAfterExpiry: h.TooLate, LateRenewals: h.Late, StaleWrites: uint64(h.StaleWrites),
		Signs: []api.LeaseSign{}, Words: wordsOf(h),
	}
	for _, s := range h.Signs {
		one := api.LeaseSign{
			Kind: string(s.Kind), Entry: string(s.Entry), Holder: s.Holder, Fence: s.Number,
			At: api.InstantOf(s.At),
		}
		if s.After > 0 {
			one.AfterSeconds = new(api.SecondsOf(s.After))
		}
		if s.TTL > 0 {
			one.TTLSeconds = new(api.SecondsOf(s.TTL))
		}
		out.Signs = append(out.Signs, one)
	}
	return out
}

// wordsOf say what the evidence means.
func wordsOf(h *service.History) (words []string) {
	add := func(n uint64, format string) {
		if n > 0 {
			words = append(words, fmt.Sprintf(format, n))
		}
	}
	add(
		h.TooLate,
		"%d entries were renewed or released after their lease expired: their holders still worked, "+
			"and another holder may have had the lock. A longer ttl_seconds, or renewing earlier, "+
			"keeps it until the work is done",
	)
	add(
		uint64(h.StaleWrites),
		"resources rejected %d writes that came with an old fence: the writer had lost the lock",
	)
	late := "%d renewals came when more than two thirds of the lease had passed: " +
		"a little later, and it would have run out"
	if h.Replicas != 1 {
		late += ". Another replica may have renewed in between, which this one does not see"
	}
	add(h.Late, late)
	if len(words) == 0 {
		return []string{"nothing that this replica has seen shows that a lease was too short"}
	}
	return words
}

// getHeatMap tells where was waited most, and when.
//
// @Summary     See where and when most entries waited
// @Description Returns how many entries waited for the most contended locks in the last 15 minutes, in steps of 30 seconds, as this replica saw it.
// @Param       tenant query string false "Only this tenant; the token's own with the scope `tenant-admin`"
// @Param       limit  query int    false "Locks, at most 200" minimum(1) maximum(1000) default(100)
// @Success     200 {object} api.AdminHeatMap
// @Failure     503 {object} api.Problem "store_unavailable"
// @Router      /admin/heatmap [get]
func getHeatMap(q *query) maker {
	s, limit := q.sight(), q.page()
	return func() (any, error) {
		m, err := q.r.endpoints.Console.HeatMap(s, min(limit, maxHeatRows))
		if err != nil {
			return nil, err
		}
		out := &api.AdminHeatMap{
			Seen: q.r.endpoints.seen(m.Revision, m.Now), From: api.InstantOf(m.From),
			StepSeconds: api.SecondsOf(figures.HeatStep), Rows: []api.HeatMapRow{}, Truncated: m.Truncated,
		}
		for _, one := range m.Rows {
			out.Rows = append(
				out.Rows, api.HeatMapRow{Tenant: one.Tenant, Name: one.Name, Waiting: averages(one.Cells)},
			)
		}
		return out, nil
	}
}
