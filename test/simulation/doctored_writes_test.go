package simulation

import (
	"errors"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/memory"
)

// writeDoctors are histories in which calls say other things than they did.
func writeDoctors() map[string]func(*doctored) {
	known := store.Unavailable(errors.New("doctored"), "write", false)
	unknown := store.Unavailable(errors.New("doctored"), "write", true)
	return map[string]func(*doctored){
		"written by one call twice": func(d *doctored) {
			c := d.write("a", "")
			d.left(d.wroteBy(c), lock.Withdrawn)
			d.wroteBy(c)
		},
		"written, and denied before": func(d *doctored) {
			c := d.write("a", "a key")
			c.end(known)
			d.wroteBy(c)
		},
		"written, and denied": func(d *doctored) {
			c := d.write("a", "")
			d.wroteBy(c)
			c.end(known)
		},
		"not sent, and unknown": func(d *doctored) { d.write("a", "").end(unknown) },
		"no record, and no error": func(d *doctored) {
			newWrite(d.replicas[0].wire, nil).end(nil)
		},
		"written by another": func(d *doctored) {
			e := d.wroteBy(d.write("a", ""))
			d.checkWritten(d.write("a", ""), e, true)
		},
		"a key taken back": func(d *doctored) {
			e := d.wroteBy(d.write("a", "a key"))
			d.truth.writing = writings{"a": {request: &message{}}}
			d.left(e, lock.Withdrawn)
		},
		"left to its lease": func(d *doctored) {
			c := d.write("a", "")
			e := d.wroteBy(c)
			c.sent = append(c.sent, &message{op: memory.Put, full: true})
			c.end(unknown)
			d.pass(takenBackWithin)
			d.pass(time.Second)
			d.left(e, lock.Expired)
		},
	}
}

// write begins a call that writes an entry.
func (d *doctored) write(id lock.ID, request string) *write {
	e := d.entry(id)
	e.Request = request
	return newWrite(d.replicas[0].wire, e)
}

// wroteBy has the entry of a call be written, and time pass.
func (d *doctored) wroteBy(c *write) *lock.Entry {
	e := *c.entry
	d.number++
	e.Number = d.number
	d.truth.writing = writings{e.ID: {trusted: true, sent: never, request: &message{part: c}}}
	d.truth.join(&e, d.now())
	d.truth.writing = nil
	d.pass(time.Second)
	return &e
}
