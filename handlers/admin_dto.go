package handlers

import (
	"fmt"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/figures"
	"github.com/fencepost/fencepost/service/lists"
	"github.com/fencepost/fencepost/service/view"
)

func (a *endpoints) overviewOf(o *service.Overview) *api.AdminOverview {
	out := &api.AdminOverview{
		Seen:  a.seen(o.Revision, o.Now),
		Locks: o.Locks, Held: o.Held, Contended: o.Contended, Holding: o.Holding, Waiting: o.Waiting,
		Blockers: []api.AdminBlocker{}, Store: storeOf(o), Recent: wholeOf(o.Recent),
	}
	if row := o.Oldest; row != nil {
		out.Oldest = &api.AdminOldest{
			Tenant: row.Tenant, Name: row.Name, Holder: row.Oldest.Holder,
			Since: api.InstantOf(row.Oldest.EnqueuedAt),
		}
	}
	for _, l := range o.Worst {
		b := api.AdminBlocker{
			Tenant: l.Tenant, Name: l.Name, Holding: l.Holding, Waiting: l.Waiting,
			OldestSince: api.InstantOf(l.Oldest.EnqueuedAt), Closed: closingOf(l.Closure), Hangs: l.Hangs,
			UsualHoldSeconds: usualHold(l.Usual),
		}
		if len(l.Holders) > 0 {
			b.Holder = new(adminHolder(l.Holders[0], l.Name))
		}
		out.Blockers = append(out.Blockers, b)
	}
	for _, one := range o.Replicas {
		out.Replicas = append(out.Replicas, api.AdminReplica{
			Replica: one.ID, Host: one.Host, Version: one.Version, Started: api.InstantOf(one.Started),
		})
	}
	return out
}

// usualHold returns nil if it is unknown.
func usualHold(d time.Duration) *api.Seconds {
	if d == 0 {
		return nil
	}
	return new(api.SecondsOf(d))
}

func storeOf(o *service.Overview) api.AdminStore {
	out := api.AdminStore{Current: o.LostFor == 0}
	if !out.Current {
		out.LostSeconds = new(api.SecondsOf(o.LostFor))
	}
	if o.Refusal != nil {
		out.Refusal = o.Refusal.Error()
	}
	return out
}

// adminPageOf describes a page, as much of it as fits into so many bytes.
func (a *endpoints) adminPageOf(p *lists.Page, q lists.Query, left int) *api.AdminLockPage {
	rows := fit(p.Rows, &left, lineBytes)
	if n := len(rows); n < len(p.Rows) {
		p.Rows, p.Next = rows, rows[n-1].Cursor()
	}
	out := &api.AdminLockPage{
		Seen: a.seen(p.Revision, p.Now), Locks: make([]api.AdminLock, 0, len(p.Rows)),
		NextCursor: listCursor(p.Next, q), Matching: p.Matching,
	}
	for _, l := range p.Rows {
		out.Locks = append(out.Locks, adminRow(l))
	}
	return out
}

func lineBytes(l lists.Line) int {
	size := rowBytes + len(l.Tenant) + len(l.Name)
	if l.Closure != nil {
		size += textBytes(l.Closure.Reason)
	}
	for _, h := range l.Holders {
		size += entryBytes(h.Entry, false)
	}
	return size
}

func adminRow(l lists.Line) api.AdminLock {
	out := api.AdminLock{
		Tenant: l.Tenant, Name: l.Name, State: "held",
		Holders: make([]api.AdminHolder, 0, len(l.Holders)), Holding: l.Holding, Waiting: l.Waiting,
		Utilization: api.Seconds(float64(l.Share) / 100), Fence: l.Newest, Closed: closingOf(l.Closure),
	}
	for i, h := range l.Holders {
		if i == 0 {
			h.ExpiresAt = l.ExpiresAt
		}
		out.Holders = append(out.Holders, adminHolder(h, l.Name))
	}
	if l.Oldest != nil {
		out.State, out.OldestSince = "contended", new(api.InstantOf(l.Oldest.EnqueuedAt))
	}
	return out
}

