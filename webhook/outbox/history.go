package outbox

import (
	"context"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/events"
	"github.com/fencepost/fencepost/webhook/subscription"
)

// history finds events that happened before.
type history struct {
	locks   Locks
	holders Holders
}

// past reads a tenant's events after an id, until each returns false or there are no more. of is
// the tenant among whose streams this one counts.
func (h history) past(
	ctx context.Context, of, tenant string, after lock.EventID,
	each func(*events.Missed, *lock.Event) (more bool),
) error {
	q := service.EventsRequest{Of: of, Tenant: tenant, After: &after}
	stream, err := h.locks.Events(ctx, q)
	if err != nil {
		return err
	}
	defer stream.Close()
	for buffer := make([]*events.Record, 64); ; {
		given, missed, _ := stream.Next(buffer)
		if missed == nil && len(given) == 0 || missed != nil && !each(missed, nil) {
			return nil
		}
		for _, r := range given {
			if !each(nil, &r.Event) {
				return nil
			}
		}
	}
}

// find returns the event of a delivery to a subscription, or with nil to the tenant's callbacks;
// nil if it is not known any more.
func (h history) find(
	ctx context.Context, of, tenant string, s *subscription.Subscription, delivery string,
) (found *lock.Event, err error) {
	at, bad := lock.ParseEventID(delivery)
	after, selects := justBefore(at), func(e *lock.Event) bool {
		filter := filterOf(s)
		return e.ID == at && at.Number > s.From && len(filter.Claims(e)) > 0
	}
	if s == nil {
		number, id, ok := parseCallID(delivery)
		if e := h.holders.HeldCallback(tenant, id); ok && e != nil && e.Number == number {
			return grantOf(e), nil
		}
		if bad = nil; !ok {
			return nil, nil //nolint:nilnil // it is no id of a callback
		}
		at, after = lock.EventID{Number: number}, lock.Before(number)
		selects = func(e *lock.Event) bool { return e.Entry.ID == id && !e.Held && concernsCaller(e) }
	}
	if bad != nil || s != nil && at.Index == 0 {
		return nil, nil //nolint:nilnil // it is no id of an event
	}
	err = h.past(ctx, of, tenant, after, func(missed *events.Missed, e *lock.Event) bool {
		if missed != nil || e.ID.Number > at.Number {
			return false
		}
		if selects(e) {
			found = e
		}
		return found == nil
	})
	return found, err
}

// grantOf is the grant of an entry that holds, if no event of it is known.
func grantOf(e *lock.Entry) *lock.Event {
	granted := lock.EventOfGrant(e)
	granted.ID, granted.At = lock.Before(e.Number), time.Now()
	return &granted
}

// catchUp offers a subscription what happened between its first write that no owner has caught up
// to, and when this owner learned of it. That it caught up is written after these deliveries are
// made or written. What it got under its former fields comes again, with the same id.
func (w *owner) catchUp(t *target) {
	version, after := t.sub.Version, lock.Before(t.From+1)
	if t.Taken > 0 {
		after = lock.Before(t.sub.FirstAfter(t.Taken) + 1)
	}
	it := &item{read: time.Now(), open: 1}
	it.done = func() { t.Taken, t.dirty = max(t.Taken, version), true }
	defer it.settle()
	if after.Compare(w.out.cursor.last) < 0 {
		w.offerPast(t, events.Missed{After: after, Before: w.out.cursor.last}, it)
	}
	w.out.keepAll(it)
}

// resumeTaken offers again what happened since subscriptions were taken up, in a shard whose owners
// wrote no cursor.
func (w *owner) resumeTaken() {
	it := &item{id: w.out.cursor.last, read: time.Now()}
	for _, t := range w.out.targets.all {
		if after := lock.Before(max(t.From, t.Taken) + 1); t.sub != nil && t.Taken > 0 &&
			after.Compare(w.out.cursor.last) < 0 {
			w.offerPast(t, events.Missed{After: after, Before: w.out.cursor.last}, it)
		}
	}
	w.out.cursor.wait(it)
}

// offerPast offers a subscription what its tenant's history has between two events. The rest is
// missed.
func (w *owner) offerPast(t *target, m events.Missed, it *item) {
	each := func(missed *events.Missed, e *lock.Event) bool {
		switch {
		case missed != nil && missed.Backwards():
			return false
		case missed != nil:
			m.After = earlier(missed.Before, m.Before)
			gap := events.Missed{After: missed.After, Before: m.After}
			w.out.note(t, gap, api.MissedUnknown, it)
		case e.ID.Compare(m.Before) > 0:
			return false
		default:
			w.offer(t, e, it)
		}
		return m.After.Compare(m.Before) < 0
	}
	if w.out.history.past(w.out.ctx, lock.OwnTenant, t.tenant, m.After, each) != nil {
		w.out.note(t, m, api.MissedUnknown, it)
	}
}

// missed handles a gap of the events: one tenant may have had so many that those of all are not
// kept for long. Each subscription gets what its tenant's own history has, and events.missed for
// the rest. Entries that hold are called back: their grants may be in the gap.
func (w *owner) missed(m *events.Missed) {
	if m.Backwards() { // the store was restored: what is in memory is of another past
		w.out.Logger.Warn("the store lost its past; webhooks go on from what it has", "shard", w.out.name)
		w.out.lostShard()
		return
	}
	it := &item{id: m.After, read: time.Now()}
	if it.id == (lock.EventID{}) {
		it.id = m.Before
	}
	for _, ts := range w.out.targets.byTenant {
		for _, t := range ts {
			if t.gets(m.Before) {
				w.offerPast(t, *m, it)
			}
		}
	}
	w.callHeld(m.Before, it)
	w.out.cursor.wait(it)
	w.out.cursor.reached(m.Before)
	w.out.startLate()
}
