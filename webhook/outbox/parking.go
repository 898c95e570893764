package outbox

import (
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/events"
)

// parking is the targets that are given nothing more for a moment: receivers that do well, and have
// more before them than they should, as after the shard had no owner for a while. Otherwise what is
// read at once is more than there is room for, and would be missed. Everybody else is told meanwhile;
// what was not given is read again, and the cursor waits for it.
type parking struct {
	parked map[*target]*parked
	began  map[string]time.Time // by tenant: when one of its receivers was first waited for
}

// parked is from where on a target is given nothing: all of a subscription, the calls of one URL, or
// of all of them, if together they are too many.
type parked struct {
	url   string
	all   bool
	after lock.EventID  // everything up to it was given
	lacks events.Missed // what the feed did not tell last, of which it was told
	item  *item         // stands for what comes after it
}

const (
	// parkTime is how long one tenant's receivers are waited for, and parkPause from when on they may be
	// again: the cursor stays no longer because of one that is slow.
	parkTime  = 3 * time.Second
	parkPause = 10 * time.Minute

	// parkMost is how long what one was not given waits for this replica to be able to read it again:
	// it is missed then.
	parkMost = 15 * time.Second

	parkAt   = maxOfTarget * 3 / 4
	resumeAt = maxOfTarget / 2
)

// may reports whether a tenant's receivers are waited for.
func (c *parking) may(tenant string, now time.Time) bool {
	began, ok := c.began[tenant]
	if !ok || now.Sub(began) >= parkPause {
		if c.began == nil {
			c.began, c.parked = map[string]time.Time{}, map[*target]*parked{}
		}
		c.began[tenant] = now
		return true
	}
	return now.Sub(began) < parkTime
}

// waitsFor reports whether a target is given nothing at the moment: of callbacks, with a URL.
func (c *parking) waitsFor(t *target, url string) bool {
	p := c.parked[t]
	return p != nil && (p.all || p.url == url)
}

// holds reports whether what a delivery tells is part of what its target is not given at the moment.
func (c *parking) holds(d *delivery) bool {
	p := c.parked[d.target]
	return p != nil && d.event().Compare(p.after) > 0 && (p.all || d.grant == nil || d.grant.URL == p.url)
}

// park has a target given nothing more after an event if it has too much before it.
func (w *owner) park(t *target, url string, after lock.EventID) {
	c, now := &w.parking, time.Now()
	all := t.before(url) < parkAt // of one URL there are no more than in all
	if c.parked[t] != nil || len(t.pending) < parkAt || t.Health.Failures > 0 || !c.may(t.tenant, now) {
		return
	}
	it := &item{id: lock.EventID{Number: after.Number, Index: after.Index + 1}, read: now, open: 1}
	c.parked[t] = &parked{url: url, all: all, after: after, item: it}
	w.window.add(it)
}

// before is how many deliveries a receiver has before it.
func (t *target) before(url string) int {
	if t.id == Callbacks {
		return t.calls[url]
	}
	return len(t.pending)
}

// before is how many deliveries those have before them that are given nothing.
func (p *parked) before(t *target) int {
	if p.all {
		return len(t.pending)
	}
	return t.before(p.url)
}

// parkAll looks after an event whether some of those it was given to have too much before them.
func (w *owner) parkAll(e *lock.Event) {
	for _, t := range w.targets.byTenant[e.Entry.Tenant] {
		w.park(t, "", e.ID)
	}
	if t := w.targets.callbacks[e.Entry.Tenant]; t != nil && e.Entry.Callback != nil {
		w.park(t, e.Entry.Callback.URL, e.ID)
	}
}

// ease gives those more that have less before them now, or that are waited for no longer.
func (w *owner) ease(now time.Time) {
	for t, p := range w.parking.parked {
		over := now.Sub(w.parking.began[t.tenant]) >= parkTime
		if over || p.before(t) <= resumeAt {
			w.goOn(t, over)
		}
	}
	for tenant, began := range w.parking.began {
		if now.Sub(began) >= parkPause {
			delete(w.parking.began, tenant)
		}
	}
}

// goOn gives a target what happened since it was parked: until it has too much before it again, or all
// of it, as far as there is room. Without a stream it stays parked for a while. It is read where the shard
// reads: of one tenant less is kept, where its events are large.
func (w *owner) goOn(t *target, all bool) {
	p := w.parking.parked[t]
	if p == nil {
		return
	}
	stream, err := w.Locks.Events(w.ctx, service.EventsRequest{Of: lock.OwnTenant, After: &p.after})
	if err != nil {
		if all && time.Since(p.item.read) >= parkMost {
			w.giveNothing(t, p)
		}
		return
	}
	defer stream.Close()
	delete(w.parking.parked, t)
	p.item.kept = false // it has more deliveries now
	if w.giveSince(t, p, stream, all) {
		p.item.settle()
	} else {
		w.parking.parked[t] = p
	}
	w.startLate(w.window.last)
}

// giveNothing has a target miss what it was not given.
func (w *owner) giveNothing(t *target, p *parked) {
	delete(w.parking.parked, t)
	p.item.kept = false
	w.misses(t, p, events.Missed{After: p.after, Before: w.window.last})
	p.item.settle()
	w.startLate(w.window.last)
}

// misses has a target told that it is not given something, up to where the shard is: what comes then is yet
// to be read. What the shard has told already is not told again.
func (w *owner) misses(t *target, p *parked, m events.Missed) {
	m.Before = earlier(m.Before, w.window.last)
	if m.Before.Compare(m.After) <= 0 || m.Before.Compare(p.lacks.Before) <= 0 && m.After.Compare(p.lacks.After) >= 0 {
		return
	}
	if t.id != Callbacks {
		w.note(t, m, api.MissedUnknown, p.item)
		return
	}
	w.callBackHeld(m.Before, p.item, func(e *lock.Entry) bool { return e.Tenant == t.tenant && p.has(e) })
}

// has reports whether an entry's callback is one of those that are given nothing.
func (p *parked) has(e *lock.Entry) bool {
	return e.Callback != nil && (p.all || e.Callback.URL == p.url)
}

// giveSince reports whether all was given.
func (w *owner) giveSince(t *target, p *parked, stream *service.EventStream, all bool) bool {
	room := make([]*events.Record, 64)
	for {
		given, missed, more := stream.Next(room)
		switch {
		case missed != nil && missed.Backwards():
			w.lostPast()
			return true
		case missed != nil:
			w.misses(t, p, *missed)
			p.after = p.after.Later(missed.Before)
		case len(given) == 0 || more != nil:
			return true
		}
		for _, r := range given {
			if r.ID.Compare(w.window.last) > 0 {
				return true
			}
			w.startLateOf(t, r.ID)
			w.give(t, p, &r.Event, p.item)
			if p.after = r.ID; !all && p.before(t) >= parkAt {
				return false
			}
		}
	}
}

// give offers an event to a target: of callbacks, if it is one of those that were parked.
func (w *owner) give(t *target, p *parked, e *lock.Event, it *item) {
	switch {
	case e.Entry.Tenant != t.tenant:
	case t.id != Callbacks:
		w.offer(t, &body{event: e}, it)
	case p.has(e.Entry):
		w.callBack(e, it)
	}
}

// leave forgets that a target is waited for.
func (c *parking) leave(t *target) {
	if p := c.parked[t]; p != nil {
		delete(c.parked, t)
		p.item.settle()
	}
}