// adminHolder describes a holder of the lock with the name, without its metadata.
func adminHolder(h view.Holder, name string) api.AdminHolder {
	e, claim := h.Entry, claimOn(h.Entry, name)
	out := api.AdminHolder{
		ID: string(e.ID), Holder: e.Holder, Since: api.InstantOf(h.Since),
		TTLSeconds: api.SecondsOf(e.TTL),
		Fence:      e.Number, Mode: string(claim.Mode), Limit: claim.Limit, Permits: claim.Permits,
		Set: setSize(e),
	}
	if !h.ExpiresAt.IsZero() {
		out.ExpiresAt = new(api.InstantOf(h.ExpiresAt))
	}
	return out
}

func setSize(e *lock.Entry) int {
	if !e.Set {
		return 0
	}
	return len(e.Claims)
}

// suffice returns how many locks of a waiting set suffice, 0 if all are needed.
func suffice(e *lock.Entry) int {
	if !e.Choosing() {
		return 0
	}
	return e.Any
}

func (a *endpoints) adminLockOf(v *service.Inspection) *api.AdminLockView {
	plain := lockOf(v.LockView)
	out := &api.AdminLockView{
		Seen: a.seen(v.Revision, v.Now), Tenant: v.Tenant, Name: v.Name,
		Holders: make([]api.AdminHolder, 0, len(v.Holders)), Holding: v.Holding,
		Waiters: make([]api.AdminWaiter, 0, len(v.Waiters)), Waiting: v.Waiting, Fence: v.Newest,
		Closed: plain.Closed, Permits: plain.Permits,
		Figures: api.AdminFigures{
			Figures: plain.Figures, Waits: stepsOf(v.Waits), Holds: stepsOf(v.Holds),
			RecommendedTTLReason: adviceOf(v.Figures, v.Advised),
		},
		StaleWrites: staleWritesOf(v.StaleWrites), ReleaseRequested: plain.ReleaseRequested,
	}
	for _, h := range v.Holders {
		one := adminHolder(h, v.Name)
		one.Metadata = h.Entry.Metadata
		out.Holders = append(out.Holders, one)
	}
	for _, w := range v.Waiters {
		out.Waiters = append(out.Waiters, adminWaiter(w, v.Name))
	}
	return out
}

func adminWaiter(w view.Waiter, name string) api.AdminWaiter {
	e, claim := w.Entry, claimOn(w.Entry, name)
	return api.AdminWaiter{
		ID: string(e.ID), Position: w.Position, Holder: e.Holder, Number: e.Number,
		EnqueuedAt: api.InstantOf(e.EnqueuedAt),
		TTLSeconds: api.SecondsOf(e.TTL), Mode: string(claim.Mode), Limit: claim.Limit,
		Permits: claim.Permits, PermitsBefore: w.PermitsBefore, Set: setSize(e),
		Any: suffice(e), Async: e.Async, Metadata: e.Metadata, WaitUntil: waitUntil(e),
	}
}

func stepsOf(steps []figures.Bin) []api.DistributionStep {
	out := []api.DistributionStep{}
	for _, s := range steps {
		out = append(out, api.DistributionStep{UpToSeconds: api.SecondsOf(s.UpTo), Count: s.Count})
	}
	return out
}

// adviceOf says in words how long the lease had better be.
func adviceOf(f figures.Lock, advised time.Duration) string {
	held := f.Hold
	if advised == 0 {
		ended := fmt.Sprintf("%d holds have", held.Samples)
		if held.Samples == 1 {
			ended = "1 hold has"
		}
		return ended + " ended since this replica started, which is too few to go by"
	}
	return fmt.Sprintf(
		"99 of 100 holds ended within %v s; twice that, in whole seconds and within what the server "+
			"takes, leaves room for slow days and frees the lock soon after its holder died",
		api.SecondsOf(held.P99),
	)
}
