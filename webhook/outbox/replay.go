package outbox

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/api/event"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/events"
)

// replay is everything that happened since an instant, on its way to a target that is told it again: a
// part at a time, each when the one before is kept. What is read is judged beside the owner, which so
// does not keep its other targets waiting.
type replay struct {
	target *target
	filter event.Filter // as it was when it began
	since  time.Time
	item   *item // what was asked for

	at   lock.EventID // everything up to it was read
	upTo lock.EventID // what comes later is told anyway
	gaps []events.Missed
}

const (
	// replayPart is how many events a part has at most, and replayLook at how many it looks.
	replayPart = 64
	replayLook = 4096

	// maxAgain is how many deliveries of a target may be pending for it to be told more again: the rest of
	// the room is for what is to come.
	maxAgain = maxOfTarget / 2

	// replaysAtOnce is to how many targets of a shard everything is told again at the same time. Others wait.
	// One tenant has some of these places at most: it may ask for more all the time.
	replaysAtOnce   = 4
	replaysOfTenant = 2
)

// part is what is sent at once.
type part struct {
	events []*lock.Event
	gaps   []events.Missed
	err    error
	over   bool
}

// mayReplay reports whether a request can be carried out now: not if it has everything told again to somebody
// to whom it is being told, or there are many such, of all or of its tenant. A tenant that waits for a place
// has its turn before those that come to wait later, or have had one since.
func (w *owner) mayReplay(tenant string, r *request) bool {
	return !r.replays() || w.asked.mayReplay(tenant, r.Webhook)
}

func (r *requests) mayReplay(tenant, webhook string) bool {
	if r.replays[targetName(tenant, webhook)] || r.replaysOf(tenant) >= replaysOfTenant {
		return false
	}
	turn := slices.Index(r.turns, tenant)
	if turn < 0 {
		turn = len(r.turns)
		r.turns = append(r.turns, tenant)
	}
	if r.waits == nil {
		r.waits = map[string]bool{}
	}
	r.waits[tenant] = true
	if len(r.replays)+turn >= replaysAtOnce { // or the free places are for those before
		return false
	}
	r.turns = slices.Delete(r.turns, turn, turn+1)
	return true
}

// replaysOf is to how many targets of a tenant everything is told again.
func (r *requests) replaysOf(tenant string) (n int) {
	for name := range r.replays {
		if strings.HasPrefix(name, targetName(tenant, "")) {
			n++
		}
	}
	return n
}

// listed has tenants wait no more of which nothing that waits was in the list, and reports whether there were
// any: what they left free may be for others.
func (r *requests) listed() (left bool) {
	n := len(r.turns)
	r.turns = slices.DeleteFunc(r.turns, func(tenant string) bool { return !r.waits[tenant] })
	clear(r.waits)
	return len(r.turns) < n
}

// allAgain sends everything again that happened since. What is not known any more, and for what there
// is no room, is told to be missed.
func (w *owner) allAgain(t *target, since time.Time, it *item) {
	for _, d := range t.pending {
		if !d.made.Before(since) {
			w.hastenFor(it, d)
		}
	}
	it.open++
	w.goOnReplaying(&replay{target: t, filter: t.filter, since: since, item: it, upTo: w.window.last})
}

func (w *owner) goOnReplaying(r *replay) {
	w.writes.do(func(ctx context.Context) func() {
		p := w.readPart(ctx, r)
		return func() { w.sendPart(r, &p) }
	})
}

// readPart reads the next part. It runs beside the owner.
func (w *owner) readPart(ctx context.Context, r *replay) (p part) {
	stream, err := w.Locks.Events(ctx, service.EventsRequest{Of: lock.OwnTenant, Tenant: r.target.tenant, After: &r.at})
	if err != nil {
		return part{err: err, over: true}
	}
	defer stream.Close()
	room := make([]*events.Record, replayPart)
	for looked := 0; looked < replayLook; {
		given, missed, more := stream.Next(room)
		switch {
		case missed != nil:
			r.at = missed.Before
			p.gaps = append(p.gaps, events.Missed{After: missed.After, Before: earlier(missed.Before, r.upTo), Until: missed.Until})
		case more != nil:
			p.over = true
		}
		looked += len(given)
		if p.take(r, given); p.over || len(p.events) >= replayPart {
			return p
		}
	}
	return p
}

// take takes what is to be told of some events, as far as there is room in the part.
func (p *part) take(r *replay, given []*events.Record) {
	for _, one := range given {
		if p.over = one.ID.Compare(r.upTo) > 0; p.over || len(p.events) >= replayPart {
			return
		}
		r.at = one.ID
		if r.tells(&one.Event) {
			p.events = append(p.events, &one.Event)
		}
	}
}

// tells reports whether an event is one of those that are told again.
func (r *replay) tells(e *lock.Event) bool {
	if e.At.Before(r.since) {
		return false
	}
	if r.target.id == Callbacks {
		return e.Entry.Callback != nil
	}
	return len(r.filter.Claims(e)) > 0
}

// sendPart has a part sent, and the next one read when that is kept.
func (w *owner) sendPart(r *replay, p *part) {
	t := r.target
	if w.targets.all[targetName(t.tenant, t.id)] != t { // it was deleted: what is given to it now would never end
		w.endReplay(r)
		return
	}
	if p.err != nil {
		p.gaps = append(p.gaps, events.Missed{After: r.at, Before: r.upTo})
	}
	r.gaps = append(r.gaps, p.gaps...)
	over := p.over || r.at.Compare(r.upTo) >= 0
	it := &item{read: time.Now(), again: true, open: 1}
	it.done = func() {
		if over {
			w.endReplay(r)
		} else {
			w.goOnReplaying(r)
		}
	}
	defer it.settle()
	for _, e := range p.events {
		if len(t.pending) >= maxAgain && e.ID.Number > t.From {
			w.note(t, events.Missed{After: justBefore(e.ID), Before: r.upTo}, api.MissedForRoom, r.item)
			over = true
			break
		}
		w.give(t, &parked{all: true}, e, it)
	}
	w.keepAll(it)
}

// endReplay has the target told what was not known of what it was to be told again.
func (w *owner) endReplay(r *replay) {
	t := r.target
	delete(w.asked.replays, targetName(t.tenant, t.id))
	w.asked.looked = time.Time{} // another one may wait for this
	for _, m := range r.gaps {
		if !m.Until.IsZero() && m.Until.Before(r.since) || !r.since.Before(w.wall(w.began)) && m.Before.Compare(w.from) <= 0 {
			continue // all of it happened earlier
		}
		m.After = m.After.Later(lock.Before(t.From + 1))
		if m.After.Compare(m.Before) < 0 && w.targets.all[targetName(t.tenant, t.id)] == t {
			w.note(t, m, api.MissedUnknown, r.item)
		}
	}
	r.item.settle()
}

// replayOne offers one event of the past again to a target, and reports whether it is known still, and here.
func (w *owner) replayOne(t *target, id lock.EventID, it *item) (known bool) {
	after := justBefore(id)
	if id.Compare(w.window.last) > 0 {
		return true // what is yet to be read is told anyway
	}
	stream, err := w.Locks.Events(w.ctx, service.EventsRequest{Of: lock.OwnTenant, Tenant: t.tenant, After: &after})
	if err != nil {
		return false
	}
	defer stream.Close()
	given, _, _ := stream.Next(make([]*events.Record, 1))
	if len(given) == 0 || given[0].ID != id {
		return false
	}
	w.give(t, &parked{all: true}, &given[0].Event, it)
	return true
}
