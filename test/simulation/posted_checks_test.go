package simulation

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// checkAttempt checks a message that is being sent.
func (w *world) checkAttempt(a *attempt) {
	p, e := &w.posted, &a.event
	if err := json.Unmarshal(a.message.Payload, e); err != nil || e.ID != a.message.ID {
		w.problem("%s is sent as %s", a.message.ID, a.message.Payload)
		return
	}
	if e.Type == api.EventsMissed {
		return
	}
	f := factOf(a.url, e)
	l := w.truth.at(f.id, f.number)
	switch {
	case a.url == alien || e.Data.Tenant != tenant:
		w.problem("%s of %s is sent to %s", e.ID, e.Data.Tenant, a.url)
	case f.what != "" && (l == nil || l.held == never || f.what == "ended" && l.ended == never):
		w.problem("%s says that %s at %d has %s, which it has not", e.ID, f.id, f.number, f.what)
	case a.url == hookURL:
		w.checkOrder(a)
	case f.what == "acquired":
		w.checkCall(a, l)
	}
	key := a.url + e.ID
	was, known := p.content[key]
	other := f.what != "" && p.ids[f] != "" && p.ids[f] != e.ID
	if known && was != f || other {
		w.problem("%s to %s is %v, and was %v as %s", e.ID, a.url, f, was, p.ids[f])
	}
	p.content[key], p.ids[f] = f, e.ID
}

// ordered are the first attempts of an owner about a lock.
type ordered struct {
	owner uint64 // its fence
	lock  string
}

// checkOrder: an owner's first attempts about a lock are in the order of the events, all later than
// the subscription. Another owner may have known more of the events.
func (w *world) checkOrder(a *attempt) {
	p, e := &w.posted, &a.event
	at, err := lock.ParseEventID(e.ID)
	if err != nil || at.Number != e.Data.Number || at.Number <= p.from {
		w.problem("%s of number %d is sent to a subscription from %d", e.ID, e.Data.Number, p.from)
	}
	if _, again := p.content[a.url+e.ID]; again {
		return
	}
	names := e.Data.Locks
	if e.Data.Lock != "" {
		names = []string{e.Data.Lock}
	}
	for _, name := range names {
		of := ordered{p.cursor.Fence, name}
		if last := a.wire.sent[of]; at.Compare(last) <= 0 {
			w.problem("%s of %s is sent first after %s", at, name, last)
		}
		a.wire.sent[of] = at
	}
}

// checkCall: a callback goes to the entry's URL, and is of use until at most one TTL after its
// grant was seen.
func (w *world) checkCall(a *attempt, l *life) {
	to := l.entry.Callback
	if to == nil || to.URL != a.url || a.event.Data.Entry.Token == "" {
		w.problem("%s at %d is called at %s", l.entry.ID, l.entry.Number, a.url)
	}
	until, err := time.Parse(time.RFC3339, string(a.event.Data.Entry.ExpiresAt))
	if since := max(l.ended, w.since) + knownWithin; w.healed && l.ended != never && w.now() > since {
		w.problem("%s at %d is called, and ended at %v", l.entry.ID, l.entry.Number, l.ended)
	}
	left, shown := time.Until(a.message.NotAfter), time.Until(until)
	most := l.entry.TTL + time.Millisecond
	if err != nil || a.message.NotAfter.IsZero() || left > most || shown > most {
		w.problem("%s at %d is called for %v, until %v", l.entry.ID, l.entry.Number, left, shown)
	}
}

// fenceOf is of the owner that writes a record.
func fenceOf(p *store.RecordPut) uint64 {
	var by struct{ Fence uint64 }
	if json.Unmarshal(p.Value, &by) != nil {
		return 0
	}
	return by.Fence
}

// checkOver: no owner writes over what a later one has written. Of the cursor it may, before it
// knows of that.
func (w *world) checkOver(p *store.RecordPut) {
	if by, was := fenceOf(p), w.posted.writers[p.Version]; p.ID != theShard && by < was {
		w.problem("%s is written by owner %d over what owner %d wrote", p.ID, by, was)
	}
}

