package outbox

import (
	"context"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/events"
	"github.com/fencepost/fencepost/webhook/subscription"
)

// past reads a tenant's events after an id, until each returns false or there are no more. of is the
// tenant among whose streams this one counts.
func past(
	ctx context.Context, locks Locks, of, tenant string, after lock.EventID,
	each func(*events.Missed, *lock.Event) (goOn bool),
) error {
	stream, err := locks.Events(ctx, service.EventsRequest{Of: of, Tenant: tenant, After: &after})
	if err != nil {
		return err
	}
	defer stream.Close()
	for room := make([]*events.Record, 64); ; {
		given, missed, _ := stream.Next(room)
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

// find returns the event of a delivery to a subscription, or with nil to the tenant's callbacks; nil
// if it is not known any more.
func find(
	ctx context.Context, locks Locks, of, tenant string, s *subscription.Subscription, delivery string,
) (found *lock.Event, err error) {
	at, bad := lock.ParseEventID(delivery)
	after, selects := justBefore(at), func(e *lock.Event) bool {
		filter := filterOf(s)
		return e.ID == at && at.Number > s.From && len(filter.Claims(e)) > 0
	}
	if s == nil {
		number, id, ok := parseCallID(delivery)
		if e := locks.HeldCallback(tenant, id); ok && e != nil && e.Number == number {
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
	err = past(ctx, locks, of, tenant, after, func(missed *events.Missed, e *lock.Event) bool {
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

// grantOf is the grant of an entry that holds, of which no event is known.
func grantOf(e *lock.Entry) *lock.Event {
	granted := lock.EventOfGrant(e)
	granted.ID, granted.At = lock.Before(e.Number), time.Now()
	return &granted
}
