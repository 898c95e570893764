package simulation

import (
	"fmt"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/events"
	"github.com/fencepost/fencepost/webhook"
)

const (
	callbackURL = "https://client.test/" // and the client's number

	// calledWithin is how long after it was granted, and everything healed, an entry is called back
	// at the latest: a shard's lease ends, its next owner begins, and finds the grant.
	calledWithin = 20 * time.Second

	// knownWithin is when a replica knows at the latest, after everything healed, what ended.
	knownWithin = 5 * time.Second
)

// attempt is one message on its way to a receiver.
type attempt struct {
	wire    *wire
	url     string
	message webhook.Message
	event   api.Event
	answer  chan webhook.Result
}

// fact is something that a message may tell of an entry.
type fact struct {
	url, what string // acquired or ended; "" is of no interest
	id        lock.ID
	number    uint64
}

// posted is what was sent to the receivers.
type posted struct {
	from    uint64 // of the subscriptions
	content map[string]fact
	ids     map[fact]string
	got     map[fact]bool
	counts  map[string]int // by URL and id: how often a sender learned that it is delivered
	missed  []events.Missed
	cursor  cursor
	writers map[uint64]uint64 // by version of a record: the fence of its writer
}

func newPosted() posted {
	return posted{
		content: map[string]fact{}, ids: map[fact]string{}, got: map[fact]bool{},
		counts: map[string]int{}, writers: map[uint64]uint64{},
	}
}

// cursor is the shard's, as an owner wrote it into the store.
type cursor struct {
	After string
	Fence uint64 // of the owner
}

// factOf is what a message tells its receiver.
func factOf(url string, e *api.Event) fact {
	f := fact{url: url}
	if e.Data.Entry == nil || e.Data.Entry.Fence == 0 {
		return f
	}
	switch lock.EventKind(e.Type) {
	case lock.EventAcquired:
		f.what = "acquired"
	case lock.EventEnqueued, lock.EventReleaseRequested:
		return f
	default:
		f.what = "ended"
	}
	f.id, f.number = lock.ID(e.Data.Entry.ID), e.Data.Entry.Fence
	return f
}

// dispatch gives an attempt its fate.
func (w *world) dispatch(a *attempt) {
	if a.wire.isDead() {
		return
	}
	w.note("attempt", a.wire.r.n, a.url, a.message.ID)
	w.truth.catchUp()
	w.checkAttempt(a)
	switch x := w.explorer.receiver(w, a); {
	case a.message.Expired(time.Now()):
		a.answer <- webhook.Result{Outcome: webhook.Expired}
	case w.healed || x >= w.Unwell:
		w.schedule(w.latency(), func() { w.receive(a, w.latency(), webhook.Delivered) })
	case x%4 == 0: // it does not get there
		w.schedule(w.latency(), func() { w.reply(a, webhook.Failed) })
	case x%4 == 1:
		w.schedule(w.latency(), func() { w.receive(a, w.latency(), webhook.Failed) })
	case x%4 == 2:
		w.schedule(w.latency(), func() { w.reply(a, webhook.Throttled) })
	default: // slow
		w.schedule(w.latency(), func() { w.receive(a, w.between(0, 20*time.Second), webhook.Delivered) })
	}
}

// receive has the receiver take a message, and answer in a while.
func (w *world) receive(a *attempt, takes time.Duration, how webhook.Outcome) {
	w.note("receive", a.wire.r.n, a.url, a.message.ID, string(how))
	if how == webhook.Delivered {
		w.posted.take(a.url, &a.event)
		w.called(a)
	}
	if takes > webhook.Timeout {
		takes, how = webhook.Timeout, webhook.Failed
	}
	w.schedule(takes, func() { w.reply(a, how) })
}

// reply brings the receiver's answer back.
func (w *world) reply(a *attempt, how webhook.Outcome) {
	if a.wire.isDead() {
		return
	}
	if how == webhook.Delivered {
		w.posted.counts[a.url+a.message.ID]++
	}
	r := webhook.Result{Outcome: how}
	if how == webhook.Throttled {
		r.RetryAfter = w.between(time.Second, 10*time.Second).Truncate(time.Millisecond)
	}
	w.note("reply", a.wire.r.n, a.url, a.message.ID, string(how))
	a.answer <- r
}

// take notes what a receiver knows, or will learn from the store's records.
func (p *posted) take(url string, e *api.Event) {
	if e.Type != api.EventsMissed {
		p.got[factOf(url, e)] = true
		return
	}
	var m events.Missed
	var bad, worse error
	m.After, bad = lock.ParseEventID(e.Data.After)
	m.Before, worse = lock.ParseEventID(e.Data.Before)
	if bad == nil && worse == nil && url == hookURL {
		p.missed = append(p.missed, m)
	}
}

// called has the client of an entry do its work, and release it.
func (w *world) called(a *attempt) {
	f := factOf(a.url, &a.event)
	l := w.truth.at(f.id, f.number)
	if f.what != "acquired" || a.url == hookURL || l == nil || l.called {
		return
	}
	l.called = true
	c := w.clients[0]
	for _, one := range w.clients {
		if a.url == callbackURL+fmt.Sprint(one.n) {
			c = one
		}
	}
	c.has = append(c.has, &holding{
		asked: &asked{}, entry: l.entry, token: a.event.Data.Entry.Token, held: true,
	})
	if c.done = false; c.busy == nil {
		c.think()
	}
}