// checkCursor: an owner first writes the cursor that it finds, so that the one before it can write
// none any more. Then it moves the cursor forward.
func (w *world) checkCursor() {
	c := w.server.Connect(nil)
	defer c.Close()
	key := store.RecordKey{Kind: "webhook-cursor", Tenant: store.NoTenant, ID: theShard}
	r, _ := c.Records().Get(context.Background(), key)
	var is cursor
	_ = json.Unmarshal(r.Value, &is) // what cannot be read is behind what was
	was := w.posted.cursor
	before, _ := lock.ParseEventID(was.After)
	after, _ := lock.ParseEventID(is.After)
	back := after.Number+1 < before.Number // a gap may begin at the last event
	if was.Fence != 0 && (is.Fence != was.Fence && is.After != was.After || back) {
		w.problem("the cursor is %v, and was %v", is, was)
	}
	w.posted.cursor = is
}

// uncalled reports whether an entry may still be called back.
func (w *world) uncalled() bool {
	return slices.ContainsFunc(w.left(), func(e *lock.Entry) bool {
		return e.Callback != nil && !w.truth.last(e.ID).called
	})
}

// endWebhooks checks what was sent, and has all replicas give their shards up.
func (w *world) endWebhooks() (ok bool) {
	if !w.Webhooks {
		return true
	}
	w.finish("every entry called", leasesWithin+w.turned, func() bool { return !w.uncalled() })
	if w.failed() || w.run(w.now()+calledWithin, w.failed) {
		return false
	}
	w.checkPosted()
	for _, r := range w.replicas {
		go r.unsend()
	}
	w.finish("shards are given up", calledWithin, func() bool {
		return len(w.server.Entries()) == len(w.left())
	})
	return !w.failed()
}

// checkPosted: what happened was sent, is going to be, or is known to be missed; and nothing was
// delivered more often than its shard had owners.
func (w *world) checkPosted() {
	w.readPending()
	owners := 0
	for _, lives := range w.truth.lives {
		for _, l := range lives {
			switch {
			case l.held >= l.ended:
			case l.entry.Tenant == tenant:
				w.checkSent(l)
			default:
				owners++
			}
		}
	}
	for key, n := range w.posted.counts {
		if strings.HasPrefix(key, hookURL) && n > owners {
			w.problem("%s was delivered %d times, by %d owners", key, n, owners)
		}
	}
}

// readPending takes the pending deliveries from the store.
func (w *world) readPending() {
	c := w.server.Connect(nil)
	defer c.Close()
	kind := "webhook-owed-" + strings.TrimPrefix(theShard, "webhooks:")
	q := store.RecordQuery{Kind: kind, Tenant: tenant}
	for r, err := range store.EachRecord(context.Background(), c.Records(), q) {
		var form struct{ Payload api.Event }
		bad := json.Unmarshal(r.Value, &form)
		if err == nil && bad == nil && strings.HasPrefix(r.ID, hookID+":") {
			w.posted.take(hookURL, &form.Payload)
		}
	}
}

// checkSent is about what there was to send of an entry that held.
func (w *world) checkSent(l *life) {
	p, e := &w.posted, l.entry
	if e.Callback != nil && p.ids[fact{e.Callback.URL, "acquired", e.ID, e.Number}] == "" &&
		l.ended > max(l.held, w.since)+calledWithin {
		w.problem("%s at %d held from %v to %v, and was not called", e.ID, e.Number, l.held, l.ended)
	}
	for what, number := range map[string]uint64{"acquired": l.heldBy, "ended": l.endedBy} {
		told := p.got[fact{hookURL, what, e.ID, e.Number}] || p.misses(number)
		if p.from != 0 && number > p.from && !told {
			w.problem("nothing was sent of write %d, when %s at %d %s", number, e.ID, e.Number, what)
		}
	}
}

// misses reports whether the receiver knows, or will, that a write's events may be missing.
func (p *posted) misses(number uint64) bool {
	for _, m := range p.missed {
		if m.After.Number <= number && number <= m.Before.Number {
			return true
		}
	}
	return false
}
