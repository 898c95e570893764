package view

import (
	"slices"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// write applies the changes of one write, which happened together. An entry that leaves in the
// same write is never granted in between. Deadlocks are decided after all changes.
func (v *View) write(changes []store.Change, now time.Time) {
	v.writing.at(changes[0].Number)
	if len(changes) > 1 {
		v.leaving = map[lock.ID]bool{}
		for _, c := range changes {
			v.leaving[c.Left] = c.Left != ""
		}
		defer func() { v.leaving = nil }()
	}
	for _, c := range changes {
		switch {
		case c.Joined != nil:
			v.join(c.Joined, now)
		case c.Narrowed != nil:
			v.narrow(c.Narrowed, now)
		default:
			v.leave(c, now)
		}
	}
	for _, e := range v.Queues.table.TakeReady() {
		v.Waits.notify(e.ID)
	}
	v.detect(nil, now)
}

// stays returns the granted entries that do not leave in the same write.
func (v *View) stays(granted []*lock.Entry) []*lock.Entry {
	return slices.DeleteFunc(granted, func(e *lock.Entry) bool {
		if v.leaving[e.ID] {
			v.passing[e.ID] = true
		}
		return v.leaving[e.ID]
	})
}

// insert adds an entry without notifying anyone.
func (v *View) insert(e *lock.Entry, now time.Time) (holds, ok bool) {
	holds, err := v.Queues.table.Insert(e)
	if err != nil {
		v.Progress.found(Finding{Kind: FeedOutOfOrder, Entry: e, Err: err}, time.Now())
		return false, false
	}
	v.Quotas.arrived(e.ID)
	a := v.Queues.accounts.of(e.Tenant)
	if a.places == 0 {
		v.Queues.tenants.ReplaceOrInsert(e.Tenant)
	}
	a.add(tallyOf(e, holds))
	v.reindex(a, now, e)
	v.Waits.async.add(e)
	return holds, true
}

func (v *View) join(e *lock.Entry, now time.Time) {
	if known, _ := v.Queues.table.Entry(e.ID); known != nil {
		return
	}
	holds, ok := v.insert(e, now)
	if !ok {
		return
	}
	v.level(v.Queues.accounts.of(e.Tenant), now)
	what, is := lock.EventOfJoin(e, holds)
	chooses := e.Choosing() && v.choiceOf(e.ID) != nil
	switch {
	case holds:
		v.happened(&what, v.Queues.WaitedFor(e), now)
		v.grant(e, now)
	case is && !chooses: // otherwise it need not wait for any entry
		v.happened(&what, 0, now)
		v.asked(e, now)
	}
	v.Waits.notify(e.ID)
}

// narrow applies that a choosing entry left queues: e is what it is now.
func (v *View) narrow(e *lock.Entry, now time.Time) {
	before, _ := v.Queues.table.Entry(e.ID)
	granted, ok := v.Queues.table.Narrow(e)
	if !ok {
		return
	}
	granted = v.stays(granted)
	a := v.Queues.accounts.of(e.Tenant)
	a.take(tallyOf(before, false))
	a.add(tallyOf(e, false))
	a.granted(granted)
	v.asks.forget(before)
	v.level(a, now)
	v.reindex(a, now, granted...)
	v.reindex(a, now, before)
	v.publishGrants(granted, e, now)
}

func (v *View) leave(c store.Change, now time.Time) {
	id, why := c.Left, c.Reason
	v.carryOut(id, why)
	rejected := v.Rejections.rejectedFor(id)
	e, held, granted := v.Queues.table.Remove(id)
	if e == nil {
		return
	}
	v.Reasons.ended.record(e.Tenant, id, why, now)
	v.Reasons.ended.explain(id, c.Note)
	held, granted = held && !v.passing[id], v.stays(granted)
	delete(v.passing, id)
	ended, is := lock.EventOfEnd(e, held, why, rejected)
	ended.Note = c.Note
	if held {
		ended.Lasted = v.endHold(e, now)
		v.announce(e, ended.Lasted)
	}
	if why == lock.Expired {
		v.totals.Expired++
		if !held {
			v.totals.WaitersExpired++
		}
	}
	if is {
		v.happened(&ended, 0, now)
	}
	v.asks.forget(e)
	a := v.Queues.accounts.of(e.Tenant)
	if a.take(tallyOf(e, held)); a.places == 0 {
		v.Queues.tenants.Delete(e.Tenant)
	}
	a.granted(granted)
	v.level(a, now)
	v.reindex(a, now, granted...)
	v.reindex(a, now, e)
	v.Queues.accounts.close(a)
	v.Waits.notify(id)
	v.Waits.async.forget(e)
	v.publishGrants(granted, e, now)
}

// publishGrants publishes the grants that gone caused: it ended, or left queues.
func (v *View) publishGrants(all []*lock.Entry, gone *lock.Entry, now time.Time) {
	for _, g := range all {
		v.Queues.waited[g.ID] = v.Queues.WaitedFor(g)
		granted := lock.EventOfGrant(g)
		granted.Lasted = v.Queues.waited[g.ID]
		v.asks.forget(g)
		v.happened(&granted, granted.Lasted, now)
		v.grant(g, now)
		if g != gone {
			v.Waits.change(g.ID, func(w *watched) { w.freed = gone })
		}
		v.Waits.notify(g.ID)
	}
}

// announce notifies the waiter whose grant is near. It does so only where locks change hands so
// fast that the lease is still fresh at the grant.
func (v *View) announce(left *lock.Entry, lasted time.Duration) {
	if lasted > v.Fresh/(2*aheadBy) {
		return
	}
	for _, c := range left.Claims {
		q := v.Queues.table.Queue(lock.Ref{Tenant: left.Tenant, Name: c.Name})
		if q == nil {
			continue
		}
		if e := q.Waiter(aheadBy); e != nil && v.Waits.watched[e.ID].first != nil &&
			v.Queues.WaitedFor(e) > v.Fresh/2 {
			v.Waits.change(e.ID, func(w *watched) { w.announced = true })
			v.Waits.notify(e.ID)
		}
	}
}

// reindex notes how the locks of changed entries are used now.
func (v *View) reindex(a *account, now time.Time, entries ...*lock.Entry) {
	for _, e := range entries {
		for _, c := range e.Claims {
			r := lock.Ref{Tenant: e.Tenant, Name: c.Name}
			holding, waiting := v.Queues.inQueue(r)
			if waits := a.note(c.Name, holding, waiting); !waits {
				continue
			}
			v.Figures.Waiting(r, waiting, now)
		}
	}
}

func (v *View) grant(e *lock.Entry, now time.Time) {
	v.Queues.since[e.ID] = now
	if v.Refusal() != nil {
		v.Queues.doubtful[e.ID] = struct{}{}
	}
	if e.Named {
		if also := slices.Collect(v.Queues.table.AlsoHeld(e)); also != nil {
			v.Figures.Granted(e, also, v.Progress.applying, now)
		}
	}
}

// endHold returns how long e held.
func (v *View) endHold(e *lock.Entry, now time.Time) time.Duration {
	lasted := now.Sub(v.Queues.since[e.ID])
	delete(v.Queues.since, e.ID)
	delete(v.Queues.waited, e.ID)
	delete(v.Queues.doubtful, e.ID)
	return lasted
}

// level notes how many entries of an account wait and hold.
func (v *View) level(a *account, now time.Time) {
	v.Figures.Level(a.tenant, a.waiting, a.holding, now)
}

// happened names an event by its write, and publishes it. waited is how long ago the client
// requested the grant.
func (v *View) happened(what *lock.Event, waited time.Duration, now time.Time) {
	v.writing.events++
	what.ID, what.At = lock.EventID{Number: v.writing.number, Index: v.writing.events}, now
	v.Figures.Happened(what, waited, v.Queues.isFree)
	v.Events.Add(*what)
}

// detect updates the rejections after a change. known reports the rejections from before a list,
// which are not published again.
func (v *View) detect(known func(lock.ID) bool, now time.Time) {
	for _, e := range v.Queues.table.Detect() {
		if rejection := v.Queues.table.Rejection(e.ID); rejection != nil && rejection.Cycle != nil &&
			(known == nil || !known(e.ID)) {
			v.Rejections.report(e, rejection.Cycle, now)
		}
		v.Waits.notify(e.ID)
	}
}

// carryOut notes that an entry leaves because of its rejection, if a request waits on it.
func (v *View) carryOut(id lock.ID, why lock.Reason) {
	if v.Waits.watched[id].first == nil || why != lock.Withdrawn && why != lock.Deadlocked &&
		why != lock.Mismatched && why != lock.Superseded {
		return
	}
	if refused := v.Rejections.refused(id); refused != nil {
		e, _ := v.Queues.table.Entry(id)
		v.Waits.change(id, func(w *watched) { w.refused = refusal{e.Number, refused} })
	}
}
