package simulation

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/webhook"
)

// postDoctors are histories in which something is wrong with what was sent.
func postDoctors() map[string]func(*doctored) {
	grant := string(lock.EventAcquired)
	return map[string]func(*doctored){
		"no message":       func(d *doctored) { d.checkAttempt(&attempt{message: webhook.Message{ID: "1-1"}}) },
		"another tenant's": func(d *doctored) { d.send(alien, "2000-1", grant, nil) },
		"told of no grant": func(d *doctored) { d.send(hookURL, "2000-1", grant, d.entry("a")) },
		"sent as two": func(d *doctored) {
			e := d.joined("a")
			d.send(hookURL, "2000-1", grant, e)
			d.send(hookURL, "2001-1", grant, e)
		},
		"before the subscription": func(d *doctored) {
			d.posted.from = 3000
			d.send(hookURL, "2000-1", grant, d.joined("a"))
		},
		"out of order": func(d *doctored) {
			d.send(hookURL, "2001-1", "", nil)
			d.send(hookURL, "2000-1", "", nil)
		},
		"called at another URL": func(d *doctored) {
			d.send(callbackURL+"9", "1001-a", grant, d.calls("a"))
		},
		"called for too long": func(d *doctored) {
			a := d.message(callbackURL+"1", "1001-a", grant, d.calls("a"))
			a.message.NotAfter = time.Now().Add(time.Hour)
			d.checkAttempt(a)
		},
		"called after the end": func(d *doctored) {
			d.healed = true
			e := d.calls("a")
			d.left(e, lock.Released)
			d.pass(time.Minute)
			d.send(e.Callback.URL, "1001-a", grant, e)
		},
		"delivered twice": func(d *doctored) {
			d.posted.counts[hookURL+"1-1"] = 1
			d.checkPosted()
		},
		"not called": func(d *doctored) {
			e := d.calls("a")
			d.pass(time.Minute)
			d.left(e, lock.Expired)
			d.checkPosted()
		},
		"not sent": func(d *doctored) {
			d.posted.from, d.truth.number = 1, 2
			d.joined("a")
			d.checkPosted()
		},
		"the cursor lost": func(d *doctored) { d.posted.cursor = cursor{"5-1", 1}; d.checkCursor() },
		"an owner of the past": func(d *doctored) {
			d.posted.writers[5] = 2
			d.checkOver(&store.RecordPut{Version: 5})
		},
	}
}

// calls has an entry with a callback be written.
func (d *doctored) calls(id lock.ID) *lock.Entry {
	e := d.joined(id)
	e.Callback = &lock.Callback{URL: callbackURL + "1"}
	return e
}

func (d *doctored) send(url, id, kind string, of *lock.Entry) {
	d.checkAttempt(d.message(url, id, kind, of))
}

// message is one about an entry, as the outbox would send it.
func (d *doctored) message(url, id, kind string, of *lock.Entry) *attempt {
	what := api.Event{ID: id, Type: kind, Data: api.EventData{Tenant: tenant, Lock: "x"}}
	_, _ = fmt.Sscan(id, &what.Data.Number) // up to the index
	if of != nil {
		what.Data.Entry = &api.EventEntry{ID: string(of.ID), Fence: max(of.Number, 1), Token: "token"}
	}
	payload, err := json.Marshal(what)
	if err != nil {
		d.t.Fatal(err)
	}
	m := webhook.Message{ID: id, Payload: payload, NotAfter: time.Now().Add(time.Minute)}
	return &attempt{wire: d.replicas[0].wire, url: url, message: m}
}
